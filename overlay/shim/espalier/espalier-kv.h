// The paged KV cache of a server: assigns cells to the tokens of sequences, and shares them between prompts with the
// same prefix (prefix caching).
//
// It sits between a server and the memory of its llama_context. The block pool of the kernels makes the decisions, and
// this class carries them out: it implements the memory's placement, adds cached blocks to the memory's sequence of
// cached cells, and adds matched cells to a sequence.
//
// Some memories also have a state for each sequence (recurrent and convolution states). Cells without the state of their
// tokens cannot be continued, so a prompt is matched only where a snapshot of the state exists. The pool decides where
// snapshots are taken; batches have to end there (next_stop()).
//
// A draft model decodes the same tokens at the same positions, so its memory mirrors the target's cell by cell: blocks
// are matched, cached and evicted in both. In the same way the caches of a memory with a sliding window mirror each
// other inside of that memory, if they have one size. Some draft models also continue from a hidden state
// (espalier-drafts.h).
//
// If the layers with a sliding window have fewer cells, these are another group of the pool (espalier-kv-window.cpp): a
// sequence has those of the last tokens only, and a prompt is matched where the cells of the window before it are
// cached.
//
// Tokens are counted by their index in the sequence, which is not their position in the model if the tokens of an image
// share one (M-RoPE). The block of a token depends on the images before it: if prompts can have some, a block ends where
// one of them ends, as long as the request fits into the pool like that.
//
// Not thread-safe: only the thread that decodes uses it. The pool itself may be queried from any thread.

#pragma once

#include "espalier-block-marks.h"
#include "espalier-drafts.h"
#include "espalier-pool.h"
#include "espalier-snapshot-counts.h"
#include "espalier-snapshots.h"

#include "llama.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

// Everything that decides whether two prompts have the same KV. Borrowed for the duration of the call.
struct espalier_kv_prompt {
    const llama_token * tokens;
    size_t              n_tokens;
    size_t              n_held;   // tokens at its beginning whose KV the sequence holds
    const std::string & scope;    // only prompts with the same scope may share it
    const std::string & adapters; // LoRA adapters with their scales; empty: none
    const std::vector<espalier_pool_extra> & media; // images and audio in it, by position
    size_t              n_system; // tokens of its system prompt, which other prompts are expected to begin with; 0: unknown
    uint64_t            end;      // one past the last position that it needs blocks for when it is admitted, and
    uint64_t            further_choices; // further choices (`n`), each in a block of its own: as schedule() gets them
};

// Tokens of a sequence whose KV is computed. Borrowed for the duration of the call.
struct espalier_kv_text {
    const llama_token * tokens;
    size_t              n_tokens;
    llama_pos           last; // position of the last of them
};

struct espalier_kv_options {
    uint32_t        n_seq;          // number of sequences; their ids are 0 .. n_seq - 1
    uint64_t        snapshot_bytes; // maximum memory of snapshots; 0: none are taken
    bool            has_media;      // prompts can have images and audio
    bool            gathers;        // attention of small batches may read only the cells that they see
    espalier_drafts drafts;
};

class espalier_kv {
public:
    // Cells in a block, of the pool and of the bitmaps that attention gets.
    static const uint32_t block_size = ESPALIER_KV_BLOCK_SIZE;
    static_assert(block_size == LLAMA_KV_BLOCK_SIZE, "the kernels and llama.h must agree");

    // Distance in tokens of the snapshots of a long prompt for which there is no better reason.
    static const uint32_t snapshot_interval = 2048;

    // Takes over placement in the memory of ctx, which must be empty, and in that of its draft model (ctx_dft, NULL if
    // there is none). Returns NULL if one of them cannot be paged, with the reason in why_not as the end of a sentence.
    static std::unique_ptr<espalier_kv> create(llama_context * ctx, llama_context * ctx_dft, espalier_kv_options options, std::string & why_not);

    // Empties the memories and returns placement to them.
    ~espalier_kv();

    espalier_kv(const espalier_kv &)             = delete;
    espalier_kv & operator=(const espalier_kv &) = delete;

