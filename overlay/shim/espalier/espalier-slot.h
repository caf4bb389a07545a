// State of a slot in a paged server, besides upstream's server_slot, which has it as a member.
//
// An idle slot has a retained sequence or nothing: upstream's `prompt` is empty then, so upstream's code cannot compare
// it, choose a slot by it, continue from it or save it. The tokens, their cells and their owner are one value with one
// lifetime: it ends when a request of the same owner takes the sequence over, or when its cells are freed.

#pragma once

#include "espalier-kv.h"
#include "espalier-owner.h"

#include "server-common.h"
#include "server-task.h"

#include <algorithm>
#include <climits>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

struct server_slot;

// A retained sequence: tokens, their cells and their owner. The destructor frees the cells.
class espalier_retained_sequence {
public:
    espalier_retained_sequence(const common_memory & mem, llama_seq_id seq_id, server_tokens && tokens, espalier_owner owner) :
        mem(mem), seq_id(seq_id), tokens_(std::move(tokens)), owner_(std::move(owner)) {
    }

    ~espalier_retained_sequence() {
        if (!tokens_.empty()) {
            mem.seq_rm(seq_id, -1, -1);
        }
    }

    espalier_retained_sequence(const espalier_retained_sequence &)             = delete;
    espalier_retained_sequence & operator=(const espalier_retained_sequence &) = delete;

    const server_tokens  & tokens() const { return tokens_; }
    const espalier_owner & owner()  const { return owner_;  }

    // Keeps the first tokens and their cells; frees the rest.
    void cut(size_t n_tokens) {
        server_tokens first = copy_first(tokens_, n_tokens);
        tokens_ = std::move(first);
        mem.seq_rm(seq_id, tokens_.pos_next(), -1);
    }

    // Moves the tokens to the caller, which then also owns their cells.
    server_tokens take() {
        server_tokens taken = std::move(tokens_);
        tokens_.clear();
        return taken;
    }

    // Copies the first tokens; images without their pixels. Not server_tokens::keep_first, which cannot cut between two
    // images.
    static server_tokens copy_first(const server_tokens & tokens, size_t n_tokens) {
        server_tokens first;
        first.has_mtmd = tokens.has_mtmd;
        while (first.size() < n_tokens) {
            if (tokens[first.size()] == LLAMA_TOKEN_NULL) {
                first.push_back_placeholder(tokens.find_chunk(first.size()).get());
            } else {
                first.push_back(tokens[first.size()]);
            }
        }
        return first;
    }

private:
    common_memory  mem;
    llama_seq_id   seq_id;
    server_tokens  tokens_;
    espalier_owner owner_;
};

struct espalier_slot {
    espalier_kv * kv = nullptr; // null if the KV cache is not paged
    bool retains = false;       // retain the sequence after the answer, because it can be saved to a file
    int  most_drafts = INT_MAX; // limit of draft tokens, so that the tokens and drafts of all slots fit into one batch
    int  drafts_at_once = 0;    // draft tokens that the draft model computes however few are wanted; 0: no more than those
    int  n_ctx = INT_MAX;       // tokens of a sequence at most
    std::vector<server_slot> * all = nullptr; // the slots of the server, with this one; null if the KV cache is not paged

    std::unique_ptr<espalier_retained_sequence> retained;

    // State of the slot's request; reset when it ends.
    struct request {
        bool is_prepared = false;   // prepare_request() was called since it arrived, or since it was last preempted
        bool is_shared   = false;   // other requests may share the blocks that it computes
        bool is_admitted = false;   // it holds its blocks
        bool awaits_parent = false; // it continues from its parent's prompt when that is computed
        bool is_considered = false; // considered by the scheduler once; it may stay in the queue
        bool was_admitted = false;  // at least once: a preempted request counts once in the metrics
        size_t n_matched  = SIZE_MAX; // tokens that it had at the admission with the fewest: it has computed all others
        espalier_owner owner;
        server_tokens  preempted;   // its tokens when it was preempted while decoding
        bool is_in_step  = false;   // this step is for its batch key
        uint64_t last_step = 0;     // the last step for its batch key, or the step in which it was admitted
        uint32_t waits_for   = ESPALIER_SCHEDULE_FOR_NOTHING;
        int64_t  t_last_token = 0;  // 0: it has not generated one
        int32_t  stops_at     = 0;  // number of tokens at which its last batch had to end, for a snapshot; 0: nowhere
    };
    request now;

