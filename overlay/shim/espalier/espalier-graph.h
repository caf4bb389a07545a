// The part of the shim that uses ggml. Compiled into llama.

#pragma once

#include "ggml.h"

#include <cstdint>
#include <vector>

// The activation that a gated delta net layer multiplies by its output projection.
//
// cur is contiguous, [value_dim, n_seq_tokens, n_seqs]. Returns cur itself, as stock llama.cpp uses
// it, or, if gdn-flat-output is on and keeps every bit of the product, the same values reshaped to
// [value_dim, n_seq_tokens*n_seqs].
ggml_tensor * espalier_flatten_gdn_output(ggml_context * ctx, const ggml_tensor * weight, ggml_tensor * cur, bool adapter_covers_weight);

// loras is llama's map of active adapters. A template, because its type is private to llama.
template <typename adapter_map>
bool espalier_adapter_covers(const adapter_map & loras, ggml_tensor * weight) {
    for (const auto & lora : loras) {
        if (lora.first->get_weight(weight) != nullptr) {
            return true;
        }
    }
    return false;
}

// Adds the blocks of each token's sequence to a flash attention node: a bit for each block of ESPALIER_KV_BLOCK_SIZE
// cells, I32 [number of blocks / 32, rounded up, n_tokens]. All cells of the other blocks are masked: our kernel skips
// them, and every other implementation ignores this source and reads the mask.
//
// The tensor also has the hint of the step, as espalier_set_kv_gather() stored it. The node gets it if the backend of its
// cache uses it and is faster with it (espalier_kv_gather.h).
void espalier_set_kv_blocks(ggml_tensor * attention, ggml_tensor * blocks);

// An upper bound of the cells that a token sees: those of its sequence's blocks, a bit for each.
uint32_t espalier_cells_of_blocks(const std::vector<uint32_t> & blocks);

// The hint of a step whose n_tokens tokens see at most n_cells of the first n_kv cells each; 0: none. Equal arguments
// give equal hints, so a graph whose tensor has another one than its next step cannot be reused.
int32_t espalier_kv_gather_of_step(uint32_t n_cells, uint32_t n_kv, uint32_t n_tokens);

// Stores the hint in the tensor of the blocks, and returns it.
void    espalier_set_kv_gather(ggml_tensor * blocks, int32_t hint);
int32_t espalier_get_kv_gather(const ggml_tensor * blocks);

// Aborts if a row of the mask has more entries than the hint says: a backend would drop the last ones. The mask is on the
// host, and filled; without a buffer no node uses it.
void espalier_check_kv_gather(const ggml_tensor * blocks, const ggml_tensor * mask);

// The recurrent states of a delta net layer in its cache, and the rows that a batch uses.
struct espalier_gdn_cells {
    ggml_tensor * states;  // the cache: [values of a state, n_cells*n_planes]
    ggml_tensor * sources; // I32: for each row from `first` on, the row whose state it gets before the batch
    uint32_t      first;   // row of the first sequence
    uint32_t      n_cells; // rows of a plane
    uint32_t      n_planes; // states of a sequence, the newest first
    int32_t       zeroed;  // row that is zeroed first; negative: none
};

// The states of n_seqs sequences as [size, size, n_heads, n_seqs], a view of the cache, for a node that reads and writes
// them there. NULL if gdn-recurrence is off, or if the kernel does not support the layer: then the graph is stock's.
ggml_tensor * espalier_view_gdn_states(ggml_context * ctx, ggml_cgraph * gf, const espalier_gdn_cells & cells, int64_t size, int64_t n_heads, int64_t n_seqs);

// Lets a gated delta net node, whose state is such a view, write the states to the cache instead of its output.
void espalier_set_gdn_states(ggml_tensor * node, const espalier_gdn_cells & cells);

// Form for the call site: one expression inside a graph builder.
#define ESPALIER_GDN_OUTPUT(ctx, loras, weight, cur) \
    espalier_flatten_gdn_output((ctx), (weight), (cur), espalier_adapter_covers(*(loras), (weight)))
