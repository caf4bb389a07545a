// The layers with a sliding window of a paged KV cache, if they have fewer cells than the others (espalier-kv.h): these
// are a group of the pool with blocks of their own, and a memory of their own (llama_memory_get_window), which the other
// functions of the model's memory include: what they remove or copy is reported here too.

#include "espalier-kv.h"

#include <algorithm>
#include <cstdint>

bool espalier_kv::place_window(llama_memory_t mem) {
    const llama_memory_placement placement = {
        this,
        [](void * user_data, const llama_seq_id * seq_ids, const llama_pos * pos, size_t n, uint32_t * cells) {
            return ((espalier_kv *) user_data)->place(window, seq_ids, pos, n, cells);
        },
        [](void * user_data, llama_seq_id seq_id, llama_pos p0, llama_pos p1) {
            auto & kv = *(espalier_kv *) user_data;
            if (kv.knows(seq_id)) { // else everything is removed, which the other layers report
                kv.functions.remove(kv.pool.get(), window, seq_id, p0, p1);
                kv.sequences[seq_id].window_blocks.remove(p0, p1);
            }
        },
        [](void * user_data, llama_seq_id seq_id_src, llama_seq_id seq_id_dst, llama_pos p0, llama_pos p1) {
            auto & kv = *(espalier_kv *) user_data;
            if (kv.knows(seq_id_src) && kv.knows(seq_id_dst)) {
                kv.share(window, seq_id_src, seq_id_dst, p0, p1);
            }
        },
        [](void *) {}, // the other layers report it
        [](void * user_data, llama_seq_id seq_id, llama_pos p0, uint32_t * blocks, size_t n_blocks) {
            const auto & kv = *(const espalier_kv *) user_data;
            if (kv.knows(seq_id)) {
                kv.sequences[seq_id].window_blocks.mark(p0, blocks, n_blocks / 32);
            }
        },
        gathers,
    };
    if (!llama_memory_set_placement(mem, &placement)) {
        return false;
    }
    window_mems.push_back(mem);
    blocks[window].resize(llama_memory_n_cells(mem) / block_size);
    return true;
}

void espalier_kv::add_window_cells(llama_seq_id seq_id, const std::vector<uint32_t> & of, size_t n_tokens) {
    for (llama_memory_t mem : window_mems) {
        llama_memory_cells_seq_add(mem, seq_id, of.data(), of.size());
    }
    size_t end = n_tokens;
    for (size_t i = of.size(); i >= block_size && end > 0; i -= block_size) {
        const uint32_t block = of[i - block_size] / block_size;
        const size_t   first = block_of(seq_id, end - 1).first;
        // Behind an image it can lie in two of the ranges by which blocks are marked.
        sequences[seq_id].window_blocks.add((llama_pos) first,     block);
        sequences[seq_id].window_blocks.add((llama_pos) (end - 1), block);
        end = first;
    }
}

void espalier_kv::slide(llama_seq_id seq_id, size_t n_tokens) {
    uint64_t first = 0;
    if (!has_window() || functions.slide(pool.get(), seq_id, n_tokens, &first) != ESPALIER_POOL_OK) {
        return;
    }
    const llama_pos least = llama_memory_seq_pos_min(window_mems[0], seq_id);
    if (least >= 0 && (uint64_t) least < first) {
        llama_memory_seq_rm(window_mems[0], seq_id, 0, (llama_pos) first);
    }
}

bool espalier_kv::has_window_blocks_for(size_t n_tokens) const {
    const struct espalier_pool_statistics now = statistics();
    return !has_window() || now.window_block_count - now.window_blocks_used > n_blocks(n_tokens);
}

bool espalier_kv::has_cells_of_window(llama_seq_id seq_id, size_t n_tokens) const {
    const auto      first = (llama_pos) (n_tokens + 1 - std::min<size_t>(n_tokens + 1, window_size));
    const llama_pos least = llama_memory_seq_pos_min(window_mems[0], seq_id);
    return least >= 0 && least <= first;
}
