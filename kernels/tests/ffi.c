/*
 * Compiled against the headers and the static library by tests/header.rs. With the files in
 * ffi/ it calls every function and prints what Rust has to agree with, as `name value` lines.
 */
#include "espalier_kernels.h"
#include "ffi/computations.h"
#include "ffi/fit.h"
#include "ffi/kv_gather.h"
#include "ffi/layouts.h"

#include <stdio.h>
#include <string.h>

static void print_calls(void) {
    const struct espalier_gdn_output_facts q8_0 = { 8, 1, 1, 1, 0 };
    const struct espalier_gdn_output_facts f16  = { 1, 1, 1, 1, 0 };
    char names[64];
    const size_t length = espalier_features(names, sizeof(names));

    printf("call.abi_version %u\n", (unsigned) espalier_kernels_abi_version());
    printf("call.enabled %d\n", (int) espalier_feature_enabled(ESPALIER_FEATURE_GDN_FLAT_OUTPUT));
    printf("call.features_length %zu\n", length);
    printf("call.features [%s]\n", names);
    printf("call.flat_q8_0 %d\n", (int) espalier_gdn_output_is_flat(&q8_0));
    printf("call.flat_f16 %d\n", (int) espalier_gdn_output_is_flat(&f16));
    printf("call.flat_null %d\n", (int) espalier_gdn_output_is_flat(NULL));
    printf("call.free_of_groups %d\n", espalier_free_of_groups() >= 0);
    espalier_warn_of_variables();
}

/* ---- The block pool: two sequences with the same prompt, from begin to end ---- */

enum { BLOCK_SIZE = 4, PROMPT_LENGTH = 10, SEQUENCE_COUNT = 3 };

/* The group of all layers, if a pool has no windows. */
#define FULL ESPALIER_POOL_GROUP_FULL

