//! What every way of replaying a series does with one patch.

use super::course::Course;
use crate::error::{Error, Result};
use crate::series::{Replay, ReplayError, Step, TreeNames};
use crate::stack::apply;

/// How the two trees are called.
pub fn names<'a>(course: &'a Course<'_>) -> TreeNames<'a> {
    TreeNames { pin: &course.old_name, tip: &course.tip.name }
}

/// Replays the patch at `at`.
pub fn step(course: &Course<'_>, replay: &mut Replay<'_>, at: usize) -> Result<Step> {
    replay.step(at).map_err(|error| not_replayed(course, error))
}

/// A series that is not exact at its own pin cannot be moved; `apply` says all about it.
fn not_replayed(course: &Course<'_>, error: ReplayError) -> Error {
    match error {
        ReplayError::Tree(error) => error.into(),
        ReplayError::NotExact(drift) => {
            match apply::apply_inputs(course.store, course.variant, course.pin, &course.inputs) {
                Err(error) => error.hint("a series is moved only from a pin on which it is exact"),
                Ok(_) => Error::no(drift.to_string()),
            }
        }
        ReplayError::NoSuchPatch => Error::surroundings("the record of the rebase goes beyond the series"),
    }
}
