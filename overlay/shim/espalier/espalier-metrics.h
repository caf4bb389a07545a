// Metrics of a server for /metrics: its block pool, and the latencies that clients see.
//
// Written by the thread that decodes, read by those that answer requests: every member may be used from any thread.

#pragma once

#include "espalier-pool.h"
#include "espalier-snapshot-counts.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

// A Prometheus histogram of durations, with fixed buckets.
class espalier_histogram {
public:
    void add(int64_t microseconds);

    std::string to_metrics(const std::string & name, const std::string & help) const;

    void continue_from(const espalier_histogram & before);

private:
    // Upper bounds of the buckets, in microseconds; longer durations go to the last count.
    static constexpr std::array<int64_t, 18> ends = { 1000, 2500, 5000, 10000, 25000, 50000, 100000, 250000, 500000, 1000000, 2500000, 5000000, 10000000, 60000000,
                                                      120000000, 300000000, 600000000, 1800000000 };

    std::array<std::atomic<uint64_t>, ends.size() + 1> counts = {};
    std::atomic<uint64_t> total = { 0 }; // microseconds
};

// The device that limits a pool whose size is -c auto, and its memory at the start in bytes.
struct espalier_pool_limit {
    std::string device;   // empty: the size was not chosen like that
    int64_t     free = 0; // before the model was loaded
    int64_t     used = 0; // of it, for weights, the KV cache and compute buffers
    int64_t     kept = 0; // of it, not for these: --fit-target, and on the host also the memory for snapshots
};

// Configuration and size of the KV cache.
struct espalier_cache_facts {
    bool        is_worth_logging = false; // worth logging: it is paged, not of f16, or set with --kv-quality
    std::string type_k;
    std::string type_v;
    std::string quality; // the name given to --kv-quality; empty: none
    int         recent = 0;
    int         sinks  = 0;
    uint64_t    bytes  = 0;
    espalier_pool_limit limit;

    // For the log; n_blocks is 0 if it is not paged.
    std::string to_text(uint64_t n_blocks, uint32_t block_size) const;
};

class espalier_metrics {
public:
    // `pool` is null if the KV cache is not paged.
    espalier_metrics(std::shared_ptr<const espalier_pool> pool, espalier_cache_facts facts, bool limits_queue) :
        facts(std::move(facts)), pool(std::move(pool)), limits_queue(limits_queue) {}

    const espalier_cache_facts facts;

    bool has_pool() const { return pool != nullptr; }

    // Null if no sequence has a state. Set before other threads can see this object.
    std::shared_ptr<espalier_snapshot_counts> snapshots;
    uint64_t snapshot_budget = 0; // bytes

    // Continues the counters of `before`, since a server that wakes up has a new pool. Call it before other threads can
    // see this object.
    void continue_from(const espalier_metrics & before);

    struct espalier_pool_statistics of_pool() const;

    std::string to_metrics() const;

    // Prompt tokens of admitted requests, and those of them that were prefix-cache hits. A preempted request counts
    // once.
    std::atomic<uint64_t> queried_tokens = { 0 };
    std::atomic<uint64_t> hit_tokens     = { 0 };

    // Number of waits for an in-flight prefix, of waits for free blocks, and of preemptions: a request counts each
    // time.
    std::atomic<uint64_t> prefix_waits = { 0 };
    std::atomic<uint64_t> queue_waits  = { 0 };
    std::atomic<uint64_t> preemptions  = { 0 };

    // Requests that need more blocks than the pool has.
    std::atomic<uint64_t> refusals = { 0 };

    // Requests that were answered with HTTP 429, once each.
    std::atomic<uint64_t> rate_limited_requests = { 0 };

    espalier_histogram to_first_token;
    espalier_histogram between_tokens;

private:
    std::string pool_to_metrics() const;
    static std::string windows_to_metrics(const struct espalier_pool_statistics & now);
    std::string snapshots_to_metrics(const struct espalier_pool_statistics & now) const;

    std::shared_ptr<const espalier_pool> pool;
    const bool                           limits_queue; // --max-queued
    struct espalier_pool_statistics      earlier = {}; // counters and peak of the pools before this one
};
