//! What stands at a path of a tree.

use super::mode::Mode;
use super::object_id::ObjectId;

/// An entry of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeEntry {
    /// What it is.
    pub mode: Mode,
    /// Its object; says nothing for a folder.
    pub id: ObjectId,
}
