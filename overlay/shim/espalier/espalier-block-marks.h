// The blocks of KV cache in which a sequence has tokens, for attention: which of them hold positions from p0 on. Layers
// with a sliding window read no others.

#pragma once

#include "espalier.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

class espalier_block_marks {
public:
    // Tokens of a block. A block with tokens at positions [i*block_size, (i + 1)*block_size) has index i; after a copy
    // of a sequence several blocks can have one index.
    static const uint32_t block_size = ESPALIER_KV_BLOCK_SIZE;

    // Adds the block with a token at this position, which is not negative.
    void add(int32_t pos, uint32_t block) {
        auto & blocks = at(pos / block_size);
        if (std::find(blocks.begin(), blocks.end(), block) == blocks.end()) {
            blocks.push_back(block);
            set(words, block);
        }
    }

    // The only block at this index, in `block`. Returns false if there is none, or if there are several.
    bool find_only(size_t index, uint32_t & block) const {
        if (index >= by_index.size() || by_index[index].size() != 1) {
            return false;
        }
        block = by_index[index].front();
        return true;
    }

    // Adds the blocks of another sequence.
    void add(const espalier_block_marks & other) {
        for (size_t index = 0; index < other.by_index.size(); index++) {
            for (uint32_t block : other.by_index[index]) {
                add((int32_t) (index * block_size), block);
            }
        }
    }

    // Removes the blocks whose positions are all in [p0, p1); neither is negative.
    void remove(int32_t p0, int32_t p1) {
        const size_t first = ((size_t) p0 + block_size - 1) / block_size;
        const size_t end   = p1 == INT32_MAX ? by_index.size() : std::min<size_t>(by_index.size(), p1 / block_size);
        if (first >= end) {
            return;
        }
        for (size_t index = first; index < end; index++) {
            by_index[index].clear();
        }
        words.clear();
        for_each(0, [&](uint32_t block) { set(words, block); });
    }

    // Sets bit i%32 of to[i/32] for each block i < 32*n_words that has a position from p0 on.
    void mark(int32_t p0, uint32_t * to, size_t n_words) const {
        if (p0 < (int32_t) block_size) {
            for (size_t i = 0; i < std::min(words.size(), n_words); i++) {
                to[i] |= words[i];
            }
            return;
        }
        for_each(p0 / block_size, [&](uint32_t block) {
            if (block / 32 < n_words) {
                to[block / 32] |= bit(block);
            }
        });
    }

private:
    static uint32_t bit(uint32_t block) { return 1u << block % 32; }

    static void set(std::vector<uint32_t> & bits, uint32_t block) {
        bits.resize(std::max<size_t>(bits.size(), block / 32 + 1));
        bits[block / 32] |= bit(block);
    }

    std::vector<uint32_t> & at(size_t index) {
        by_index.resize(std::max(by_index.size(), index + 1));
        return by_index[index];
    }

    template <typename callback_t>
    void for_each(size_t first, callback_t && callback) const {
        for (size_t index = first; index < by_index.size(); index++) {
            for (uint32_t block : by_index[index]) {
                callback(block);
            }
        }
    }

    std::vector<std::vector<uint32_t>> by_index;
    std::vector<uint32_t>              words; // a bit for each block in by_index
};