    // Whether a memory also has a state for each sequence, and whether snapshots of it are taken.
    bool has_state()       const { return snapshots.has_state(); }
    bool takes_snapshots() const { return has_state() && snapshot_budget > 0; }

    // Whether layers with a sliding window have fewer cells than the others.
    bool has_window() const { return !window_mems.empty(); }

    // Whether these layers have free blocks for this number of consecutive tokens, wherever the first block begins; true
    // also if there are no such layers.
    bool has_window_blocks_for(size_t n_tokens) const;

    // The same for a sequence of n_tokens from a slot file, which has no more than the last window of them.
    bool has_window_blocks_for_file(size_t n_tokens) const { return has_window_blocks_for(std::min<size_t>(n_tokens, window_size)); }

    // Whether prompts share blocks at all.
    bool shares() const { return !has_state() || takes_snapshots(); }

    // Whether snapshots are taken of the sequence, whose drafts then have to end where its blocks end.
    bool takes_snapshots(llama_seq_id seq_id) const { return takes_snapshots() && sequences[seq_id].begun; }

    // Begins a prompt that others may share, for which the sequence must hold n_held tokens and nothing else. It waits
    // until match_prefix(), or resume() if there are such tokens; from then on the sequence can cache its blocks. Has
    // no effect if nothing is shared, or if the sequence lacks cells of these tokens, in the model or in its draft
    // model.
    void begin(llama_seq_id seq_id, const espalier_kv_prompt & prompt);

    // Adds the cached blocks with the first n_tokens of the sequence's prompt to it (a prefix-cache hit), as
    // schedule() offered them, and restores the state after them, whose position is `last`. The rest of the prompt
    // becomes in-flight blocks. Returns false if that failed: then the sequence is empty.
    bool match_prefix(llama_seq_id seq_id, size_t n_tokens, llama_pos last);

    // Caches the full blocks of these tokens, whose KV will not change. If they end at a stop, or at the end of a block
    // of an answer (is_answer), also saves the state of the sequence, which holds exactly these tokens.
    void cache_blocks(llama_seq_id seq_id, const espalier_kv_text & text, bool is_answer);

    // Frees the cells of the sequence, which holds exactly n_tokens, that lie behind its sliding window, in the layers
    // that have one. All of them are computed and passed to cache_blocks(), and no batch is running.
    void slide(llama_seq_id seq_id, size_t n_tokens);

    // Continues a sequence that holds the first n_tokens of its prompt: the rest of that becomes in-flight blocks.
    void resume(llama_seq_id seq_id, size_t n_tokens);

    // The tokens of the block in which this token of the sequence lies: the first one, and the end.
    std::pair<size_t, size_t> block_of(llama_seq_id seq_id, size_t token) const;

    // The number of tokens at which a batch of the sequence should end, which has n_tokens now, so that its state can
    // be saved; 0: it need not end anywhere.
    size_t next_stop(llama_seq_id seq_id, size_t n_tokens) const;

    // Ends the prompt: its in-flight blocks are cancelled, so that no request waits for them. The cells of the sequence
    // are freed with llama_memory_seq_rm().
    void end(llama_seq_id seq_id);

    // Ends the prompt, whose output is not finite, before the cells of the sequence are freed: what it may have computed
    // wrongly is not used again, also from before it was preempted: its blocks behind the first n_matched tokens, which
    // it has not computed, and the states that it has saved or restored. Has no effect after end(), which is also called
    // when the input of the sequence becomes embeddings.
    void distrust(llama_seq_id seq_id, size_t n_matched);

    // Position of the last token whose KV is in the memory; -1: there is none.
    llama_pos last_position(llama_seq_id seq_id) const { return llama_memory_seq_pos_max(mems[0], seq_id); }

    // Whether the sequence, which holds n_held tokens, can continue after the first n_tokens of them, once the others
    // are removed.
    bool can_continue(llama_seq_id seq_id, size_t n_held, size_t n_tokens) const;

