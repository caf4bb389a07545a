//! The guard against silent reverts: does a moved patch delete what upstream added meanwhile?
//!
//! A conflict that was solved by taking the patch's side whole is how that happens. A line that the patch
//! deleted before it was moved is its own business.

use std::collections::HashMap;

use super::rebase::Revert;
use crate::series::{Content, FilePatch, LineKind, Patch, RepoPath, Tree, TreeError, added_lines, printable};

/// How often each line occurs.
type Counts<'a> = HashMap<&'a [u8], usize>;

/// Every line of `new` patches, given with what they were, that `new_base` has more often than `old_base`
/// in the same file. Lines without a letter or digit are in every file and are left out.
///
/// # Errors
///
/// When a tree cannot be read.
pub fn silent_reverts<'p>(
    pairs: impl Iterator<Item = (&'p Patch, &'p Patch)>,
    old_base: &dyn Tree,
    new_base: &dyn Tree,
) -> Result<Vec<Revert>, TreeError> {
    let mut reverts = Vec::new();
    for (old, new) in pairs {
        let mut own = Counts::new();
        deleted_lines(old).for_each(|(_, _, line)| *own.entry(line).or_default() += 1);
        let mut suspects: HashMap<&RepoPath, Vec<(usize, &[u8])>> = HashMap::new();
        let paths: Vec<(&RepoPath, &FilePatch)> =
            new.files.iter().filter_map(|file| Some((old_path(file)?, file))).collect();
        for (path, file) in &paths {
            for (line_number, line) in deleted_in(file) {
                match own.get_mut(line).filter(|count| **count > 0) {
                    Some(count) => *count -= 1,
                    None => suspects.entry(path).or_default().push((line_number, line)),
                }
            }
        }
        for (path, lines) in suspects {
            let mut added = added_lines(old_base, new_base, path.as_bytes())?;
            for (line_number, line) in lines {
                if let Some(count) = added.get_mut(line).filter(|count| **count > 0) {
                    *count -= 1;
                    reverts.push(Revert {
                        patch: new.name.clone(),
                        path: path.to_string(),
                        line: line_number,
                        text: printable(line).trim().to_string(),
                    });
                }
            }
        }
    }
    reverts.sort_by(|left, right| {
        (&left.patch, &left.path, left.line).cmp(&(&right.patch, &right.path, right.line))
    });
    Ok(reverts)
}

fn old_path(file: &FilePatch) -> Option<&RepoPath> {
    file.old.as_ref().map(|side| &side.path)
}

fn deleted_lines(patch: &Patch) -> impl Iterator<Item = (&FilePatch, usize, &[u8])> {
    patch.files.iter().flat_map(|file| deleted_in(file).into_iter().map(move |(at, line)| (file, at, line)))
}

/// The lines that a file patch deletes, each with its number in the file, from 1.
fn deleted_in(file: &FilePatch) -> Vec<(usize, &[u8])> {
    let Content::Text(hunks) = &file.content else { return Vec::new() };
    let mut deleted = Vec::new();
    for hunk in hunks {
        let mut at = hunk.old_lines_before();
        for line in hunk.lines.iter().filter(|line| line.kind != LineKind::Add) {
            at += 1;
            let says_something = line.bytes.iter().any(u8::is_ascii_alphanumeric);
            if line.kind == LineKind::Delete && says_something {
                deleted.push((at, line.bytes.as_slice()));
            }
        }
    }
    deleted
}
