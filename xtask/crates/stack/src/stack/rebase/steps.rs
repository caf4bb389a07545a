//! The part of replaying one patch that all ways of replaying a series share.

use super::course::Course;
use crate::error::{Error, Result};
use crate::plan::rebase_state::{Choices, TakenPatch, told_of};
use crate::report::rebase::Fate;
use crate::report::replay::{describe_shared, notes_on};
use crate::series::{PatchClass, Replay, ReplayError, Replayed, Step, TreeNames};
use crate::stack::apply;

/// Returns the names of the two trees.
pub fn names<'a>(course: &'a Course<'_>) -> TreeNames<'a> {
    TreeNames { pin: &course.old_name, tip: &course.tip.name }
}

/// Replays the patch at `at`.
pub fn step(course: &Course<'_>, replay: &mut Replay<'_>, at: usize) -> Result<Step> {
    replay.step(at).map_err(|error| not_replayed(course, error))
}

/// Returns the error for a series that is not exact at its own pin and cannot be moved; `apply` reports the details.
fn not_replayed(course: &Course<'_>, error: ReplayError) -> Error {
    match error {
        ReplayError::Tree(error) => error.into(),
        ReplayError::NotExact(drift) => match apply::apply_stack(course.store, &course.stack) {
            Err(error) => error.hint("a series is moved only from a pin on which it is exact"),
            Ok(_) => Error::no(drift.to_string()),
        },
        ReplayError::NoSuchPatch => Error::environment("the record of the rebase goes beyond the series"),
    }
}

/// Outcome of a replayed patch.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It becomes a patch of the new series.
    Stays,
    /// It is dropped, because upstream has it.
    Dropped,
    /// It needs a decision by a person.
    Asks(Fate),
}

/// Returns the outcome, by the same rule for a real rebase and a dry run.
pub fn verdict(replayed: &Replayed, choices: Choices) -> Verdict {
    match replayed.class() {
        _ if replayed.has_conflict() => Verdict::Asks(Fate::Conflict),
        PatchClass::Upstreamed if choices.drop_upstreamed => Verdict::Dropped,
        PatchClass::Upstreamed => Verdict::Asks(Fate::Upstreamed),
        PatchClass::PartlyUpstreamed if !choices.trim_upstreamed => Verdict::Asks(Fate::PartlyUpstreamed),
        _ => Verdict::Stays,
    }
}

/// Describes what both upstream and a patch changed, if a person has to decide about it.
pub fn shared(
    course: &Course<'_>,
    replay: &Replay<'_>,
    (at, replayed): (usize, &Replayed),
    verdict: Verdict,
) -> Result<Vec<String>> {
    if !matches!(verdict, Verdict::Asks(Fate::PartlyUpstreamed)) {
        return Ok(Vec::new());
    }
    let tip = format!("{} {}", course.stack.pin.upstream, course.tip.name);
    let changes = replay.shared_changes(at, replayed)?;
    Ok(changes.iter().map(|change| describe_shared(change, &tip)).collect())
}

/// Returns the notes for the user on the patch at `at`.
pub fn notes(replayed: &Replayed, upstream: &[TakenPatch], at: usize, verdict: Verdict) -> Vec<String> {
    let mut notes = notes_on(replayed);
    notes.extend(told_of(upstream, at).iter().cloned());
    if verdict == Verdict::Dropped {
        notes.push("upstream has all of it".to_string());
    }
    notes
}
