// The pool size of a server that was started with --kv-paged and not with a size. Without -c it is the context that the
// model was trained with, or as much of it as fits into free memory; with -c auto it is as much as fits. It does not
// depend on the number of slots, which share the pool.

#pragma once

#include "espalier-kv.h"
#include "espalier-metrics.h"
#include "espalier-placement.h"
#include "espalier.h"

#include "common.h"
#include "fit.h"

#include "src/llama-ext.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

struct espalier_pool_size {
    uint32_t    n_ctx;
    std::string reason;

    // With -c auto:
    espalier_pool_limit limit     = {};    // the device that limits it
    bool                on_device = false; // it is an accelerator
    int64_t             snapshots = -1;    // bytes that are left for snapshots; -1: none, or --kv-snapshots
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

// The most tokens of a pool that is as large as fits, if the training context is not larger: the tables of more cells and
// blocks would take more host memory than --fit-target leaves by default.
constexpr uint32_t espalier_max_pool = 1u << 22;

// Memory of a device in bytes.
struct espalier_device_memory {
    ggml_backend_dev_t device; // null: the host
    int64_t            used;   // by weights, the KV cache and compute buffers
    int64_t            free;
};

struct espalier_memory {
    std::vector<espalier_device_memory> devices; // the last one is the host
    int64_t  context     = 0; // bytes of the KV cache and of states on all devices; a part of what is used
    uint32_t n_ctx_train = 0;
};

inline bool espalier_has_mtp(const common_params & params) {
    const auto & types = params.speculative.types;
    return std::find(types.begin(), types.end(), COMMON_SPECULATIVE_TYPE_DRAFT_MTP) != types.end();
}

// Measures a context without allocating it. Drafts have a model of their own, or the weights of the target (MTP).
inline espalier_memory espalier_measure(const common_params & params, uint32_t n_ctx, bool is_draft) {
    const auto mparams = common_model_params_to_llama(const_cast<common_params &>(params));
    auto       cparams = common_context_params_to_llama(params);
    cparams.n_ctx = n_ctx; // 0: n_ctx_train
    if (is_draft) { // as common_speculative_init_from_params() creates it
        cparams.n_rs_seq = 0;
        cparams.ctx_type = espalier_has_mtp(params) ? LLAMA_CONTEXT_TYPE_MTP : cparams.ctx_type;
    }
    const bool has_weights = !is_draft || params.speculative.has_dft();
    std::vector<ggml_backend_dev_t> devices;
    uint32_t n_layers  = 0;
    uint32_t n_experts = 0;
    espalier_memory memory;
    const auto measured = common_get_device_memory_data(params.model.path.c_str(), &mparams, &cparams, devices, n_layers, memory.n_ctx_train, n_experts, GGML_LOG_LEVEL_ERROR);
    for (size_t i = 0; i < measured.size(); i++) {
        const auto & one = measured[i];
        memory.devices.push_back({ i < devices.size() ? devices[i] : nullptr, (int64_t) ((has_weights ? one.model : 0) + one.context + one.compute), one.free });
        memory.context += one.context;
    }
    return memory;
}

// Adds the memory of drafts, which may be on devices of their own.
inline void espalier_add_drafts(espalier_memory & to, const espalier_memory & drafts) {
    for (const auto & one : drafts.devices) {
        const auto same = std::find_if(to.devices.begin(), to.devices.end(), [&](const auto & other) { return other.device == one.device; });
        if (same != to.devices.end()) {
            same->used += one.used;
        } else {
            to.devices.insert(to.devices.end() - 1, one);
        }
    }
    to.context += drafts.context;
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

// Includes drafts, whose context has the same size, and what the server keeps on the host.
inline espalier_memory espalier_measure_all(const common_params & params, uint32_t n_ctx) {
    espalier_memory memory   = espalier_measure(params, n_ctx, false);
    const uint32_t  n_tokens = n_ctx == 0 ? memory.n_ctx_train : n_ctx;
    if (params.speculative.has_dft() || espalier_has_mtp(params)) {
        espalier_add_drafts(memory, espalier_measure(common_base_params_to_speculative(params), n_tokens, true));
    }
    auto & host = memory.devices.back();
    host.used += espalier_bytes_of_rows(params, n_tokens);
    host.free  = espalier_free_of_host(host.free);
    for (const auto & one : memory.devices) {
        // What an integrated GPU uses is memory of the host.
        if (one.device != nullptr && ggml_backend_dev_type(one.device) == GGML_BACKEND_DEVICE_TYPE_IGPU) {
            host.used += one.used;
        }
    }
    return memory;
}

// Bytes for snapshots of states: those that were given, or 16 snapshots and 2 more for each slot, but at most an eighth
// of free memory. 0: there is no state, or not even one snapshot fits. `given` is negative if it was not given.
inline uint64_t espalier_snapshot_budget(int64_t given, uint64_t bytes_of_one, uint32_t n_slots, int64_t free) {
    const uint64_t useful = std::min<uint64_t>(bytes_of_one * (16 + 2*uint64_t(n_slots)), std::max<int64_t>(0, free) / 8);
    const uint64_t budget = given >= 0 ? (uint64_t) given : useful;
    return bytes_of_one > 0 && budget >= bytes_of_one ? budget : 0;
}

// Bytes of the recurrent state of one sequence, from two sizes of a context: the part that does not grow with it. 0: there
// is none, or the context has other such parts.
inline uint64_t espalier_bytes_of_state(const common_params & params, uint32_t n_small, const espalier_memory & at_small, uint32_t n_large, const espalier_memory & at_large) {
    const bool has_residual_window = params.cache_options.get(ESPALIER_KV_RECENT) > 0 || params.cache_options.get(ESPALIER_KV_SINKS) > 0;
    if (!espalier_places_cells(params) || espalier_count_windows(params) > 0 || has_residual_window) {
        return 0;
    }
    const double per_token = double(at_large.context - at_small.context) / (n_large - n_small);
    const double states    = at_small.context - per_token * n_small;
    const double n_states  = double(std::max(1, params.n_parallel)) * (1 + params.speculative.need_n_rs_seq());
    return (uint64_t) std::max(0.0, states / n_states);
}

// Bytes of device i, or of the host behind the devices, that --fit-target keeps free.
inline int64_t espalier_fit_target(const common_params & params, size_t i) {
    return (int64_t) params.fit_params_target[std::min(i, params.fit_params_target.size() - 1)];
}

inline std::string espalier_name_of(const espalier_device_memory & one) {
    return one.device ? ggml_backend_dev_name(one.device) : "the host";
}

inline double espalier_mib(int64_t bytes) {
    return bytes / (1024.0 * 1024.0);
}

// Throws std::runtime_error if memory cannot be measured and, with -c auto, if not even the smallest pool fits.
inline espalier_pool_size espalier_size_pool(const common_params & params) {
    const bool            is_auto = params.n_ctx == ESPALIER_CTX_AUTO;
    const bool            is_full = (uint32_t) params.fit_params_min_ctx == UINT32_MAX; // -c 0, maybe before -c auto
    const espalier_memory trained = espalier_measure_all(params, 0);
    const uint32_t        n_train = trained.n_ctx_train;
    if (is_full && !is_auto) {
        return { n_train, "the training context of the model (-c 0)" };
    }
    const auto     pad     = [](uint32_t size) { return (size + 255) / 256 * 256; }; // as llama.cpp does
    const uint32_t n_least = is_full ? common_params().fit_params_min_ctx : params.fit_params_min_ctx;
    const uint32_t n_small = is_auto ? pad(std::clamp<uint32_t>(n_least, 1, n_train)) : std::min(n_train, n_least);
    const uint32_t n_large = is_auto ? std::max(pad(n_train), 2*n_small) : n_train;
    const espalier_memory at_small = n_small < n_train ? espalier_measure_all(params, n_small) : trained;
    const espalier_memory at_large = n_large > pad(n_train) ? espalier_measure_all(params, n_large) : trained;

    std::vector<espalier_fit_device> devices;
    for (size_t i = 0; i < at_small.devices.size(); i++) {
        const auto & one = at_small.devices[i];
        devices.push_back({ one.free - espalier_fit_target(params, i), one.used, at_large.devices[i].used });
    }
    auto &  host      = devices.back();
    int64_t snapshots = std::max<int64_t>(0, params.kv_snapshots);
    if (is_auto && params.kv_snapshots < 0) {
        const uint64_t bytes_of_one = espalier_bytes_of_state(params, n_small, at_small, n_large, at_large);
        snapshots = (int64_t) espalier_snapshot_budget(-1, bytes_of_one, params.n_parallel, host.available - host.used_small);
    }
    host.available -= snapshots;

    size_t         decides = 0;
    const uint32_t most    = is_auto ? std::max(n_train, espalier_max_pool) : n_train;
    int64_t        n_ctx   = espalier_fit_pool(devices.data(), devices.size(), n_small, n_large, most, &decides);
    if (decides == devices.size() || (!is_auto && n_ctx >= n_train)) {
        return { n_train, "the training context of the model" };
    }
    if (is_auto && n_ctx < n_small) {
        const auto & one = at_small.devices[decides];
        throw std::runtime_error(string_format("a KV cache of %u tokens (--fit-ctx) does not fit: %s has %.1f MiB free; the server would take %.1f MiB and leave %.1f MiB (--fit-target)",
                n_small, espalier_name_of(one).c_str(), espalier_mib(one.free), espalier_mib(one.used), espalier_mib(one.free - devices[decides].available)));
    }
    n_ctx = std::max<int64_t>(n_ctx, n_small);
    espalier_memory found = at_small;
    if (is_auto || espalier_count_windows(params) > 0) {
        // Beyond the measured sizes buffers may grow faster than that, and so does memory up to the size of layers with a
        // sliding window of their own: bisect if the estimate does not fit. Else it does.
        const auto fits = [&](int64_t size) {
            const espalier_memory memory = espalier_measure_all(params, (uint32_t) size);
            for (size_t i = 0; i < devices.size(); i++) {
                // Available memory is that of the estimate: other processes change it all the time. What does not grow
                // is the same whatever the size.
                if (memory.devices[i].used > devices[i].available && devices[i].used_large > devices[i].used_small) {
                    return false;
                }
            }
            found = memory;
            return true;
        };
        int64_t fitting = fits(n_ctx) ? n_ctx : n_small;
        for (int64_t bound = n_ctx; bound - fitting > std::max<int64_t>(1024, fitting / 256);) {
            const int64_t next = (fitting + (bound - fitting) / 2) / 256 * 256;
            (fits(next) ? fitting : bound) = next;
        }
        n_ctx = fitting;
    }
    espalier_pool_size size = { (uint32_t) n_ctx, n_ctx == most ? "the largest size" : "as many as fit into free memory" };
    if (is_auto) {
        const auto & one = at_small.devices[decides];
        size.limit     = { espalier_name_of(one), one.free, found.devices[decides].used, one.free - devices[decides].available };
        size.snapshots = snapshots > 0 ? snapshots : -1;
        size.on_device = one.device != nullptr;
    }
    return size;
}

// Size of its KV cache in bytes.
inline uint64_t espalier_bytes_of_context(const llama_context * ctx) {
    uint64_t bytes = 0;
    for (const auto & [buft, memory] : llama_get_memory_breakdown(ctx)) {
        bytes += memory.context;
    }
    return bytes;
}