static void print_pool_refusals(void) {
    const struct espalier_pool_options odd = { 8, 3, SEQUENCE_COUNT, 0, 0, 0, 0, 0, 0, 0, 0 };
    const struct espalier_pool_options good = { 2, BLOCK_SIZE, SEQUENCE_COUNT, 0, 0, 0, 0, 0, 0, 0, 0 };
    const struct espalier_pool_options unknown = { 2, BLOCK_SIZE, SEQUENCE_COUNT, 0, 8, 0, 0, 0, 0, 0, 0 };
    struct espalier_pool * pool = espalier_pool_new(&good);
    const int32_t sequences[3] = { 0, 0, 0 };
    const int32_t positions[3] = { 0, 4, 8 };
    const int32_t nowhere[1] = { -1 };
    uint32_t numbers[3];
    struct espalier_pool_blocks blocks[2] = { { numbers, 3, 77 }, { NULL, 0, 77 } };
    size_t count = 77;
    uint32_t snapshot = 77;
    struct espalier_pool_stop stop;

    printf("pool.new_odd %d\n", espalier_pool_new(&odd) == NULL);
    printf("pool.new_unknown_part %d\n", espalier_pool_new(&unknown) == NULL);
    printf("pool.new_null %d\n", espalier_pool_new(NULL) == NULL);
    espalier_pool_free(NULL);
    espalier_pool_clear(NULL);
    printf("pool.null_reserve %d\n",
           (int) espalier_pool_reserve(NULL, FULL, sequences, positions, 3, numbers, numbers, &count));
    printf("pool.null_cells %d\n",
           (int) espalier_pool_reserve(pool, FULL, sequences, positions, 3, NULL, numbers, &count));
    printf("pool.null_fresh %d\n",
           (int) espalier_pool_reserve(pool, FULL, sequences, positions, 3, numbers, NULL, &count));
    printf("pool.null_count %d\n",
           (int) espalier_pool_reserve(pool, FULL, sequences, positions, 3, numbers, numbers, NULL));
    printf("pool.null_positions %d\n",
           (int) espalier_pool_reserve(pool, FULL, sequences, NULL, 3, numbers, numbers, &count));
    printf("pool.negative_position %d\n",
           (int) espalier_pool_reserve(pool, FULL, sequences, nowhere, 1, numbers, numbers, &count));
    printf("pool.short_reserve %d\n",
           (int) espalier_pool_reserve(pool, FULL, sequences, positions, 3, numbers, numbers, &count));
    printf("pool.count_after_refusals %zu\n", count);
    printf("pool.unknown_sequence %d\n", (int) espalier_pool_remove(pool, FULL, SEQUENCE_COUNT, 0, -1));
    printf("pool.null_share %d\n", (int) espalier_pool_share(NULL, FULL, 0, 1, 0, -1));
    printf("pool.null_remove %d\n", (int) espalier_pool_remove(NULL, FULL, 0, 0, -1));
    printf("pool.null_begin %d\n", (int) espalier_pool_begin(NULL, 0, NULL));
    printf("pool.null_request %d\n", (int) espalier_pool_begin(pool, 0, NULL));
    printf("pool.null_match %d\n", (int) espalier_pool_match_prefix(NULL, 0, 12, blocks, &snapshot));
    printf("pool.match_null_snapshot %d\n", (int) espalier_pool_match_prefix(pool, 0, 12, blocks, NULL));
    printf("pool.match_without_request %d\n", (int) espalier_pool_match_prefix(pool, 0, 12, blocks, &snapshot));
    printf("pool.null_restored %d\n", (int) espalier_pool_restored(NULL, 1, 1, 1));
    printf("pool.restored_unknown %d\n", (int) espalier_pool_restored(pool, 1, 1, 1));
    printf("pool.null_next_stop %d\n", (int) espalier_pool_next_stop(NULL, 0, 0, &stop));
    printf("pool.next_stop_null %d\n", (int) espalier_pool_next_stop(pool, 0, 0, NULL));
    printf("pool.null_snapshot_begin %d\n",
           (int) espalier_pool_snapshot_begin(NULL, 0, positions, 3, 1, ESPALIER_POOL_REASON_TAIL, &snapshot, numbers,
                                              3, &count));
    printf("pool.snapshot_begin_unknown_reason %d\n",
           (int) espalier_pool_snapshot_begin(pool, 0, positions, 3, 1, 6, &snapshot, numbers, 3, &count));
    printf("pool.snapshot_begin_without_request %d\n",
           (int) espalier_pool_snapshot_begin(pool, 0, positions, 3, 1, ESPALIER_POOL_REASON_TAIL, &snapshot, numbers,
                                              3, &count));
    printf("pool.null_snapshot_end %d\n", (int) espalier_pool_snapshot_end(NULL, 1, 1));
    printf("pool.snapshot_end_unknown %d\n", (int) espalier_pool_snapshot_end(pool, 1, 1));
    printf("pool.null_distrust %d\n", (int) espalier_pool_distrust(NULL, 0, 0, blocks, &snapshot, 1, &count));
    printf("pool.distrust_without_request %d\n",
           (int) espalier_pool_distrust(pool, 0, 0, blocks, &snapshot, 1, &count));
    printf("pool.snapshot_after_refusals %u\n", (unsigned) snapshot);
    printf("pool.null_cache %d\n", (int) espalier_pool_cache_blocks(NULL, 0, positions, 3, blocks));
    printf("pool.cache_without_request %d\n", (int) espalier_pool_cache_blocks(pool, 0, positions, 3, blocks));
    printf("pool.blocks_after_refusals %u\n", (unsigned) blocks[0].count);
    printf("pool.null_end %d\n", (int) espalier_pool_end(NULL, 0));
    printf("pool.null_statistics %d\n", (int) espalier_pool_statistics(pool, NULL));
    printf("pool.null_event %d\n", (int) espalier_pool_next_event(pool, NULL));
    espalier_pool_free(pool);
}

static void print_reserve(const char * name, struct espalier_pool * pool, int32_t sequence,
                          int32_t first, size_t count) {
    int32_t sequences[PROMPT_LENGTH], positions[PROMPT_LENGTH];
    uint32_t cells[PROMPT_LENGTH], fresh[PROMPT_LENGTH];
    size_t fresh_count = 0, i;
    for (i = 0; i < count; i++) {
        sequences[i] = sequence;
        positions[i] = first + (int32_t) i;
    }
    printf("%s %d", name,
           (int) espalier_pool_reserve(pool, FULL, sequences, positions, count, cells, fresh, &fresh_count));
    for (i = 0; i < count; i++) {
        printf(" %u", (unsigned) cells[i]);
    }
    printf(" fresh");
    for (i = 0; i < fresh_count; i++) {
        printf(" %u", (unsigned) fresh[i]);
    }
    printf("\n");
}

static void print_blocks(const char * name, int32_t status, const uint32_t * blocks, size_t count) {
    size_t i;
    printf("%s %d", name, (int) status);
    for (i = 0; i < count; i++) {
        printf(" %u", (unsigned) blocks[i]);
    }
    printf("\n");
}

