// What a slot of a paged server has besides upstream's server_slot, which has one of these.
//
// A slot at rest has a kept text or nothing: upstream's `prompt` is empty then, so no code of upstream's compares it,
// chooses by it, goes on from it or saves it. A text, its cells and its owner are one value, the kept text, with one
// life: it ends by being taken over by a request of the same owner, or gives its cells up.

#pragma once

#include "espalier-kv.h"
#include "espalier-owner.h"

#include "server-common.h"
#include "server-task.h"

#include <climits>
#include <memory>
#include <utility>

// A text with its cells and its owner. Whoever destroys it gives the cells up.
class espalier_kept_text {
public:
    espalier_kept_text(const common_memory & mem, llama_seq_id seq_id, server_tokens && tokens, espalier_owner owner) :
        mem(mem), seq_id(seq_id), tokens_(std::move(tokens)), owner_(std::move(owner)) {
    }

    ~espalier_kept_text() {
        if (!tokens_.empty()) {
            mem.seq_rm(seq_id, -1, -1);
        }
    }

    espalier_kept_text(const espalier_kept_text &)             = delete;
    espalier_kept_text & operator=(const espalier_kept_text &) = delete;

    const server_tokens  & tokens() const { return tokens_; }
    const espalier_owner & owner()  const { return owner_;  }

    // The first tokens stay, with their cells.
    void cut(size_t n_tokens) {
        server_tokens first = copy_first(tokens_, n_tokens);
        tokens_ = std::move(first);
        mem.seq_rm(seq_id, n_tokens, -1);
    }

    // The caller has the text now, and its cells.
    server_tokens take() {
        server_tokens taken = std::move(tokens_);
        tokens_.clear();
        return taken;
    }

    // Images without their pixels. Not server_tokens::keep_first, which cannot cut between two images.
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
    espalier_kv * kv = nullptr; // if the KV cache is paged
    bool keeps = false;         // the slot keeps its text after the answer, because it can be saved to a file
    int  most_drafts = INT_MAX; // so that the tokens of all slots with their drafts are one batch

    std::unique_ptr<espalier_kept_text> kept;

    // Of the running request; as new when it ends.
    struct request {
        bool is_prepared = false;   // it was asked for the first time, or again after it gave way
        bool is_shared   = false;   // others may use what it computes
        bool has_turn    = false;   // it was let in, and holds its room
        bool joins       = false;   // it goes on from its parent's prompt when that is computed
        bool was_asked   = false;   // by the scheduler, and may go on waiting
        bool was_admitted = false;  // at least once: a preempted request is one request in the numbers
        espalier_owner owner;
        server_tokens  preempted;   // what it held when it had to give way while it generated
        bool is_in_step  = false;   // its batch key has this step
        uint64_t last_step = 0;     // in which requests of its batch key were computed, or in which it was admitted
        uint32_t waits_for   = ESPALIER_SCHEDULE_FOR_NOTHING;
        int64_t  t_last_token = 0;
    };
    request now;

    // Gives up the retained sequence. A request that was to go on from it looks for blocks in the pool instead, which it
    // does when it is prepared.
    void drop_kept() {
        kept.reset();
        now.is_prepared = false;
    }

    // The request is over. What of its prompt is computed is published; then its text is kept with its cells, or both
    // are given up.
    void release(const common_memory & mem, llama_seq_id id, server_prompt & prompt) {
        const size_t n_computed = std::min((size_t) prompt.n_tokens(), kv->n_computed(id));
        if (now.has_turn && !prompt.tokens.empty()) {
            kv->publish(id, &std::as_const(prompt.tokens)[0], n_computed);
        }
        kv->end(id);
        const bool is_whole = n_computed > 0 && n_computed == (size_t) prompt.n_tokens();
        if (now.has_turn && keeps && now.is_shared && is_whole) {
            keep(mem, id, prompt, now.owner);
        } else if (!kept) {
            mem.seq_rm(id, -1, -1);
        }
        prompt.clear();
        now = {};
    }

    // The text of `prompt`, whose cells the sequence holds.
    void keep(const common_memory & mem, llama_seq_id id, server_prompt & prompt, const espalier_owner & owner) {
        kept.reset();
        kept = std::make_unique<espalier_kept_text>(mem, id, std::move(prompt.tokens), owner);
        prompt.clear();
    }

    static json describe_wait(uint32_t waits_for) {
        switch (waits_for) {
            case ESPALIER_SCHEDULE_FOR_PREFIX: return "in-flight blocks of its prefix";
            case ESPALIER_SCHEDULE_FOR_ROOM:   return "free blocks";
            case ESPALIER_SCHEDULE_FOR_LINE:   return "the queue head";
            default:                           return nullptr;
        }
    }

    // For /slots, which another thread answers while the model decodes.
    void add_to(json & to, llama_seq_id id, size_t n_tokens) const {
        if (kv) {
            to["kv_blocks"]       = kv->n_held(id);
            to["n_prompt_tokens"] = kept ? kept->tokens().size() : n_tokens;
            to["waits_for"]       = describe_wait(now.waits_for);
        }
    }
};
