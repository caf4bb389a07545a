//! The part of replaying one patch that all ways of replaying a series share.

use espalier_core::config::pins::short_name;
use espalier_core::error::{Error, Result};
use espalier_series::{PatchClass, Replay, ReplayError, Replayed, Step, TreeNames};

use super::target::SeriesMove;
use crate::apply;
use crate::rebase::state::{Choices, PatchInUpstream, notes_of_patch};
use crate::report::rebase::Fate;
use crate::report::replay::{describe_kept, describe_shared, notes_on};

/// Returns the names of the two trees, as conflict markers have them.
pub fn names<'a>(series_move: &'a SeriesMove<'_>) -> TreeNames<'a> {
    TreeNames { pin: short_name(&series_move.old_name), tip: short_name(&series_move.tip.name) }
}

/// Replays the patch at `at`.
pub fn step(series_move: &SeriesMove<'_>, replay: &mut Replay<'_>, at: usize) -> Result<Step> {
    replay.step(at).map_err(|error| not_replayed(series_move, error))
}

/// Returns the error for a series that is not exact at its own pin and cannot be moved; `apply` reports the details.
fn not_replayed(series_move: &SeriesMove<'_>, error: ReplayError) -> Error {
    match error {
        ReplayError::Tree(error) => error.into(),
        ReplayError::NotExact => apply::apply_stack(series_move.store, &series_move.stack)
            .err()
            .unwrap_or_else(|| Error::no("a patch is not exact at the pin"))
            .hint("a series is moved only from a pin on which it is exact"),
        ReplayError::NoSuchPatch => Error::environment("the record of the rebase goes beyond the series"),
    }
}

/// The decision about a replayed patch.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// It becomes a patch of the new series.
    Stays,
    /// It is dropped, because upstream has it.
    Dropped,
    /// It needs a decision by a person.
    Asks(Fate),
}

/// Decides by the same rule for a real rebase and a dry run.
pub fn decide(replayed: &Replayed, choices: Choices) -> Decision {
    match replayed.class() {
        _ if replayed.has_conflict() => Decision::Asks(Fate::Conflict),
        PatchClass::Upstreamed if choices.drop_upstreamed => Decision::Dropped,
        PatchClass::Upstreamed => Decision::Asks(Fate::Upstreamed),
        PatchClass::PartlyUpstreamed if !choices.trim_upstreamed => Decision::Asks(Fate::PartlyUpstreamed),
        _ => Decision::Stays,
    }
}

/// Changes that both upstream and a patch made.
#[derive(Debug, Default)]
pub struct Shared {
    /// Their descriptions.
    pub notes: Vec<String>,
    /// Whether one of them may be a counter, of which trimming keeps upstream's value.
    pub counter_in_doubt: bool,
}

/// Describes what both upstream and a patch changed, if a person has to decide about it. Of a trimmed patch only possible
/// counters are left to judge: that doubt stays until someone has looked at the value.
pub fn shared(
    series_move: &SeriesMove<'_>,
    replay: &Replay<'_>,
    (at, replayed): (usize, &Replayed),
    decision: Decision,
) -> Result<Shared> {
    let is_asked = match decision {
        Decision::Asks(Fate::PartlyUpstreamed) => true,
        Decision::Stays if replayed.class() == PatchClass::PartlyUpstreamed => false,
        _ => return Ok(Shared::default()),
    };
    let tip = format!("{} {}", series_move.stack.pin.upstream, series_move.tip.name);
    let changes = replay.shared_changes(at, replayed)?;
    let shown = changes.iter().filter(|change| is_asked || change.counter.is_some());
    Ok(Shared {
        notes: shown.map(|change| describe_shared(change, &tip) + &describe_kept(change)).collect(),
        counter_in_doubt: changes.iter().any(|change| change.counter.is_some()),
    })
}

/// Returns the notes for the user on the patch at `at`.
pub fn notes(
    replayed: &Replayed,
    upstream: &[PatchInUpstream],
    at: usize,
    decision: Decision,
) -> Vec<String> {
    let mut notes = notes_on(replayed);
    notes.extend(notes_of_patch(upstream, at).iter().cloned());
    if decision == Decision::Dropped {
        notes.push("upstream has all of it".to_string());
    }
    notes
}
