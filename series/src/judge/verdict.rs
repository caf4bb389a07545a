//! The one verdict on a patch, whether it was only applied or replayed, with the evidence for its class.

use super::drift::{FileDrift, PatchClass, PatchDrift};
use super::replayed::{Replayed, Step};
use crate::model::patch::Patch;
use crate::model::tree::{Tree, TreeChange, TreeError};

/// The verdict on one patch on one tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Applied: it is exact. The changes are in an order in which they can be applied: removals first.
    Exact(Vec<TreeChange>),
    /// Applied: it is not exact, and no part of it must be written.
    Drifted(PatchDrift),
    /// Replayed from the tree that it was made for.
    Replayed(Step),
}

impl Verdict {
    /// Returns the class of the patch.
    pub fn class(&self) -> PatchClass {
        match self {
            Verdict::Exact(_) => PatchClass::Exact,
            Verdict::Drifted(drift) => drift.class,
            Verdict::Replayed(step) => step.replayed.class(),
        }
    }

    /// Returns its changes to the tree; empty if it does not apply.
    pub fn changes(&self) -> &[TreeChange] {
        match self {
            Verdict::Exact(changes) => changes,
            Verdict::Replayed(step) if !step.replayed.has_conflict() => &step.changes,
            Verdict::Drifted(_) | Verdict::Replayed(_) => &[],
        }
    }

    /// Returns the result of the replay, if it was replayed.
    pub fn replayed(&self) -> Option<&Replayed> {
        match self {
            Verdict::Replayed(step) => Some(&step.replayed),
            Verdict::Exact(_) | Verdict::Drifted(_) => None,
        }
    }

    /// Returns whether it stops the patches that need it.
    pub(crate) fn is_stuck(&self) -> bool {
        match self {
            Verdict::Exact(_) => false,
            Verdict::Drifted(drift) => drift.class != PatchClass::Upstreamed,
            Verdict::Replayed(step) => step.replayed.has_conflict(),
        }
    }

    /// Returns the reasons why `patch` is not exact on `tree`, file by file and hunk by hunk, by the classes of this
    /// verdict; empty if it is exact. If upstream's history contains it, files that upstream changed since are left
    /// out.
    ///
    /// # Errors
    ///
    /// Only when the tree cannot be read.
    pub fn drift(&self, patch: &Patch, tree: &dyn Tree) -> Result<Vec<FileDrift>, TreeError> {
        match self {
            Verdict::Exact(_) => Ok(Vec::new()),
            Verdict::Drifted(drift) => Ok(drift.files.clone()),
            Verdict::Replayed(step) => step.drift(patch, tree),
        }
    }
}
