//! Values of constants, and layouts of structs: those that C prints are those of Rust.

use std::mem::{offset_of, size_of};

use espalier_kernels::attention::problem::{BLOCK_SIZE, Cells, Problem};
use espalier_kernels::features::Feature;
use espalier_kernels::ffi::library::ABI_VERSION;
use espalier_kernels::ffi::pool::{PoolBlocks, PoolExtra, PoolRequest, PoolStatus};
use espalier_kernels::ffi::scheduler::{ScheduleAction, ScheduleRequest, ScheduleStep};
use espalier_kernels::ffi::snapshots::PoolStop;
use espalier_kernels::fit::Device;
use espalier_kernels::gdn::batch::Batch;
use espalier_kernels::gdn::convolution::Convolution;
use espalier_kernels::gdn::problem::Problem as Gdn;
use espalier_kernels::gdn_output::OutputFacts;
use espalier_kernels::kv_gather::Node;
use espalier_kernels::mul_mat::Problem as MulMat;
use espalier_kernels::pool::events::{Event, EventKind};
use espalier_kernels::pool::groups::Group;
use espalier_kernels::pool::pool::PoolOptions;
use espalier_kernels::pool::snapshots::Reason;
use espalier_kernels::pool::statistics::Statistics;
use espalier_kernels::scheduler::{QueuePosition, Stage, Wait};

use crate::run_ffi_program;
#[test]
fn numbers_and_layouts_agree() {
    let printed = run_ffi_program(&[]).values;
    let expected = [
        ("constant.abi_version", ABI_VERSION as usize),
        ("call.abi_version", ABI_VERSION as usize),
        ("constant.gdn_flat_output", Feature::GdnFlatOutput as usize),
        ("constant.attention", Feature::Attention as usize),
        ("constant.gdn_recurrence", Feature::GdnRecurrence as usize),
        ("constant.mul_mat", Feature::MulMat as usize),
        ("size.enum", size_of::<u32>()),
        ("size.facts", size_of::<OutputFacts>()),
        ("offset.weight_type", offset_of!(OutputFacts, weight_type)),
        ("offset.weight_in_cpu_memory", offset_of!(OutputFacts, weight_in_cpu_memory)),
        ("offset.only_cpu_devices", offset_of!(OutputFacts, only_cpu_devices)),
        ("offset.cpu_kernels_use_avx2", offset_of!(OutputFacts, cpu_kernels_use_avx2)),
        ("offset.adapter_covers_weight", offset_of!(OutputFacts, adapter_covers_weight)),
    ];
    for (name, value) in expected {
        assert_eq!(printed.get(name), Some(&value.to_string()), "{name}");
    }
}

