// The part of the shim that uses ggml. Compiled into llama.

#pragma once

#include "ggml.h"

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
void espalier_set_kv_blocks(ggml_tensor * attention, ggml_tensor * blocks);

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
