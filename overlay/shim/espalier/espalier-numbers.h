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
    static constexpr std::array<int64_t, 14> ends = { 1000, 2500, 5000, 10000, 25000, 50000, 100000, 250000, 500000, 1000000, 2500000, 5000000, 10000000, 60000000 };

    std::array<std::atomic<uint64_t>, ends.size() + 1> counts = {};
    std::atomic<uint64_t> total = { 0 }; // microseconds
};

class espalier_numbers {
public:
    explicit espalier_numbers(std::shared_ptr<const espalier_pool> pool) : pool(std::move(pool)) {}

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

    espalier_histogram to_first_token;
    espalier_histogram between_tokens;

private:
    std::shared_ptr<const espalier_pool> pool;
    struct espalier_pool_statistics      earlier = {}; // what only grows, of the pools before this one
};
