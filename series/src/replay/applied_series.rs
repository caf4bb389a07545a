//! A series on the tree that it was made for, where base and theirs of every merge are known exactly.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use crate::judge::apply_patch::apply_patch;
use crate::judge::replayed::Version;
use crate::judge::verdict::Verdict;
use crate::model::layered_tree::LayeredTree;
use crate::model::mode::Mode;
use crate::model::object_id::ObjectId;
use crate::model::patch::Patch;
use crate::model::path::RepoPath;
use crate::model::tree::{Tree, TreeChange, TreeError};

/// A series, applied to its own base. A patch that is not exact there changes nothing, and the next is tried without
/// it.
pub struct AppliedSeries<'a> {
    pub(crate) pin: &'a dyn Tree,
    patches: &'a [Patch],
    /// For each patch its effect; `None` if it is not exact.
    made: Vec<Option<PatchEffect>>,
    after: LayeredTree<'a>,
    /// Similarity of two blobs, in percent of their lines.
    pub(crate) likeness: RefCell<HashMap<(ObjectId, ObjectId), u8>>,
}

/// The effect of one patch on its own base.
pub(crate) struct PatchEffect {
    /// For each file of the patch the one that it was made from; `None` if the patch creates it.
    pub bases: Vec<Option<Version>>,
    /// The changes of the patch, with their full results.
    pub changes: Vec<TreeChange>,
    /// The files that it adds to a folder that was empty before.
    pub in_new_folders: HashSet<RepoPath>,
}

impl<'a> AppliedSeries<'a> {
    /// Applies `patches` in order to `pin`, the tree they were made for.
    ///
    /// # Errors
    ///
    /// Only when the tree cannot be read.
    pub fn new(patches: &'a [Patch], pin: &'a dyn Tree) -> Result<AppliedSeries<'a>, TreeError> {
        let mut after = LayeredTree::new(pin);
        let mut made = Vec::with_capacity(patches.len());
        for patch in patches {
            made.push(match apply_patch(patch, &after)? {
                Verdict::Exact(changes) => {
                    let bases = bases_of(patch, &after)?;
                    let in_new_folders = files_in_new_folders(&changes, &after)?;
                    after.add(&changes);
                    Some(PatchEffect { bases, changes, in_new_folders })
                }
                Verdict::Drifted(_) | Verdict::Replayed(_) => None,
            });
        }
        Ok(AppliedSeries { pin, patches, made, after, likeness: RefCell::default() })
    }

    /// Returns the series, in order.
    pub fn patches(&self) -> &'a [Patch] {
        self.patches
    }

    /// Returns the changes of the exact patches to each file: the blobs that later patches were made from.
    pub fn changes(&self) -> impl Iterator<Item = &TreeChange> {
        self.made.iter().flatten().flat_map(|made| &made.changes)
    }

    /// Returns the changes of each patch, in order; `None` for one that is not exact.
    pub fn changes_of_patches(&self) -> impl Iterator<Item = Option<&[TreeChange]>> {
        self.made.iter().map(|made| made.as_ref().map(|made| made.changes.as_slice()))
    }

    /// Returns the patch at `at`, from 0, and its effect here if it is exact; `None` after the last.
    pub(crate) fn patch(&self, at: usize) -> Option<(&'a Patch, Option<&PatchEffect>)> {
        Some((self.patches.get(at)?, self.made.get(at)?.as_ref()))
    }

    /// Returns the content of a blob of the pin, or of one that a patch creates.
    pub(crate) fn blob(&self, id: ObjectId) -> Result<Cow<'_, [u8]>, TreeError> {
        self.after.blob(id)
    }
}

fn bases_of(patch: &Patch, tree: &dyn Tree) -> Result<Vec<Option<Version>>, TreeError> {
    let base = |file: &crate::model::patch::FilePatch| {
        let Some(side) = &file.old else { return Ok(None) };
        let entry = tree.entry(side.path.as_bytes())?;
        Ok(entry.map(|entry| Version { path: side.path.clone(), mode: entry.mode, id: entry.id }))
    };
    patch.files.iter().map(base).collect()
}

fn files_in_new_folders(changes: &[TreeChange], tree: &dyn Tree) -> Result<HashSet<RepoPath>, TreeError> {
    let mut files = HashSet::new();
    for change in changes.iter().filter(|change| change.new.is_some()) {
        let folder = change.path.folders().last().unwrap_or_default();
        if tree.entry(change.path.as_bytes())?.is_none() && !holds_a_file(folder, tree)? {
            files.insert(change.path.clone());
        }
    }
    Ok(files)
}

/// Returns whether `folder` contains any file: a folder that patches have emptied is still an entry.
fn holds_a_file(folder: &[u8], tree: &dyn Tree) -> Result<bool, TreeError> {
    for name in tree.siblings(folder)? {
        let path = if folder.is_empty() { name } else { [folder, b"/", &name].concat() };
        let goes_on = match tree.entry(&path)? {
            Some(entry) if entry.mode == Mode::Folder => holds_a_file(&path, tree)?,
            found => found.is_some(),
        };
        if goes_on {
            return Ok(true);
        }
    }
    Ok(false)
}