static void print_match(const char * name, struct espalier_pool * pool, int32_t sequence) {
    uint32_t cells[PROMPT_LENGTH], snapshot = 77;
    struct espalier_pool_blocks blocks[2] = { { cells, PROMPT_LENGTH, 0 }, { NULL, 0, 0 } };
    const int32_t status = espalier_pool_match_prefix(pool, sequence, UINT64_MAX, blocks, &snapshot);
    print_blocks(name, status, cells, blocks[0].count);
    printf("%s_snapshot %u\n", name, (unsigned) snapshot);
}

static void print_cache(const char * name, struct espalier_pool * pool, int32_t sequence,
                        const int32_t * tokens, size_t token_count) {
    uint32_t cells[PROMPT_LENGTH];
    struct espalier_pool_blocks blocks[2] = { { cells, PROMPT_LENGTH, 0 }, { NULL, 0, 0 } };
    const int32_t status = espalier_pool_cache_blocks(pool, sequence, tokens, token_count, blocks);
    print_blocks(name, status, cells, blocks[0].count);
}

static void print_statistics(const char * name, struct espalier_pool * pool) {
    struct espalier_pool_statistics s;
    memset(&s, 0xff, sizeof(s));
    printf("%s %d", name, (int) espalier_pool_statistics(pool, &s));
    printf(" %u %u", (unsigned) s.block_count, (unsigned) s.block_size);
    printf(" %u %u %u", (unsigned) s.blocks_used, (unsigned) s.blocks_evictable, (unsigned) s.blocks_empty);
    printf(" %u", (unsigned) s.blocks_used_peak);
    printf(" %u %u", (unsigned) s.cached_blocks, (unsigned) s.evicted_blocks);
    printf(" %u %u\n", (unsigned) s.refused_reserves, (unsigned) s.refused_matches);
}

static void print_events(const char * name, struct espalier_pool * pool) {
    struct espalier_pool_event event;
    printf("%s", name);
    while (espalier_pool_next_event(pool, &event)) {
        const uint8_t * h = event.hash;
        const uint8_t * p = event.parent;
        printf(" %u:%u:%u", (unsigned) event.number, (unsigned) event.kind, (unsigned) event.block);
        printf(":%u:%u", (unsigned) event.block_index, (unsigned) event.token_count);
        printf(":%u:%u", (unsigned) event.has_parent, (unsigned) event.has_adapters);
        printf(":%02x%02x%02x%02x", h[0], h[1], h[2], h[31]);
        printf(":%02x%02x%02x%02x", p[0], p[1], p[2], p[31]);
    }
    printf("\n");
}

static void print_pool_calls(void) {
    static const int32_t tokens[12] = { 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 };
    static const uint8_t salt[2] = { 1, 2 }, adapters[1] = { 3 }, image[3] = { 4, 5, 6 };
    const struct espalier_pool_options options = { 8, BLOCK_SIZE, SEQUENCE_COUNT, 16, 0, 0, 0, 0, 0, 0, 0 };
    const struct espalier_pool_extra extra = { 2, 4, image, sizeof(image) };
    struct espalier_pool_request request;
    struct espalier_pool * pool = espalier_pool_new(&options);
    struct espalier_pool_blocks nowhere[2] = { { NULL, 0, 77 }, { NULL, 0, 77 } };

    memset(&request, 0, sizeof(request));
    request.tokens = tokens;
    request.token_count = PROMPT_LENGTH;
    request.salt = salt;
    request.salt_length = sizeof(salt);
    request.adapters = adapters;
    request.adapters_length = sizeof(adapters);
    request.extras = &extra;
    request.extra_count = 1;

    printf("pool.begin_0 %d\n", (int) espalier_pool_begin(pool, 0, &request));
    printf("pool.begin_1 %d\n", (int) espalier_pool_begin(pool, 1, &request));
    print_match("pool.match_0", pool, 0);
    print_match("pool.match_1_waits", pool, 1);
    print_reserve("pool.reserve_0", pool, 0, 0, PROMPT_LENGTH);
    print_reserve("pool.reserve_0_again", pool, 0, 8, 2);
    print_cache("pool.cache_0", pool, 0, tokens, PROMPT_LENGTH);
    print_match("pool.match_1_hits", pool, 1);
    print_reserve("pool.reserve_1", pool, 1, 8, 2);
    printf("pool.share_1_2 %d\n", (int) espalier_pool_share(pool, FULL, 1, 2, 0, 10));
    print_reserve("pool.reserve_2", pool, 2, 10, 1);
    print_reserve("pool.reserve_0_output", pool, 0, 10, 2);
    print_cache("pool.cache_0_output", pool, 0, tokens, 12);
    printf("pool.cache_without_capacity %d\n", (int) espalier_pool_cache_blocks(pool, 0, tokens, 12, nowhere));
    printf("pool.end_0 %d\n", (int) espalier_pool_end(pool, 0));
    print_statistics("pool.statistics", pool);
    printf("pool.remove_0 %d\n", (int) espalier_pool_remove(pool, FULL, 0, 0, -1));
    printf("pool.remove_1 %d\n", (int) espalier_pool_remove(pool, FULL, 1, -1, INT32_MAX));
    printf("pool.remove_2 %d\n", (int) espalier_pool_remove(pool, FULL, 2, 0, 12));
    print_statistics("pool.statistics_removed", pool);
    print_events("pool.events", pool);
    print_reserve("pool.reserve_after_removal", pool, 1, 0, 1);
    espalier_pool_clear(pool);
    print_statistics("pool.statistics_cleared", pool);
    print_events("pool.events_cleared", pool);
    espalier_pool_free(pool);
}

