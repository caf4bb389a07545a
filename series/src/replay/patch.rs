//! A series replayed on another tree than it was made for: every patch three-way, in memory.
//!
//! Base and theirs of every merge are known exactly ([`AppliedSeries`]). Ours is the content of the other tree after
//! the earlier patches. `status`, `bisect`, `newest`, the canary and `rebase` all judge a patch by [`replay_patch`].

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::applied_series::AppliedSeries;
use super::file::FileReplay;
use super::left_behind::left_behind;
use crate::apply::collision::find_collisions;
use crate::judge::apply_patch::apply_patch;
use crate::judge::replayed::{MergeKind, Replayed, ReplayedFile, SameFunction, Step};
use crate::judge::verdict::Verdict;
use crate::model::layered_tree::LayeredTree;
use crate::model::object_id::ObjectId;
use crate::model::patch::Patch;
use crate::model::tree::{Tree, TreeError};
use crate::text::markers::Labels;

/// A series being replayed on another tree.
///
/// # Examples
///
/// One patch on four other versions of its file:
///
/// ```
/// use std::collections::BTreeSet;
///
/// use espalier_series::{AppliedSeries, MemoryTree, MergeKind, Mode, PatchClass, Replay, TreeNames, parse};
///
/// let text = "\
/// From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001
/// From: A U Thor <author@example.com>
/// Date: Thu, 1 Jan 2026 00:00:00 +0000
/// Subject: [PATCH] raise the limit
///
/// diff --git a/limits.conf b/limits.conf
/// index 5dd13c4522b0ebe26082a80a5b77e18f00b5eeb5..8057e6037526abf6e5e4faeebf5dcd655606f8d9 100644
/// --- a/limits.conf
/// +++ b/limits.conf
/// @@ -1,3 +1,3 @@
///  retries = 2
///  timeout = 30
/// -limit = 8
/// +limit = 16
/// ";
/// let patches = [parse("0001-raise-the-limit.patch", text.as_bytes()).unwrap()];
/// let tree = |text: &str| {
///     let mut tree = MemoryTree::new();
///     tree.put("limits.conf", Mode::File, text.as_bytes());
///     tree
/// };
/// let pin = tree("retries = 2\ntimeout = 30\nlimit = 8\n");
/// let applied = AppliedSeries::new(&patches, &pin).unwrap();
/// let upstreamed = BTreeSet::new();
/// let replay_on = |text: &str| {
///     let names = TreeNames { pin: "pin", tip: "tip" };
///     Replay::new(&applied, &tree(text), names, &upstreamed).step(0).unwrap()
/// };
///
/// let step = replay_on("# Defaults\nretries = 2\ntimeout = 30\nlimit = 8\n");
/// assert_eq!(step.replayed.files[0].merge_kind, MergeKind::Placed);
/// assert_eq!(step.replayed.class(), PatchClass::Shifted);
///
/// let step = replay_on("retries = 3\ntimeout = 30\nlimit = 8\n");
/// let merged = step.changes[0].new.as_ref().unwrap().content.as_ref().unwrap();
/// assert_eq!(merged.as_slice(), b"retries = 3\ntimeout = 30\nlimit = 16\n");
/// assert_eq!(step.replayed.class(), PatchClass::Merged);
///
/// let step = replay_on("retries = 2\ntimeout = 30\nlimit = 16\n");
/// assert_eq!(step.replayed.class(), PatchClass::Upstreamed);
///
/// let step = replay_on("retries = 2\ntimeout = 30\nlimit = 12\n");
/// assert_eq!(step.replayed.class(), PatchClass::Conflict);
/// let marked = step.replayed.conflicts().next().unwrap().marked.as_ref().unwrap();
/// assert!(marked.starts_with(b"retries = 2\ntimeout = 30\n<<<<<<< tip\nlimit = 12\n"));
/// ```
pub struct Replay<'a> {
    pub(super) applied: &'a AppliedSeries<'a>,
    new: LayeredTree<'a>,
    pub(super) names: TreeNames<'a>,
    upstreamed: &'a BTreeSet<usize>,
    upstream: &'a dyn Tree,
    same: &'a [SameFunction],
}

/// Names of the two trees in messages and conflict markers.
#[derive(Debug, Clone, Copy, Default)]
pub struct TreeNames<'a> {
    /// The tree the series was made for.
    pub pin: &'a str,
    /// The tree it is replayed on.
    pub tip: &'a str,
}

/// Errors that prevent the replay of a patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplayError {
    /// A tree could not be read.
    Tree(TreeError),
    /// The patch is not exact on its own base; [`apply_patch`](crate::apply_patch) explains why.
    NotExact,
    /// The series has no such patch.
    NoSuchPatch,
}

impl From<TreeError> for ReplayError {
    fn from(error: TreeError) -> ReplayError {
        ReplayError::Tree(error)
    }
}

impl Step {
    /// Adjusts the step to whether upstream's history contains the patch. A file that is unchanged from the patch's
    /// base, at whatever path, does not have the change any more, even if upstream had it once.
    pub(crate) fn if_upstreamed(mut self, is_upstreamed: bool) -> Step {
        let keeps_content = |file: &ReplayedFile| {
            file.before.as_ref().map(|old| old.id) == file.after.as_ref().map(|new| new.id)
        };
        let as_made_for = |file: &ReplayedFile| match file.merge_kind {
            MergeKind::Unchanged | MergeKind::Placed => true,
            // It changes only the mode or the name, and has not done so yet.
            MergeKind::Merged => keeps_content(file),
            _ => false,
        };
        if is_upstreamed && !self.replayed.files.iter().all(as_made_for) {
            self.upstreamed = std::mem::take(&mut self.replayed.files);
            self.changes = Vec::new();
        }
        self
    }
}

