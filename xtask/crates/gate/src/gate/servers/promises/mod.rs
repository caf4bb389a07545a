//! Guarantees of the paged server beyond correct answers: tenant isolation, admission of every request that fits, the
//! format of its streams, the order of service, and the meaning of its metrics.
//!
//! Each one was violated once, found by an audit and visible to clients. No stock server is needed: tokens are compared
//! with those of the same program without a paged cache, one request at a time.

mod adapters;
mod admission;
mod asking;
mod capacity;
mod configured;
mod drafts;
mod fairness;
mod fixture;
mod images;
mod leaks;
mod meanwhile;
mod numbers;
mod others;
mod queue;
mod refusals;
mod report;
mod retained;
mod routes;
mod slot_files;
mod slots_of_others;
mod streams;
mod tenants;
mod turns;

use std::path::Path;

use self::fixture::PromiseFixture;
pub use self::report::{PromiseResult, broken, outcome};
use crate::context::Context;
use crate::error::{Error, Result};

/// A guarantee that users can rely on.
pub struct Promise {
    /// Number of the finding in the audit.
    item: &'static str,
    /// Name, for `--promise`.
    name: &'static str,
    /// Reports violations to the fixture. An error is a violation as well: a server that crashed or does not answer.
    run: fn(&mut PromiseFixture<'_>) -> Result<()>,
}

const fn promise(
    item: &'static str,
    name: &'static str,
    run: fn(&mut PromiseFixture<'_>) -> Result<()>,
) -> Promise {
    Promise { item, name, run }
}

/// All promises, in the order of the audit.
const PROMISES: &[Promise] = &[
    promise("A1", "negative-scale", adapters::negative_scale),
    promise("A2", "adapters-of-an-image", adapters::adapters_of_an_image),
    promise("A3", "tenants-behind-a-router", tenants::behind_a_router),
    promise("A4", "kept-slot-has-an-owner", tenants::kept_slot_has_an_owner),
    promise("A5", "slots-of-others", slots_of_others::actions_of_others),
    promise("A5", "token-by-token", slots_of_others::reading_token_by_token),
    promise("A5", "unpaged-slots-of-others", slots_of_others::unpaged_slots_of_others),
    promise("A5", "slots-shown-to-others", slots_of_others::slots_shown_to_others),
    promise("A6", "choice-of-slot", slots_of_others::choice_of_slot),
    promise("A7", "escaped-salt", tenants::escaped_salt),
    promise("A8", "forgotten-kept-text", capacity::forgotten_retained_sequence),
    promise("A9", "room-of-idle-slots", capacity::capacity_of_idle_slots),
    promise("A10", "last-block", capacity::last_block),
    promise("A11", "several-choices", capacity::several_choices),
    promise("A12", "going-on-from-half", capacity::going_on_from_half),
    promise("A13", "image-waits-for-room", images::waits_for_blocks),
    promise("A14", "drafts-after-a-restore", capacity::drafts_after_a_restore),
    promise("A15", "streams-of-preempted-prompts", streams::of_preempted_prompts),
    promise("A16", "no-stream-stands-still", fairness::no_stream_stands_still),
    promise("A16", "long-prompt-in-turn", fairness::long_prompt_in_turn),
    promise("A18", "largest-prefill-budget", fairness::largest_prefill_budget),
    promise("A19", "client-that-waits", leaks::client_that_waits_for_a_prefix),
    promise("A19", "refused-after-a-switch", leaks::refused_after_a_switch),
    promise("A20", "timings-after-preemption", numbers::timings_after_preemption),
    promise("A21", "hits-after-preemption", numbers::hits_after_preemption),
    promise("A22", "waits-are-counted-once", numbers::waits_are_counted_once),
    promise("A23", "pool-of-a-sleeping-server", numbers::pool_of_a_sleeping_server),
    promise("A24", "leaves-nothing", retained::leaves_nothing),
    promise("A24", "switched-adapters", retained::switched_adapters),
    promise("B", "exact-sums", numbers::exact_sums),
    promise("new", "deprecated-metrics", numbers::deprecated_metrics),
    promise("new", "most-queued", queue::most_queued),
    promise("new", "priority", queue::priority),
    promise("new", "free-slot-is-given", queue::free_slot_is_given),
    promise("new", "group-in-turn", queue::group_in_turn),
    promise("B", "file-of-other-adapters", retained::file_of_other_adapters),
    promise("new", "file-of-another-type", retained::file_of_another_type),
    promise("new", "file-of-no-origin", retained::file_of_no_origin),
    promise("new", "file-of-another-server", retained::file_of_another_server),
    promise("new", "copies-of-others", retained::copies_of_others),
    promise("new", "damaged-slot-files", slot_files::damaged),
    promise("new", "slot-saved-again", slot_files::saved_again),
    promise("new", "failed-save", slot_files::failed_save),
    promise("new", "restored-into-a-full-pool", slot_files::restored_into_a_full_pool),
    promise("new", "streams-of-others", others::streams),
    promise("new", "streams-of-others-behind-a-router", others::streams_behind_a_router),
    promise("new", "control-of-others", others::control),
    promise("new", "drafts-of-others", drafts::of_others),
    promise("new", "drafts-without-sharing", drafts::without_sharing),
    promise("new", "routes-by-role", routes::by_role),
    promise("new", "one-key-each", tenants::one_key_each),
    promise("new", "children-know-of-several-keys", tenants::children_know_of_several_keys),
    promise("new", "children-refuse-without-a-key", tenants::children_refuse_without_a_key),
    promise("B", "left-while-waiting", capacity::left_while_waiting),
    promise("B", "second-turn", retained::second_turn),
    promise("B", "image-near-the-context", images::resumes_near_the_context),
    promise("new", "one-request-counts-once", admission::one_request_counts_once),
    promise("new", "documents-count-once", admission::documents_count_once),
    promise("new", "newcomers-without-blocks", admission::newcomers_without_blocks),
    promise("new", "refusals-and-counts", admission::refusals_and_counts),
    promise("new", "odd-ids", admission::odd_ids_are_refused),
    promise("new", "odd-fields-of-messages", admission::odd_fields_of_messages),
    promise("new", "prefix-waits-are-not-queued", admission::prefix_waits_are_not_queued),
    promise("new", "slot-actions-are-not-queued", admission::slot_actions_are_not_queued),
    promise("new", "admitted-once", admission::admitted_once),
    promise("new", "streams-outlive-refusals", refusals::streams_outlive_refusals),
    promise("new", "waiting-replaces-its-stream", refusals::waiting_replaces_its_stream),
    promise("new", "slot-actions-are-bounded", refusals::slot_actions_are_bounded),
    promise("new", "refused-restores-keep-the-sequence", refusals::refused_restores_keep_the_sequence),
    promise("new", "refused-while-asleep", refusals::refused_while_asleep),
    promise("new", "values-of-variables", configured::values_of_variables),
    promise("new", "batch-keys-take-turns", turns::batch_keys_take_turns),
    promise("new", "copies-push-nothing-out", turns::copies_push_nothing_out),
    promise("new", "dropped-sequences", turns::dropped_sequences_are_looked_up),
    promise("new", "pool-without-a-size", configured::pool_without_a_size),
    promise("new", "variables-of-options", configured::variables_of_options),
    promise("new", "variables-in-help", configured::variables_in_help),
    promise("new", "cache-is-described", configured::cache_is_described),
    promise("new", "cache-ram", configured::cache_ram_is_off),
];

/// Checks `program` against the promises in `names`, by name or item, or against all if `names` is empty. Continues
/// after a broken one.
///
/// # Errors
///
/// If a name is unknown, or the disk is full.
pub fn look(context: &Context, program: &Path, names: &[String]) -> Result<Vec<PromiseResult>> {
    let chosen = choose(names)?;
    let mut fixture = PromiseFixture::open(context, program)?;
    Ok(chosen.into_iter().map(|promise| hold(&mut fixture, promise)).collect())
}

fn hold(fixture: &mut PromiseFixture<'_>, promise: &Promise) -> PromiseResult {
    let ended = fixture.begin(promise.name, promise.run);
    PromiseResult { item: promise.item, name: promise.name, broken: ended.broken, seconds: ended.seconds }
}

fn choose(names: &[String]) -> Result<Vec<&'static Promise>> {
    let is_named = |promise: &Promise, name: &str| name == promise.name || name == promise.item;
    if let Some(unknown) = names.iter().find(|name| !PROMISES.iter().any(|one| is_named(one, name))) {
        let known: Vec<&str> = PROMISES.iter().map(|promise| promise.name).collect();
        return Err(Error::usage(format!("there is no promise `{unknown}`")).detail(known.join(", ")));
    }
    let is_chosen = |promise: &&Promise| names.is_empty() || names.iter().any(|name| is_named(promise, name));
    Ok(PROMISES.iter().filter(is_chosen).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promises_are_found_by_name_and_item() {
        let named = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_string()).collect();
            choose(&names).map(|chosen| chosen.iter().map(|one| one.name).collect::<Vec<_>>())
        };
        assert_eq!(named(&[]).unwrap().len(), PROMISES.len());
        assert_eq!(named(&["A1"]).unwrap(), ["negative-scale"]);
        assert_eq!(named(&["negative-scale"]).unwrap(), ["negative-scale"]);
        assert!(named(&["A99"]).unwrap_err().to_string().contains("negative-scale"));
    }

    #[test]
    fn promise_names_are_unique() {
        let names: std::collections::BTreeSet<&str> = PROMISES.iter().map(|promise| promise.name).collect();
        assert_eq!(names.len(), PROMISES.len());
    }
}