/* ---- Snapshots: a state is saved twice, then matched, in a budget for one ---- */

static void print_stop(const char * name, const struct espalier_pool * pool, int32_t sequence, uint64_t computed) {
    struct espalier_pool_stop stop = { 77, 77 };
    const int32_t status = espalier_pool_next_stop(pool, sequence, computed, &stop);
    printf("%s %d tokens %u reason %u\n", name, (int) status, (unsigned) stop.tokens, (unsigned) stop.reason);
}

static uint32_t print_snapshot(const char * name, struct espalier_pool * pool, const int32_t * tokens,
                               size_t token_count, size_t capacity) {
    uint32_t evicted[2] = { 77, 77 }, snapshot = 77;
    size_t count = 0, i;
    printf("%s %d", name,
           (int) espalier_pool_snapshot_begin(pool, 0, tokens, token_count, 100, ESPALIER_POOL_REASON_AWAITED, &snapshot,
                                              evicted, capacity, &count));
    printf(" id %u evicted", (unsigned) snapshot);
    for (i = 0; i < count; i++) {
        printf(" %u", (unsigned) evicted[i]);
    }
    printf("\n");
    return snapshot;
}

static void print_snapshot_statistics(const char * name, const struct espalier_pool * pool) {
    struct espalier_pool_statistics s;
    memset(&s, 0xff, sizeof(s));
    printf("%s %d", name, (int) espalier_pool_statistics(pool, &s));
    printf(" %u %u %u", (unsigned) s.snapshots, (unsigned) s.snapshot_bytes, (unsigned) s.snapshot_hits);
    printf(" %u %u\n", (unsigned) s.evicted_snapshots, (unsigned) s.refused_snapshots);
}

static void print_distrust(const char * name, struct espalier_pool * pool, int32_t sequence, size_t capacity) {
    uint32_t cells[2] = { 77, 77 }, snapshots[1] = { 77 };
    struct espalier_pool_blocks blocks[2] = { { cells, 2, 77 }, { NULL, 0, 77 } };
    size_t snapshot_count = 77;
    printf("%s %d", name,
           (int) espalier_pool_distrust(pool, sequence, 0, blocks, snapshots, capacity, &snapshot_count));
    printf(" blocks %u: %u %u", (unsigned) blocks[0].count, (unsigned) cells[0], (unsigned) cells[1]);
    printf(" snapshots %u: %u\n", (unsigned) snapshot_count, (unsigned) snapshots[0]);
}

