// How drafts depend on the target model, and the hidden states from which they continue.
//
// A draft model of some kinds (EAGLE-3, MTP) reads the target model's hidden state of the token before, which one batch
// of a sequence passes to the next. A sequence that begins with cached blocks has no batch before. So the hidden state
// after each block is kept in host memory, by the block, as long as the block has its content. One that is missing
// costs drafts, never answers.

#pragma once

#include "llama.h"

#include <cstdint>
#include <functional>
#include <unordered_map>
#include <utility>
#include <vector>

struct espalier_draft_traits {
    // The draft model reads hidden states of the target. Not every upstream tree computes its cells for images and audio,
    // so it is not paged together with them. It always computes the most drafts, however few are wanted.
    bool reads_states = false;

    // It continues from the hidden state of the last token, which is a row of numbers.
    bool has_rows = false;

    // Its cell of a token depends on the next token as well, so it lies where the next token's cell does: what a block
    // has then depends on the tokens up to its end, as in the target.
    bool has_successor = false;
};

struct espalier_drafts {
    espalier_draft_traits traits;

    // The two functions are only called with traits.has_rows. Gets the hidden state after the token of a sequence at
    // this position. Returns false if it was not in the sequence's last batch.
    std::function<bool(llama_seq_id, llama_pos, std::vector<float> &)> get_row;

    // The sequence is continued after this position (-1: from its beginning), with this hidden state; empty: unknown.
    std::function<void(llama_seq_id, llama_pos, const std::vector<float> &)> set_row;
};

// The hidden states after blocks, by the number of the block in the pool.
class espalier_draft_rows {
public:
    void set(uint32_t block, std::vector<float> row) { rows[block] = std::move(row); }

    // Empty: unknown.
    std::vector<float> get(uint32_t block) const {
        const auto found = rows.find(block);
        return found == rows.end() ? std::vector<float>() : found->second;
    }

    // The block gets another content.
    void drop(uint32_t block) { rows.erase(block); }

    void clear() { rows.clear(); }

private:
    std::unordered_map<uint32_t, std::vector<float>> rows;
};