    // Evicts the retained sequence. A request that was to continue from it looks for cached blocks instead, when it is
    // prepared again.
    void evict_retained() {
        retained.reset();
        now.is_prepared = false;
    }

    // Ends the request. The computed full blocks are cached; then the sequence is retained with its cells, or its cells
    // are freed.
    void release(const common_memory & mem, llama_seq_id id, server_prompt & prompt) {
        const server_tokens & tokens = prompt.tokens;
        const size_t n_computed = std::min(tokens.size(), count_computed(id, tokens));
        if (now.is_admitted && n_computed > 0) {
            kv->cache_blocks(id, { &tokens[0], n_computed, tokens.pos_next(n_computed) - 1 }, now.t_last_token != 0);
            kv->slide(id, n_computed); // what is left of the window stays cached longer
        }
        kv->end(id);
        // More than the tokens is in the memory if an image failed half-way: nothing can continue from that.
        const bool is_exact = kv->last_position(id) < tokens.pos_next();
        const bool is_whole = is_exact && n_computed > 0 && n_computed == (size_t) prompt.n_tokens();
        if (now.is_admitted && retains && now.is_shared && is_whole) {
            retain(mem, id, prompt, now.owner);
        } else if (!retained) {
            mem.seq_rm(id, -1, -1);
        }
        prompt.clear();
        now = {};
    }

    // Retains the tokens of `prompt`, whose cells the sequence holds.
    void retain(const common_memory & mem, llama_seq_id id, server_prompt & prompt, const espalier_owner & owner) {
        retained.reset();
        retained = std::make_unique<espalier_retained_sequence>(mem, id, std::move(prompt.tokens), owner);
        prompt.clear();
    }

    // Number of these tokens, or more, whose KV is in the memory.
    size_t count_computed(llama_seq_id id, const server_tokens & tokens) const {
        const llama_pos last = kv->last_position(id);
        return last < 0 ? 0 : tokens.size_up_to_pos(last + 1);
    }

    // Limit of draft tokens after n_tokens. Those that are computed have to be in the context. If snapshots of the state
    // are taken, one step has to end where a block ends.
    int limit_drafts(llama_seq_id id, int n_tokens) const {
        if (!kv) {
            return most_drafts;
        }
        if (n_tokens + drafts_at_once >= n_ctx) {
            return 0;
        }
        if (!kv->takes_snapshots(id)) {
            return most_drafts;
        }
        const int n_left = (int) kv->block_of(id, n_tokens).second - n_tokens;
        return std::min(most_drafts, n_left - 1); // the sampled token comes first
    }

    static json describe_wait(uint32_t waits_for) {
        switch (waits_for) {
            case ESPALIER_SCHEDULE_FOR_PREFIX: return "in-flight blocks of its prefix";
            case ESPALIER_SCHEDULE_FOR_BLOCKS: return "free blocks";
            case ESPALIER_SCHEDULE_FOR_QUEUE:  return "the queue head";
            default:                           return nullptr;
        }
    }

    // For /slots, which another thread answers while the model decodes.
    void add_to(json & to, llama_seq_id id, size_t n_tokens) const {
        if (kv) {
            to["kv_blocks"]       = kv->n_held(id);
            to["n_prompt_tokens"] = retained ? retained->tokens().size() : n_tokens;
            to["waits_for"]       = describe_wait(now.waits_for);
            to["stops_at"]        = now.stops_at > 0 ? json(now.stops_at) : json();
        }
    }
};
