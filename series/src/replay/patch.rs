//! A series, made for one tree, replayed on another: every patch three-way, in memory.
//!
//! Base and theirs of every merge are known for certain ([`Origin`]). Ours is what the other tree has after the
//! patches before. `status`, `bisect`, `newest`, the canary and `rebase` all judge a patch by [`replay_patch`].

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::file::FileReplay;
use super::left_behind::left_behind;
use super::origin::Origin;
use super::outcome::{Replayed, ReplayedFile, Way};
use crate::apply::collision::find_collisions;
use crate::judge::drift::PatchDrift;
use crate::model::layered_tree::LayeredTree;
use crate::model::object_id::ObjectId;
use crate::model::tree::{Tree, TreeChange, TreeError};
use crate::text::markers::Labels;

/// A series on its way onto another tree.
pub struct Replay<'a> {
    pub(super) origin: &'a Origin<'a>,
    new: LayeredTree<'a>,
    pub(super) names: TreeNames<'a>,
    taken: &'a BTreeSet<usize>,
}

/// How people call the two trees.
#[derive(Debug, Clone, Copy, Default)]
pub struct TreeNames<'a> {
    /// The one the series was made for.
    pub pin: &'a str,
    /// The one it is replayed on.
    pub tip: &'a str,
}

/// Why a patch could not be replayed at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplayError {
    /// A tree could not be read.
    Tree(TreeError),
    /// The patch is not exact where it was made.
    NotExact(Box<PatchDrift>),
    /// The series has no such patch.
    NoSuchPatch,
}

impl From<TreeError> for ReplayError {
    fn from(error: TreeError) -> ReplayError {
        ReplayError::Tree(error)
    }
}

/// One patch, replayed, and what it does to the new tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// What it came to.
    pub replayed: Replayed,
    /// The changes, in an order in which they can be made; of a patch with conflicts those of its other
    /// files.
    pub changes: Vec<TreeChange>,
}

impl Step {
    /// The step when upstream's history took the patch, or did not. Where upstream's text is as the patch was made for,
    /// wherever the file is, it is not there any more, whoever took it once.
    pub(crate) fn in_view_of(mut self, taken: bool) -> Step {
        let keeps_content = |file: &ReplayedFile| {
            file.before.as_ref().map(|old| old.id) == file.after.as_ref().map(|new| new.id)
        };
        let as_made_for = |file: &ReplayedFile| match file.way {
            Way::AsItWas | Way::Placed => true,
            // It changes the mode or the name only, and has yet to.
            Way::Merged => keeps_content(file),
            _ => false,
        };
        if taken && !self.replayed.files.iter().all(as_made_for) {
            self.replayed = Replayed { patch: self.replayed.patch, files: Vec::new() };
            self.changes = Vec::new();
        }
        self
    }
}

impl<'a> Replay<'a> {
    /// The series of `origin`, to be replayed on `tip`, whose history took the patches `taken`, by their places.
    pub fn new(
        origin: &'a Origin<'a>,
        tip: &'a dyn Tree,
        names: TreeNames<'a>,
        taken: &'a BTreeSet<usize>,
    ) -> Replay<'a> {
        Replay { origin, new: LayeredTree::new(tip), names, taken }
    }

    /// Replays the patch at `at`, from 0; those before it were, or are left out. The new tree takes its changes
    /// unless there is a conflict.
    ///
    /// # Errors
    ///
    /// When a tree cannot be read, the patch is not exact on its own tree, or there is none.
    pub fn step(&mut self, at: usize) -> Result<Step, ReplayError> {
        let step = replay_patch(self.origin, at, &self.new, self.names)?.in_view_of(self.taken.contains(&at));
        if !step.replayed.has_conflict() {
            self.new.add(&step.changes);
        }
        Ok(step)
    }

    /// The content of a blob that either tree has or had.
    ///
    /// # Errors
    ///
    /// When neither has it.
    pub fn blob(&self, id: ObjectId) -> Result<Cow<'_, [u8]>, TreeError> {
        self.new.blob(id).or_else(|_| self.origin.blob(id))
    }
}

/// What stands beside conflict markers of the patch `name`.
pub(super) fn labels(names: TreeNames<'_>, name: &str) -> Labels {
    Labels {
        base: format!("{}, before {name}", names.pin),
        ours: names.tip.to_owned(),
        theirs: name.to_owned(),
    }
}

/// The patch at `at` of the series of `origin`, on `new`.
pub(crate) fn replay_patch(
    origin: &Origin<'_>,
    at: usize,
    new: &dyn Tree,
    names: TreeNames<'_>,
) -> Result<Step, ReplayError> {
    let (patch, made) = origin.patch(at).ok_or(ReplayError::NoSuchPatch)?;
    let made = made.map_err(|drift| ReplayError::NotExact(Box::new(drift.clone())))?;
    let mut collisions = find_collisions(patch, new)?;
    let labels = labels(names, &patch.name);
    let mut files = Vec::new();
    let mut changes = Vec::new();
    for (index, (file, base)) in patch.files.iter().zip(&made.bases).enumerate() {
        let base = base.as_ref();
        let replay = FileReplay { origin, new, patch, file, base, made, labels: &labels };
        let result = match collisions.remove(&index) {
            Some(refusal) => replay.refused(refusal)?,
            None => replay.run()?,
        };
        files.push(result.file);
        changes.extend(result.changes);
    }
    files.extend(left_behind(patch, origin, new)?);
    changes.sort_by_key(|change| change.new.is_some());
    Ok(Step { replayed: Replayed { patch: patch.name.clone(), files }, changes })
}