impl<'a> Replay<'a> {
    /// Creates a replay of the series `applied` on `tip`, whose history contains the patches `upstreamed`, by index.
    pub fn new(
        applied: &'a AppliedSeries<'a>,
        tip: &'a dyn Tree,
        names: TreeNames<'a>,
        upstreamed: &'a BTreeSet<usize>,
    ) -> Replay<'a> {
        Replay { applied, new: LayeredTree::new(tip), names, upstreamed, upstream: tip, same: &[] }
    }

    /// Names upstream's tree, for a replay on a tree that has earlier patches of the series already. The places of their
    /// lines are not in doubt.
    #[must_use]
    pub fn with_upstream(self, upstream: &'a dyn Tree) -> Replay<'a> {
        Replay { upstream, ..self }
    }

    /// Names functions that a person has taken as the same.
    #[must_use]
    pub fn with_same_functions(self, same: &'a [SameFunction]) -> Replay<'a> {
        Replay { same, ..self }
    }

    /// Replays the patch at `at`, from 0; the earlier ones were replayed or are left out. Applies its changes to the
    /// new tree unless there is a conflict.
    ///
    /// # Errors
    ///
    /// When a tree cannot be read, the patch is not exact on its own tree, or it does not exist.
    pub fn step(&mut self, at: usize) -> Result<Step, ReplayError> {
        let step = self.try_step(at)?;
        self.apply_step(&step);
        Ok(step)
    }

    /// Applies the changes of `step` to the new tree unless there is a conflict. It was made for that tree as it is now:
    /// by [`Replay::try_step`], or by another replay onto [`Replay::tree`].
    pub fn apply_step(&mut self, step: &Step) {
        if !step.replayed.has_conflict() {
            self.new.add(&step.changes);
        }
    }

    /// As [`Replay::step`], without a change to the new tree.
    ///
    /// # Errors
    ///
    /// As [`Replay::step`].
    pub fn try_step(&self, at: usize) -> Result<Step, ReplayError> {
        let onto = Onto { new: &self.new, upstream: self.upstream, same: self.same };
        let step = replay_patch(self.applied, at, onto, self.names)?;
        Ok(step.if_upstreamed(self.upstreamed.contains(&at)))
    }

    /// Applies `patch` in place of one of the series: it was made for the new tree as it is now, with the patches
    /// before it. Nothing changes unless it is exact.
    ///
    /// # Errors
    ///
    /// Only when a tree cannot be read.
    pub fn apply_instead(&mut self, patch: &Patch) -> Result<Verdict, TreeError> {
        let verdict = apply_patch(patch, &self.new)?;
        self.new.add(verdict.changes());
        Ok(verdict)
    }

    /// Returns the new tree, as it is after the patches so far.
    pub fn tree(&self) -> &dyn Tree {
        &self.new
    }

    /// Returns the content of a blob that either tree has or had.
    ///
    /// # Errors
    ///
    /// When neither has it.
    pub fn blob(&self, id: ObjectId) -> Result<Cow<'_, [u8]>, TreeError> {
        self.new.blob(id).or_else(|_| self.applied.blob(id))
    }
}

/// Returns the labels of conflict markers for the patch `name`.
pub(super) fn labels(names: TreeNames<'_>, name: &str) -> Labels {
    Labels {
        base: format!("{}, before {name}", names.pin),
        ours: names.tip.to_owned(),
        theirs: name.to_owned(),
    }
}

/// The tree that a patch is replayed on.
#[derive(Clone, Copy)]
pub(crate) struct Onto<'t> {
    /// The tree after the earlier patches.
    pub new: &'t dyn Tree,
    /// The tree without them.
    pub upstream: &'t dyn Tree,
    /// Functions that a person has taken as the same.
    pub same: &'t [SameFunction],
}

/// Replays the patch at `at` of the series `applied` on another tree.
pub(crate) fn replay_patch(
    applied: &AppliedSeries<'_>,
    at: usize,
    Onto { new, upstream, same }: Onto<'_>,
    names: TreeNames<'_>,
) -> Result<Step, ReplayError> {
    let (patch, made) = applied.patch(at).ok_or(ReplayError::NoSuchPatch)?;
    let made = made.ok_or(ReplayError::NotExact)?;
    let mut collisions = find_collisions(patch, new)?;
    let labels = labels(names, &patch.name);
    let mut files = Vec::new();
    let mut changes = Vec::new();
    for (index, (file, base)) in patch.files.iter().zip(&made.bases).enumerate() {
        let base = base.as_ref();
        let replay = FileReplay { applied, new, upstream, same, patch, file, base, made, labels: &labels };
        let result = match collisions.remove(&index) {
            Some(refusal) => replay.refused(refusal)?,
            None => replay.run()?,
        };
        files.push(result.file);
        changes.extend(result.changes);
    }
    files.extend(left_behind(patch, applied, new)?);
    changes.sort_by_key(|change| change.new.is_some());
    let replayed = Replayed { patch: patch.name.clone(), files };
    Ok(Step { replayed, changes, upstreamed: Vec::new() })
}