static void print_snapshot_calls(void) {
    static const int32_t tokens[12] = { 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 };
    const struct espalier_pool_options options = {
        8, BLOCK_SIZE, SEQUENCE_COUNT, 0, ESPALIER_POOL_PART_CELLS | ESPALIER_POOL_PART_STATE, 0, 100, 0, 0, 0, 0
    };
    struct espalier_pool_request request;
    struct espalier_pool * pool = espalier_pool_new(&options);
    uint32_t snapshot;

    memset(&request, 0, sizeof(request));
    request.tokens = tokens;
    request.token_count = PROMPT_LENGTH;
    request.system_length = BLOCK_SIZE + 1;
    espalier_pool_begin(pool, 0, &request);
    print_match("snapshot.match_0", pool, 0);
    print_stop("snapshot.stop_at_system_prompt", pool, 0, 0);
    print_stop("snapshot.stop_at_none", pool, 0, 4);
    print_reserve("snapshot.reserve_0", pool, 0, 0, PROMPT_LENGTH);
    print_snapshot("snapshot.begin_before_cache", pool, tokens, 4, 2);
    print_cache("snapshot.cache_0", pool, 0, tokens, PROMPT_LENGTH);
    espalier_pool_begin(pool, 1, &request);
    print_stop("snapshot.stop_at_awaited", pool, 0, 4);
    print_snapshot("snapshot.begin_within_a_block", pool, tokens, 5, 2);
    snapshot = print_snapshot("snapshot.begin_first", pool, tokens, 4, 2);
    print_match("snapshot.match_while_it_is_written", pool, 1);
    print_snapshot("snapshot.begin_again", pool, tokens, 4, 2);
    print_snapshot("snapshot.begin_in_a_full_budget", pool, tokens, 8, 2);
    printf("snapshot.end_first %d\n", (int) espalier_pool_snapshot_end(pool, snapshot, 1));
    print_snapshot("snapshot.begin_without_space", pool, tokens, 8, 0);
    snapshot = print_snapshot("snapshot.begin_second", pool, tokens, 8, 2);
    printf("snapshot.end_second %d\n", (int) espalier_pool_snapshot_end(pool, snapshot, 1));
    print_match("snapshot.match_1", pool, 1);
    print_snapshot_statistics("snapshot.statistics", pool);
    printf("snapshot.restored_by_another %d\n", (int) espalier_pool_restored(pool, 0, snapshot, 1));
    printf("snapshot.restored %d\n", (int) espalier_pool_restored(pool, 1, snapshot, 1));
    print_snapshot_statistics("snapshot.statistics_restored", pool);
    print_distrust("snapshot.distrust_without_space", pool, 1, 0);
    print_distrust("snapshot.distrust", pool, 1, 1);
    print_snapshot_statistics("snapshot.statistics_distrusted", pool);
    espalier_pool_clear(pool);
    print_snapshot_statistics("snapshot.statistics_cleared", pool);
    espalier_pool_free(pool);
}

/* ---- Windows: a prompt of three blocks and two tokens, with a window of one block ---- */

static void print_window_refusals(struct espalier_pool * pool) {
    const struct espalier_pool_options without_blocks = {
        8, BLOCK_SIZE, SEQUENCE_COUNT, 0, ESPALIER_POOL_PART_WINDOW, 0, 0, BLOCK_SIZE, 0, 0, 0
    };
    const int32_t number = 0;
    uint32_t cells[2];
    struct espalier_pool_blocks blocks[2] = { { NULL, 1, 77 }, { cells, 1, 77 } };
    size_t count = 77;
    uint64_t first = 77;
    uint32_t snapshot = 77;

    printf("window.new_without_blocks %d\n", espalier_pool_new(&without_blocks) == NULL);
    printf("window.blocks_of_windows %u %u\n", (unsigned) espalier_pool_blocks_of_windows(BLOCK_SIZE, BLOCK_SIZE, 1, 0),
           (unsigned) espalier_pool_blocks_of_windows(BLOCK_SIZE + 1, BLOCK_SIZE, SEQUENCE_COUNT, 6));
    printf("window.unknown_group_reserve %d\n",
           (int) espalier_pool_reserve(pool, 2, &number, &number, 1, cells, cells, &count));
    printf("window.unknown_group_share %d\n", (int) espalier_pool_share(pool, 2, 0, 1, 0, -1));
    printf("window.unknown_group_remove %d\n", (int) espalier_pool_remove(pool, 2, 0, 0, -1));
    printf("window.null_slide %d\n", (int) espalier_pool_slide(pool, 0, 0, NULL));
    printf("window.slide_of_unknown_sequence %d\n", (int) espalier_pool_slide(pool, SEQUENCE_COUNT, 0, &first));
    printf("window.match_null %d\n", (int) espalier_pool_match_prefix(pool, 0, UINT64_MAX, NULL, &snapshot));
    printf("window.match_null_cells %d\n", (int) espalier_pool_match_prefix(pool, 0, UINT64_MAX, blocks, &snapshot));
    printf("window.cache_null_cells %d\n", (int) espalier_pool_cache_blocks(pool, 0, &number, 1, blocks));
    printf("window.distrust_null_cells %d\n",
           (int) espalier_pool_distrust(pool, 0, UINT64_MAX, blocks, &snapshot, 1, &count));
    printf("window.unchanged %u %u %u %u\n", (unsigned) count, (unsigned) first, (unsigned) snapshot,
           (unsigned) blocks[1].count);
}

