//! The guard against silent reverts: does a rebased patch revert a change that upstream made in the meantime?
//!
//! This happens when a conflict is resolved by taking the patch's side as a whole. Lines that the patch already deleted
//! or added before the rebase are not reported.

use std::collections::HashMap;

use espalier_series::{
    Content, FilePatch, LineKind, Patch, RepoPath, Tree, TreeError, added_lines, printable,
};

use super::rebase::{Revert, Undone};

/// The upstream trees before and after a rebase.
pub struct Bases<'a> {
    /// The tree that the series was made for.
    pub old: &'a dyn Tree,
    /// The tree that the series is on now.
    pub new: &'a dyn Tree,
}

/// Returns the upstream changes between the two bases that rebased patches revert, given pairs of old and new patches:
/// lines that upstream added and they delete, lines that upstream deleted and they restore, and binary files that both
/// changed. Lines without a letter or digit occur in every file and are ignored.
///
/// # Errors
///
/// When a tree cannot be read.
pub fn silent_reverts<'p>(
    pairs: impl Iterator<Item = (&'p Patch, &'p Patch)>,
    bases: &Bases<'_>,
) -> Result<Vec<Revert>, TreeError> {
    let mut reverts = Vec::new();
    for (old, new) in pairs {
        reverts.extend(undone_lines(old, new, Undone::Added, bases)?);
        reverts.extend(undone_lines(old, new, Undone::Deleted, bases)?);
        for file in new.files.iter().filter(|file| matches!(file.content, Content::Binary(_))) {
            reverts.extend(undone_binary(new, file, bases)?);
        }
    }
    reverts.sort_by(|left, right| {
        (&left.patch, &left.path, left.line).cmp(&(&right.patch, &right.path, right.line))
    });
    Ok(reverts)
}

fn undone_lines(
    old: &Patch,
    new: &Patch,
    undone: Undone,
    bases: &Bases<'_>,
) -> Result<Vec<Revert>, TreeError> {
    let mut own: HashMap<&[u8], usize> = HashMap::new();
    for (_, line) in old.files.iter().flat_map(|file| lines_of(file, undone)) {
        *own.entry(line).or_default() += 1;
    }
    let mut reverts = Vec::new();
    for file in &new.files {
        let Some(path) = path_of(file, undone) else { continue };
        let mut suspects = lines_of(file, undone);
        suspects.retain(|(_, line)| !take(&mut own, line));
        if suspects.is_empty() {
            continue;
        }
        let mut by_upstream = match undone {
            Undone::Deleted => added_lines(bases.new, bases.old, path.as_bytes())?,
            _ => added_lines(bases.old, bases.new, path.as_bytes())?,
        };
        suspects.retain(|(_, line)| take(&mut by_upstream, line));
        reverts.extend(suspects.into_iter().map(|(at, line)| Revert {
            patch: new.name.clone(),
            path: path.to_string(),
            line: Some(at),
            text: printable(line).trim().to_string(),
            undone,
        }));
    }
    Ok(reverts)
}

/// Takes one occurrence of `line` out of `lines`; false when there is none left.
fn take<K: std::borrow::Borrow<[u8]> + Eq + std::hash::Hash>(
    lines: &mut HashMap<K, usize>,
    line: &[u8],
) -> bool {
    match lines.get_mut(line).filter(|count| **count > 0) {
        Some(count) => {
            *count -= 1;
            true
        }
        None => false,
    }
}

/// Binary files cannot be merged: whichever side a person chose, the other side's change is lost.
fn undone_binary(new: &Patch, file: &FilePatch, bases: &Bases<'_>) -> Result<Option<Revert>, TreeError> {
    let Some(path) = path_of(file, Undone::Binary) else { return Ok(None) };
    let id = |tree: &dyn Tree| Ok::<_, TreeError>(tree.entry(path.as_bytes())?.map(|entry| entry.id));
    let (before, now) = (id(bases.old)?, id(bases.new)?);
    let changed = before.is_some() && now.is_some() && before != now;
    Ok(changed.then(|| Revert {
        patch: new.name.clone(),
        path: path.to_string(),
        line: None,
        text: String::new(),
        undone: Undone::Binary,
    }))
}

fn path_of(file: &FilePatch, undone: Undone) -> Option<&RepoPath> {
    let side = match undone {
        Undone::Added | Undone::Binary => &file.old,
        Undone::Deleted => &file.new,
    };
    side.as_ref().map(|side| &side.path)
}

/// The lines that a file patch deletes (or adds, when it restores them), each with its line number from 1 in the file
/// before (or after) the patch.
fn lines_of(file: &FilePatch, undone: Undone) -> Vec<(usize, &[u8])> {
    let (wanted, other) = match undone {
        Undone::Added => (LineKind::Delete, LineKind::Add),
        Undone::Deleted => (LineKind::Add, LineKind::Delete),
        Undone::Binary => return Vec::new(),
    };
    let Content::Text(hunks) = &file.content else { return Vec::new() };
    let mut found = Vec::new();
    for hunk in hunks {
        let mut at =
            if wanted == LineKind::Delete { hunk.old_lines_before() } else { hunk.new_lines_before() };
        for line in hunk.lines.iter().filter(|line| line.kind != other) {
            at += 1;
            let says_something = line.bytes.iter().any(u8::is_ascii_alphanumeric);
            if line.kind == wanted && says_something {
                found.push((at, line.bytes));
            }
        }
    }
    found
}
