//! A whole series on one tree, in memory.

use std::collections::HashSet;

use super::apply_patch::{Applied, apply_patch};
use super::drift::PatchClass;
use crate::apply::collision::{all_written_paths, touches_any};
use crate::model::layered_tree::LayeredTree;
use crate::model::patch::Patch;
use crate::model::path::RepoPath;
use crate::model::tree::{Tree, TreeError};

/// What one patch of a series came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchOutcome {
    /// The patch's file name.
    pub patch: String,
    /// Its class; [`PatchClass::Blocked`] when it failed on files that an earlier patch should
    /// have changed.
    pub class: PatchClass,
    /// The changes, or what is wrong. A blocked patch keeps its own report.
    pub applied: Applied,
    /// The names of the failed patches whose files it touches, in order.
    pub blocked_by: Vec<String>,
    /// Whether an earlier patch failed, so that this one was tried on a tree without it.
    pub provisional: bool,
}

/// Applies `patches` in order, each on the result of the ones before it.
///
/// A patch that is not exact changes nothing and never hides the next: the rest are tried on the
/// last good tree. One that is already upstream counts as there, so it blocks nothing.
///
/// # Errors
///
/// Only when the tree cannot be read.
pub fn run_series(patches: &[Patch], tree: &dyn Tree) -> Result<Vec<PatchOutcome>, TreeError> {
    let mut current = LayeredTree::new(tree);
    let mut failed: Vec<FailedPatch> = Vec::new();
    let mut outcomes = Vec::new();
    for patch in patches {
        let applied = apply_patch(patch, &current)?;
        let provisional = !failed.is_empty();
        let mut blocked_by = Vec::new();
        let class = match &applied {
            Applied::Exact(changes) => {
                current.add(changes);
                PatchClass::Exact
            }
            Applied::Drifted(drift) if drift.class == PatchClass::Upstreamed => drift.class,
            Applied::Drifted(drift) => {
                blocked_by = names_of_blockers(patch, &failed);
                failed.push(FailedPatch::new(patch));
                if blocked_by.is_empty() { drift.class } else { PatchClass::Blocked }
            }
        };
        outcomes.push(PatchOutcome { patch: patch.name.clone(), class, applied, blocked_by, provisional });
    }
    Ok(outcomes)
}

/// A patch that failed, with what it would have written.
pub(crate) struct FailedPatch {
    name: String,
    paths: HashSet<RepoPath>,
}

impl FailedPatch {
    pub fn new(patch: &Patch) -> FailedPatch {
        FailedPatch { name: patch.name.clone(), paths: all_written_paths(patch).cloned().collect() }
    }
}

/// The failed patches whose files `patch` touches, in order.
pub(crate) fn names_of_blockers(patch: &Patch, failed: &[FailedPatch]) -> Vec<String> {
    let blockers = failed.iter().filter(|earlier| touches_any(patch, &earlier.paths));
    blockers.map(|earlier| earlier.name.clone()).collect()
}
