// Counters of the snapshots of a paged KV cache, for /metrics and /props.
//
// Written by the thread that decodes, read by those that answer requests.

#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

struct espalier_snapshot_counts {
    // Names of enum espalier_pool_reason, in its order.
    static constexpr std::array<const char *, 6> reasons = { "awaited", "branch", "system_prompt", "prompt_end", "tail", "interval" };

    std::array<std::atomic<uint64_t>, 6> taken = {}; // by reason
    std::atomic<uint64_t> restore_failures = { 0 };
    std::atomic<uint64_t> save_failures    = { 0 };  // out of memory, for example
    std::atomic<uint64_t> microseconds     = { 0 };  // of copying, in both directions

    // Continues the counters of `before`. Call it before other threads can see this object.
    void continue_from(const espalier_snapshot_counts & before) {
        for (size_t i = 0; i < taken.size(); i++) {
            taken[i] += before.taken[i].load();
        }
        restore_failures += before.restore_failures.load();
        save_failures    += before.save_failures.load();
        microseconds     += before.microseconds.load();
    }
};
