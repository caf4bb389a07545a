//! The lines that one version of a file has and an older one does not have.

use std::collections::HashMap;

use super::line_diff::{changed_runs, lines_of};
use crate::model::tree::{Tree, TreeError};

/// Counts how often each line was added to the file at `path` between two trees; all lines of a new file count.
///
/// # Errors
///
/// When a tree cannot be read.
pub fn added_lines(
    old: &dyn Tree,
    new: &dyn Tree,
    path: &[u8],
) -> Result<HashMap<Vec<u8>, usize>, TreeError> {
    let (old_entry, new_entry) = (old.entry(path)?, new.entry(path)?);
    let mut added = HashMap::new();
    let Some(new_entry) = new_entry.filter(|entry| old_entry.is_none_or(|old| old.id != entry.id)) else {
        return Ok(added);
    };
    let after = new.blob(new_entry.id)?;
    let before = match old_entry {
        Some(entry) => old.blob(entry.id)?,
        None => Default::default(),
    };
    let after_lines = lines_of(&after);
    for run in changed_runs(&lines_of(&before), &after_lines) {
        for line in after_lines.get(run.new).unwrap_or_default() {
            *added.entry(line.to_vec()).or_default() += 1;
        }
    }
    Ok(added)
}
