// The bytes of snapshots: states of a sequence (recurrent and convolution states) after a number of tokens.
//
// The block pool decides which snapshots exist, and names them by an id; nothing else owns their bytes. A snapshot has
// the state of every context whose memory has one: the model's, and the draft model's.

#pragma once

#include "llama.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <unordered_map>
#include <utility>
#include <vector>

class espalier_snapshots {
public:
    // Adds a context of the sequences. Call it for each one before the first snapshot.
    void add(llama_context * ctx) {
        if (llama_memory_get_parts(llama_get_memory(ctx)) & LLAMA_MEMORY_PART_STATE) {
            contexts.push_back(ctx);
        }
    }

    // Whether a sequence has a state at all.
    bool has_state() const { return !contexts.empty(); }

    // Bytes of one snapshot in these contexts, whose memories must be empty. 0: none of them has a state. ctx_dft may
    // be NULL.
    static uint64_t bytes_of_one(llama_context * ctx, llama_context * ctx_dft) {
        uint64_t bytes = 0;
        for (llama_context * one : { ctx, ctx_dft }) {
            const size_t state = one ? llama_memory_state_size(llama_get_memory(one)) : 0;
            // An empty sequence has all headers, but not those of its cell: a position, and a number of sequences.
            bytes += state > 0 ? state + llama_state_seq_get_size_ext(one, 0, flags) + 8 : 0;
        }
        return bytes;
    }

    // Whether the states of the sequence are those after its token at this position, which is its last one. They are
    // not in a batch that failed.
    bool are_at(llama_seq_id seq_id, llama_pos last) const {
        for (llama_context * ctx : contexts) {
            const llama_memory_t mem = llama_get_memory(ctx);
            // The smallest position of a sequence with a state is that of the state.
            if (llama_memory_seq_pos_min(mem, seq_id) != last || llama_memory_seq_pos_max(mem, seq_id) != last) {
                return false;
            }
        }
        return has_state();
    }

    // Number of bytes that a snapshot of the sequence takes.
    uint64_t size_of(llama_seq_id seq_id) const {
        uint64_t size = 0;
        for (llama_context * ctx : contexts) {
            size += llama_state_seq_get_size_ext(ctx, seq_id, flags);
        }
        return size;
    }

    size_t count() const { return snapshots.size(); }

    // Saves the states of the sequence. Returns false, and keeps nothing, if there is not enough memory or a state
    // cannot be read.
    bool take(uint32_t id, llama_seq_id seq_id) {
        try {
            std::vector<part> parts(contexts.size());
            for (size_t i = 0; i < contexts.size(); i++) {
                if (!read(contexts[i], seq_id, parts[i])) {
                    return false;
                }
            }
            snapshots[id] = std::move(parts);
            return true;
        } catch (const std::bad_alloc &) {
            return false;
        }
    }

    // Restores the states of the sequence after its token at this position. If false is returned, its memory has to be
    // emptied.
    bool put(uint32_t id, llama_seq_id seq_id, llama_pos last) const {
        const auto found = snapshots.find(id);
        if (found == snapshots.end()) {
            return false;
        }
        for (size_t i = 0; i < contexts.size(); i++) {
            const part & one = found->second[i];
            if (llama_state_seq_set_data_ext(contexts[i], one.bytes.get(), one.size, seq_id, flags) != one.size) {
                return false;
            }
        }
        return are_at(seq_id, last);
    }

    // Frees the bytes of a snapshot.
    void drop(uint32_t id) { snapshots.erase(id); }

    void clear() { snapshots.clear(); }

private:
    // The state alone: cells are shared, not copied.
    static const llama_state_seq_flags flags = LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY;

    struct part {
        std::unique_ptr<uint8_t[]> bytes; // not a vector, which would be zeroed first
        size_t                     size = 0;
    };

    // Copies the state of the sequence in one context. Returns false if it cannot be read.
    static bool read(llama_context * ctx, llama_seq_id seq_id, part & to) {
        to.size = llama_state_seq_get_size_ext(ctx, seq_id, flags);
        to.bytes.reset(new uint8_t[to.size]);
        return llama_state_seq_get_data_ext(ctx, to.bytes.get(), to.size, seq_id, flags) == to.size;
    }

    std::vector<llama_context *> contexts; // those with a state
    std::unordered_map<uint32_t, std::vector<part>> snapshots; // by id; a part for each context
};
