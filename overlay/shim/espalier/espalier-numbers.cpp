#include "espalier-numbers.h"

#include <algorithm>
#include <cstdio>

constexpr std::array<int64_t, 18> espalier_histogram::ends;

void espalier_histogram::add(int64_t microseconds) {
    size_t bucket = 0;
    while (bucket < ends.size() && microseconds > ends[bucket]) {
        bucket++;
    }
    counts[bucket]++;
    total += (uint64_t) (microseconds > 0 ? microseconds : 0);
}

static std::string seconds(double microseconds) {
    char text[32];
    snprintf(text, sizeof(text), "%.15g", microseconds / 1e6); // a sum of weeks keeps its microseconds
    return text;
}

static std::string ratio(uint64_t part, uint64_t whole) {
    char text[32];
    snprintf(text, sizeof(text), "%.6g", whole > 0 ? (double) part / (double) whole : 0.0);
    return text;
}

static std::string head(const std::string & name, const std::string & type, const std::string & help) {
    return "# HELP " + name + " " + help + "\n# TYPE " + name + " " + type + "\n";
}

std::string espalier_histogram::to_metrics(const std::string & name, const std::string & help) const {
    std::string text = head(name, "histogram", help);
    uint64_t    sum  = 0;
    for (size_t i = 0; i < counts.size(); i++) {
        sum += counts[i];
        const std::string end = i < ends.size() ? seconds((double) ends[i]) : "+Inf";
        text += name + "_bucket{le=\"" + end + "\"} " + std::to_string(sum) + "\n";
    }
    text += name + "_sum " + seconds((double) total) + "\n";
    text += name + "_count " + std::to_string(sum) + "\n";
    return text;
}

void espalier_histogram::go_on_from(const espalier_histogram & before) {
    for (size_t i = 0; i < counts.size(); i++) {
        counts[i] = before.counts[i].load();
    }
    total = before.total.load();
}

void espalier_numbers::go_on_from(const espalier_numbers & before) {
    queried_tokens = before.queried_tokens.load();
    hit_tokens     = before.hit_tokens.load();
    prefix_waits   = before.prefix_waits.load();
    room_waits     = before.room_waits.load();
    preemptions    = before.preemptions.load();
    refusals       = before.refusals.load();
    rate_limited_requests = before.rate_limited_requests.load();
    to_first_token.go_on_from(before.to_first_token);
    between_tokens.go_on_from(before.between_tokens);
    earlier = before.of_pool();
}

struct espalier_pool_statistics espalier_numbers::of_pool() const {
    struct espalier_pool_statistics now = {};
    if (pool) {
        espalier_pool_get_functions()->statistics(pool.get(), &now);
    }
    now.blocks_used_peak = std::max(now.blocks_used_peak, earlier.blocks_used_peak);
    now.evicted_blocks   += earlier.evicted_blocks;
    now.refused_reserves += earlier.refused_reserves;
    now.refused_matches  += earlier.refused_matches;
    return now;
}

std::string espalier_cache_facts::to_text(uint64_t n_blocks, uint32_t block_size) const {
    char mib[32];
    snprintf(mib, sizeof(mib), "%.1f MiB", (double) bytes / (1024.0 * 1024.0));
    std::string text = n_blocks > 0 ? "the KV cache is paged: " + std::to_string(n_blocks) + " blocks of " + std::to_string(block_size) + " tokens, " : "KV cache: ";
    text += std::string(mib) + ", K " + type_k + ", V " + type_v;
    text += quality.empty() ? "" : " (--kv-quality " + quality + ")";
    text += recent > 0 ? ", the newest " + std::to_string(recent) + " tokens of each sequence in f16" : "";
    text += sinks > 0 ? ", the first " + std::to_string(sinks) + " in f16" : "";
    return text;
}

std::string espalier_numbers::to_metrics() const {
    std::string text = pool ? pool_to_metrics() : "";
    if (limits_queue) {
        const std::string name = "llamacpp:rate_limited_requests_total";
        text += head(name, "counter", "Requests that got HTTP 429, because as many were queued as --max-queued allows");
        text += name + " " + std::to_string(rate_limited_requests) + "\n";
    }
    return text;
}

std::string espalier_numbers::pool_to_metrics() const {
    const struct espalier_pool_statistics now = of_pool();

    const struct { const char * name; const char * type; const char * help; uint64_t value; } metrics[] = {
        { "blocks",           "gauge",   "Blocks of the paged KV cache",                             now.block_count      },
        { "blocks_used",      "gauge",   "Blocks that running requests and the retained sequences of idle slots hold", now.blocks_used      },
        { "blocks_retained",  "gauge",   "Blocks that nobody holds and that can be attached again",  now.blocks_retained  },
        { "blocks_empty",     "gauge",   "Blocks without content",                                   now.blocks_empty     },
        { "blocks_used_peak", "gauge",   "The most blocks that were held at once",                   now.blocks_used_peak },
        { "queries_total",    "counter", "Prompt tokens that were looked up",                        queried_tokens       },
        { "hits_total",       "counter", "Prompt tokens that were found, and not computed",          hit_tokens           },
        { "waits_total",      "counter", "Times a request waited for a block that another computed", prefix_waits         },
        { "room_waits_total", "counter", "Times a request waited for room",                          room_waits           },
        { "preemptions_total", "counter", "Times a running request gave its blocks away",            preemptions          },
        { "evictions_total",  "counter", "Retained blocks that were taken for something else",       now.evicted_blocks   },
        { "refusals_total",   "counter", "Requests that need more blocks than the pool has, and steps that did not find theirs", now.refused_reserves + refusals },
        { "collisions_total", "counter", "Blocks whose hash was right and whose tokens were not",    now.refused_matches  },
    };

    std::string text;
    for (const auto & metric : metrics) {
        const std::string name = std::string("llamacpp:kv_pool_") + metric.name;
        text += head(name, metric.type, metric.help) + name + " " + std::to_string(metric.value) + "\n";
    }
    text += head("llamacpp:kv_cache_usage_ratio", "gauge", "Blocks in use, as a part of all blocks: 0 to 1");
    text += "llamacpp:kv_cache_usage_ratio " + ratio(now.blocks_used, now.block_count) + "\n";
    text += head("llamacpp:kv_cache_block_size_tokens", "gauge", "Tokens of a block of the paged KV cache");
    text += "llamacpp:kv_cache_block_size_tokens " + std::to_string(now.block_size) + "\n";
    text += to_first_token.to_metrics("llamacpp:time_to_first_token_seconds", "From the arrival of a request to its first token");
    text += between_tokens.to_metrics("llamacpp:time_between_tokens_seconds", "From one token of a request to the next");
    return text;
}