#[test]
fn numbers_and_layouts_of_the_pool_agree() {
    let printed = run_ffi_program(&[]).values;
    let expected = [
        ("constant.pool_ok", PoolStatus::Ok as usize),
        ("constant.pool_short", PoolStatus::Short as usize),
        ("constant.pool_wait", PoolStatus::Wait as usize),
        ("constant.pool_invalid", PoolStatus::Invalid as usize),
        ("constant.pool_exists", PoolStatus::Exists as usize),
        ("constant.pool_part_cells", PoolOptions::CELLS as usize),
        ("constant.pool_part_window", PoolOptions::WINDOW as usize),
        ("constant.pool_part_state", PoolOptions::STATE as usize),
        ("constant.pool_group_full", Group::Full as usize),
        ("constant.pool_group_window", Group::Window as usize),
        ("constant.pool_reason_awaited", Reason::Awaited as usize),
        ("constant.pool_reason_branch", Reason::Branch as usize),
        ("constant.pool_reason_system_prompt", Reason::SystemPrompt as usize),
        ("constant.pool_reason_prompt_end", Reason::PromptEnd as usize),
        ("constant.pool_reason_tail", Reason::Tail as usize),
        ("constant.pool_reason_interval", Reason::Interval as usize),
        ("constant.pool_event_stored", EventKind::Stored as usize),
        ("constant.pool_event_removed", EventKind::Removed as usize),
        ("constant.pool_event_cleared", EventKind::Cleared as usize),
        ("size.pool_options", size_of::<PoolOptions>()),
        ("size.pool_extra", size_of::<PoolExtra>()),
        ("size.pool_stop", size_of::<PoolStop>()),
        ("size.pool_blocks", size_of::<PoolBlocks>()),
        ("size.pool_request", size_of::<PoolRequest>()),
        ("size.pool_statistics", size_of::<Statistics>()),
        ("size.pool_event", size_of::<Event>()),
        ("offset.pool_options.block_count", offset_of!(PoolOptions, block_count)),
        ("offset.pool_options.block_size", offset_of!(PoolOptions, block_size)),
        ("offset.pool_options.sequence_count", offset_of!(PoolOptions, sequence_count)),
        ("offset.pool_options.event_capacity", offset_of!(PoolOptions, event_capacity)),
        ("offset.pool_options.parts", offset_of!(PoolOptions, parts)),
        ("offset.pool_options.snapshot_interval", offset_of!(PoolOptions, snapshot_interval)),
        ("offset.pool_options.snapshot_bytes", offset_of!(PoolOptions, snapshot_bytes)),
        ("offset.pool_options.window", offset_of!(PoolOptions, window)),
        ("offset.pool_options.window_block_count", offset_of!(PoolOptions, window_block_count)),
        ("offset.pool_options.closes_blocks", offset_of!(PoolOptions, closes_blocks)),
        ("offset.pool_options.batch_tokens", offset_of!(PoolOptions, batch_tokens)),
        ("offset.pool_blocks.first_cells", offset_of!(PoolBlocks, first_cells)),
        ("offset.pool_blocks.capacity", offset_of!(PoolBlocks, capacity)),
        ("offset.pool_blocks.count", offset_of!(PoolBlocks, count)),
        ("offset.pool_extra.first", offset_of!(PoolExtra, first)),
        ("offset.pool_extra.length", offset_of!(PoolExtra, length)),
        ("offset.pool_extra.key", offset_of!(PoolExtra, key)),
        ("offset.pool_extra.key_length", offset_of!(PoolExtra, key_length)),
        ("offset.pool_request.tokens", offset_of!(PoolRequest, tokens)),
        ("offset.pool_request.token_count", offset_of!(PoolRequest, token_count)),
        ("offset.pool_request.held_count", offset_of!(PoolRequest, held_count)),
        ("offset.pool_request.salt", offset_of!(PoolRequest, salt)),
        ("offset.pool_request.salt_length", offset_of!(PoolRequest, salt_length)),
        ("offset.pool_request.adapters", offset_of!(PoolRequest, adapters)),
        ("offset.pool_request.adapters_length", offset_of!(PoolRequest, adapters_length)),
        ("offset.pool_request.extras", offset_of!(PoolRequest, extras)),
        ("offset.pool_request.extra_count", offset_of!(PoolRequest, extra_count)),
        ("offset.pool_request.system_length", offset_of!(PoolRequest, system_length)),
        ("offset.pool_request.end", offset_of!(PoolRequest, end)),
        ("offset.pool_request.further_choices", offset_of!(PoolRequest, further_choices)),
        ("offset.pool_stop.tokens", offset_of!(PoolStop, tokens)),
        ("offset.pool_stop.reason", offset_of!(PoolStop, reason)),
        ("offset.pool_statistics.block_count", offset_of!(Statistics, block_count)),
        ("offset.pool_statistics.block_size", offset_of!(Statistics, block_size)),
        ("offset.pool_statistics.blocks_used", offset_of!(Statistics, blocks_used)),
        ("offset.pool_statistics.blocks_evictable", offset_of!(Statistics, blocks_evictable)),
        ("offset.pool_statistics.blocks_empty", offset_of!(Statistics, blocks_empty)),
        ("offset.pool_statistics.blocks_used_peak", offset_of!(Statistics, blocks_used_peak)),
        ("offset.pool_statistics.cached_blocks", offset_of!(Statistics, cached_blocks)),
        ("offset.pool_statistics.evicted_blocks", offset_of!(Statistics, evicted_blocks)),
        ("offset.pool_statistics.refused_reserves", offset_of!(Statistics, refused_reserves)),
        ("offset.pool_statistics.refused_matches", offset_of!(Statistics, refused_matches)),
        ("offset.pool_statistics.snapshots", offset_of!(Statistics, snapshots)),
        ("offset.pool_statistics.snapshot_bytes", offset_of!(Statistics, snapshot_bytes)),
        ("offset.pool_statistics.snapshot_hits", offset_of!(Statistics, snapshot_hits)),
        ("offset.pool_statistics.evicted_snapshots", offset_of!(Statistics, evicted_snapshots)),
        ("offset.pool_statistics.refused_snapshots", offset_of!(Statistics, refused_snapshots)),
        ("offset.pool_statistics.window_block_count", offset_of!(Statistics, window_block_count)),
        ("offset.pool_statistics.window_blocks_used", offset_of!(Statistics, window_blocks_used)),
        ("offset.pool_statistics.window_blocks_evictable", offset_of!(Statistics, window_blocks_evictable)),
        ("offset.pool_statistics.window_blocks_used_peak", offset_of!(Statistics, window_blocks_used_peak)),
        ("offset.pool_event.number", offset_of!(Event, number)),
        ("offset.pool_event.kind", offset_of!(Event, kind)),
        ("offset.pool_event.block", offset_of!(Event, block)),
        ("offset.pool_event.block_index", offset_of!(Event, block_index)),
        ("offset.pool_event.token_count", offset_of!(Event, token_count)),
        ("offset.pool_event.has_parent", offset_of!(Event, has_parent)),
        ("offset.pool_event.has_adapters", offset_of!(Event, has_adapters)),
        ("offset.pool_event.group", offset_of!(Event, group)),
        ("offset.pool_event.hash", offset_of!(Event, hash)),
        ("offset.pool_event.parent", offset_of!(Event, parent)),
    ];
    for (name, value) in expected {
        assert_eq!(printed.get(name), Some(&value.to_string()), "{name}");
    }
    let compared = printed.keys().filter(|name| name.contains("pool") && !name.starts_with("pool."));
    assert_eq!(compared.count(), expected.len(), "ffi.c prints a value that is not compared");
}

