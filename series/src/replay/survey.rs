//! A whole series evaluated on a tree that it was not made for, for reports only: no build uses the result.
//!
//! [`run_series`](crate::judge::run_series) changes nothing for a patch that is not exact, so that all its dependants
//! are blocked. Here a patch goes where a rebase would put it, and its dependants are judged on top of it and marked
//! provisional.
//!
//! Results for one tree are reused for the next unless an answer to a question that was asked may have changed, so a
//! thousand commits cost little more than their differences.

use std::collections::{BTreeSet, HashSet};
use std::rc::Rc;

use super::origin::Origin;
use super::patch::{ReplayError, TreeNames, replay_patch};
use crate::apply::collision::{all_written_paths, touches_any};
use crate::judge::apply_patch::{Applied, apply_patch};
use crate::judge::drift::{PatchClass, PatchDrift};
use crate::judge::questions::{AskedTree, Difference, Questions, differences};
use crate::judge::replayed::Step;
use crate::judge::run_series::FailedPatches;
use crate::model::layered_tree::LayeredTree;
use crate::model::patch::Patch;
use crate::model::path::RepoPath;
use crate::model::tree::{Tree, TreeChange, TreeError};

/// The result of one patch on one tree.
#[derive(Debug, PartialEq, Eq)]
struct Judged {
    found: PatchResult,
    questions: Questions,
}

/// A patch that is not exact on its own base cannot be replayed: here it is either exact or not.
#[derive(Debug, PartialEq, Eq)]
enum PatchResult {
    Replayed(Step),
    Applied(Applied),
}

impl Judged {
    fn class(&self) -> PatchClass {
        match &self.found {
            PatchResult::Replayed(step) => step.replayed.class(),
            PatchResult::Applied(Applied::Exact(_)) => PatchClass::Exact,
            PatchResult::Applied(Applied::Drifted(drift)) => drift.class,
        }
    }

    /// Returns its changes to the tree; empty while there is a conflict.
    fn changes(&self) -> &[TreeChange] {
        match &self.found {
            PatchResult::Replayed(step) if !step.replayed.has_conflict() => &step.changes,
            PatchResult::Applied(Applied::Exact(changes)) => changes,
            PatchResult::Replayed(_) | PatchResult::Applied(Applied::Drifted(_)) => &[],
        }
    }

    fn is_stuck(&self) -> bool {
        match &self.found {
            PatchResult::Replayed(step) => step.replayed.has_conflict(),
            PatchResult::Applied(Applied::Exact(_)) => false,
            PatchResult::Applied(Applied::Drifted(drift)) => drift.class != PatchClass::Upstreamed,
        }
    }
}

/// The results of all patches of a series on one tree.
#[derive(Debug, PartialEq, Eq)]
pub struct Survey {
    judged: Vec<Rc<Judged>>,
    verdicts: Vec<PatchVerdict>,
    taken: Rc<BTreeSet<usize>>,
}

/// The verdict on a patch, considering the patches before it.
#[derive(Debug, PartialEq, Eq)]
struct PatchVerdict {
    class: PatchClass,
    blocked_by: Vec<String>,
    provisional: bool,
}

/// A survey of another tree, and the differences between that tree and the current one.
#[derive(Debug)]
pub struct Known<'a> {
    /// The survey.
    survey: &'a Survey,
    /// Every path at which the two trees differ.
    differences: Rc<[Difference]>,
    /// Every path at which the results of the earlier patches differ.
    above: Vec<Difference>,
}

