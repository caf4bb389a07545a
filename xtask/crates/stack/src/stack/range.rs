//! A series against every upstream commit since the pin.

use std::rc::Rc;

use super::taken::{self, PatchSet, Taken};
use crate::error::Result;
use crate::plan::line::{Before, before_each};
use crate::report::status::UpstreamCommit;
use crate::series::ObjectId;
use crate::series::{Known, Origin, Patch, Survey, survey_series};
use crate::sys::git::history::{Commit, Comparisons};
use crate::sys::git::store::Store;
use crate::sys::git::store_tree::StoreTree;

/// What the series came to at the pin and at each commit.
pub struct Range {
    /// At the pin.
    pub at_pin: Rc<Survey>,
    /// At each commit of the history; nothing for those that do not have the pin behind them.
    pub surveys: Vec<Option<Rc<Survey>>>,
    /// What comes right before each commit.
    pub before: Vec<Vec<Before>>,
    /// What upstream's commits took of the series.
    pub taken: Taken,
}

impl Range {
    fn new(at_pin: Rc<Survey>, before: Vec<Vec<Before>>, taken: Taken) -> Range {
        Range { at_pin, surveys: Vec::with_capacity(before.len()), before, taken }
    }

    /// What the series came to at the last commit, the tip.
    pub fn at_tip(&self) -> &Rc<Survey> {
        self.surveys.last().and_then(Option::as_ref).unwrap_or(&self.at_pin)
    }
}

/// The series where it was made, `pin` being that tree.
///
/// What its patches make of each file is kept in the store's memory: with the blob that a patch was made from,
/// the function of each of its hunks is known for certain.
pub fn origin<'a>(store: &Store, patches: &'a [Patch], pin: &'a StoreTree<'_>) -> Result<Origin<'a>> {
    let origin = Origin::new(patches, pin)?;
    for file in origin.changes().filter_map(|change| change.new.as_ref()) {
        if let Some(content) = &file.content {
            store.keep(file.id, std::sync::Arc::clone(content));
        }
    }
    Ok(origin)
}

/// The series on any one tree, whose history took the patches `taken`.
pub fn survey_tree(origin: &Origin<'_>, tree: &StoreTree<'_>, taken: &PatchSet) -> Result<Survey> {
    Ok(survey_series(origin, tree, taken, Vec::new())?)
}

/// The series at every commit since the tree `pin`, which it was made for.
pub fn survey(store: &Store, patches: &[Patch], pin: ObjectId, history: &[Commit]) -> Result<Range> {
    let pin = StoreTree::new(store, pin)?;
    survey_history(store, &origin(store, patches, &pin)?, &pin, history)
}

/// The series at every commit of `history`, which starts after `pin`. A commit that touches nothing that any patch
/// looks at costs the comparison of two trees.
pub fn survey_history(
    store: &Store,
    origin: &Origin<'_>,
    pin: &StoreTree<'_>,
    history: &[Commit],
) -> Result<Range> {
    let parents: Vec<(bool, &[usize])> =
        history.iter().map(|commit| (commit.follows_pin, commit.parents.as_slice())).collect();
    let at_pin = Rc::new(survey_tree(origin, pin, &PatchSet::default())?);
    let compared = Comparisons::new(store);
    let taken = taken::watch(store, origin, history, &compared)?;
    let range = Range::new(at_pin, before_each(&parents), taken);
    let mut walk = Walk { store, compared: &compared, origin, pin: pin.id(), history, range };
    for (at, commit) in history.iter().enumerate() {
        let survey = walk.survey(at, commit)?;
        walk.range.surveys.push(survey);
    }
    Ok(walk.range)
}

/// On the way from the pin to the tip.
struct Walk<'a> {
    store: &'a Store,
    compared: &'a Comparisons<'a>,
    origin: &'a Origin<'a>,
    pin: ObjectId,
    history: &'a [Commit],
    range: Range,
}

impl Walk<'_> {
    fn survey(&self, at: usize, commit: &Commit) -> Result<Option<Rc<Survey>>> {
        let taken = self.range.taken.at(at);
        let mut known = Vec::new();
        for before in self.range.before.get(at).into_iter().flatten() {
            let Some((survey, tree)) = self.found(*before) else { continue };
            let changed = self.compared.between(tree, commit.tree)?;
            let here = Known::new(survey, changed);
            if here.still_holds(&taken) {
                return Ok(Some(Rc::clone(survey)));
            }
            known.push(here);
        }
        if known.is_empty() {
            return Ok(None);
        }
        let tree = StoreTree::on_way(self.store, commit.tree, self.pin, commit.tree)?;
        Ok(Some(Rc::new(survey_series(self.origin, &tree, &taken, known)?)))
    }

    /// What was found right before, and the tree for which it was.
    fn found(&self, before: Before) -> Option<(&Rc<Survey>, ObjectId)> {
        match before {
            Before::Pin => Some((&self.range.at_pin, self.pin)),
            Before::Commit(at) => Some((self.range.surveys.get(at)?.as_ref()?, self.history.get(at)?.tree)),
        }
    }
}

/// A commit as reports show it.
pub fn upstream_commit(commit: &Commit) -> UpstreamCommit {
    UpstreamCommit {
        id: commit.id.to_string(),
        subject: commit.subject.clone(),
        author: commit.author.clone(),
        seconds: commit.seconds,
    }
}
