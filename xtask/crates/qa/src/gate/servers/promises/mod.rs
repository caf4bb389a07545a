//! Guarantees of the paged server beyond correct answers: tenant isolation, admission of every request that fits, the
//! format of its streams, the order of service, and the meaning of its metrics.
//!
//! Each one was violated once, found by an audit and visible to clients. No stock server is needed: tokens are compared
//! with those of the same program without a paged cache, one request at a time.

mod adapters;
mod admission;
mod asking;
mod asleep;
mod capacity;
mod configured;
mod downloads;
mod draft_memory;
mod draft_models;
mod drafts;
mod embeddings;
mod fairness;
mod fixture;
mod free_memory;
mod gather;
mod images;
mod leaks;
mod meanwhile;
mod numbers;
mod others;
mod overflow;
mod queue;
mod refusals;
mod report;
mod retained;
mod routes;
mod shutdown;
mod slot_files;
mod slots_of_others;
mod snapshots;
mod streams;
mod tenants;
mod turns;
mod windows;

use std::path::Path;

use espalier_core::config::name::Name;
use espalier_core::context::Context;
use espalier_core::error::Result;

use self::fixture::{Ended, PromiseFixture};
pub use self::report::{PromiseResult, broken, not_reproduced, outcome};

/// A guarantee that users can rely on.
pub struct Promise {
    /// Name, for `--promise`.
    pub name: &'static str,
    /// Reports violations to the fixture. An error is a violation as well: a server that crashed or does not answer.
    run: fn(&mut PromiseFixture<'_>) -> Result<()>,
}

const fn promise(name: &'static str, run: fn(&mut PromiseFixture<'_>) -> Result<()>) -> Promise {
    Promise { name, run }
}

