// What a paged server says of itself: its block pool, and how long its clients wait. For /metrics.
//
// Written by the thread that decodes, read by those that answer requests: every member may be used from any.

#pragma once

#include "espalier-pool.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

// Counts of times, in buckets that are fixed: a Prometheus histogram.
class espalier_histogram {
public:
    void add(int64_t microseconds);

    std::string to_metrics(const std::string & name, const std::string & help) const;

    void go_on_from(const espalier_histogram & before);

private:
    // The upper ends, in microseconds; what is longer goes to the last count.
    static constexpr std::array<int64_t, 18> ends = { 1000, 2500, 5000, 10000, 25000, 50000, 100000, 250000, 500000, 1000000, 2500000, 5000000, 10000000, 60000000,
                                                      120000000, 300000000, 600000000, 1800000000 };

    std::array<std::atomic<uint64_t>, ends.size() + 1> counts = {};
    std::atomic<uint64_t> total = { 0 }; // microseconds
};

// How the KV cache was asked for, and how large it is.
struct espalier_cache_facts {
    bool        is_worth_saying = false; // it is paged, or not of f16
    std::string type_k;
    std::string type_v;
    std::string quality; // the name given to --kv-quality; empty: none
    int         recent = 0;
    int         sinks  = 0;
    uint64_t    bytes  = 0;

    // For the log; n_blocks is 0 if it is not paged.
    std::string to_text(uint64_t n_blocks, uint32_t block_size) const;
};

class espalier_numbers {
public:
    // No pool: the KV cache is not paged.
    espalier_numbers(std::shared_ptr<const espalier_pool> pool, espalier_cache_facts facts, bool limits_queue) :
        facts(std::move(facts)), pool(std::move(pool)), limits_queue(limits_queue) {}

    const espalier_cache_facts facts;

    bool has_pool() const { return pool != nullptr; }

    // A server that was woken up counts on in another pool. Only before others see it.
    void go_on_from(const espalier_numbers & before);

    struct espalier_pool_statistics of_pool() const;

    std::string to_metrics() const;

    // Tokens of prompts that were let in, and of them those that others had computed. A preempted request counts once.
    std::atomic<uint64_t> queried_tokens = { 0 };
    std::atomic<uint64_t> hit_tokens     = { 0 };

    // Requests that had to wait, once each time they did.
    std::atomic<uint64_t> prefix_waits = { 0 };
    std::atomic<uint64_t> room_waits   = { 0 };
    std::atomic<uint64_t> preemptions  = { 0 };

    // Requests that need more blocks than the pool has.
    std::atomic<uint64_t> refusals = { 0 };

    // Requests that were answered 429, once each.
    std::atomic<uint64_t> rate_limited_requests = { 0 };

    espalier_histogram to_first_token;
    espalier_histogram between_tokens;

private:
    std::string pool_to_metrics() const;

    std::shared_ptr<const espalier_pool> pool;
    const bool                           limits_queue; // --max-queued
    struct espalier_pool_statistics      earlier = {}; // what only grows, of the pools before this one
};