#[test]
fn numbers_and_layouts_of_the_scheduler_agree() {
    let printed = run_ffi_program(&[]).values;
    let expected = [
        ("constant.schedule_waits", Stage::Waits as usize),
        ("constant.schedule_runs", Stage::Runs as usize),
        ("constant.schedule_nothing", ScheduleAction::Nothing as usize),
        ("constant.schedule_admit", ScheduleAction::Admit as usize),
        ("constant.schedule_preempt", ScheduleAction::Preempt as usize),
        ("constant.schedule_refuse", ScheduleAction::Refuse as usize),
        ("constant.schedule_evict", ScheduleAction::Evict as usize),
        ("constant.schedule_for_nothing", 0),
        ("constant.schedule_for_prefix", Wait::Prefix as usize),
        ("constant.schedule_for_blocks", Wait::Blocks as usize),
        ("constant.schedule_for_queue", Wait::Queue as usize),
        ("size.schedule_place", size_of::<QueuePosition>()),
        ("offset.schedule_place.priority", offset_of!(QueuePosition, priority)),
        ("offset.schedule_place.arrival", offset_of!(QueuePosition, arrival)),
        ("offset.schedule_place.sequence", offset_of!(QueuePosition, sequence)),
        ("size.schedule_request", size_of::<ScheduleRequest>()),
        ("size.schedule_step", size_of::<ScheduleStep>()),
        ("offset.schedule_request.arrival", offset_of!(ScheduleRequest, arrival)),
        ("offset.schedule_request.first", offset_of!(ScheduleRequest, first)),
        ("offset.schedule_request.end", offset_of!(ScheduleRequest, end)),
        ("offset.schedule_request.further_choices", offset_of!(ScheduleRequest, further_choices)),
        ("offset.schedule_request.priority", offset_of!(ScheduleRequest, priority)),
        ("offset.schedule_request.sequence", offset_of!(ScheduleRequest, sequence)),
        ("offset.schedule_request.stage", offset_of!(ScheduleRequest, stage)),
        ("offset.schedule_request.preemptible", offset_of!(ScheduleRequest, preemptible)),
        ("offset.schedule_step.tokens", offset_of!(ScheduleStep, tokens)),
        ("offset.schedule_step.blocks", offset_of!(ScheduleStep, blocks)),
        ("offset.schedule_step.action", offset_of!(ScheduleStep, action)),
        ("offset.schedule_step.index", offset_of!(ScheduleStep, index)),
    ];
    for (name, value) in expected {
        assert_eq!(printed.get(name), Some(&value.to_string()), "{name}");
    }
    let compared =
        printed.keys().filter(|name| name.contains(".schedule_") && !name.starts_with("scheduler."));
    assert_eq!(compared.count(), expected.len(), "ffi.c prints a value that is not compared");
}