static void print_window_reserve(const char * name, struct espalier_pool * pool, uint32_t group, int32_t sequence,
                                 int32_t first, size_t count) {
    int32_t sequences[14], positions[14];
    uint32_t cells[14], fresh[14];
    size_t fresh_count = 0, i;
    for (i = 0; i < count; i++) {
        sequences[i] = sequence;
        positions[i] = first + (int32_t) i;
    }
    printf("%s %d", name,
           (int) espalier_pool_reserve(pool, group, sequences, positions, count, cells, fresh, &fresh_count));
    for (i = 0; i < fresh_count; i++) {
        printf(" %u", (unsigned) fresh[i]);
    }
    printf("\n");
}

static void print_groups(const char * name, int32_t status, const struct espalier_pool_blocks * blocks) {
    size_t group, i;
    printf("%s %d", name, (int) status);
    for (group = 0; group < 2; group++) {
        printf(" group %u", (unsigned) group);
        for (i = 0; i < blocks[group].count; i++) {
            printf(" %u", (unsigned) blocks[group].first_cells[i]);
        }
    }
    printf("\n");
}

static void print_window_calls(void) {
    static const int32_t tokens[14] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14 };
    const struct espalier_pool_options options = {
        8, BLOCK_SIZE, SEQUENCE_COUNT, 16, ESPALIER_POOL_PART_CELLS | ESPALIER_POOL_PART_WINDOW, 0, 0,
        BLOCK_SIZE, 12, 0, 0
    };
    struct espalier_pool_request request;
    struct espalier_pool_statistics s;
    struct espalier_pool_event event;
    struct espalier_pool * pool = espalier_pool_new(&options);
    uint32_t full[4], window[4], snapshot = 77;
    struct espalier_pool_blocks blocks[2] = { { full, 4, 0 }, { window, 4, 0 } };
    uint64_t first = 77;
    int32_t status;

    print_window_refusals(pool);
    memset(&request, 0, sizeof(request));
    request.tokens = tokens;
    request.token_count = 14;
    espalier_pool_begin(pool, 0, &request);
    status = espalier_pool_match_prefix(pool, 0, UINT64_MAX, blocks, &snapshot);
    print_groups("window.match_0", status, blocks);
    print_window_reserve("window.reserve_full", pool, ESPALIER_POOL_GROUP_FULL, 0, 0, 14);
    print_window_reserve("window.reserve_window", pool, ESPALIER_POOL_GROUP_WINDOW, 0, 0, 14);
    status = espalier_pool_cache_blocks(pool, 0, tokens, 14, blocks);
    print_groups("window.cache_0", status, blocks);
    printf("window.events");
    while (espalier_pool_next_event(pool, &event)) {
        printf(" %u:%u", (unsigned) event.group, (unsigned) event.block_index);
    }
    printf("\n");
    status = espalier_pool_slide(pool, 0, 14, &first);
    printf("window.slide %d first %u\n", (int) status, (unsigned) first);
    espalier_pool_begin(pool, 1, &request);
    status = espalier_pool_match_prefix(pool, 1, UINT64_MAX, blocks, &snapshot);
    print_groups("window.match_1", status, blocks);
    printf("window.match_1_snapshot %u\n", (unsigned) snapshot);
    printf("window.share %d\n", (int) espalier_pool_share(pool, ESPALIER_POOL_GROUP_WINDOW, 0, 2, 0, -1));
    printf("window.remove %d\n", (int) espalier_pool_remove(pool, ESPALIER_POOL_GROUP_WINDOW, 0, 0, -1));
    memset(&s, 0xff, sizeof(s));
    printf("window.statistics %d", (int) espalier_pool_statistics(pool, &s));
    printf(" %u %u", (unsigned) s.window_block_count, (unsigned) s.window_blocks_used);
    printf(" %u %u\n", (unsigned) s.window_blocks_evictable, (unsigned) s.window_blocks_used_peak);
    espalier_pool_free(pool);
}