    // Number of blocks that the sequence holds, shared ones included. May be called from any thread.
    uint64_t n_held(llama_seq_id seq_id) const { return functions.held(pool.get(), seq_id); }

    // A counter that increases whenever a waiting request may be able to continue.
    uint64_t n_changes() const { return functions.changes(pool.get()); }

    // Decides the next action, and writes the reason why each request waits to `waits`. Returns false if the pool has
    // failed internally.
    bool schedule(const std::vector<espalier_schedule_request> & requests, const std::vector<llama_seq_id> & retained, bool try_waiting,
            std::vector<uint32_t> & waits, espalier_schedule_step & step) const;

    // Empties the memories, and resets the pool, also after an internal failure.
    void clear();

    // Number of blocks that n_tokens take.
    static uint64_t n_blocks(size_t n_tokens);

    // Bytes at most of the hidden states that are kept for a pool of n_tokens, if they have n_embd values each.
    static int64_t bytes_of_rows(size_t n_tokens, int64_t n_embd) { return (int64_t) (n_tokens / block_size * sizeof(float)) * n_embd; }

    struct espalier_pool_statistics statistics() const;

    // Counters of the snapshots, for readers that may outlive the context; null if there is no state.
    std::shared_ptr<espalier_snapshot_counts> shared_counts() const { return has_state() ? counts : nullptr; }

    uint64_t bytes_for_snapshots() const { return snapshot_budget; }

    // The pool alone, for readers of its statistics that may outlive the context.
    std::shared_ptr<const espalier_pool> shared_pool() const { return pool; }

private:
    // State of a sequence that the pool does not have.
    struct sequence {
        bool   begun     = false;
        size_t n_settled = 0;        // tokens whose blocks cache_blocks() need not consider again
        bool   lacks_drafts = false; // the draft model lacks tokens in the middle of it
        espalier_block_marks blocks; // those in which it may have cells; extra ones only cost time
        espalier_block_marks window_blocks; // the same for the layers with a window, if these have cells of their own
    };

    espalier_kv(llama_context * ctx, const espalier_pool_functions & functions, std::shared_ptr<espalier_pool> pool, espalier_kv_options options);

    // Takes over placement in the draft model's memory. Returns false if that is impossible, with the reason in
    // why_not.
    bool follow(llama_context * ctx_dft, std::string & why_not);

    // Takes over placement in the layers with a sliding window, which have cells of their own.
    bool place_window(llama_memory_t mem);

    void cache_cells(uint32_t group, const std::vector<uint32_t> & of);
    void evict_cells(uint32_t group, const std::vector<uint32_t> & of);

    // Adds a sequence to these cells, whole blocks from its first one on. Returns the number of their tokens.
    size_t add_cells(llama_seq_id seq_id, const std::vector<uint32_t> & of);

    // Adds a sequence to these cells of the layers with a window: whole blocks, the last of which ends after the first
    // n_tokens.
    void add_window_cells(llama_seq_id seq_id, const std::vector<uint32_t> & of, size_t n_tokens);

    // Removes a sequence that cannot go on.
    void empty(llama_seq_id seq_id);

    bool restore(llama_seq_id seq_id, uint32_t snapshot, llama_pos last);
    void save(llama_seq_id seq_id, const espalier_kv_text & text, uint32_t reason);
    void save_at_stop(llama_seq_id seq_id, const espalier_kv_text & text, bool is_answer);

    // Tokens of which the draft model has all that it ever gets, SIZE_MAX without one. It has fewer than the target if
    // it failed in the middle of a batch.
    size_t n_in_drafts(llama_seq_id seq_id) const;

    // The sequence, which holds its first n_tokens, is continued: passes the draft model the hidden state after them.
    void continue_drafts(llama_seq_id seq_id, size_t n_tokens);

    std::vector<float> find_row(llama_seq_id seq_id, size_t n_tokens) const;

    // Keeps the hidden states after those of the tokens [begin, end) that end a block.
    void keep_rows(llama_seq_id seq_id, size_t begin, size_t end);

