//! A whole series on a tree that it was not made for, for reports: nothing is built from it.
//!
//! [`run_series`](crate::judge::run_series) changes nothing for a patch that is not exact, so that all
//! that depend on it are blocked. Here a patch goes where a rebase would put it, and its dependants are judged on top
//! of it and marked provisional.
//!
//! What was found for one tree is taken over for the next where no answer to any question that was
//! asked can have changed, so that a thousand commits cost little more than their differences.

use std::collections::{BTreeSet, HashSet};
use std::rc::Rc;

use super::origin::Origin;
use super::patch::{ReplayError, Step, TreeNames, replay_patch};
use crate::apply::collision::{all_written_paths, touches_any};
use crate::judge::apply_patch::{Applied, apply_patch};
use crate::judge::drift::{PatchClass, PatchDrift};
use crate::judge::questions::{AskedTree, Difference, Questions, differences};
use crate::judge::run_series::FailedPatches;
use crate::model::layered_tree::LayeredTree;
use crate::model::patch::Patch;
use crate::model::path::RepoPath;
use crate::model::tree::{Tree, TreeChange, TreeError};

/// What one patch came to on one tree.
#[derive(Debug, PartialEq, Eq)]
struct Judged {
    found: Found,
    questions: Questions,
}

/// A patch that is not exact where it was made cannot be replayed: then it is exact here, or it is not.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    Replayed(Step),
    Applied(Applied),
}

impl Judged {
    fn class(&self) -> PatchClass {
        match &self.found {
            Found::Replayed(step) => step.replayed.class(),
            Found::Applied(Applied::Exact(_)) => PatchClass::Exact,
            Found::Applied(Applied::Drifted(drift)) => drift.class,
        }
    }

    /// What it does to the tree; nothing while somebody has to decide.
    fn changes(&self) -> &[TreeChange] {
        match &self.found {
            Found::Replayed(step) if !step.replayed.has_conflict() => &step.changes,
            Found::Applied(Applied::Exact(changes)) => changes,
            Found::Replayed(_) | Found::Applied(Applied::Drifted(_)) => &[],
        }
    }

    fn is_stuck(&self) -> bool {
        match &self.found {
            Found::Replayed(step) => step.replayed.has_conflict(),
            Found::Applied(Applied::Exact(_)) => false,
            Found::Applied(Applied::Drifted(drift)) => drift.class != PatchClass::Upstreamed,
        }
    }
}

/// What every patch of a series came to on one tree.
#[derive(Debug, PartialEq, Eq)]
pub struct Survey {
    judged: Vec<Rc<Judged>>,
    verdicts: Vec<Verdict>,
    taken: Rc<BTreeSet<usize>>,
}

/// What is made of a patch in view of the patches before it.
#[derive(Debug, PartialEq, Eq)]
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
    differences: Rc<[Difference]>,
    /// Every path at which the earlier patches make something else of them.
    above: Vec<Difference>,
}

impl<'a> Known<'a> {
    /// What `survey` says of a tree that differs at `differences`, and nowhere else, from the tree at hand.
    pub fn new(survey: &'a Survey, differences: Rc<[Difference]>) -> Known<'a> {
        Known { survey, differences, above: Vec::new() }
    }

    /// Whether all that was found holds for the tree at hand too, whose history took the patches `taken`.
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

    /// The patches after this one see another tree where it does something else.
    fn go_on(&mut self, at: usize, now: &Rc<Judged>) {
        let before = self.survey.judged.get(at).filter(|before| !Rc::ptr_eq(before, now));
        if let Some(before) = before {
            self.above.extend(differences(before.changes(), now.changes()));
        }
    }
}

/// Replays the series in order on `tree`, whose history took the patches `taken`, each on the result of the ones before
/// it. What one of `known` has found is not looked for again.
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
        Ok(step) => Found::Replayed(step.in_view_of(is_taken)),
        Err(ReplayError::Tree(error)) => return Err(error),
        Err(ReplayError::NotExact(_) | ReplayError::NoSuchPatch) => {
            Found::Applied(apply_patch(patch, &asked)?)
        }
    };
    Ok(Judged { found, questions: asked.into_questions() })
}

fn verdicts(patches: &[Patch], judged: &[Rc<Judged>]) -> Vec<Verdict> {
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
        verdicts.push(Verdict { class, blocked_by, provisional });
    }
    verdicts
}

/// What one patch came to, with all that a report needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Its class; [`PatchClass::Blocked`] when it is stuck on files that an earlier patch should have changed.
    pub class: PatchClass,
    /// The names of the stuck patches whose files it touches, in order.
    pub blocked_by: Vec<String>,
    /// Whether it touches a file of an earlier patch that is not exact.
    pub provisional: bool,
    /// What a rebase does with it; nothing for a patch that is not exact at the pin.
    pub step: Option<Step>,
    /// Hunk by hunk, why it is not exact.
    pub drift: Option<PatchDrift>,
}

impl Survey {
    /// The class of every patch, in order.
    pub fn classes(&self) -> impl Iterator<Item = PatchClass> {
        self.verdicts.iter().map(|verdict| verdict.class)
    }

    /// Whether every patch is exact. On the tree that the series was made for, this is what a rebase requires.
    pub fn is_exact(&self) -> bool {
        self.classes().all(|class| class == PatchClass::Exact)
    }

    /// The whole outcome of every patch, in order; `tree` is the one that was judged.
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
                Found::Replayed(step) => Some(step.clone()),
                Found::Applied(_) => None,
            };
            current.add(judged.changes());
            let Verdict { class, blocked_by, provisional } = verdict;
            let blocked_by = blocked_by.clone();
            outcomes.push(Outcome { class: *class, blocked_by, provisional: *provisional, step, drift });
        }
        Ok(outcomes)
    }
}
