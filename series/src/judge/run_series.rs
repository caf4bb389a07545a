//! Application of a whole series to one tree, in memory.

use std::collections::HashSet;

use super::apply_patch::{Applied, apply_patch};
use super::drift::PatchClass;
use crate::apply::collision::{all_written_paths, touches_any};
use crate::model::layered_tree::LayeredTree;
use crate::model::patch::Patch;
use crate::model::path::RepoPath;
use crate::model::tree::{Tree, TreeError};

/// The result of one patch of a series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchOutcome {
    /// The patch's file name.
    pub patch: String,
    /// Its class; [`PatchClass::Blocked`] when it failed on files that an earlier patch should
    /// have changed.
    pub class: PatchClass,
    /// The changes, or the drift. A blocked patch keeps its own report.
    pub applied: Applied,
    /// The names of the failed patches whose files it touches, in order.
    pub blocked_by: Vec<String>,
    /// Whether an earlier patch failed, so that this one was tried on a tree without it.
    pub provisional: bool,
}

/// Applies `patches` in order, each on the result of the ones before it.
///
/// A patch that is not exact changes nothing and never hides the next: the rest are tried on the last good tree. A
/// patch that is already upstream blocks nothing.
///
/// # Errors
///
/// Only when the tree cannot be read.
pub fn run_series(patches: &[Patch], tree: &dyn Tree) -> Result<Vec<PatchOutcome>, TreeError> {
    let mut current = LayeredTree::new(tree);
    let mut failed = FailedPatches::default();
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
                blocked_by = failed.add(patch);
                if blocked_by.is_empty() { drift.class } else { PatchClass::Blocked }
            }
        };
        outcomes.push(PatchOutcome { patch: patch.name.clone(), class, applied, blocked_by, provisional });
    }
    Ok(outcomes)
}

/// The patches of a series that failed so far. The only code that decides which patch is blocked, for reports and
/// rebases.
#[derive(Debug, Default)]
pub struct FailedPatches(Vec<FailedPatch>);

/// A patch that failed, with the paths it would have written.
#[derive(Debug)]
struct FailedPatch {
    name: String,
    paths: HashSet<RepoPath>,
}

impl FailedPatches {
    /// Returns whether none failed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a failed patch. Returns the names of the earlier ones whose files it touches, in order: if there are any,
    /// it is blocked, and its own conflicts mean nothing.
    pub fn add(&mut self, patch: &Patch) -> Vec<String> {
        let blockers = self.0.iter().filter(|earlier| touches_any(patch, &earlier.paths));
        let names = blockers.map(|earlier| earlier.name.clone()).collect();
        let paths = all_written_paths(patch).cloned().collect();
        self.0.push(FailedPatch { name: patch.name.clone(), paths });
        names
    }
}
