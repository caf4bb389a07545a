// Which contexts get a paged KV cache. Decided before a context is created: caches whose tokens are placed in the same
// cells need the same size.

#pragma once

#include "common.h"

#include <algorithm>

// Whether drafts depend on the tokens alone. The other kinds of draft models also continue from the target model's
// hidden states of earlier tokens, which are not cached.
inline bool espalier_drafts_from_tokens_alone(const common_params & params) {
    const auto & types = params.speculative.types;
    return std::none_of(types.begin(), types.end(), [](common_speculative_type type) {
        return type == COMMON_SPECULATIVE_TYPE_DRAFT_EAGLE3 || type == COMMON_SPECULATIVE_TYPE_DRAFT_MTP ||
               type == COMMON_SPECULATIVE_TYPE_DRAFT_DFLASH || type == COMMON_SPECULATIVE_TYPE_DRAFT_DSPARK;
    });
}

// Whether a block pool is going to place the cells of a context with these parameters, if its memory allows that.
inline bool espalier_places_cells(const common_params & params) {
    const bool is_one_buffer = params.kv_unified || params.n_parallel == 1;
    return params.kv_paged && is_one_buffer && espalier_drafts_from_tokens_alone(params);
}
