#include "espalier-metrics.h"

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
    snprintf(text, sizeof(text), "%.15g", microseconds / 1e6); // exact to a microsecond even for a sum of weeks
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

void espalier_histogram::continue_from(const espalier_histogram & before) {
    for (size_t i = 0; i < counts.size(); i++) {
        counts[i] = before.counts[i].load();
    }
    total = before.total.load();
}

void espalier_metrics::continue_from(const espalier_metrics & before) {
    queried_tokens = before.queried_tokens.load();
    hit_tokens     = before.hit_tokens.load();
    prefix_waits   = before.prefix_waits.load();
    queue_waits    = before.queue_waits.load();
    preemptions    = before.preemptions.load();
    refusals       = before.refusals.load();
    rate_limited_requests = before.rate_limited_requests.load();
    to_first_token.continue_from(before.to_first_token);
    between_tokens.continue_from(before.between_tokens);
    earlier = before.of_pool();
    if (snapshots && before.snapshots) {
        snapshots->continue_from(*before.snapshots);
    }
}

struct espalier_pool_statistics espalier_metrics::of_pool() const {
    struct espalier_pool_statistics now = {};
    if (pool) {
        espalier_pool_get_functions()->statistics(pool.get(), &now);
    }
    now.blocks_used_peak = std::max(now.blocks_used_peak, earlier.blocks_used_peak);
    now.window_blocks_used_peak = std::max(now.window_blocks_used_peak, earlier.window_blocks_used_peak);
    now.evicted_blocks   += earlier.evicted_blocks;
    now.refused_reserves += earlier.refused_reserves;
    now.refused_matches  += earlier.refused_matches;
    now.snapshot_hits     += earlier.snapshot_hits;
    now.evicted_snapshots += earlier.evicted_snapshots;
    now.refused_snapshots += earlier.refused_snapshots;
    return now;
}

std::string espalier_cache_facts::to_text(uint64_t n_blocks, uint32_t block_size) const {
    char mib[32];
    snprintf(mib, sizeof(mib), "%.1f MiB", (double) bytes / (1024.0 * 1024.0));
    std::string text = n_blocks > 0 ? "the KV cache is paged: " + std::to_string(n_blocks) + " blocks of " + std::to_string(block_size) + " tokens, " : "KV cache: ";
    text += std::string(mib) + ", K " + type_k + ", V " + type_v;
    text += quality.empty() ? "" : " (--kv-quality " + quality + ")";
    text += recent > 0 ? ", residual window of " + std::to_string(recent) + " tokens in f16" : "";
    text += sinks > 0 ? ", " + std::to_string(sinks) + " attention sinks in f16" : "";
    return text;
}

std::string espalier_metrics::to_metrics() const {
    std::string text = pool ? pool_to_metrics() : "";
    if (limits_queue) {
        const std::string name = "llamacpp:rate_limited_requests_total";
        text += head(name, "counter", "Requests answered with HTTP 429 because the queue was full (--max-queued)");
        text += name + " " + std::to_string(rate_limited_requests) + "\n";
    }
    return text;
}

std::string espalier_metrics::pool_to_metrics() const {
    const struct espalier_pool_statistics now = of_pool();

    // `old_name` goes after one release: docs/reference/metrics.md.
    const struct { const char * name; const char * old_name; const char * type; const char * help; uint64_t value; } metrics[] = {
        { "kv_cache_blocks", "blocks", "gauge",
          "Blocks of the paged KV cache", now.block_count },
        { "kv_cache_blocks_used", "blocks_used", "gauge",
          "Blocks held by running requests and by the retained sequences of idle slots", now.blocks_used },
        { "kv_cache_blocks_cached", "blocks_retained", "gauge",
          "Cached blocks that no request holds: a prefix-cache hit reuses them, an allocation evicts them", now.blocks_evictable },
        { "kv_cache_blocks_free", "blocks_empty", "gauge",
          "Blocks without content", now.blocks_empty },
        { "kv_cache_blocks_used_peak", "blocks_used_peak", "gauge",
          "Largest number of blocks held at one time", now.blocks_used_peak },
        { "prefix_cache_query_tokens_total", "queries_total", "counter",
          "Prompt tokens looked up in the prefix cache", queried_tokens },
        { "prefix_cache_hit_tokens_total", "hits_total", "counter",
          "Prompt tokens found in the prefix cache and not computed", hit_tokens },
        { "prefix_cache_inflight_waits_total", "waits_total", "counter",
          "Times a request waited for a block of its prefix that another request was computing", prefix_waits },
        { "kv_cache_queue_waits_total", "room_waits_total", "counter",
          "Times a request was queued because too few KV cache blocks were free", queue_waits },
        { "kv_cache_preemptions_total", "preemptions_total", "counter",
          "Running requests that were preempted; their blocks are freed and their tokens recomputed", preemptions },
        { "kv_cache_evicted_blocks_total", "evictions_total", "counter",
          "Cached blocks that were evicted for another allocation, without those that a sequence leaves behind its sliding window", now.evicted_blocks },
        { "kv_cache_allocation_failures_total", "refusals_total", "counter",
          "Requests that need more blocks than the KV cache has, and steps that could not allocate theirs", now.refused_reserves + refusals },
        { "prefix_cache_hash_collisions_total", "collisions_total", "counter",
          "Blocks with a matching hash and other tokens; they were not used", now.refused_matches },
    };

    std::string text;
    for (const auto & metric : metrics) {
        const std::string name = std::string("llamacpp:") + metric.name;
        const std::string old  = std::string("llamacpp:kv_pool_") + metric.old_name;
        const std::string value = " " + std::to_string(metric.value) + "\n";
        text += head(name, metric.type, metric.help) + name + value;
        text += head(old, metric.type, "Deprecated: " + name) + old + value;
    }
    text += head("llamacpp:kv_cache_usage_ratio", "gauge", "Used blocks of the paged KV cache divided by all blocks, 0 to 1");
    text += "llamacpp:kv_cache_usage_ratio " + ratio(now.blocks_used, now.block_count) + "\n";
    text += head("llamacpp:kv_cache_block_size_tokens", "gauge", "Tokens in a block of the paged KV cache");
    text += "llamacpp:kv_cache_block_size_tokens " + std::to_string(now.block_size) + "\n";
    text += now.window_block_count > 0 ? windows_to_metrics(now) : "";
    text += snapshots ? snapshots_to_metrics(now) : "";
    text += to_first_token.to_metrics("llamacpp:time_to_first_token_seconds", "Time to first token (TTFT): from the arrival of a request to its first token");
    text += between_tokens.to_metrics("llamacpp:time_between_tokens_seconds", "Inter-token latency: from one token of a request to the next");
    return text;
}

