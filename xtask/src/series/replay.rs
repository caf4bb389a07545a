//! A series, made for one tree, replayed on another: every patch three-way, in memory.
//!
//! Base and theirs of every merge are known for certain: they are the blobs that the patch names, and
//! it is applied to its own tree to have them. Ours is what the other tree has after the patches before.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::HashMap;

use git2::Oid;

use super::apply_patch::{Applied, apply_patch};
use super::collision::{Collisions, find_collisions};
use super::drift::PatchDrift;
use super::layered_tree::LayeredTree;
use super::markers::Labels;
use super::model::Patch;
use super::path::RepoPath;
use super::replay_file::FileReplay;
use super::replay_follow::Arrival;
use super::replay_outcome::{Followed, Replayed};
use super::tree::{Tree, TreeChange, TreeError};

/// Two trees side by side: the one the series was made for, and the one it is replayed on.
pub struct Replay<'a> {
    pub(crate) pin: &'a dyn Tree,
    pub(crate) old: LayeredTree<'a>,
    pub(crate) new: LayeredTree<'a>,
    names: TreeNames<'a>,
    find_arrivals: &'a dyn Fn() -> Result<Vec<Arrival>, TreeError>,
    arrivals: OnceCell<Vec<Arrival>>,
    pub(crate) followed: HashMap<RepoPath, Followed>,
}

/// How people call the two trees.
#[derive(Debug, Clone, Copy)]
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

impl<'a> Replay<'a> {
    /// `pin` is the tree the series was made for; `tip` the one that the next patch is replayed on.
    /// `find_arrivals` lists the files that came since the pin, and is called when a file is missing.
    pub fn new(
        pin: &'a dyn Tree,
        tip: &'a dyn Tree,
        names: TreeNames<'a>,
        find_arrivals: &'a dyn Fn() -> Result<Vec<Arrival>, TreeError>,
    ) -> Replay<'a> {
        Replay {
            pin,
            old: LayeredTree::new(pin),
            new: LayeredTree::new(tip),
            names,
            find_arrivals,
            arrivals: OnceCell::new(),
            followed: HashMap::new(),
        }
    }

    /// Replays the next patch. The new tree takes its changes unless there is a conflict.
    ///
    /// # Errors
    ///
    /// When a tree cannot be read, or the patch is not exact on its own tree.
    pub fn step(&mut self, patch: &Patch) -> Result<Step, ReplayError> {
        let made = self.made_by(patch)?;
        let collisions = find_collisions(patch, &self.new)?;
        let step = self.replay_files(patch, &made, collisions)?;
        self.old.add(&made);
        if !step.replayed.has_conflict() {
            self.new.add(&step.changes);
        }
        Ok(step)
    }

    /// Leaves a patch out: it was replayed before, or is dropped. The next one was made on it all the same.
    ///
    /// # Errors
    ///
    /// As [`Replay::step`].
    pub fn pass(&mut self, patch: &Patch) -> Result<(), ReplayError> {
        let made = self.made_by(patch)?;
        self.old.add(&made);
        Ok(())
    }

    /// The content of a blob that either tree has or had.
    ///
    /// # Errors
    ///
    /// When neither has it.
    pub fn blob(&self, id: Oid) -> Result<Cow<'_, [u8]>, TreeError> {
        self.new.blob(id).or_else(|_| self.old.blob(id))
    }

    fn made_by(&self, patch: &Patch) -> Result<Vec<TreeChange>, ReplayError> {
        match apply_patch(patch, &self.old)? {
            Applied::Exact(changes) => Ok(changes),
            Applied::Drifted(drift) => Err(ReplayError::NotExact(Box::new(drift))),
        }
    }

    fn replay_files(
        &mut self,
        patch: &Patch,
        made: &[TreeChange],
        mut collisions: Collisions,
    ) -> Result<Step, TreeError> {
        let labels = Labels {
            base: format!("{}, before {}", self.names.pin, patch.name),
            ours: self.names.tip.to_owned(),
            theirs: patch.name.clone(),
        };
        let mut files = Vec::new();
        let mut changes = Vec::new();
        for (index, file) in patch.files.iter().enumerate() {
            let mut replay = FileReplay { replay: self, patch, file, made, labels: &labels };
            let result = match collisions.remove(&index) {
                Some(refusal) => replay.refused(refusal)?,
                None => replay.run()?,
            };
            files.push(result.file);
            changes.extend(result.changes);
        }
        changes.sort_by_key(|change| change.new.is_some());
        Ok(Step { replayed: Replayed { patch: patch.name.clone(), files }, changes })
    }

    pub(crate) fn arrivals(&self) -> Result<&[Arrival], TreeError> {
        if self.arrivals.get().is_none() {
            let found = (self.find_arrivals)()?;
            return Ok(self.arrivals.get_or_init(|| found));
        }
        Ok(self.arrivals.get().map(Vec::as_slice).unwrap_or_default())
    }
}