/* ---- Layout: an image ends in the second block, so the third one begins there ---- */

static void print_block_of(const char * name, const struct espalier_pool * pool, int32_t sequence, uint64_t token) {
    uint64_t first = 77, end = 77;
    const int32_t status = espalier_pool_block_of(pool, sequence, token, &first, &end);
    printf("%s %d first %u end %u\n", name, (int) status, (unsigned) first, (unsigned) end);
}

static void print_layout_calls(void) {
    static const int32_t tokens[PROMPT_LENGTH] = { 5, 6, 7, 8, 9, 10, 11, 12, 13, 14 };
    static const uint8_t key[1] = { 1 };
    const struct espalier_pool_options options = { 8, BLOCK_SIZE, SEQUENCE_COUNT, 0, 0, 0, 0, 0, 0, 1, 0 };
    const struct espalier_pool_extra image = { 2, 4, key, 1 };
    struct espalier_pool_request request;
    struct espalier_pool * pool = espalier_pool_new(&options);
    uint64_t number = 77;

    memset(&request, 0, sizeof(request));
    request.tokens = tokens;
    request.token_count = PROMPT_LENGTH;
    request.extras = &image;
    request.extra_count = 1;
    print_block_of("layout.without_request", pool, 0, 5);
    espalier_pool_begin(pool, 0, &request);
    print_block_of("layout.in_the_image", pool, 0, 5);
    print_block_of("layout.behind_the_image", pool, 0, 6);
    print_block_of("layout.unknown_sequence", pool, SEQUENCE_COUNT, 0);
    print_block_of("layout.too_far", pool, 0, UINT64_MAX);
    printf("layout.null %d\n", (int) espalier_pool_block_of(NULL, 0, 0, &number, &number));
    printf("layout.null_first %d\n", (int) espalier_pool_block_of(pool, 0, 0, NULL, &number));
    printf("layout.null_end %d\n", (int) espalier_pool_block_of(pool, 0, 0, &number, NULL));
    printf("layout.unchanged %u\n", (unsigned) number);
    espalier_pool_free(pool);
}

/* ---- The scheduler: two requests of three blocks each in a pool of four ---- */

static void print_schedule(const char * name, const struct espalier_pool * pool,
                           const struct espalier_schedule_request * requests, int32_t try_waiting) {
    uint32_t waits[2] = { 77, 77 };
    struct espalier_schedule_step step = { 77, 77, 77, 77 };
    const int32_t status = espalier_pool_schedule(pool, requests, 2, NULL, 0, try_waiting, waits, &step);
    printf("%s %d action %u index %u", name, (int) status, (unsigned) step.action, (unsigned) step.index);
    printf(" tokens %u waits %u %u\n", (unsigned) step.tokens, (unsigned) waits[0], (unsigned) waits[1]);
}

static void print_schedule_refusals(const struct espalier_pool * pool) {
    struct espalier_schedule_request request;
    struct espalier_schedule_step step;
    const int32_t retained = SEQUENCE_COUNT;
    uint32_t waits;

    memset(&request, 0, sizeof(request));
    printf("scheduler.schedule_null %d\n", (int) espalier_pool_schedule(pool, &request, 1, NULL, 0, 1, &waits, NULL));
    printf("scheduler.schedule_unknown_retained %d\n",
           (int) espalier_pool_schedule(pool, &request, 1, &retained, 1, 1, &waits, &step));
    request.stage = 2;
    printf("scheduler.schedule_unknown_stage %d\n",
           (int) espalier_pool_schedule(pool, &request, 1, NULL, 0, 1, &waits, &step));
    request.stage = ESPALIER_SCHEDULE_WAITS;
    request.sequence = -1;
    printf("scheduler.schedule_unknown_sequence %d\n",
           (int) espalier_pool_schedule(pool, &request, 1, NULL, 0, 1, &waits, &step));
}

/* Three requests that only one field of their places tells apart each, and two with one place. */
static void print_order(void) {
    const struct espalier_schedule_place places[5] = { { 0, 7, 2 }, { 0, 7, 1 }, { 0, 6, 3 }, { -1, 9, 4 }, { 0, 7, 1 } };
    uint32_t indexes[5] = { 77, 77, 77, 77, 77 };
    size_t i;

    printf("scheduler.order_null %d\n", (int) espalier_schedule_order(NULL, 1, indexes));
    printf("scheduler.order_null_indexes %d\n", (int) espalier_schedule_order(places, 1, NULL));
    printf("scheduler.order_of_none %d\n", (int) espalier_schedule_order(NULL, 0, NULL));
    printf("scheduler.order_after_refusals %u\n", (unsigned) indexes[0]);
    printf("scheduler.order %d", (int) espalier_schedule_order(places, 5, indexes));
    for (i = 0; i < 5; i++) {
        printf(" %u", (unsigned) indexes[i]);
    }
    printf("\n");
}

