//! The entry at a path of a tree.

use super::mode::Mode;
use super::object_id::ObjectId;

/// An entry of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeEntry {
    /// Its mode.
    pub mode: Mode,
    /// Its object id; unspecified for a folder.
    pub id: ObjectId,
}
