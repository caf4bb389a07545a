//! What keeps a patch from a path, whatever its content.

use serde::Serialize;

use crate::model::mode::Mode;

/// Why a patch must not write to a path of this tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "reason")]
pub enum TargetRefusal {
    /// A folder of the path is none.
    ThroughNonFolder {
        /// The folder.
        parent: String,
        /// What it is.
        found: Mode,
    },
    /// The path holds something that is not a regular file.
    NotAFile {
        /// What it is.
        found: Mode,
    },
    /// The path differs from another one in case only.
    CaseCollision {
        /// The other path.
        with: String,
    },
    /// The patch makes a file and a folder of the same name.
    FileAndFolder {
        /// The name.
        with: String,
    },
}