std::string espalier_metrics::windows_to_metrics(const struct espalier_pool_statistics & now) {
    const struct { const char * name; const char * help; uint64_t value; } metrics[] = {
        { "kv_cache_window_blocks",
          "Blocks of the paged KV cache in layers with a sliding window", now.window_block_count },
        { "kv_cache_window_blocks_used",
          "Blocks of layers with a sliding window held by running requests and by the retained sequences of idle slots", now.window_blocks_used },
        { "kv_cache_window_blocks_used_peak",
          "Largest number of blocks of layers with a sliding window held at one time", now.window_blocks_used_peak },
    };
    std::string text;
    for (const auto & metric : metrics) {
        const std::string name = std::string("llamacpp:") + metric.name;
        text += head(name, "gauge", metric.help) + name + " " + std::to_string(metric.value) + "\n";
    }
    return text;
}

std::string espalier_metrics::snapshots_to_metrics(const struct espalier_pool_statistics & now) const {
    const struct { const char * name; const char * type; const char * help; std::string value; } metrics[] = {
        { "kv_snapshots_held", "gauge",
          "Snapshots of recurrent states that exist", std::to_string(now.snapshots) },
        { "kv_snapshot_bytes", "gauge",
          "Memory of all snapshots of recurrent states", std::to_string(now.snapshot_bytes) },
        { "kv_snapshot_budget_bytes", "gauge",
          "Maximum memory of all snapshots of recurrent states (--kv-snapshots)", std::to_string(snapshot_budget) },
        { "kv_snapshot_hits_total", "counter",
          "Snapshots of recurrent states that were restored for a prompt", std::to_string(now.snapshot_hits) },
        { "kv_snapshot_evictions_total", "counter",
          "Snapshots of recurrent states that were removed for another one, or because their blocks were evicted", std::to_string(now.evicted_snapshots) },
        { "kv_snapshot_refusals_total", "counter",
          "Snapshots of recurrent states that were not taken, because the budget is too small or no other one may be evicted", std::to_string(now.refused_snapshots) },
        { "kv_snapshot_restore_failures_total", "counter",
          "Snapshots of recurrent states that could not be restored; the prompt was computed", std::to_string(snapshots->restore_failures) },
        { "kv_snapshot_save_failures_total", "counter",
          "Snapshots of recurrent states that could not be saved, for example because memory could not be allocated", std::to_string(snapshots->save_failures) },
        { "kv_snapshot_seconds_total", "counter",
          "Time spent saving and restoring recurrent states", seconds((double) snapshots->microseconds) },
    };
    std::string text;
    for (const auto & metric : metrics) {
        const std::string name = std::string("llamacpp:") + metric.name;
        text += head(name, metric.type, metric.help) + name + " " + metric.value + "\n";
    }
    const std::string name = "llamacpp:kv_snapshots_total";
    text += head(name, "counter", "Snapshots of recurrent states that were taken, by reason");
    for (size_t i = 0; i < snapshots->taken.size(); i++) {
        text += name + "{reason=\"" + espalier_snapshot_counts::reasons[i] + "\"} " + std::to_string(snapshots->taken[i]) + "\n";
    }
    return text;
}
