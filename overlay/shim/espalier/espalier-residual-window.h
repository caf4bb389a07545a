// Residual window and attention sinks of a quantized KV cache: copies of some of its cells in f16. Compiled into llama.

#pragma once

#include "espalier-types.h"

#include "ggml-cpp.h"

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

struct llama_context_params;
struct llama_cparams;
struct llama_hparams;
struct llama_memory_i;
struct llama_ubatch;

class llama_kv_cache;
class espalier_residual_window;

// Sizes in tokens: ESPALIER_KV_RECENT (residual window) and ESPALIER_KV_SINKS (attention sinks) of one context.
struct espalier_residual_window_size {
    int recent;
    int sinks;
};

// The inputs of a graph that reads and writes the copies.
struct espalier_residual_window_input {
    espalier_residual_window & of;
    ggml_tensor *        rows; // I64 [n_tokens]: the row that each token's own copy is written to
    ggml_tensor *        mask; // F16 [n_rows, n_tokens]: the attention mask of the copies
};

// K and V in f16 of each sequence's newest tokens (residual window) and first tokens (attention sinks). A token reads
// the copies of the tokens near it and of the sinks; the cache's own mask hides the cells of those copies from it.
//
// A copy never replaces its cell: a cell without a copy is read in the cache. So code that writes cells without storing
// their copies only has to forget() them.
class espalier_residual_window {
public:
    // Returns NULL if copies are not supported for this cache; the reason is logged.
    static std::shared_ptr<espalier_residual_window> create(const llama_kv_cache & kv, const espalier_residual_window_size & size, const llama_hparams & hparams, const llama_cparams & cparams);

    void forget();
    void forget(const std::vector<uint32_t> & cells);

    // Forgets the copies of cells with a pending shift: the position has changed, K has not yet.
    void forget_shifted();

    // Size of all copies in bytes.
    size_t bytes() const;

    std::shared_ptr<espalier_residual_window_input> build_input(ggml_context * ctx, int64_t n_tokens);

    // Allocates rows for the tokens, whose cells are in k_idxs, and splits the attention mask between kq_mask, which
    // must be set already, and the mask of the copies. A graph without attention does not allocate its input: then all
    // copies are forgotten, and the cells that it writes have none.
    void set_input(const espalier_residual_window_input & input, const ggml_tensor * k_idxs, ggml_tensor * kq_mask, const llama_ubatch & ubatch);

    // Stores K and V of the tokens, [n_embd_head, n_head, n_tokens], in their rows.
    void store(ggml_context * ctx, ggml_cgraph * gf, const espalier_residual_window_input & input, ggml_tensor * k, ggml_tensor * v, int32_t layer) const;

    // Makes the attention node of a layer read the copies too.
    void attach(ggml_context * ctx, const espalier_residual_window_input & input, ggml_tensor * attention, int32_t layer) const;

private:
    struct of_layer {
        ggml_tensor * k; // F16 [n_embd_k_gqa, n_rows]
        ggml_tensor * v;
    };

    espalier_residual_window(const llama_kv_cache & kv, const espalier_residual_window_size & size, uint32_t n_seq, int64_t n_rows);

    void allocate(const llama_hparams & hparams);

    void forget_cell(uint32_t cell);

    bool is_near(int32_t pos_token, int32_t pos_cell) const;

    // The next position of each sequence: its first position in the batch, or the one after its last cell.
    std::vector<int32_t> next_positions(const llama_ubatch & ubatch) const;

    // Whether the row holds no copy of an occupied cell.
    bool is_empty(int64_t row) const;

    // Whether a token at or after its sequence's next position reads the row.
    bool is_needed(int64_t row, const std::vector<int32_t> & next) const;

    // The first row of a run that satisfies the predicate; -1: none does.
    template <typename predicate> int64_t row_in(int64_t run, const predicate & is_free) const;

    // A row for the next cell of a sequence whose last copy is in `run`, in the same run if possible; -1: all rows are
    // needed.
    int64_t find_row(int64_t run, const std::vector<int32_t> & next) const;

    // Allocates a row for the new copy of a cell. Returns the last row, which is always masked, if no other is
    // available.
    int64_t take_row(uint32_t cell, uint32_t seq, const std::vector<int32_t> & next);

    void divide(const espalier_residual_window_input & input, ggml_tensor * kq_mask, const llama_ubatch & ubatch) const;

    static const uint32_t none = UINT32_MAX;

    // A sequence's copies are allocated in runs of this many adjacent rows, so that attention reads few tiles for it.
    static const int64_t rows_of_run = 32;

    const llama_kv_cache &  kv;
    const espalier_residual_window_size size;
    const uint32_t          n_seq;  // with a unified buffer a batch may have further sequences, which get no copies
    const int64_t           n_rows; // the last row is always masked, and takes the tokens that get no other

    std::vector<uint32_t> cell_of_row;
    std::vector<int64_t>  row_of_cell; // -1: no copy
    std::vector<int64_t>  run_of_seq;  // the run of a sequence's last copy; -1: none

    ggml_context_ptr            ctx;
    ggml_backend_buffer_ptr     buffer;
    std::map<int32_t, of_layer> layers;
};

// Creates the copies of a context's memory, if kv_recent or kv_sinks is set and the cache has one of our types.
void espalier_create_residual_window(llama_memory_i * memory, const llama_hparams & hparams, const llama_cparams & cparams, const llama_context_params & params);
