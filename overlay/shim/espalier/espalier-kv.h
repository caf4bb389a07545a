// The paged KV cache of a server: which cells a sequence's tokens go to, and which prompts share them.
//
// It stands between a server and the memory of its llama_context. The block pool of the kernels decides, this
// class carries out: it is the memory's placement, marks published blocks with the retained sequence, and gives
// a sequence the cells that others have computed.
//
// A draft model decodes the same tokens at the same positions, so its memory follows the target's cell by cell:
// what is attached, retained or evicted is so in both.
//
// One thread at a time, the one that decodes. A pool by itself may be asked from any.

#pragma once

#include "espalier-pool.h"

#include "llama.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

// What decides whether two prompts have the same KV. Borrowed for the time of the call.
struct espalier_kv_prompt {
    const llama_token * tokens;
    size_t              n_tokens;
    size_t              n_held;   // tokens at its beginning whose KV the sequence holds
    const std::string & scope;    // who may share it
    const std::string & adapters; // what besides the model computes it; empty: nothing
    const std::vector<espalier_pool_extra> & media; // images and audio in it, by where they begin
};

class espalier_kv {
public:
    // Cells in a block, and in the tiles that attention is told of.
    static const uint32_t block_size = GGML_KV_TILE;

    // Takes over the memory of ctx, which must be empty, for sequences 0 .. n_seq - 1, and that of its draft model,
    // if there is one (ctx_dft is NULL if not). NULL if one cannot be paged; why_not says why, as the end of a
    // sentence.
    static std::unique_ptr<espalier_kv> create(llama_context * ctx, llama_context * ctx_dft, uint32_t n_seq, std::string & why_not);

    // Gives the decision back to the memories and empties them.
    ~espalier_kv();

    espalier_kv(const espalier_kv &)             = delete;
    espalier_kv & operator=(const espalier_kv &) = delete;

    // The sequence begins a prompt that others may share: from here on it can attach and publish. It must hold
    // n_held tokens and nothing else.
    void begin(llama_seq_id seq_id, const espalier_kv_prompt & prompt);

    // Gives the sequence what others have computed of the prompt that it has begun, and promises the rest.
    void attach(llama_seq_id seq_id);

    // The KV of these tokens of the sequence is computed and will not change.
    void publish(llama_seq_id seq_id, const llama_token * tokens, size_t n_tokens);

    // The prompt is over: nobody waits for the sequence any more. What it holds is given up with llama_memory_seq_rm().
    void end(llama_seq_id seq_id);

    // Tokens whose KV the memory has.
    size_t n_computed(llama_seq_id seq_id) const { return (size_t) (llama_memory_seq_pos_max(mems[0], seq_id) + 1); }

    // Blocks that the sequence holds, shared ones included. Any thread may ask.
    uint64_t n_held(llama_seq_id seq_id) const { return functions.held(pool.get(), seq_id); }

    // Goes up whenever a request that waits may be able to go on.
    uint64_t n_changes() const { return functions.changes(pool.get()); }

    // What to do next; why each request waits comes to `waits`. false: the pool has failed inside
    bool schedule(const std::vector<espalier_schedule_request> & requests, const std::vector<llama_seq_id> & kept, bool ask_waiting,
            std::vector<uint32_t> & waits, espalier_schedule_step & step) const;

    // Empties the memories, and brings a pool back that has failed inside.
    void clear();

    // Blocks that n_tokens take.
    static uint64_t n_blocks(size_t n_tokens);

    struct espalier_pool_statistics statistics() const;

    // The pool alone, for who asks for its statistics and may outlive the context.
    std::shared_ptr<const espalier_pool> shared_pool() const { return pool; }

private:
    // What the pool does not know of a sequence.
    struct sequence {
        bool   begun     = false;
        size_t n_settled = 0;        // tokens whose blocks need no publishing any more
        std::vector<uint32_t> tiles; // a bit for each block where it may have cells; more are only slower
    };

    espalier_kv(llama_memory_t mem, const espalier_pool_functions & functions, std::shared_ptr<espalier_pool> pool, uint32_t n_seq);

    // false: it cannot, why_not says why.
    bool follow(llama_memory_t mem_dft, std::string & why_not);

    void retain(const std::vector<uint32_t> & of);
    void attach(llama_seq_id seq_id, const std::vector<uint32_t> & of);
    void evict (const std::vector<uint32_t> & of);

    static bool on_place (void * user_data, const llama_seq_id * seq_ids, const llama_pos * pos, size_t n, uint32_t * cells);
    static void on_seq_rm(void * user_data, llama_seq_id seq_id, llama_pos p0, llama_pos p1);
    static void on_seq_cp(void * user_data, llama_seq_id seq_id_src, llama_seq_id seq_id_dst, llama_pos p0, llama_pos p1);
    static void on_clear (void * user_data);
    static void on_mark_tiles(void * user_data, llama_seq_id seq_id, uint32_t * tiles, size_t n_tiles);

    bool knows(llama_seq_id seq_id) const { return seq_id >= 0 && (size_t) seq_id < sequences.size(); }

    void give_up(llama_seq_id seq_id, llama_pos p0, llama_pos p1);

    void mark(llama_seq_id seq_id, uint32_t cell);

    // The cells of the first n blocks in `blocks`.
    const std::vector<uint32_t> & cells_of(size_t n);

    std::vector<llama_memory_t>     mems; // the model's, and the draft model's
    const espalier_pool_functions & functions;
    std::shared_ptr<espalier_pool>  pool;
    std::vector<sequence>           sequences;

    std::vector<uint32_t> blocks; // first cells; as long as the pool has blocks
    std::vector<uint32_t> cells;
};
