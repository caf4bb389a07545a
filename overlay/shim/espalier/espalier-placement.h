// Which contexts get a paged KV cache, and with which drafts. Decided before a context is created: caches whose tokens
// are placed in the same cells need the same size, and caches of a sliding window have cells for a number of windows.

#pragma once

#include "espalier-drafts.h"

#include "common.h"
#include "ggml-cpp.h"
#include "gguf.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

inline espalier_draft_traits espalier_describe_drafts(const common_params & params) {
    const auto & types = params.speculative.types;
    const auto has = [&](common_speculative_type type) { return std::find(types.begin(), types.end(), type) != types.end(); };
    espalier_draft_traits traits;
    traits.has_successor = has(COMMON_SPECULATIVE_TYPE_DRAFT_EAGLE3);
    traits.has_rows      = traits.has_successor || has(COMMON_SPECULATIVE_TYPE_DRAFT_MTP);
    traits.reads_states  = traits.has_rows || has(COMMON_SPECULATIVE_TYPE_DRAFT_DFLASH) || has(COMMON_SPECULATIVE_TYPE_DRAFT_DSPARK);
    return traits;
}

// The metadata of a model's file; null if it cannot be read, as that of a model that is not downloaded yet.
inline gguf_context_ptr espalier_read_metadata(const std::string & path) {
    const gguf_init_params options = { /* .no_alloc = */ true, /* .ctx = */ nullptr };
    return gguf_context_ptr(path.empty() ? nullptr : gguf_init_from_file(path.c_str(), options));
}

// The architecture of a model; empty: unknown.
inline std::string espalier_architecture(const gguf_context * file) {
    const int64_t key = file ? gguf_find_key(file, "general.architecture") : -1;
    return key >= 0 && gguf_get_kv_type(file, key) == GGUF_TYPE_STRING ? gguf_get_val_str(file, key) : "";
}

// Number of values in a hidden state of the model; 0: unknown.
inline int64_t espalier_width_of_model(const std::string & path) {
    const gguf_context_ptr file = espalier_read_metadata(path);
    const std::string name = espalier_architecture(file.get()) + ".embedding_length";
    const int64_t key = file ? gguf_find_key(file.get(), name.c_str()) : -1;
    return key >= 0 && gguf_get_kv_type(file.get(), key) == GGUF_TYPE_UINT32 ? gguf_get_val_u32(file.get(), key) : 0;
}

// Whether the draft model has no cells of its own, but reads those of the target where stock would have placed them.
inline bool espalier_drafts_from_cells_of_target(const common_params & params) {
    return espalier_architecture(espalier_read_metadata(params.speculative.draft.mparams.path).get()) == "gemma4-assistant";
}

// The reason why a server with these drafts runs unpaged, as the end of a sentence; empty: it need not.
inline std::string espalier_refuse_drafts(const common_params & params) {
    if (espalier_describe_drafts(params).reads_states && !params.mmproj.path.empty()) {
        return "a paged KV cache does not support drafts of this kind together with images and audio (--mmproj)";
    }
    if (espalier_drafts_from_cells_of_target(params)) {
        return "the draft model has no KV cache of its own";
    }
    return "";
}

// Whether a block pool is going to place the cells of a context with these parameters, if its memory allows that.
inline bool espalier_places_cells(const common_params & params) {
    const bool is_one_buffer = params.kv_unified || params.n_parallel == 1;
    return params.kv_paged && is_one_buffer && espalier_refuse_drafts(params).empty();
}

inline std::optional<uint32_t> espalier_read_windows() {
    const char * text = getenv("ESPALIER_KV_WINDOWS");
    if (text == nullptr) {
        return {};
    }
    char *     end   = nullptr;
    const long value = strtol(text, &end, 10);
    if (end == text || *end != 0 || value < 0 || value > 65536) {
        fprintf(stderr, "ESPALIER_KV_WINDOWS is `%s`, not an integer from 0 to 65536: ignored\n", text);
        return {};
    }
    return (uint32_t) value;
}

// The number in ESPALIER_KV_WINDOWS; nothing if it is not set, or not an integer, which is reported once.
inline std::optional<uint32_t> espalier_windows_of_environment() {
    static const std::optional<uint32_t> windows = espalier_read_windows();
    return windows;
}

// The windows that layers with a sliding window get cells for, if their context is going to be paged: ESPALIER_KV_WINDOWS,
// and at least two for each slot, since retained sequences that were cut take more than one. 0, the default: they get
// cells for all tokens, as with --swa-full. So they do beside a draft model, whose cells are placed like those of the
// other layers.
inline uint32_t espalier_count_windows(const common_params & params) {
    const bool has_draft_model = params.speculative.has_dft() || espalier_describe_drafts(params).reads_states;
    const uint32_t n           = espalier_windows_of_environment().value_or(0);
    if (n == 0 || !espalier_places_cells(params) || params.swa_full || has_draft_model) {
        return 0;
    }
    return std::max(n, 2 * (uint32_t) std::max(1, params.n_parallel));
}
