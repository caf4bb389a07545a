//! One patch applied to a tree exactly, or a drift report.

use super::classify::describe_drift;
use super::drift::PatchDrift;
use crate::apply::patch::apply_files;
use crate::model::patch::Patch;
use crate::model::tree::{Tree, TreeChange, TreeError};

/// The result of applying a patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Applied {
    /// The patch is exact. The changes are in an order in which they can be applied: removals first.
    Exact(Vec<TreeChange>),
    /// The patch is not exact, and no part of it must be applied.
    Drifted(PatchDrift),
}

/// Applies `patch` to `tree`, which is not changed.
///
/// # Errors
///
/// Only when the tree cannot be read. A patch that does not fit is [`Applied::Drifted`].
pub fn apply_patch(patch: &Patch, tree: &dyn Tree) -> Result<Applied, TreeError> {
    let results = apply_files(patch, tree)?;
    if results.iter().any(Result::is_err) {
        return Ok(Applied::Drifted(describe_drift(patch, &results, tree)?));
    }
    let mut changes: Vec<TreeChange> = results.into_iter().flatten().flatten().collect();
    changes.sort_by_key(|change| change.new.is_some());
    Ok(Applied::Exact(changes))
}
