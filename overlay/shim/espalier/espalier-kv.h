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
    const llama_token * tokens; // NULL: it is not shared, and only takes room
    size_t              n_tokens;
    const std::string & salt;     // who may share it
    const std::string & adapters; // what besides the model computes it; empty: nothing
    const std::vector<espalier_pool_extra> & media; // images and audio in it, by where they begin
};

class espalier_kv {
public:
    // Cells in a block, and in the tiles that attention is told of.
    static const uint32_t block_size = GGML_KV_TILE;

    enum class turn {
        compute,   // the sequence computes the rest of its prompt
        wait,      // for a prefix that another sequence computes, or for room
        too_large, // it does not fit into the whole pool
    };

    // Takes over the memory of ctx, which must be empty, for sequences 0 .. n_seq - 1, and that of its draft model,
    // if there is one (ctx_dft is NULL if not). NULL if one cannot be paged; why_not says why, as the end of a
    // sentence.
    static std::unique_ptr<espalier_kv> create(llama_context * ctx, llama_context * ctx_dft, uint32_t n_seq, std::string & why_not);

    // Gives the decision back to the memories and empties them.
    ~espalier_kv();

    espalier_kv(const espalier_kv &)             = delete;
    espalier_kv & operator=(const espalier_kv &) = delete;

    // Asked until it says `compute`. n_reserved: blocks that others are about to take. n_held: how many tokens of the prompt the sequence has, shared with others; a
    // multiple of the block size and less than the prompt. A sequence that holds something already shares
    // nothing and is only given room.
    turn take_turn(llama_seq_id seq_id, const espalier_kv_prompt & prompt, uint64_t n_reserved, size_t & n_held);

    // The KV of these tokens of the sequence is computed and will not change.
    void publish(llama_seq_id seq_id, const llama_token * tokens, size_t n_tokens);

    // The request is over, whether it was answered or not: what of these tokens is computed is published.
    void release(llama_seq_id seq_id, const llama_token * tokens, size_t n_tokens);

    // Nobody waits for the sequence any more. What it holds is given up with llama_memory_seq_rm().
    void end(llama_seq_id seq_id);

    // Has the sequence begun a prompt, that others may share?
    bool has_begun(llama_seq_id seq_id) const { return sequences[seq_id].begun; }

    // May a prompt with this salt go on from what the sequence kept? What was restored from a file belongs to nobody.
    bool may_go_on(llama_seq_id seq_id, const std::string & salt) const {
        return sequences[seq_id].owner.empty() || sequences[seq_id].owner == salt;
    }

    // Blocks that the sequence holds, shared ones included.
    uint64_t n_held(llama_seq_id seq_id) const { return sequences[seq_id].n_blocks; }

    // Blocks that can be taken, and those that running prompts were promised and have not taken yet.
    uint64_t n_available() const;
    uint64_t n_promised() const;

    // Blocks that n_tokens take.
    static uint64_t n_blocks(size_t n_tokens);

    // Blocks that the sequence lacks to hold n_tokens.
    uint64_t n_missing(llama_seq_id seq_id, size_t n_tokens) const;

    struct espalier_pool_statistics statistics() const;

    // The pool alone, for who asks for its statistics and may outlive the context.
    std::shared_ptr<const espalier_pool> shared_pool() const { return pool; }

private:
    // What the pool does not know of a sequence.
    struct sequence {
        bool     begun     = false;
        size_t   n_prompt  = 0; // tokens it was promised room for
        size_t   n_blocks  = 0; // blocks of its table: one past the highest that has a position
        size_t   n_visible = 0; // tokens published, or attached
        std::string owner;      // the salt of the prompt that its cells were computed for
        std::vector<uint32_t> tiles; // a bit for each block where it may have cells; more are only slower
    };

    espalier_kv(llama_memory_t mem, const espalier_pool_functions & functions, std::shared_ptr<espalier_pool> pool, uint32_t n_seq);

    // false: it cannot, why_not says why.
    bool follow(llama_memory_t mem_dft, std::string & why_not);

    void retain(const std::vector<uint32_t> & of);
    void attach(llama_seq_id seq_id, const std::vector<uint32_t> & of);
    void evict (const std::vector<uint32_t> & of);

    // Tokens that room is made for before the prompt is computed.
    static size_t n_room(const espalier_kv_prompt & prompt);

    static bool on_place (void * user_data, const llama_seq_id * seq_ids, const llama_pos * pos, size_t n, uint32_t * cells);
    static void on_seq_rm(void * user_data, llama_seq_id seq_id, llama_pos p0, llama_pos p1);
    static void on_seq_cp(void * user_data, llama_seq_id seq_id_src, llama_seq_id seq_id_dst, llama_pos p0, llama_pos p1);
    static void on_clear (void * user_data);
    static void on_mark_tiles(void * user_data, llama_seq_id seq_id, uint32_t * tiles, size_t n_tiles);

    bool begin(llama_seq_id seq_id, const espalier_kv_prompt & prompt);
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
