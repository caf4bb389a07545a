//! The tree's entries at the paths that a file patch reads and writes.

use std::collections::HashSet;

use super::refusal::TargetRefusal;
use crate::model::entry::TreeEntry;
use crate::model::mode::{FileMode, Mode};
use crate::model::object_id::ObjectId;
use crate::model::patch::FileSide;
use crate::model::path::RepoPath;
use crate::model::printable::printable;
use crate::model::tree::{Tree, TreeError};

/// The file at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FoundFile {
    pub mode: FileMode,
    pub id: ObjectId,
}

/// Reasons why a file patch cannot be applied unchanged.
#[derive(Debug)]
pub(crate) enum Failure {
    Tree(TreeError),
    Refused(TargetRefusal),
    PathExists(FoundFile),
    Missing,
    ModeDiffers {
        expected: FileMode,
        found: FoundFile,
    },
    IdDiffers {
        expected: ObjectId,
        found: FoundFile,
    },
    /// The pre-image is right, but the change does not fit or has another result.
    Contradiction(String),
}

impl From<TreeError> for Failure {
    fn from(error: TreeError) -> Failure {
        Failure::Tree(error)
    }
}

impl From<TargetRefusal> for Failure {
    fn from(refusal: TargetRefusal) -> Failure {
        Failure::Refused(refusal)
    }
}

/// Returns the file at `side`, which must be the one that the patch names.
pub(crate) fn require_pre_image(
    tree: &dyn Tree,
    side: &FileSide,
    leaving: &HashSet<&[u8]>,
) -> Result<FoundFile, Failure> {
    let found = match gone_link(tree, side)? {
        Some(link) => link,
        None => find_file(tree, &side.path, leaving)?.ok_or(Failure::Missing)?,
    };
    if let Some(expected) = side.id.filter(|expected| *expected != found.id) {
        return Err(Failure::IdDiffers { expected, found });
    }
    if let Some(expected) = side.mode.filter(|expected| *expected != found.mode) {
        return Err(Failure::ModeDiffers { expected, found });
    }
    Ok(found)
}

/// Returns the symlink at `side` if the patch deletes it.
fn gone_link(tree: &dyn Tree, side: &FileSide) -> Result<Option<FoundFile>, Failure> {
    if side.mode != Some(FileMode::GoneLink) {
        return Ok(None);
    }
    let entry = tree.entry(side.path.as_bytes())?.filter(|entry| entry.mode == Mode::Symlink);
    Ok(entry.map(|entry| FoundFile { mode: FileMode::GoneLink, id: entry.id }))
}

/// Requires that no entry is at `path`, except a file that the same patch deletes or moves away.
pub(crate) fn require_free_path(
    tree: &dyn Tree,
    path: &RepoPath,
    leaving: &HashSet<&[u8]>,
) -> Result<(), Failure> {
    match find_file(tree, path, leaving)? {
        None => Ok(()),
        Some(found) => Err(Failure::PathExists(found)),
    }
}

/// Returns the regular file at `path`; `None` if there is no entry and a file could be created.
pub(crate) fn find_file(
    tree: &dyn Tree,
    path: &RepoPath,
    leaving: &HashSet<&[u8]>,
) -> Result<Option<FoundFile>, Failure> {
    match tree.entry(path.as_bytes())? {
        Some(entry) => Ok(Some(regular_file(entry)?)),
        None => {
            require_folders(tree, path, leaving)?;
            Ok(None)
        }
    }
}

fn regular_file(entry: TreeEntry) -> Result<FoundFile, TargetRefusal> {
    match FileMode::of_entry(entry.mode) {
        Some(mode) => Ok(FoundFile { mode, id: entry.id }),
        None => Err(TargetRefusal::NotAFile { found: entry.mode }),
    }
}

/// Requires that every folder of a missing path is a folder or missing. Through a symlink, a path would leave the tree.
fn require_folders(tree: &dyn Tree, path: &RepoPath, leaving: &HashSet<&[u8]>) -> Result<(), Failure> {
    for folder in path.folders() {
        match tree.entry(folder)?.map(|entry| entry.mode) {
            Some(Mode::Folder) => {}
            None => return Ok(()),
            Some(_) if leaving.contains(folder) => return Ok(()),
            Some(found) => {
                let parent = printable(folder);
                return Err(TargetRefusal::ThroughNonFolder { parent, found }.into());
            }
        }
    }
    Ok(())
}