/// All promises.
pub const PROMISES: &[Promise] = &[
    promise("negative-scale", adapters::negative_scale),
    promise("adapters-of-an-image", adapters::adapters_of_an_image),
    promise("tenants-behind-a-router", tenants::behind_a_router),
    promise("retained-slot-has-an-owner", tenants::retained_slot_has_an_owner),
    promise("slots-of-others", slots_of_others::actions_of_others),
    promise("token-by-token", slots_of_others::reading_token_by_token),
    promise("unpaged-slots-of-others", slots_of_others::unpaged_slots_of_others),
    promise("values-that-overflow", overflow::stays_in_its_request),
    promise("overflow-is-not-cached", overflow::leaves_nothing_cached),
    promise("overflow-of-a-restored-state", overflow::leaves_no_restored_state),
    promise("slots-shown-to-others", slots_of_others::slots_shown_to_others),
    promise("waits-shown-to-others", slots_of_others::waits_shown_to_others),
    promise("choice-of-slot", slots_of_others::choice_of_slot),
    promise("escaped-salt", tenants::escaped_salt),
    promise("forgotten-retained-sequence", capacity::forgotten_retained_sequence),
    promise("capacity-of-idle-slots", capacity::capacity_of_idle_slots),
    promise("last-block", capacity::last_block),
    promise("several-choices", capacity::several_choices),
    promise("resumed-from-half", capacity::resumed_from_half),
    promise("completions-between-embeddings", embeddings::completions_between),
    promise("image-waits-for-blocks", images::waits_for_blocks),
    promise("drafts-after-a-restore", capacity::drafts_after_a_restore),
    promise("streams-of-preempted-prompts", streams::of_preempted_prompts),
    promise("no-stream-stands-still", fairness::no_stream_stands_still),
    promise("long-prompt-in-turn", fairness::long_prompt_in_turn),
    promise("largest-prefill-budget", fairness::largest_prefill_budget),
    promise("client-that-waits", leaks::client_that_waits_for_a_prefix),
    promise("refused-after-a-switch", leaks::refused_after_a_switch),
    promise("timings-after-preemption", numbers::timings_after_preemption),
    promise("hits-after-preemption", numbers::hits_after_preemption),
    promise("waits-are-counted-once", numbers::waits_are_counted_once),
    promise("pool-of-a-sleeping-server", numbers::pool_of_a_sleeping_server),
    promise("leaves-nothing", retained::leaves_nothing),
    promise("embeddings-leave-nothing", embeddings::leave_nothing),
    promise("switched-adapters", retained::switched_adapters),
    promise("exact-sums", numbers::exact_sums),
    promise("deprecated-metrics", numbers::deprecated_metrics),
    promise("failures-are-counted", numbers::failures_are_counted),
    promise("buckets-of-long-waits", numbers::buckets_of_long_waits),
    promise("most-queued", queue::most_queued),
    promise("priority", queue::priority),
    promise("free-slot-is-given", queue::free_slot_is_given),
    promise("group-in-turn", queue::group_in_turn),
    promise("file-of-other-adapters", retained::file_of_other_adapters),
    promise("file-of-another-type", retained::file_of_another_type),
    promise("file-of-no-origin", retained::file_of_no_origin),
    promise("file-of-another-server", retained::file_of_another_server),
    promise("file-without-a-record", retained::file_without_a_record),
    promise("copies-of-others", retained::copies_of_others),
    promise("damaged-slot-files", slot_files::damaged),
    promise("file-of-a-stock-server", slot_files::of_a_stock_server),
    promise("slot-saved-again", slot_files::saved_again),
    promise("failed-save", slot_files::failed_save),
    promise("save-to-a-full-disk", slot_files::save_to_a_full_disk),
    promise("restored-into-a-full-pool", slot_files::restored_into_a_full_pool),
    promise("streams-of-others", others::streams),
    promise("streams-of-others-behind-a-router", others::streams_behind_a_router),
    promise("control-of-others", others::control),
    promise("drafts-of-others", drafts::of_others),
    promise("drafts-without-sharing", drafts::without_sharing),
    promise("drafts-with-a-state", draft_memory::with_a_state),
    promise("drafts-report-their-memory", draft_memory::is_reported),
    promise("drafts-after-a-hit", draft_models::after_a_hit),
    promise("drafts-of-a-restored-slot", draft_models::of_a_restored_slot),
    promise("drafts-of-choices", draft_models::of_choices),
    promise("draft-models-of-others", draft_models::of_others),
    promise("drafts-in-a-small-pool", draft_models::in_a_small_pool),
    promise("many-drafts-at-once", draft_models::many_at_once),
    promise("routes-by-role", routes::by_role),
    promise("one-key-each", tenants::one_key_each),
    promise("children-know-of-several-keys", tenants::children_know_of_several_keys),
    promise("children-refuse-without-a-key", tenants::children_refuse_without_a_key),
    promise("left-while-waiting", capacity::left_while_waiting),
    promise("second-turn", retained::second_turn),
    promise("restored-out-of-order", retained::restored_out_of_order),
    promise("retained-whole-or-nothing", retained::whole_or_nothing),
    promise("window-of-a-slot-file", retained::window_of_a_slot_file),
    promise("hit-is-exact", snapshots::hit_is_exact),
    promise("waits-for-a-boundary", snapshots::waits_for_a_boundary),
    promise("turns-of-a-state", snapshots::turns_of_a_state),
    promise("system-prompt-of-a-state", snapshots::system_prompt_of_a_state),
    promise("snapshots-in-budget", snapshots::in_budget),
    promise("eviction-of-either-half", snapshots::eviction_of_either_half),
    promise("no-snapshots-says-so", snapshots::none_says_so),
    promise("image-near-the-context", images::resumes_near_the_context),
    promise("image-fills-the-context", images::fills_the_context),
    promise("image-once", images::image_once),
    promise("drafts-beside-images", images::drafts_and_images),
    promise("one-request-counts-once", admission::one_request_counts_once),
    promise("documents-count-once", admission::documents_count_once),
    promise("newcomers-without-blocks", admission::newcomers_without_blocks),
    promise("refusals-and-counts", admission::refusals_and_counts),
    promise("odd-ids", admission::odd_ids_are_refused),
    promise("odd-fields-of-messages", admission::odd_fields_of_messages),
    promise("prefix-waits-are-not-queued", admission::prefix_waits_are_not_queued),
    promise("slot-actions-are-not-queued", admission::slot_actions_are_not_queued),
    promise("admitted-once", admission::admitted_once),
    promise("streams-outlive-refusals", refusals::streams_outlive_refusals),
    promise("waiting-replaces-its-stream", refusals::waiting_replaces_its_stream),
    promise("slot-actions-are-bounded", refusals::slot_actions_are_bounded),
    promise("refused-restores-keep-the-sequence", refusals::refused_restores_keep_the_sequence),
    promise("refused-while-asleep", asleep::refused_while_asleep),
    promise("values-of-variables", configured::values_of_variables),
    promise("switches-in-config", configured::switches_in_config),
    promise("shutdown-of-a-queue", shutdown::of_a_queue),
    promise("batch-keys-take-turns", turns::batch_keys_take_turns),
    promise("copies-push-nothing-out", turns::copies_push_nothing_out),
    promise("dropped-sequences", turns::dropped_sequences_are_looked_up),
    promise("pool-without-a-size", configured::pool_without_a_size),
    promise("pool-of-free-memory", free_memory::fills_the_pool),
    promise("variables-of-options", configured::variables_of_options),
    promise("earlier-names-of-variables", configured::earlier_names),
    promise("misspelt-variables", configured::misspelt_variables),
    promise("downloads-without-tls", downloads::without_tls),
    promise("variables-in-help", configured::variables_in_help),
    promise("cache-is-described", configured::cache_is_described),
    promise("cache-ram", configured::cache_ram_is_off),
    promise("gathered-cells", gather::bounds_every_step),
    promise("windows-take-less-memory", windows::take_less_memory),
    promise("answers-past-the-window", windows::answer_as_a_plain_cache),
    promise("window-of-its-own-from-a-file", windows::continue_from_a_file),
    promise("windows-outgrow-the-pool", windows::outgrow_the_pool),
    promise("windows-are-counted", windows::are_counted),
];

/// The server under test, and what it was built from.
#[derive(Clone, Copy, Debug)]
pub struct Checked<'a> {
    /// The program.
    pub program: &'a Path,
    /// The folder of its patched sources.
    pub tree: &'a Path,
    /// The pin of those.
    pub pin: &'a Name,
}

/// Checks a server against the promises in `chosen`. Continues after a broken one.
///
/// # Errors
///
/// If the disk is full.
pub fn look(
    context: &Context,
    checked: Checked<'_>,
    chosen: impl IntoIterator<Item = &'static Promise>,
) -> Result<Vec<PromiseResult>> {
    let mut fixture = PromiseFixture::open(context, checked)?;
    Ok(chosen.into_iter().map(|promise| hold(&mut fixture, promise)).collect())
}

fn hold(fixture: &mut PromiseFixture<'_>, promise: &Promise) -> PromiseResult {
    let ended = fixture.begin(promise.name, promise.run);
    let Ended { broken, not_reproduced, seconds } = ended;
    PromiseResult { name: promise.name, broken, not_reproduced, seconds }
}