impl<'a> Known<'a> {
    /// Reuses `survey` for a tree that differs at `differences`, and nowhere else, from the current one.
    pub fn new(survey: &'a Survey, differences: Rc<[Difference]>) -> Known<'a> {
        Known { survey, differences, above: Vec::new() }
    }

    /// Returns whether all results hold for the current tree too, whose history contains the patches `taken`.
    pub fn still_holds(&self, taken: &BTreeSet<usize>) -> bool {
        *self.survey.taken == *taken && self.survey.judged.iter().all(|judged| self.holds(judged))
    }

    fn holds(&self, judged: &Judged) -> bool {
        let questions = &judged.questions;
        !questions.may_differ(&self.differences) && !questions.may_differ_above(&self.above)
    }

    fn of_patch(&self, at: usize, is_taken: bool) -> Option<&Rc<Judged>> {
        let same = self.survey.taken.contains(&at) == is_taken;
        self.survey.judged.get(at).filter(|judged| same && self.holds(judged))
    }

    /// Advances past the patch `at`: the patches after it see another tree if its result differs.
    fn go_on(&mut self, at: usize, now: &Rc<Judged>) {
        let before = self.survey.judged.get(at).filter(|before| !Rc::ptr_eq(before, now));
        if let Some(before) = before {
            self.above.extend(differences(before.changes(), now.changes()));
        }
    }
}

/// Replays the series in order on `tree`, whose history contains the patches `taken`, each on the result of the ones
/// before it. Results that one of `known` has are reused.
///
/// # Errors
///
/// Only when a tree cannot be read.
pub fn survey_series(
    origin: &Origin<'_>,
    tree: &dyn Tree,
    taken: &Rc<BTreeSet<usize>>,
    mut known: Vec<Known<'_>>,
) -> Result<Survey, TreeError> {
    let mut current = LayeredTree::new(tree);
    let mut all = Vec::with_capacity(origin.patches().len());
    for (at, patch) in origin.patches().iter().enumerate() {
        let is_taken = taken.contains(&at);
        let judged = match known.iter().find_map(|known| known.of_patch(at, is_taken)) {
            Some(judged) => Rc::clone(judged),
            None => Rc::new(judge(origin, (at, patch), &current, is_taken)?),
        };
        known.iter_mut().for_each(|known| known.go_on(at, &judged));
        current.add(judged.changes());
        all.push(judged);
    }
    let verdicts = verdicts(origin.patches(), &all);
    Ok(Survey { judged: all, verdicts, taken: Rc::clone(taken) })
}

fn judge(
    origin: &Origin<'_>,
    (at, patch): (usize, &Patch),
    tree: &dyn Tree,
    is_taken: bool,
) -> Result<Judged, TreeError> {
    let asked = AskedTree::new(tree);
    let found = match replay_patch(origin, at, &asked, TreeNames::default()) {
        Ok(step) => PatchResult::Replayed(step.if_upstreamed(is_taken)),
        Err(ReplayError::Tree(error)) => return Err(error),
        Err(ReplayError::NotExact(_) | ReplayError::NoSuchPatch) => {
            PatchResult::Applied(apply_patch(patch, &asked)?)
        }
    };
    Ok(Judged { found, questions: asked.into_questions() })
}

fn verdicts(patches: &[Patch], judged: &[Rc<Judged>]) -> Vec<PatchVerdict> {
    let mut failed = FailedPatches::default();
    let mut uncertain: HashSet<RepoPath> = HashSet::new();
    let mut verdicts = Vec::with_capacity(patches.len());
    for (patch, judged) in patches.iter().zip(judged) {
        let provisional = touches_any(patch, &uncertain);
        let (mut class, mut blocked_by) = (judged.class(), Vec::new());
        if judged.is_stuck() {
            blocked_by = failed.add(patch);
        }
        if !blocked_by.is_empty() {
            class = PatchClass::Blocked;
        }
        if !matches!(class, PatchClass::Exact | PatchClass::Upstreamed) {
            uncertain.extend(all_written_paths(patch).cloned());
        }
        verdicts.push(PatchVerdict { class, blocked_by, provisional });
    }
    verdicts
}

/// The result of one patch, with all that a report needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Its class; [`PatchClass::Blocked`] if it conflicts in files that an earlier patch should have changed.
    pub class: PatchClass,
    /// The names of the conflicting patches whose files it touches, in order.
    pub blocked_by: Vec<String>,
    /// Whether it touches a file of an earlier patch that is not exact.
    pub provisional: bool,
    /// The rebase step; `None` for a patch that is not exact at the pin.
    pub step: Option<Step>,
    /// Reasons why it is not exact, hunk by hunk.
    pub drift: Option<PatchDrift>,
}

impl Survey {
    /// Returns the class of every patch, in order.
    pub fn classes(&self) -> impl Iterator<Item = PatchClass> {
        self.verdicts.iter().map(|verdict| verdict.class)
    }

    /// Returns whether every patch is exact. On the tree that the series was made for, a rebase requires this.
    pub fn is_exact(&self) -> bool {
        self.classes().all(|class| class == PatchClass::Exact)
    }

    /// Returns the full outcome of every patch, in order; `tree` is the one that was judged.
    ///
    /// # Errors
    ///
    /// Only when the tree cannot be read.
    pub fn outcomes(&self, origin: &Origin<'_>, tree: &dyn Tree) -> Result<Vec<Outcome>, TreeError> {
        let mut current = LayeredTree::new(tree);
        let mut outcomes = Vec::with_capacity(self.judged.len());
        for ((patch, judged), verdict) in origin.patches().iter().zip(&self.judged).zip(&self.verdicts) {
            let drift = match apply_patch(patch, &current)? {
                Applied::Exact(_) => None,
                Applied::Drifted(drift) => Some(drift),
            };
            let step = match &judged.found {
                PatchResult::Replayed(step) => Some(step.clone()),
                PatchResult::Applied(_) => None,
            };
            current.add(judged.changes());
            let PatchVerdict { class, blocked_by, provisional } = verdict;
            let blocked_by = blocked_by.clone();
            outcomes.push(Outcome { class: *class, blocked_by, provisional: *provisional, step, drift });
        }
        Ok(outcomes)
    }
}
