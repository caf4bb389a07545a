//! The patches that were found, as data.

use std::path::{Path, PathBuf};

use super::names::{files_in, is_patch};
use crate::error::Result;

/// The patches found at a path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PatchFiles {
    /// The patches, in the order in which they apply.
    pub patches: Vec<FoundPatch>,
    /// Files that were left out, and why.
    pub others: Vec<(String, String)>,
    /// Notes on the order for the user.
    pub notes: Vec<String>,
    /// Changes of the sources that commands beside the patches make, each with its file and line.
    pub changes: Vec<String>,
}

/// One patch file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundPatch {
    /// Path on disk.
    pub path: PathBuf,
    /// Name for people: its path in the folder of the order file or recipe.
    pub name: String,
    /// Number of leading components stripped from its paths, if its queue or recipe sets it.
    pub strip: Option<u32>,
    /// The number where that is not set, if the format of its queue or recipe defines one.
    pub usual_strip: Option<u32>,
    /// Whether it is applied in reverse.
    pub reverse: bool,
    /// Whether it may apply with reduced context (fuzz), as with patch(1), if its queue sets it.
    pub may_fuzz: Option<bool>,
    /// Whether a recipe applies it.
    pub is_of_recipe: bool,
}

pub(super) fn found_patch(path: PathBuf, name: String) -> FoundPatch {
    FoundPatch {
        path,
        name,
        strip: None,
        usual_strip: None,
        reverse: false,
        may_fuzz: None,
        is_of_recipe: false,
    }
}

/// Returns patches beside the named ones that are not named themselves.
pub(super) fn unnamed_in(folder: &Path, named: &[FoundPatch]) -> Result<Vec<String>> {
    let mut folders: Vec<&Path> = named.iter().filter_map(|patch| patch.path.parent()).collect();
    folders.sort();
    folders.dedup();
    let mut unnamed = Vec::new();
    for below in folders {
        let files = files_in(below)?;
        let is_unnamed = |file: &&PathBuf| is_patch(file) && !named.iter().any(|patch| patch.path == **file);
        let relative = |file: &PathBuf| file.strip_prefix(folder).unwrap_or(file).display().to_string();
        unnamed.extend(files.iter().filter(is_unnamed).map(relative));
    }
    Ok(unnamed)
}
