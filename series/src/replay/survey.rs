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

use super::applied_series::AppliedSeries;
use super::patch::{Onto, ReplayError, TreeNames, replay_patch};
use crate::apply::collision::{all_written_paths, touches_any};
use crate::judge::apply_patch::apply_patch;
use crate::judge::drift::{FileDrift, PatchClass};
use crate::judge::questions::{AskedTree, Difference, Questions, differences};
use crate::judge::run_series::{FailedPatches, PatchOutcome};
use crate::judge::verdict::Verdict;
use crate::model::layered_tree::LayeredTree;
use crate::model::patch::Patch;
use crate::model::path::RepoPath;
use crate::model::tree::{Tree, TreeError};

/// A verdict, and the queries that it depends on.
type Judged = (Rc<Verdict>, Rc<Questions>);

/// The verdicts on all patches of a series on one tree.
#[derive(Debug, PartialEq, Eq)]
pub struct Survey {
    outcomes: Vec<PatchOutcome>,
    /// For each patch the queries that its verdict depends on.
    questions: Vec<Rc<Questions>>,
    upstreamed: Rc<BTreeSet<usize>>,
}

/// A survey of another tree, and the differences between that tree and the current one.
#[derive(Debug)]
pub struct ReusableSurvey<'a> {
    /// The survey.
    survey: &'a Survey,
    /// Every path at which the two trees differ.
    differences: Rc<[Difference]>,
    /// Every path at which the results of the earlier patches differ.
    above: Vec<Difference>,
}

impl<'a> ReusableSurvey<'a> {
    /// Reuses `survey` for a tree that differs at `differences`, and nowhere else, from the current one.
    pub fn new(survey: &'a Survey, differences: Rc<[Difference]>) -> ReusableSurvey<'a> {
        ReusableSurvey { survey, differences, above: Vec::new() }
    }

    /// Returns whether all results hold for the current tree too, whose history contains the patches `upstreamed`.
    pub fn still_holds(&self, upstreamed: &BTreeSet<usize>) -> bool {
        *self.survey.upstreamed == *upstreamed
            && self.survey.questions.iter().all(|questions| self.holds(questions))
    }

    fn holds(&self, questions: &Questions) -> bool {
        !questions.may_differ(&self.differences) && !questions.may_differ_above(&self.above)
    }

    fn of_patch(&self, at: usize, is_upstreamed: bool) -> Option<Judged> {
        let same = self.survey.upstreamed.contains(&at) == is_upstreamed;
        let questions = self.survey.questions.get(at).filter(|questions| same && self.holds(questions))?;
        Some((Rc::clone(&self.survey.outcomes.get(at)?.verdict), Rc::clone(questions)))
    }

    /// Advances past the patch `at`: the patches after it see another tree if its result differs.
    fn go_on(&mut self, at: usize, now: &Rc<Verdict>) {
        let before = self.survey.outcomes.get(at).map(|outcome| &outcome.verdict);
        let before = before.filter(|before| !Rc::ptr_eq(before, now));
        if let Some(before) = before {
            self.above.extend(differences(before.changes(), now.changes()));
        }
    }
}

/// Replays the series in order on `tree`, whose history contains the patches `upstreamed`, each on the result of the
/// ones before it. Results that one of `known` has are reused.
///
/// # Errors
///
/// Only when a tree cannot be read.
pub fn survey_series(
    applied: &AppliedSeries<'_>,
    tree: &dyn Tree,
    upstreamed: &Rc<BTreeSet<usize>>,
    mut known: Vec<ReusableSurvey<'_>>,
) -> Result<Survey, TreeError> {
    let mut current = LayeredTree::new(tree);
    let (mut failed, mut uncertain) = (FailedPatches::default(), HashSet::<RepoPath>::new());
    let mut survey =
        Survey { outcomes: Vec::new(), questions: Vec::new(), upstreamed: Rc::clone(upstreamed) };
    for (at, patch) in applied.patches().iter().enumerate() {
        let is_upstreamed = upstreamed.contains(&at);
        let (verdict, questions) = match known.iter().find_map(|known| known.of_patch(at, is_upstreamed)) {
            Some(judged) => judged,
            None => judge(applied, (at, patch), (&current, tree), is_upstreamed)?,
        };
        known.iter_mut().for_each(|known| known.go_on(at, &verdict));
        current.add(verdict.changes());
        let provisional = touches_any(patch, &uncertain);
        let outcome = PatchOutcome::new(patch, verdict, &mut failed, provisional);
        if !matches!(outcome.class, PatchClass::Exact | PatchClass::Upstreamed) {
            uncertain.extend(all_written_paths(patch).cloned());
        }
        survey.outcomes.push(outcome);
        survey.questions.push(questions);
    }
    Ok(survey)
}

fn judge(
    applied: &AppliedSeries<'_>,
    (at, patch): (usize, &Patch),
    (tree, upstream): (&dyn Tree, &dyn Tree),
    is_upstreamed: bool,
) -> Result<Judged, TreeError> {
    let asked = AskedTree::new(tree);
    // Upstream's tree is read only at paths that were looked up in the other one.
    let onto = Onto { new: &asked, upstream, same: &[] };
    let verdict = match replay_patch(applied, at, onto, TreeNames::default()) {
        Ok(step) => Verdict::Replayed(step.if_upstreamed(is_upstreamed)),
        Err(ReplayError::Tree(error)) => return Err(error),
        // It cannot be replayed: here it is either exact or not.
        Err(ReplayError::NotExact | ReplayError::NoSuchPatch) => apply_patch(patch, &asked)?,
    };
    Ok((Rc::new(verdict), Rc::new(asked.into_questions())))
}

impl Survey {
    /// Returns the outcome of every patch, in order.
    pub fn outcomes(&self) -> &[PatchOutcome] {
        &self.outcomes
    }

    /// Returns the class of every patch, in order.
    pub fn classes(&self) -> impl Iterator<Item = PatchClass> {
        self.outcomes.iter().map(|outcome| outcome.class)
    }

    /// Returns whether every patch is exact. On the tree that the series was made for, a rebase requires this.
    pub fn is_exact(&self) -> bool {
        self.classes().all(|class| class == PatchClass::Exact)
    }

    /// Returns the [`Verdict::drift`] of every patch, in order; `tree` is the one that was judged.
    ///
    /// # Errors
    ///
    /// Only when the tree cannot be read.
    pub fn drift(
        &self,
        applied: &AppliedSeries<'_>,
        tree: &dyn Tree,
    ) -> Result<Vec<Vec<FileDrift>>, TreeError> {
        let mut current = LayeredTree::new(tree);
        let mut drift = Vec::with_capacity(self.outcomes.len());
        for (patch, outcome) in applied.patches().iter().zip(&self.outcomes) {
            drift.push(outcome.verdict.drift(patch, &current)?);
            current.add(outcome.verdict.changes());
        }
        Ok(drift)
    }
}