static void print_scheduler_calls(void) {
    const struct espalier_pool_options options = { 4, BLOCK_SIZE, SEQUENCE_COUNT, 0, 0, 0, 0, 0, 0, 0, 0 };
    struct espalier_pool * pool = espalier_pool_new(&options);
    struct espalier_schedule_request requests[2];
    uint8_t digest[32];

    memset(requests, 0, sizeof(requests));
    requests[0].end = requests[1].end = 3 * BLOCK_SIZE;
    requests[1].arrival = requests[1].sequence = 1;
    printf("scheduler.changes %u\n", (unsigned) espalier_pool_changes(pool));
    print_schedule("scheduler.schedule_first", pool, requests, 1);
    requests[0].stage = ESPALIER_SCHEDULE_RUNS;
    print_reserve("scheduler.reserve", pool, 0, 0, PROMPT_LENGTH);
    requests[0].first = 3 * BLOCK_SIZE;
    print_schedule("scheduler.schedule_second", pool, requests, 1);
    print_schedule("scheduler.schedule_asleep", pool, requests, 0);
    print_schedule_refusals(pool);
    printf("scheduler.held %u\n", (unsigned) espalier_pool_held(pool, 0));
    printf("scheduler.held_null %u\n", (unsigned) espalier_pool_held(NULL, 0));
    espalier_pool_remove(pool, FULL, 0, -1, -1);
    printf("scheduler.changes_freed %u\n", (unsigned) espalier_pool_changes(pool));
    espalier_pool_free(pool);

    espalier_sha256((const uint8_t *) "abc", 3, digest);
    printf("scheduler.sha256 %02x%02x%02x%02x\n", digest[0], digest[1], digest[2], digest[3]);
    espalier_sha256(NULL, 0, digest);
    printf("scheduler.sha256_of_nothing %02x%02x%02x%02x\n", digest[0], digest[1], digest[2], digest[3]);
}

/* Evenly spread values, which all types come near to. */
static int kv_type_works(int32_t type) {
    float values[256], decoded[256];
    unsigned char blocks[4 * 66];
    double error = 0.0, square = 0.0;
    for (int i = 0; i < 256; i++) {
        values[i] = (float) ((i * 37 % 101) - 50) / 10.0f;
        square += (double) values[i] * values[i];
    }
    espalier_kv_encode(type, values, blocks, 256);
    espalier_kv_decode(type, blocks, decoded, 256);
    for (int i = 0; i < 256; i++) {
        error += (double) (values[i] - decoded[i]) * (values[i] - decoded[i]);
    }
    const float dot = espalier_kv_dot(type, blocks, values, 256);
    return error < 0.2 * square && dot > 0.8 * square && dot < 1.2 * square && espalier_kv_is_finite(type, blocks, 256);
}

static void print_kv_types(void) {
    printf("constant.kv_type_first %d\n", ESPALIER_KV_TYPE_FIRST);
#define PRINT_TYPE(number, name, block, bytes)                                                               \
    printf("kv_type.%d %s %d %d\n", number, name, block, bytes);                                             \
    printf("kv_type.%d.fingerprint %016llx\n", number, (unsigned long long) espalier_kv_fingerprint(number)); \
    printf("kv_type.%d.works %d\n", number, kv_type_works(number));
    ESPALIER_KV_TYPES(PRINT_TYPE)
}

int main(void) {
    print_layout();
    print_pool_layout();
    print_scheduler_layout();
    print_attention_layout();
    print_attention();
    print_gdn_layout();
    print_mul_mat_layout();
    print_kv_gather_layout();
    print_kv_gather();
    print_fit_layout();
    print_fit();
    print_gdn();
    print_gdn_convolution();
    print_mul_mat();
    print_kv_types();
    print_calls();
    print_pool_refusals();
    print_pool_calls();
    print_snapshot_calls();
    print_window_calls();
    print_layout_calls();
    print_order();
    print_scheduler_calls();
    return 0;
}