    // The second sequence has the tokens of the first one from here on, and the hidden state after them.
    void copy_row(llama_seq_id from, llama_seq_id to);

    // The target's cells of the tokens from p0 on were removed: removes the draft model's that lie where these did.
    void cut_drafts(llama_seq_id seq_id, llama_pos p0);

    // Places tokens in the layers of one group, and evicts what was cached in the blocks that were allocated for them.
    bool place(uint32_t group, const llama_seq_id * seq_ids, const llama_pos * pos, size_t n, uint32_t * cells);

    // The second sequence gets the blocks of the first one in the layers of one group.
    void share(uint32_t group, llama_seq_id from, llama_seq_id to, llama_pos p0, llama_pos p1);

    static bool on_place (void * user_data, const llama_seq_id * seq_ids, const llama_pos * pos, size_t n, uint32_t * cells);
    static bool on_place_with_successor(void * user_data, const llama_seq_id * seq_ids, const llama_pos * pos, size_t n, uint32_t * cells);
    static void on_seq_rm(void * user_data, llama_seq_id seq_id, llama_pos p0, llama_pos p1);
    static void on_seq_cp(void * user_data, llama_seq_id seq_id_src, llama_seq_id seq_id_dst, llama_pos p0, llama_pos p1);
    static void on_clear (void * user_data);
    static void on_mark_blocks(void * user_data, llama_seq_id seq_id, llama_pos p0, uint32_t * blocks, size_t n_blocks);

    // Whether the sequence, which is not empty, has every cell of its tokens. A slot file has the cells of layers with
    // a sliding window only for the last window. A memory with a state has no window, and its smallest position is that
    // of the state.
    bool has_all_cells(llama_seq_id seq_id) const {
        return (llama_memory_get_parts(mems[0]) & LLAMA_MEMORY_PART_STATE) || llama_memory_seq_pos_min(mems[0], seq_id) == 0;
    }

    // Whether the sequence has the cells that the token after the first n_tokens attends to, in the layers with a window.
    bool has_cells_of_window(llama_seq_id seq_id, size_t n_tokens) const;

    bool knows(llama_seq_id seq_id) const { return seq_id >= 0 && (size_t) seq_id < sequences.size(); }

    void remove_positions(llama_seq_id seq_id, llama_pos p0, llama_pos p1);

    // The groups of the pool: the layers of all memories, and those with a sliding window that have cells of their own.
    static const uint32_t full   = ESPALIER_POOL_GROUP_FULL;
    static const uint32_t window = ESPALIER_POOL_GROUP_WINDOW;

    const std::vector<llama_memory_t> & mems_of(uint32_t group) const { return group == window ? window_mems : mems; }

    espalier_block_marks & marks_of(uint32_t group, llama_seq_id seq_id) {
        return group == window ? sequences[seq_id].window_blocks : sequences[seq_id].blocks;
    }

    // Space for the blocks of each group of the pool.
    using group_blocks = std::array<espalier_pool_blocks, 2>;

    // `blocks`, as space for the blocks of each group.
    group_blocks space_for_blocks();

    // The cells of the first n blocks in `blocks` of a group.
    const std::vector<uint32_t> & cells_of(uint32_t group, size_t n);

    std::vector<llama_memory_t>     mems; // the model's, and the draft model's
    std::vector<llama_memory_t>     window_mems; // that of the model's layers with a window, if these have cells of their own
    const uint32_t                  window_size; // tokens to which a token attends in them
    espalier_snapshots              snapshots;
    const uint64_t                  snapshot_budget; // bytes
    const bool                      gathers;
    const espalier_drafts           drafts;
    espalier_draft_rows             rows;
    const espalier_pool_functions & functions;
    std::shared_ptr<espalier_pool>  pool;
    std::vector<sequence>           sequences;

    std::shared_ptr<espalier_snapshot_counts> counts = std::make_shared<espalier_snapshot_counts>();

    // Scratch: first cells of blocks; one entry for each block of a group.
    std::array<std::vector<uint32_t>, 2> blocks;
    std::vector<uint32_t>                cells;
};
