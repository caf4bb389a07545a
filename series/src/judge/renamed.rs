//! Search for a file that is gone from its path.

use super::drift::RenameCandidate;
use crate::model::patch::{Content, FilePatch};
use crate::model::path::last_component;
use crate::model::printable::printable;
use crate::model::tree::{Tree, TreeError};
use crate::text::line_index::LineIndex;

/// Maximum number of files of the same name that are read in search of a moved one.
const SAME_NAME_LIMIT: usize = 16;
const CANDIDATES_SHOWN: usize = 5;

/// Returns the paths at which the old file of `file` may be now: those of the identical blob, then files of the same
/// name that have lines of the hunks, the likeliest first; among equals those of the same name.
pub(crate) fn find_renamed(file: &FilePatch, tree: &dyn Tree) -> Result<Vec<RenameCandidate>, TreeError> {
    let Some(old) = &file.old else {
        return Ok(Vec::new());
    };
    let mut candidates = Vec::new();
    if let Some(id) = old.id {
        for path in tree.find_blob(id)? {
            let has_other_name = last_component(&path) != old.path.file_name();
            candidates.push((has_other_name, candidate(&path, true, 100)));
        }
    }
    for path in tree.find_file_name(old.path.file_name())?.iter().take(SAME_NAME_LIMIT) {
        let percent = percent_of_lines(file, path, tree)?;
        let is_known = candidates.iter().any(|(_, known)| known.path == printable(path));
        if percent > 0 && !is_known {
            candidates.push((false, candidate(path, false, percent)));
        }
    }
    candidates.sort_by_key(|(has_other_name, known)| {
        (std::cmp::Reverse((known.certain, known.percent)), *has_other_name)
    });
    candidates.truncate(CANDIDATES_SHOWN);
    Ok(candidates.into_iter().map(|(_, candidate)| candidate).collect())
}

fn candidate(path: &[u8], certain: bool, percent: u8) -> RenameCandidate {
    RenameCandidate { path: printable(path), certain, percent, of_whole_file: false }
}

/// Returns how many of 100 lines that the hunks of `file` expect the file at `path` has.
fn percent_of_lines(file: &FilePatch, path: &[u8], tree: &dyn Tree) -> Result<u8, TreeError> {
    let (Content::Text(hunks), Some(entry)) = (&file.content, tree.entry(path)?) else {
        return Ok(0);
    };
    let text = tree.blob(entry.id)?;
    let index = LineIndex::new(&text);
    let expected = || hunks.iter().flat_map(|hunk| hunk.pre_image());
    let all = expected().count().max(1);
    let there = expected().filter(|line| index.has_line(line)).count();
    Ok(u8::try_from(there * 100 / all).unwrap_or(100))
}