#[test]
fn numbers_and_layouts_of_attention_agree() {
    let printed = run_ffi_program(&[]).values;
    let expected = [
        ("constant.attention", Feature::Attention as usize),
        ("constant.attention_block_size", BLOCK_SIZE),
        ("size.attention", size_of::<Problem>()),
        ("offset.attention.q", offset_of!(Problem, q)),
        ("offset.attention.sinks", offset_of!(Problem, sinks)),
        ("offset.attention.out", offset_of!(Problem, out)),
        ("offset.attention.q_token", offset_of!(Problem, q_token)),
        ("offset.attention.q_head", offset_of!(Problem, q_head)),
        ("offset.attention.q_stream", offset_of!(Problem, q_stream)),
        ("offset.attention.cells", offset_of!(Problem, cells)),
        ("offset.attention.key_size", offset_of!(Problem, key_size)),
        ("offset.attention.value_size", offset_of!(Problem, value_size)),
        ("offset.attention.tokens", offset_of!(Problem, tokens)),
        ("offset.attention.heads", offset_of!(Problem, heads)),
        ("offset.attention.kv_heads", offset_of!(Problem, kv_heads)),
        ("offset.attention.streams", offset_of!(Problem, streams)),
        ("offset.attention.kv_streams", offset_of!(Problem, kv_streams)),
        ("offset.attention.scale", offset_of!(Problem, scale)),
        ("offset.attention.max_bias", offset_of!(Problem, max_bias)),
        ("offset.attention.softcap", offset_of!(Problem, softcap)),
        ("size.attention_cells", size_of::<Cells>()),
        ("offset.attention_cells.k", offset_of!(Cells, k)),
        ("offset.attention_cells.v", offset_of!(Cells, v)),
        ("offset.attention_cells.mask", offset_of!(Cells, mask)),
        ("offset.attention_cells.blocks", offset_of!(Cells, blocks)),
        ("offset.attention_cells.k_cell", offset_of!(Cells, k_cell)),
        ("offset.attention_cells.k_head", offset_of!(Cells, k_head)),
        ("offset.attention_cells.k_stream", offset_of!(Cells, k_stream)),
        ("offset.attention_cells.v_cell", offset_of!(Cells, v_cell)),
        ("offset.attention_cells.v_head", offset_of!(Cells, v_head)),
        ("offset.attention_cells.v_stream", offset_of!(Cells, v_stream)),
        ("offset.attention_cells.mask_token", offset_of!(Cells, mask_token)),
        ("offset.attention_cells.mask_stream", offset_of!(Cells, mask_stream)),
        ("offset.attention_cells.blocks_token", offset_of!(Cells, blocks_token)),
        ("offset.attention_cells.key_type", offset_of!(Cells, key_type)),
        ("offset.attention_cells.value_type", offset_of!(Cells, value_type)),
        ("offset.attention_cells.count", offset_of!(Cells, count)),
        ("offset.attention_cells.mask_streams", offset_of!(Cells, mask_streams)),
    ];
    for (name, value) in expected {
        assert_eq!(printed.get(name), Some(&value.to_string()), "{name}");
    }
    let compared = printed.keys().filter(|name| name.contains(".attention"));
    assert_eq!(compared.count(), expected.len(), "ffi.c prints a value that is not compared");
}

