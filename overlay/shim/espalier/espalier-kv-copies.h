// Copies of some cells of a KV cache, more exact than the cache is. Compiled into llama.

#pragma once

#include "espalier-types.h"

#include "ggml-cpp.h"

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

struct llama_cparams;
struct llama_hparams;
struct llama_memory_i;
struct llama_ubatch;

class llama_kv_cache;
class espalier_kv_copies;

// What a graph reads and writes of them.
struct espalier_kv_copies_input {
    espalier_kv_copies & of;
    ggml_tensor *        rows; // I64 [n_tokens]: where a token's own copy goes
    ggml_tensor *        mask; // F16 [n_rows, n_tokens]: what a token sees of them
};

// K and V, in f16, of each sequence's newest cells and of its first ones. A token reads those near it, and the first ones, here;
// of these the cache's own mask hides the cell. How near, and how many, espalier_kv_exact() says.
//
// A copy is another reading of a cell, never the only one: a cell that has none is read in the cache. So whatever writes cells
// without telling has only to forget() them.
class espalier_kv_copies {
public:
    // NULL: nobody asked for them, or they cannot be had, which is said.
    static std::shared_ptr<espalier_kv_copies> create(const llama_kv_cache & kv, const llama_hparams & hparams, const llama_cparams & cparams);

    void forget();
    void forget(const std::vector<uint32_t> & cells);

    // Those whose position was shifted and whose K was not yet.
    void forget_shifted();

    // Bytes of all of them.
    size_t bytes() const;

    std::shared_ptr<espalier_kv_copies_input> build_input(ggml_context * ctx, int64_t n_tokens);

    // Finds rows for the tokens, whose cells are k_idxs, and divides what they see between kq_mask, which is set, and the copies.
    // A graph that does not attend has not allocated its input, and cells that it writes have no copy.
    void set_input(const espalier_kv_copies_input & input, const ggml_tensor * k_idxs, ggml_tensor * kq_mask, const llama_ubatch & ubatch);

    // K and V of the tokens, [n_embd_head, n_head, n_tokens], to their rows.
    void store(ggml_context * ctx, ggml_cgraph * gf, const espalier_kv_copies_input & input, ggml_tensor * k, ggml_tensor * v, int32_t layer) const;

    // Attention of a layer reads them too.
    void attach(ggml_context * ctx, const espalier_kv_copies_input & input, ggml_tensor * attention, int32_t layer) const;

private:
    struct of_layer {
        ggml_tensor * k; // F16 [n_embd_k_gqa, n_rows]
        ggml_tensor * v;
    };

    espalier_kv_copies(const llama_kv_cache & kv, uint32_t n_seq, int64_t n_rows);

    void allocate(const llama_hparams & hparams);

    void forget_cell(uint32_t cell);

    bool is_near(int32_t pos_token, int32_t pos_cell) const;

    // The sequences' next positions: the first ones in the batch, or those after the last cells.
    std::vector<int32_t> next_positions(const llama_ubatch & ubatch) const;

    // Whether it is nobody's copy.
    bool is_empty(int64_t row) const;

    // Whether a token at or after its sequence's next position reads the row.
    bool is_needed(int64_t row, const std::vector<int32_t> & next) const;

    // The first such row of a run; -1: there is none.
    template <typename predicate> int64_t row_in(int64_t run, const predicate & is_free) const;

    // A row for a sequence's next cell, near those that it has in the run; -1: all are needed.
    int64_t find_row(int64_t run, const std::vector<int32_t> & next) const;

    // The row of a cell's new copy.
    int64_t take_row(uint32_t cell, uint32_t seq, const std::vector<int32_t> & next);

    void divide(const espalier_kv_copies_input & input, ggml_tensor * kq_mask, const llama_ubatch & ubatch) const;

    static const uint32_t none = UINT32_MAX;

    // A sequence's copies lie side by side in runs of so many, so that attention reads few tiles for it.
    static const int64_t rows_of_run = 32;

    const llama_kv_cache &  kv;
    const espalier_kv_exact_cells exact;
    const uint32_t          n_seq;  // a batch may have more, with a buffer that all share: those have no copies
    const int64_t           n_rows; // the last one is for tokens that find no other, and nobody sees it

    std::vector<uint32_t> cell_of_row;
    std::vector<int64_t>  row_of_cell; // -1: it has none
    std::vector<int64_t>  run_of_seq;  // where a sequence's last copy is; -1: it has none

    ggml_context_ptr            ctx;
    ggml_backend_buffer_ptr     buffer;
    std::map<int32_t, of_layer> layers;
};

// Gives a memory its copies, if they were asked for and its cells are of a type of ours.
void espalier_keep_kv_copies(llama_memory_i * memory, const llama_hparams & hparams, const llama_cparams & cparams, ggml_type type_k, ggml_type type_v);
