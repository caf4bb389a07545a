//! A whole series on a tree that it was not made for, for reports: nothing is built from it.
//!
//! [`run_series`](super::run_series) changes nothing for a patch that is not exact, so that all
//! that depend on it are blocked. Here a patch whose every hunk has one place goes there, and its
//! dependants are judged on top of it and marked provisional.
//!
//! What was found for one tree is taken over for the next where no answer to any question that was
//! asked can have changed, so that a thousand commits cost little more than their differences.

use std::collections::HashSet;
use std::rc::Rc;

use super::apply_patch::{Applied, apply_patch};
use super::collision::{all_written_paths, touches_any};
use super::drift::PatchClass;
use super::layered_tree::LayeredTree;
use super::model::Patch;
use super::path::RepoPath;
use super::place::place_patch;
use super::questions::{AskedTree, Difference, Questions, differences};
use super::run_series::{FailedPatch, PatchOutcome, names_of_blockers};
use super::tree::{Tree, TreeChange, TreeError};

/// What one patch came to on one tree.
#[derive(Debug)]
struct Judged {
    applied: Applied,
    /// What it changes where it is not exact; `None` when that is in doubt.
    placed: Option<Vec<TreeChange>>,
    questions: Questions,
}

impl Judged {
    fn changes(&self) -> &[TreeChange] {
        match &self.applied {
            Applied::Exact(changes) => changes,
            Applied::Drifted(_) => self.placed.as_deref().unwrap_or_default(),
        }
    }
}

/// What every patch of a series came to on one tree.
#[derive(Debug)]
pub struct Survey {
    judged: Vec<Rc<Judged>>,
    verdicts: Vec<Verdict>,
}

/// What is made of a patch in view of the patches before it.
#[derive(Debug)]
struct Verdict {
    class: PatchClass,
    blocked_by: Vec<String>,
    provisional: bool,
}

/// A survey of another tree, and where the tree at hand differs from that one.
#[derive(Debug)]
pub struct Known<'a> {
    /// What was found.
    survey: &'a Survey,
    /// Every path at which the two trees differ.
    differences: Vec<Difference>,
    /// Every path at which the earlier patches make something else of them.
    above: Vec<Difference>,
}

impl<'a> Known<'a> {
    /// What `survey` says of a tree that differs at `differences`, and nowhere else, from the tree at hand.
    pub fn new(survey: &'a Survey, differences: Vec<Difference>) -> Known<'a> {
        Known { survey, differences, above: Vec::new() }
    }

    /// Whether all that was found holds for the tree at hand too.
    pub fn still_holds(&self) -> bool {
        self.survey.judged.iter().all(|judged| self.holds(judged))
    }

    fn holds(&self, judged: &Judged) -> bool {
        let questions = &judged.questions;
        !questions.may_differ(&self.differences) && !questions.may_differ_above(&self.above)
    }

    fn of_patch(&self, at: usize) -> Option<&Rc<Judged>> {
        self.survey.judged.get(at).filter(|judged| self.holds(judged))
    }

    /// The patches after this one see another tree where it does something else.
    fn go_on(&mut self, at: usize, now: &Rc<Judged>) {
        let before = self.survey.judged.get(at).filter(|before| !Rc::ptr_eq(before, now));
        if let Some(before) = before {
            self.above.extend(differences(before.changes(), now.changes()));
        }
    }
}

/// Tries `patches` in order on `tree`, each on the result of the ones before it as far as they
/// leave no doubt. What one of `known` has found is not looked for again.
///
/// # Errors
///
/// Only when the tree cannot be read.
pub fn survey_series(
    patches: &[Patch],
    tree: &dyn Tree,
    mut known: Vec<Known<'_>>,
) -> Result<Survey, TreeError> {
    let mut current = LayeredTree::new(tree);
    let mut all = Vec::with_capacity(patches.len());
    for (at, patch) in patches.iter().enumerate() {
        let judged = match known.iter().find_map(|known| known.of_patch(at)) {
            Some(judged) => Rc::clone(judged),
            None => Rc::new(judge(patch, &current)?),
        };
        known.iter_mut().for_each(|known| known.go_on(at, &judged));
        current.add(judged.changes());
        all.push(judged);
    }
    let verdicts = verdicts(patches, &all);
    Ok(Survey { judged: all, verdicts })
}

fn judge(patch: &Patch, tree: &dyn Tree) -> Result<Judged, TreeError> {
    let asked = AskedTree::new(tree);
    let applied = apply_patch(patch, &asked)?;
    let placed = match &applied {
        Applied::Exact(_) => None,
        Applied::Drifted(drift) => place_patch(patch, drift, &asked)?,
    };
    Ok(Judged { applied, placed, questions: asked.into_questions() })
}

fn verdicts(patches: &[Patch], judged: &[Rc<Judged>]) -> Vec<Verdict> {
    let mut failed: Vec<FailedPatch> = Vec::new();
    let mut uncertain: HashSet<RepoPath> = HashSet::new();
    let mut verdicts = Vec::with_capacity(patches.len());
    for (patch, judged) in patches.iter().zip(judged) {
        let provisional = touches_any(patch, &uncertain);
        let (class, blocked_by) = match &judged.applied {
            Applied::Exact(_) => (PatchClass::Exact, Vec::new()),
            Applied::Drifted(drift) if judged.placed.is_some() => (drift.class, Vec::new()),
            Applied::Drifted(drift) => {
                let blockers = names_of_blockers(patch, &failed);
                failed.push(FailedPatch::new(patch));
                (if blockers.is_empty() { drift.class } else { PatchClass::Blocked }, blockers)
            }
        };
        if !matches!(class, PatchClass::Exact | PatchClass::Upstreamed) {
            uncertain.extend(all_written_paths(patch).cloned());
        }
        verdicts.push(Verdict { class, blocked_by, provisional });
    }
    verdicts
}

impl Survey {
    /// The class of every patch, in order.
    pub fn classes(&self) -> impl Iterator<Item = PatchClass> {
        self.verdicts.iter().map(|verdict| verdict.class)
    }

    /// The whole outcome of every patch, in order. A patch is provisional when it touches a file
    /// of an earlier one that is not exact.
    pub fn outcomes(&self, patches: &[Patch]) -> Vec<PatchOutcome> {
        let found = patches.iter().zip(&self.judged).zip(&self.verdicts);
        found
            .map(|((patch, judged), verdict)| PatchOutcome {
                patch: patch.name.clone(),
                class: verdict.class,
                applied: judged.applied.clone(),
                blocked_by: verdict.blocked_by.clone(),
                provisional: verdict.provisional,
            })
            .collect()
    }

    /// What the exact patches make of each file: the blobs that later patches were made from.
    pub fn exact_changes(&self) -> impl Iterator<Item = &TreeChange> {
        let exact = self.judged.iter().filter(|judged| judged.placed.is_none());
        exact.flat_map(|judged| judged.changes())
    }
}