#[test]
fn layouts_of_matrix_products_agree() {
    let printed = run_ffi_program(&[]).values;
    let expected = [
        ("size.mul_mat", size_of::<MulMat>()),
        ("offset.mul_mat.weights", offset_of!(MulMat, weights)),
        ("offset.mul_mat.activations", offset_of!(MulMat, activations)),
        ("offset.mul_mat.out", offset_of!(MulMat, out)),
        ("offset.mul_mat.weights_row", offset_of!(MulMat, weights_row)),
        ("offset.mul_mat.activations_token", offset_of!(MulMat, activations_token)),
        ("offset.mul_mat.out_token", offset_of!(MulMat, out_token)),
        ("offset.mul_mat.size", offset_of!(MulMat, size)),
        ("offset.mul_mat.rows", offset_of!(MulMat, rows)),
        ("offset.mul_mat.tokens", offset_of!(MulMat, tokens)),
    ];
    for (name, value) in expected {
        assert_eq!(printed.get(name), Some(&value.to_string()), "{name}");
    }
    let is_layout = |name: &str| name.starts_with("offset.mul_mat") || name.starts_with("size.mul_mat");
    let compared = printed.keys().filter(|name| is_layout(name));
    assert_eq!(compared.count(), expected.len(), "ffi.c prints a value that is not compared");
}

