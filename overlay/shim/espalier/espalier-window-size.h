// The size of the layers with a sliding window in a paged KV cache. Compiled into llama.

#pragma once

#include "llama.h"

#include <cstdint>
#include <string>

struct espalier_window_size {
    uint32_t    n_cells; // 0: they need cells for all tokens
    std::string why_not; // the reason for that, as the end of a sentence
};

// The cells of these layers for n_windows windows, at least one, and a batch beside them, if all layers would have n_ctx
// cells otherwise.
LLAMA_API espalier_window_size espalier_size_windows(const llama_model * model, uint32_t n_windows, uint32_t n_batch, uint32_t n_ctx);
