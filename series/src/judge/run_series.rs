//! Verdicts on the patches of a series, and its application to one tree, in memory.

use std::collections::{BTreeSet, HashSet};
use std::rc::Rc;

use super::apply_patch::apply_patch;
use super::drift::PatchClass;
use super::verdict::Verdict;
use crate::apply::collision::{all_written_paths, touches_any};
use crate::model::layered_tree::LayeredTree;
use crate::model::patch::Patch;
use crate::model::path::RepoPath;
use crate::model::tree::{Tree, TreeError};

/// The verdict on one patch of a series, in view of the patches before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchOutcome {
    /// Its class; [`PatchClass::Blocked`] when it failed on files that an earlier patch should
    /// have changed.
    pub class: PatchClass,
    /// The verdict on the patch alone. A blocked patch keeps its own.
    pub verdict: Rc<Verdict>,
    /// The names of the failed patches that have to be resolved before it can be judged, in order; none of them is
    /// blocked itself.
    pub blocked_by: Vec<String>,
    /// Whether its class may change once an earlier patch is exact: in [`run_series`] if one failed, so that this one
    /// was tried on a tree without it; in a survey if one that touches the same files is not exact.
    pub provisional: bool,
}

impl PatchOutcome {
    /// Returns the outcome of `patch` after the patches that `failed`, which it joins if it fails too.
    pub(crate) fn new(
        patch: &Patch,
        verdict: Rc<Verdict>,
        failed: &mut FailedPatches,
        provisional: bool,
    ) -> PatchOutcome {
        let blocked_by = if verdict.is_stuck() { failed.add(patch) } else { Vec::new() };
        let class = if blocked_by.is_empty() { verdict.class() } else { PatchClass::Blocked };
        PatchOutcome { class, verdict, blocked_by, provisional }
    }
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
        let verdict = apply_patch(patch, &current)?;
        current.add(verdict.changes());
        let provisional = !failed.0.is_empty();
        outcomes.push(PatchOutcome::new(patch, Rc::new(verdict), &mut failed, provisional));
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
    /// Positions among the failed patches of those that it waits for and that wait for none; its own if it is one.
    roots: BTreeSet<usize>,
}

impl FailedPatches {
    /// Adds a failed patch. If it touches files of earlier ones, it is blocked, and its own conflicts mean nothing.
    /// Returns the names of the patches that have to be resolved first, in order: those of the earlier ones that are
    /// not blocked themselves, and for a blocked one those that block it.
    pub fn add(&mut self, patch: &Patch) -> Vec<String> {
        let blockers = self.0.iter().filter(|earlier| touches_any(patch, &earlier.paths));
        let roots: BTreeSet<usize> = blockers.flat_map(|earlier| earlier.roots.iter().copied()).collect();
        let names = roots.iter().filter_map(|at| self.0.get(*at)).map(|root| root.name.clone()).collect();
        let own = roots.is_empty().then_some(self.0.len());
        let paths = all_written_paths(patch).cloned().collect();
        let roots = roots.into_iter().chain(own).collect();
        self.0.push(FailedPatch { name: patch.name.clone(), paths, roots });
        names
    }
}
