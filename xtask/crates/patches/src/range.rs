//! Surveys of a series at every upstream commit since the pin.

use std::collections::HashMap;
use std::rc::Rc;

use espalier_core::error::Result;
use espalier_core::sys::git::history::{Commit, Comparisons};
use espalier_core::sys::git::store::Store;
use espalier_core::sys::git::store_tree::StoreTree;
use espalier_series::ObjectId;
use espalier_series::{AppliedSeries, Patch, PatchClass, ReusableSurvey, Survey, survey_series};

use super::upstreamed::{self, PatchSet, UpstreamedPatches};
use crate::commit_property::{Before, before_each};
use crate::report::status::UpstreamCommit;

/// Results of the series at the pin and at each commit.
pub struct Range {
    /// At the pin.
    pub at_pin: Rc<Survey>,
    /// The classes of the patches at each commit of the history; `None` for commits that do not have the pin as an
    /// ancestor. The surveys themselves hold the content of every file that a patch changes: over thousands of
    /// commits, gigabytes.
    pub classes: Vec<Option<Rc<[PatchClass]>>>,
    /// The predecessors of each commit.
    pub before: Vec<Vec<Before>>,
    /// Parts of the series that upstream's commits contain.
    pub upstreamed: UpstreamedPatches,
    /// At the last commit.
    at_tip: Option<Rc<Survey>>,
}

impl Range {
    fn new(at_pin: Rc<Survey>, before: Vec<Vec<Before>>, upstreamed: UpstreamedPatches) -> Range {
        Range { at_pin, classes: Vec::with_capacity(before.len()), before, upstreamed, at_tip: None }
    }

    /// Returns the survey at the last commit, the tip.
    pub fn at_tip(&self) -> &Rc<Survey> {
        self.at_tip.as_ref().unwrap_or(&self.at_pin)
    }
}

/// Returns the series at its base, `pin` being that tree.
///
/// The content of each file after each patch is kept in the store's memory: with the blob that a patch was made for,
/// the function of each of its hunks is known for certain.
pub fn applied_series<'a>(
    store: &Store,
    patches: &'a [Patch],
    pin: &'a StoreTree<'_>,
) -> Result<AppliedSeries<'a>> {
    let applied = AppliedSeries::new(patches, pin)?;
    for file in applied.changes().filter_map(|change| change.new.as_ref()) {
        if let Some(content) = &file.content {
            store.keep(file.id, std::sync::Arc::clone(content));
        }
    }
    Ok(applied)
}

/// Surveys the series on one tree, whose history contains the patches `upstreamed`.
pub fn survey_tree(
    applied: &AppliedSeries<'_>,
    tree: &StoreTree<'_>,
    upstreamed: &PatchSet,
) -> Result<Survey> {
    Ok(survey_series(applied, tree, upstreamed, Vec::new())?)
}

/// Returns the classes of the series at its base, the tree `pin`, and at `tip`. The commits in between are not read: a
/// patch whose change upstream has in another form is not recognized as upstreamed.
pub fn classes_at_ends(
    store: &Store,
    patches: &[Patch],
    pin: ObjectId,
    tip: ObjectId,
) -> Result<[Vec<PatchClass>; 2]> {
    let pin_tree = StoreTree::new(store, pin)?;
    let tip_tree = StoreTree::in_range(store, tip, pin, tip)?;
    let applied = applied_series(store, patches, &pin_tree)?;
    let at_pin = survey_tree(&applied, &pin_tree, &PatchSet::default())?;
    let at_tip = survey_tree(&applied, &tip_tree, &PatchSet::default())?;
    Ok([&at_pin, &at_tip].map(|survey| survey.classes().collect()))
}

/// Surveys the series at every commit since its base, the tree `pin`.
pub fn survey(store: &Store, patches: &[Patch], pin: ObjectId, history: &[Commit]) -> Result<Range> {
    let pin = StoreTree::new(store, pin)?;
    survey_history(store, &applied_series(store, patches, &pin)?, &pin, history)
}

/// Surveys the series at every commit of `history`, which starts after `pin`. A commit that touches no file that a
/// patch reads costs the comparison of two trees.
pub fn survey_history(
    store: &Store,
    applied: &AppliedSeries<'_>,
    pin: &StoreTree<'_>,
    history: &[Commit],
) -> Result<Range> {
    survey_each(store, applied, pin, history, |_, _, _| Ok(()))
}

/// As [`survey_history`]; `look` receives each commit's index, its survey if it has one, and the patches upstreamed
/// there.
pub fn survey_each(
    store: &Store,
    applied: &AppliedSeries<'_>,
    pin: &StoreTree<'_>,
    history: &[Commit],
    mut look: impl FnMut(usize, Option<&Survey>, &PatchSet) -> Result<()>,
) -> Result<Range> {
    let parents: Vec<(bool, &[usize])> =
        history.iter().map(|commit| (commit.follows_pin, commit.parents.as_slice())).collect();
    let at_pin = Rc::new(survey_tree(applied, pin, &PatchSet::default())?);
    let compared = Comparisons::new(store);
    let upstreamed = upstreamed::watch(store, applied, history, &compared)?;
    let before = before_each(&parents);
    let needed = Needed::new(&before);
    let range = Range::new(at_pin, before, upstreamed);
    let mut walk = Walk {
        store,
        compared: &compared,
        applied,
        pin: pin.id(),
        history,
        needed,
        surveys: HashMap::new(),
        range,
    };
    for (at, commit) in history.iter().enumerate() {
        let survey = walk.survey(at, commit)?;
        look(at, survey.as_deref(), &walk.range.upstreamed.at(at))?;
        walk.keep(at, survey);
    }
    Ok(walk.range)
}

