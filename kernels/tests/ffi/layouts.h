/* Part of ../ffi.c: values of constants, and layouts of structs. */
#include "espalier_kernels.h"
#include "espalier_mul_mat.h"

#include <stdio.h>

#define FACT_OFFSET(field) \
    printf("offset." #field " %zu\n", offsetof(struct espalier_gdn_output_facts, field))

#define LAYOUT(type, field) \
    printf("offset." #type "." #field " %zu\n", offsetof(struct espalier_##type, field))

static void print_pool_layout(void) {
    printf("size.pool_options %zu\n", sizeof(struct espalier_pool_options));
    LAYOUT(pool_options, block_count);
    LAYOUT(pool_options, block_size);
    LAYOUT(pool_options, sequence_count);
    LAYOUT(pool_options, event_capacity);
    LAYOUT(pool_options, parts);
    LAYOUT(pool_options, snapshot_interval);
    LAYOUT(pool_options, snapshot_bytes);
    LAYOUT(pool_options, window);
    LAYOUT(pool_options, window_block_count);
    LAYOUT(pool_options, closes_blocks);
    LAYOUT(pool_options, batch_tokens);
    printf("size.pool_extra %zu\n", sizeof(struct espalier_pool_extra));
    LAYOUT(pool_extra, first);
    LAYOUT(pool_extra, length);
    LAYOUT(pool_extra, key);
    LAYOUT(pool_extra, key_length);
    printf("size.pool_request %zu\n", sizeof(struct espalier_pool_request));
    LAYOUT(pool_request, tokens);
    LAYOUT(pool_request, token_count);
    LAYOUT(pool_request, held_count);
    LAYOUT(pool_request, salt);
    LAYOUT(pool_request, salt_length);
    LAYOUT(pool_request, adapters);
    LAYOUT(pool_request, adapters_length);
    LAYOUT(pool_request, extras);
    LAYOUT(pool_request, extra_count);
    LAYOUT(pool_request, system_length);
    LAYOUT(pool_request, end);
    LAYOUT(pool_request, further_choices);
    printf("size.pool_blocks %zu\n", sizeof(struct espalier_pool_blocks));
    LAYOUT(pool_blocks, first_cells);
    LAYOUT(pool_blocks, capacity);
    LAYOUT(pool_blocks, count);
    printf("size.pool_stop %zu\n", sizeof(struct espalier_pool_stop));
    LAYOUT(pool_stop, tokens);
    LAYOUT(pool_stop, reason);
    printf("size.pool_statistics %zu\n", sizeof(struct espalier_pool_statistics));
    LAYOUT(pool_statistics, block_count);
    LAYOUT(pool_statistics, block_size);
    LAYOUT(pool_statistics, blocks_used);
    LAYOUT(pool_statistics, blocks_evictable);
    LAYOUT(pool_statistics, blocks_empty);
    LAYOUT(pool_statistics, blocks_used_peak);
    LAYOUT(pool_statistics, cached_blocks);
    LAYOUT(pool_statistics, evicted_blocks);
    LAYOUT(pool_statistics, refused_reserves);
    LAYOUT(pool_statistics, refused_matches);
    LAYOUT(pool_statistics, snapshots);
    LAYOUT(pool_statistics, snapshot_bytes);
    LAYOUT(pool_statistics, snapshot_hits);
    LAYOUT(pool_statistics, evicted_snapshots);
    LAYOUT(pool_statistics, refused_snapshots);
    LAYOUT(pool_statistics, window_block_count);
    LAYOUT(pool_statistics, window_blocks_used);
    LAYOUT(pool_statistics, window_blocks_evictable);
    LAYOUT(pool_statistics, window_blocks_used_peak);
    printf("size.pool_event %zu\n", sizeof(struct espalier_pool_event));
    LAYOUT(pool_event, number);
    LAYOUT(pool_event, kind);
    LAYOUT(pool_event, block);
    LAYOUT(pool_event, block_index);
    LAYOUT(pool_event, token_count);
    LAYOUT(pool_event, has_parent);
    LAYOUT(pool_event, has_adapters);
    LAYOUT(pool_event, group);
    LAYOUT(pool_event, hash);
    LAYOUT(pool_event, parent);
    printf("constant.pool_ok %d\n", (int) ESPALIER_POOL_OK);
    printf("constant.pool_short %d\n", (int) ESPALIER_POOL_SHORT);
    printf("constant.pool_wait %d\n", (int) ESPALIER_POOL_WAIT);
    printf("constant.pool_invalid %d\n", (int) ESPALIER_POOL_INVALID);
    printf("constant.pool_exists %d\n", (int) ESPALIER_POOL_EXISTS);
    printf("constant.pool_part_cells %d\n", (int) ESPALIER_POOL_PART_CELLS);
    printf("constant.pool_part_window %d\n", (int) ESPALIER_POOL_PART_WINDOW);
    printf("constant.pool_part_state %d\n", (int) ESPALIER_POOL_PART_STATE);
    printf("constant.pool_group_full %d\n", (int) ESPALIER_POOL_GROUP_FULL);
    printf("constant.pool_group_window %d\n", (int) ESPALIER_POOL_GROUP_WINDOW);
    printf("constant.pool_reason_awaited %d\n", (int) ESPALIER_POOL_REASON_AWAITED);
    printf("constant.pool_reason_branch %d\n", (int) ESPALIER_POOL_REASON_BRANCH);
    printf("constant.pool_reason_system_prompt %d\n", (int) ESPALIER_POOL_REASON_SYSTEM_PROMPT);
    printf("constant.pool_reason_prompt_end %d\n", (int) ESPALIER_POOL_REASON_PROMPT_END);
    printf("constant.pool_reason_tail %d\n", (int) ESPALIER_POOL_REASON_TAIL);
    printf("constant.pool_reason_interval %d\n", (int) ESPALIER_POOL_REASON_INTERVAL);
    printf("constant.pool_event_stored %d\n", (int) ESPALIER_POOL_EVENT_STORED);
    printf("constant.pool_event_removed %d\n", (int) ESPALIER_POOL_EVENT_REMOVED);
    printf("constant.pool_event_cleared %d\n", (int) ESPALIER_POOL_EVENT_CLEARED);
}

static void print_scheduler_layout(void) {
    printf("size.schedule_place %zu\n", sizeof(struct espalier_schedule_place));
    LAYOUT(schedule_place, priority);
    LAYOUT(schedule_place, arrival);
    LAYOUT(schedule_place, sequence);
    printf("size.schedule_request %zu\n", sizeof(struct espalier_schedule_request));
    LAYOUT(schedule_request, arrival);
    LAYOUT(schedule_request, first);
    LAYOUT(schedule_request, end);
    LAYOUT(schedule_request, further_choices);
    LAYOUT(schedule_request, priority);
    LAYOUT(schedule_request, sequence);
    LAYOUT(schedule_request, stage);
    LAYOUT(schedule_request, preemptible);
    printf("size.schedule_step %zu\n", sizeof(struct espalier_schedule_step));
    LAYOUT(schedule_step, tokens);
    LAYOUT(schedule_step, blocks);
    LAYOUT(schedule_step, action);
    LAYOUT(schedule_step, index);
    printf("constant.schedule_waits %d\n", (int) ESPALIER_SCHEDULE_WAITS);
    printf("constant.schedule_runs %d\n", (int) ESPALIER_SCHEDULE_RUNS);
    printf("constant.schedule_nothing %d\n", (int) ESPALIER_SCHEDULE_NOTHING);
    printf("constant.schedule_admit %d\n", (int) ESPALIER_SCHEDULE_ADMIT);
    printf("constant.schedule_preempt %d\n", (int) ESPALIER_SCHEDULE_PREEMPT);
    printf("constant.schedule_refuse %d\n", (int) ESPALIER_SCHEDULE_REFUSE);
    printf("constant.schedule_evict %d\n", (int) ESPALIER_SCHEDULE_EVICT);
    printf("constant.schedule_for_nothing %d\n", (int) ESPALIER_SCHEDULE_FOR_NOTHING);
    printf("constant.schedule_for_prefix %d\n", (int) ESPALIER_SCHEDULE_FOR_PREFIX);
    printf("constant.schedule_for_blocks %d\n", (int) ESPALIER_SCHEDULE_FOR_BLOCKS);
    printf("constant.schedule_for_queue %d\n", (int) ESPALIER_SCHEDULE_FOR_QUEUE);
}

static void print_attention_layout(void) {
    printf("constant.attention_block_size %d\n", ESPALIER_KV_BLOCK_SIZE);
    printf("size.attention %zu\n", sizeof(struct espalier_attention));
    LAYOUT(attention, q);
    LAYOUT(attention, sinks);
    LAYOUT(attention, out);
    LAYOUT(attention, q_token);
    LAYOUT(attention, q_head);
    LAYOUT(attention, q_stream);
    LAYOUT(attention, cells);
    LAYOUT(attention, key_size);
    LAYOUT(attention, value_size);
    LAYOUT(attention, tokens);
    LAYOUT(attention, heads);
    LAYOUT(attention, kv_heads);
    LAYOUT(attention, streams);
    LAYOUT(attention, kv_streams);
    LAYOUT(attention, scale);
    LAYOUT(attention, max_bias);
    LAYOUT(attention, softcap);
    printf("size.attention_cells %zu\n", sizeof(struct espalier_attention_cells));
    LAYOUT(attention_cells, k);
    LAYOUT(attention_cells, v);
    LAYOUT(attention_cells, mask);
    LAYOUT(attention_cells, blocks);
    LAYOUT(attention_cells, k_cell);
    LAYOUT(attention_cells, k_head);
    LAYOUT(attention_cells, k_stream);
    LAYOUT(attention_cells, v_cell);
    LAYOUT(attention_cells, v_head);
    LAYOUT(attention_cells, v_stream);
    LAYOUT(attention_cells, mask_token);
    LAYOUT(attention_cells, mask_stream);
    LAYOUT(attention_cells, blocks_token);
    LAYOUT(attention_cells, key_type);
    LAYOUT(attention_cells, value_type);
    LAYOUT(attention_cells, count);
    LAYOUT(attention_cells, mask_streams);
}

static void print_gdn_layout(void) {
    printf("size.gdn_batch %zu\n", sizeof(struct espalier_gdn_batch));
    LAYOUT(gdn_batch, sources);
    LAYOUT(gdn_batch, tokens);
    LAYOUT(gdn_batch, seqs);
    LAYOUT(gdn_batch, first);
    LAYOUT(gdn_batch, moved);
    LAYOUT(gdn_batch, cells);
    LAYOUT(gdn_batch, planes);
    printf("size.gdn %zu\n", sizeof(struct espalier_gdn));
    LAYOUT(gdn, q);
    LAYOUT(gdn, k);
    LAYOUT(gdn, v);
    LAYOUT(gdn, gate);
    LAYOUT(gdn, beta);
    LAYOUT(gdn, states);
    LAYOUT(gdn, out);
    LAYOUT(gdn, batch);
    LAYOUT(gdn, q_head);
    LAYOUT(gdn, q_token);
    LAYOUT(gdn, q_seq);
    LAYOUT(gdn, k_head);
    LAYOUT(gdn, k_token);
    LAYOUT(gdn, k_seq);
    LAYOUT(gdn, v_head);
    LAYOUT(gdn, v_token);
    LAYOUT(gdn, v_seq);
    LAYOUT(gdn, size);
    LAYOUT(gdn, gate_size);
    LAYOUT(gdn, heads);
    LAYOUT(gdn, key_heads);
    printf("size.gdn_convolution %zu\n", sizeof(struct espalier_gdn_convolution));
    LAYOUT(gdn_convolution, x);
    LAYOUT(gdn_convolution, kernel);
    LAYOUT(gdn_convolution, states);
    LAYOUT(gdn_convolution, out);
    LAYOUT(gdn_convolution, batch);
    LAYOUT(gdn_convolution, x_token);
    LAYOUT(gdn_convolution, x_seq);
    LAYOUT(gdn_convolution, channels);
    LAYOUT(gdn_convolution, taps);
}

static void print_mul_mat_layout(void) {
    printf("size.mul_mat %zu\n", sizeof(struct espalier_mul_mat));
    LAYOUT(mul_mat, weights);
    LAYOUT(mul_mat, activations);
    LAYOUT(mul_mat, out);
    LAYOUT(mul_mat, weights_row);
    LAYOUT(mul_mat, activations_token);
    LAYOUT(mul_mat, out_token);
    LAYOUT(mul_mat, size);
    LAYOUT(mul_mat, rows);
    LAYOUT(mul_mat, tokens);
}

static void print_layout(void) {
    printf("constant.abi_version %u\n", ESPALIER_KERNELS_ABI_VERSION);
    printf("constant.gdn_flat_output %d\n", (int) ESPALIER_FEATURE_GDN_FLAT_OUTPUT);
    printf("constant.attention %d\n", (int) ESPALIER_FEATURE_ATTENTION);
    printf("constant.gdn_recurrence %d\n", (int) ESPALIER_FEATURE_GDN_RECURRENCE);
    printf("constant.mul_mat %d\n", (int) ESPALIER_FEATURE_MUL_MAT);
    printf("size.enum %zu\n", sizeof(enum espalier_feature));
    printf("size.facts %zu\n", sizeof(struct espalier_gdn_output_facts));
    FACT_OFFSET(weight_type);
    FACT_OFFSET(weight_in_cpu_memory);
    FACT_OFFSET(only_cpu_devices);
    FACT_OFFSET(cpu_kernels_use_avx2);
    FACT_OFFSET(adapter_covers_weight);
}
