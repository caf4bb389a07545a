//! Reasons why a patch must not write to a path, whatever its content.

use serde::Serialize;

use crate::model::mode::Mode;

/// The reason why a patch must not write to a path of this tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "reason")]
pub enum TargetRefusal {
    /// A folder of the path is not a folder in the tree.
    ThroughNonFolder {
        /// The folder.
        parent: String,
        /// Its kind.
        found: Mode,
    },
    /// The entry at the path is not a regular file.
    NotAFile {
        /// Its kind.
        found: Mode,
    },
    /// The path differs from another one in case only.
    CaseCollision {
        /// The other path.
        with: String,
    },
    /// The patch creates a file and a folder of the same name.
    FileAndFolder {
        /// The name.
        with: String,
    },
}
