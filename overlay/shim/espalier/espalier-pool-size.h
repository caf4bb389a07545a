// The pool size of a server that was started with --kv-paged and without -c: the context that the model was trained
// with, or as much as fits into free memory. It does not depend on the number of slots, which share the pool.

#pragma once

#include "espalier-kv.h"
#include "espalier-placement.h"
#include "espalier.h"

#include "common.h"
#include "fit.h"

#include "src/llama-ext.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

struct espalier_pool_size {
    uint32_t     n_ctx;
    const char * reason;
};

// Free memory of the host in bytes, or less if the process is in a container or a unit with a limit; `otherwise` if
// /proc/meminfo cannot be read. ggml reports all memory of the host as free.
inline int64_t espalier_free_of_host(int64_t otherwise) {
    std::ifstream file("/proc/meminfo");
    std::string   name;
    int64_t       kib = 0;
    while (file >> name >> kib) {
        if (name == "MemAvailable:") {
            return std::min(kib * 1024, espalier_free_of_container());
        }
        file.ignore(64, '\n');
    }
    return otherwise;
}

// The same without a limit on other systems than Linux: what ggml reports for the CPU there.
inline int64_t espalier_free_of_cpu() {
    const ggml_backend_dev_t cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    size_t free  = 0;
    size_t total = 0;
    if (cpu != nullptr) {
        ggml_backend_dev_memory(cpu, &free, &total);
    }
    return espalier_free_of_host((int64_t) free);
}

// Memory in bytes of each device; the last entry is the host's.
struct espalier_memory {
    std::vector<int64_t> used;
    std::vector<int64_t> free;
    uint32_t             n_ctx_train = 0;
};

inline espalier_memory espalier_measure(const common_params & params, uint32_t n_ctx) {
    const auto mparams = common_model_params_to_llama(const_cast<common_params &>(params));
    auto       cparams = common_context_params_to_llama(params);
    cparams.n_ctx = n_ctx; // 0: n_ctx_train
    std::vector<ggml_backend_dev_t> devices;
    uint32_t n_layers  = 0;
    uint32_t n_experts = 0;
    espalier_memory memory;
    const auto measured = common_get_device_memory_data(params.model.path.c_str(), &mparams, &cparams, devices, n_layers, memory.n_ctx_train, n_experts, GGML_LOG_LEVEL_ERROR);
    for (const auto & device : measured) {
        memory.used.push_back(device.model + device.context + device.compute);
        memory.free.push_back(device.free);
    }
    memory.free.back() = espalier_free_of_host(memory.free.back()) - std::max<int64_t>(0, params.kv_snapshots);
    return memory;
}

// Bytes of the hidden states that drafts continue from, one for each block of a pool of n_ctx tokens (espalier-drafts.h).
// 0: these drafts need none, or the width of the model is unknown.
inline int64_t espalier_bytes_of_rows(const common_params & params, uint32_t n_ctx) {
    if (!espalier_describe_drafts(params).has_rows) {
        return 0;
    }
    const std::string & draft_model = params.speculative.draft.mparams.path;
    return espalier_kv::bytes_of_rows(n_ctx, espalier_width_of_model(draft_model.empty() ? params.model.path : draft_model));
}

// Includes the draft model, whose context has the same size, and the hidden states that are kept for it.
inline espalier_memory espalier_measure_all(const common_params & params, uint32_t n_ctx) {
    espalier_memory memory = espalier_measure(params, n_ctx);
    memory.used.back() += espalier_bytes_of_rows(params, n_ctx == 0 ? memory.n_ctx_train : n_ctx);
    if (params.speculative.has_dft()) {
        const espalier_memory draft = espalier_measure(common_base_params_to_speculative(params), n_ctx == 0 ? memory.n_ctx_train : n_ctx);
        memory.used.back() += draft.used.back();
        for (size_t i = 0; i + 1 < std::min(memory.used.size(), draft.used.size()); i++) {
            memory.used[i] += draft.used[i];
        }
    }
    return memory;
}

inline espalier_pool_size espalier_size_pool(const common_params & params) {
    const espalier_memory full = espalier_measure_all(params, 0);
    const uint32_t        most = full.n_ctx_train;
    if ((uint32_t) params.fit_params_min_ctx == UINT32_MAX) { // -c 0
        return { most, "the training context of the model (-c 0)" };
    }
    const auto left = [&](const espalier_memory & memory, size_t i) {
        const size_t target = std::min(i, params.fit_params_target.size() - 1);
        return memory.free[i] - (int64_t) params.fit_params_target[target] - memory.used[i];
    };
    const uint32_t        least = std::min<uint32_t>(most, params.fit_params_min_ctx);
    const espalier_memory small = least < most ? espalier_measure_all(params, least) : full;
    // Of the other devices no size of the context changes the use.
    const auto grows = [&](size_t i) { return full.used[i] > small.used[i]; };
    const auto round_down = [](int64_t size) { return size - size % 256; }; // a context of another size is rounded up
    int64_t n_ctx = most;
    for (size_t i = 0; i < full.used.size(); i++) {
        if (left(full, i) < 0 && grows(i)) {
            // Memory grows linearly with the context.
            const double per_token = double(full.used[i] - small.used[i]) / (most - least);
            n_ctx = std::min(n_ctx, least + (int64_t) (std::max<int64_t>(0, left(small, i)) / per_token));
        }
    }
    if (n_ctx >= most) {
        return { most, "the training context of the model" };
    }
    n_ctx = std::max<int64_t>(round_down(n_ctx), least);
    if (espalier_count_windows(params) > 0) {
        // Up to the size of its layers with a sliding window, memory grows faster than that: bisect if the estimate does
        // not fit. Without such layers it does.
        const auto fits = [&](int64_t size) {
            espalier_memory memory = espalier_measure_all(params, (uint32_t) size);
            memory.free = small.free; // as the estimate: other processes change it all the time
            for (size_t i = 0; i < memory.used.size(); i++) {
                if (left(memory, i) < 0 && grows(i)) {
                    return false;
                }
            }
            return true;
        };
        int64_t fitting = fits(n_ctx) ? n_ctx : least;
        for (int64_t bound = n_ctx; bound - fitting > 1024;) {
            const int64_t next = round_down(fitting + (bound - fitting) / 2);
            (fits(next) ? fitting : bound) = next;
        }
        n_ctx = fitting;
    }
    return { (uint32_t) n_ctx, "as many as fit into free memory" };
}

// Bytes for snapshots of states: those that were given, or 16 snapshots and 2 more for each slot, but at most an eighth
// of free memory. 0: there is no state, or not even one snapshot fits. `given` is negative if it was not given.
inline uint64_t espalier_snapshot_budget(int64_t given, uint64_t bytes_of_one, uint32_t n_slots) {
    const uint64_t useful = std::min<uint64_t>(bytes_of_one * (16 + 2*uint64_t(n_slots)), espalier_free_of_cpu() / 8);
    const uint64_t budget = given >= 0 ? (uint64_t) given : useful;
    return bytes_of_one > 0 && budget >= bytes_of_one ? budget : 0;
}

// Size of its KV cache in bytes.
inline uint64_t espalier_bytes_of_context(const llama_context * ctx) {
    uint64_t bytes = 0;
    for (const auto & [buft, memory] : llama_get_memory_breakdown(ctx)) {
        bytes += memory.context;
    }
    return bytes;
}