#[test]
fn numbers_and_layouts_of_gated_delta_nets_agree() {
    let printed = run_ffi_program(&[]).values;
    let expected = [
        ("size.gdn_batch", size_of::<Batch>()),
        ("offset.gdn_batch.sources", offset_of!(Batch, sources)),
        ("offset.gdn_batch.tokens", offset_of!(Batch, tokens)),
        ("offset.gdn_batch.seqs", offset_of!(Batch, seqs)),
        ("offset.gdn_batch.first", offset_of!(Batch, first)),
        ("offset.gdn_batch.moved", offset_of!(Batch, moved)),
        ("offset.gdn_batch.cells", offset_of!(Batch, cells)),
        ("offset.gdn_batch.planes", offset_of!(Batch, planes)),
        ("size.gdn", size_of::<Gdn>()),
        ("offset.gdn.q", offset_of!(Gdn, q)),
        ("offset.gdn.k", offset_of!(Gdn, k)),
        ("offset.gdn.v", offset_of!(Gdn, v)),
        ("offset.gdn.gate", offset_of!(Gdn, gate)),
        ("offset.gdn.beta", offset_of!(Gdn, beta)),
        ("offset.gdn.states", offset_of!(Gdn, states)),
        ("offset.gdn.out", offset_of!(Gdn, out)),
        ("offset.gdn.batch", offset_of!(Gdn, batch)),
        ("offset.gdn.q_head", offset_of!(Gdn, q_head)),
        ("offset.gdn.q_token", offset_of!(Gdn, q_token)),
        ("offset.gdn.q_seq", offset_of!(Gdn, q_seq)),
        ("offset.gdn.k_head", offset_of!(Gdn, k_head)),
        ("offset.gdn.k_token", offset_of!(Gdn, k_token)),
        ("offset.gdn.k_seq", offset_of!(Gdn, k_seq)),
        ("offset.gdn.v_head", offset_of!(Gdn, v_head)),
        ("offset.gdn.v_token", offset_of!(Gdn, v_token)),
        ("offset.gdn.v_seq", offset_of!(Gdn, v_seq)),
        ("offset.gdn.size", offset_of!(Gdn, size)),
        ("offset.gdn.gate_size", offset_of!(Gdn, gate_size)),
        ("offset.gdn.heads", offset_of!(Gdn, heads)),
        ("offset.gdn.key_heads", offset_of!(Gdn, key_heads)),
        ("size.gdn_convolution", size_of::<Convolution>()),
        ("offset.gdn_convolution.x", offset_of!(Convolution, x)),
        ("offset.gdn_convolution.kernel", offset_of!(Convolution, kernel)),
        ("offset.gdn_convolution.states", offset_of!(Convolution, states)),
        ("offset.gdn_convolution.out", offset_of!(Convolution, out)),
        ("offset.gdn_convolution.batch", offset_of!(Convolution, batch)),
        ("offset.gdn_convolution.x_token", offset_of!(Convolution, x_token)),
        ("offset.gdn_convolution.x_seq", offset_of!(Convolution, x_seq)),
        ("offset.gdn_convolution.channels", offset_of!(Convolution, channels)),
        ("offset.gdn_convolution.taps", offset_of!(Convolution, taps)),
    ];
    for (name, value) in expected {
        assert_eq!(printed.get(name), Some(&value.to_string()), "{name}");
    }
    let is_layout = |name: &str| name.starts_with("offset.gdn") || name.starts_with("size.gdn");
    let compared = printed.keys().filter(|name| is_layout(name));
    assert_eq!(compared.count(), expected.len(), "ffi.c prints a value that is not compared");
}

#[test]
fn the_layout_of_a_gathering_node_agrees() {
    let printed = run_ffi_program(&[]).values;
    let expected = [
        ("size.kv_gather_node", size_of::<Node>()),
        ("offset.kv_gather_node.key_type", offset_of!(Node, key_type)),
        ("offset.kv_gather_node.value_type", offset_of!(Node, value_type)),
        ("offset.kv_gather_node.key_size", offset_of!(Node, key_size)),
        ("offset.kv_gather_node.value_size", offset_of!(Node, value_size)),
        ("offset.kv_gather_node.heads", offset_of!(Node, heads)),
        ("offset.kv_gather_node.kv_heads", offset_of!(Node, kv_heads)),
        ("offset.kv_gather_node.tokens", offset_of!(Node, tokens)),
        ("offset.kv_gather_node.cells", offset_of!(Node, cells)),
        ("offset.kv_gather_node.is_biased", offset_of!(Node, is_biased)),
    ];
    for (name, value) in expected {
        assert_eq!(printed.get(name), Some(&value.to_string()), "{name}");
    }
    let compared = printed.keys().filter(|name| name.contains("kv_gather_node"));
    assert_eq!(compared.count(), expected.len(), "ffi.c prints a value that is not compared");
}

#[test]
fn the_layout_of_a_device_to_fit_agrees() {
    let printed = run_ffi_program(&[]).values;
    let expected = [
        ("size.fit_device", size_of::<Device>()),
        ("offset.fit_device.available", offset_of!(Device, available)),
        ("offset.fit_device.used_small", offset_of!(Device, used_small)),
        ("offset.fit_device.used_large", offset_of!(Device, used_large)),
    ];
    for (name, value) in expected {
        assert_eq!(printed.get(name), Some(&value.to_string()), "{name}");
    }
    let compared = printed.keys().filter(|name| name.contains(".fit_device"));
    assert_eq!(compared.count(), expected.len(), "ffi.c prints a value that is not compared");
}