/// Lifetimes of the surveys of commits.
struct Needed {
    /// For each commit, the commits whose last user it is.
    last_by: Vec<Vec<usize>>,
    /// Whether a later commit needs the commit's survey.
    is_needed: Vec<bool>,
}

impl Needed {
    fn new(before: &[Vec<Before>]) -> Needed {
        let mut needed =
            Needed { last_by: vec![Vec::new(); before.len()], is_needed: vec![false; before.len()] };
        for (at, before) in before.iter().enumerate().rev() {
            for place in before {
                let Before::Commit(parent) = place else { continue };
                let is_last =
                    needed.is_needed.get_mut(*parent).is_some_and(|known| !std::mem::replace(known, true));
                if let Some(last) = needed.last_by.get_mut(at).filter(|_| is_last) {
                    last.push(*parent);
                }
            }
        }
        needed
    }
}

/// State of the walk from the pin to the tip.
struct Walk<'a> {
    store: &'a Store,
    compared: &'a Comparisons<'a>,
    applied: &'a AppliedSeries<'a>,
    pin: ObjectId,
    history: &'a [Commit],
    needed: Needed,
    /// Surveys of the commits that a later one still needs.
    surveys: HashMap<usize, Rc<Survey>>,
    range: Range,
}

impl Walk<'_> {
    fn survey(&self, at: usize, commit: &Commit) -> Result<Option<Rc<Survey>>> {
        let upstreamed = self.range.upstreamed.at(at);
        let mut known = Vec::new();
        for before in self.range.before.get(at).into_iter().flatten() {
            let Some((survey, tree)) = self.found(*before) else { continue };
            let changed = self.compared.between(tree, commit.tree)?;
            let here = ReusableSurvey::new(survey, changed);
            if here.still_holds(&upstreamed) {
                return Ok(Some(Rc::clone(survey)));
            }
            known.push(here);
        }
        if known.is_empty() {
            return Ok(None);
        }
        let tree = StoreTree::in_range(self.store, commit.tree, self.pin, commit.tree)?;
        Ok(Some(Rc::new(survey_series(self.applied, &tree, &upstreamed, known)?)))
    }

    /// Returns the survey of a predecessor, and the tree that it is of.
    fn found(&self, before: Before) -> Option<(&Rc<Survey>, ObjectId)> {
        match before {
            Before::Pin => Some((&self.range.at_pin, self.pin)),
            Before::Commit(at) => Some((self.surveys.get(&at)?, self.history.get(at)?.tree)),
        }
    }

    /// Keeps the part of the survey of the commit `at` that reports need; the survey itself is kept only while a
    /// later commit needs it.
    fn keep(&mut self, at: usize, survey: Option<Rc<Survey>>) {
        let classes = survey.as_ref().map(|survey| self.classes_of(at, survey));
        self.range.classes.push(classes);
        for done in self.needed.last_by.get_mut(at).map(std::mem::take).into_iter().flatten() {
            self.surveys.remove(&done);
        }
        if let Some(survey) = survey {
            if self.needed.is_needed.get(at).is_some_and(|needed| *needed) {
                self.surveys.insert(at, Rc::clone(&survey));
            }
            self.range.at_tip = Some(survey).filter(|_| at + 1 == self.history.len());
        }
    }

    /// Returns the classes of a survey; most commits change nothing and share one list.
    fn classes_of(&self, at: usize, survey: &Survey) -> Rc<[PatchClass]> {
        let before = at.checked_sub(1).and_then(|before| self.range.classes.get(before)?.as_ref());
        match before.filter(|known| survey.classes().eq(known.iter().copied())) {
            Some(known) => Rc::clone(known),
            None => survey.classes().collect(),
        }
    }
}

/// Converts a commit for reports.
pub fn upstream_commit(commit: &Commit) -> UpstreamCommit {
    UpstreamCommit {
        id: commit.id.to_string(),
        subject: commit.subject.clone(),
        author: commit.author.clone(),
        seconds: commit.seconds,
    }
}

#[cfg(test)]
mod tests {
    use super::{Before, Needed};

    #[test]
    fn a_survey_is_kept_until_its_last_child() {
        let commit = Before::Commit;
        // A main line, a branch from its first commit, a merge of both, and a branch that is never merged.
        let before = [
            vec![Before::Pin],
            vec![commit(0)],
            vec![commit(0)],
            vec![commit(1), commit(2)],
            vec![commit(1)],
        ];
        let needed = Needed::new(&before);
        assert_eq!(needed.last_by, [vec![], vec![], vec![0], vec![2], vec![1]]);
        assert_eq!(needed.is_needed, [true, true, true, false, false]);
    }
}
