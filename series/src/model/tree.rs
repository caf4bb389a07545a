//! The tree that patches are applied to, and the changes that result.

use std::borrow::Cow;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use super::arrivals::Arrivals;
use super::entry::TreeEntry;
use super::mode::FileMode;
use super::object_id::ObjectId;
use super::path::RepoPath;

/// A tree could not be read. This is an environment error, never a verdict on a patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeError {
    /// The object that could not be read, and the reason.
    pub message: String,
}

impl fmt::Display for TreeError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for TreeError {}

/// A tree of files. Paths are relative to its root, `/` between components.
///
/// A lookup never follows a symlink: `a/b` is missing when `a` is one.
pub trait Tree {
    /// Returns the entry at `path`, folders included, or `None`. Called for touched paths only.
    fn entry(&self, path: &[u8]) -> Result<Option<TreeEntry>, TreeError>;

    /// Returns the content of the blob `id`, which an entry of this tree named.
    fn blob(&self, id: ObjectId) -> Result<Cow<'_, [u8]>, TreeError>;

    /// Returns the names in `folder` (empty for the root), in any order; none if the folder does not exist. Called for
    /// new paths only.
    fn siblings(&self, folder: &[u8]) -> Result<Vec<Vec<u8>>, TreeError>;

    /// Returns every path at which the blob `id` is now. Called after a failure only.
    fn find_blob(&self, id: ObjectId) -> Result<Vec<Vec<u8>>, TreeError>;

    /// Returns every path whose last component is `file_name`. Called after a failure only.
    fn find_file_name(&self, file_name: &[u8]) -> Result<Vec<Vec<u8>>, TreeError>;

    /// Returns the blob `id` if the store still has it, although this tree may not. With it the enclosing function of a
    /// hunk is known for certain. Called after a failure only.
    fn remembered_blob(&self, _id: ObjectId) -> Result<Option<Cow<'_, [u8]>>, TreeError> {
        Ok(None)
    }

    /// Returns the files added to and removed from this tree since the pin; empty if no pin is known. Called when a
    /// file is missing.
    fn arrivals(&self) -> Result<Rc<Arrivals>, TreeError> {
        Ok(Rc::default())
    }
}

/// One path that a patch changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeChange {
    /// The path.
    pub path: RepoPath,
    /// The file to write; `None` if the path is removed.
    pub new: Option<NewFile>,
}

/// A file after a patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewFile {
    /// Its mode.
    pub mode: FileMode,
    /// Its blob id, already checked against the content.
    pub id: ObjectId,
    /// Its content; `None` when the blob is one that the tree already has.
    pub content: Option<Arc<Vec<u8>>>,
}
