//! Checks of what came back from a person or a program: nothing but what was in conflict differs from the automatic
//! result of the merge, whatever the other side says. A patch that is edited on request may differ in all of its files.

use std::collections::BTreeSet;
use std::ops::Range;

use espalier_core::error::{Error, Kind, Result};
use espalier_core::sys::git::history::changed_between;
use espalier_core::sys::git::tree::{Entry, GitTree};
use espalier_core::sys::work_trees::rebase_repo::RebaseRepo;
use espalier_series::{
    ConflictHunk, ConflictReason, FileConflict, Mode, ObjectId, earlier_lines, hunks_between, new_marker,
    outside_edits, printable,
};

use super::edits_beside::{EditBeside, Undo};
use super::handed_over::{HandedOver, WholeFile};
use super::stop::{Stop, merged_mode, versions};

/// Returns the edits in `resolved`, the tree that the user staged, of something that `stop` did not hand over.
///
/// # Errors
///
/// When a conflict marker is left in a file.
pub fn edits_beside(stop: &Stop, repo: &RebaseRepo, resolved: ObjectId) -> Result<Vec<EditBeside>> {
    let mut check = Check {
        repo,
        stop,
        handed_over: HandedOver::of(stop),
        automatic: GitTree::new(&repo.store, stop.tree)?,
        resolved: GitTree::new(&repo.store, resolved)?,
    };
    let changed = changed_between(&repo.store, stop.tree, resolved)?.into_iter().map(|changed| changed.path);
    let marked = stop.replayed.conflicts().map(|conflict| conflict.path.as_bytes().to_vec());
    let paths: BTreeSet<Vec<u8>> = changed.chain(marked).collect();
    let mut beside = Vec::new();
    for path in &paths {
        beside.extend(check.file(path)?);
    }
    beside.extend(check.lost_files()?);
    Ok(beside)
}

/// Returns the edits in `resolved`, a text in place of a file with markers, outside of these.
pub fn edits_of_text(conflict: &FileConflict, resolved: &[u8]) -> Vec<EditBeside> {
    let marked = conflict.marked.as_deref().unwrap_or_default();
    let edits = outside_edits(marked, &conflict.hunks, resolved);
    let path = conflict.path.as_bytes();
    edits.iter().map(|edit| EditBeside::of_lines(path, Undo::ByHand, edit)).collect()
}

/// The comparison of the automatic result and the tree that the user staged.
struct Check<'s> {
    repo: &'s RebaseRepo,
    stop: &'s Stop,
    handed_over: HandedOver<'s>,
    automatic: GitTree<'s>,
    resolved: GitTree<'s>,
}

impl Check<'_> {
    fn file(&mut self, path: &[u8]) -> Result<Vec<EditBeside>> {
        let (expected, found) = (self.automatic.entry(path)?, self.resolved.entry(path)?);
        if let Some(found) = found {
            self.refuse_new_marker(path, expected, found)?;
        }
        if let Some(conflict) = self.handed_over.texts.get(path) {
            return self.text(conflict, expected, found);
        }
        match self.handed_over.files.get(path) {
            Some(whole) => match whole_file(path, whole, expected, found) {
                Some(edit) => Ok(vec![edit]),
                None => self.candidate(path, expected, found),
            },
            None if expected == found => Ok(Vec::new()),
            None => self.other_file(path, expected, found),
        }
    }

    /// Compares a file with markers: its mode, and the lines outside of the markers.
    fn text(
        &self,
        conflict: &FileConflict,
        expected: Option<Entry>,
        found: Option<Entry>,
    ) -> Result<Vec<EditBeside>> {
        let path = conflict.path.as_bytes();
        let Some(found) = found else {
            return Ok(vec![EditBeside::new(path, Undo::Restore, "it is deleted")]);
        };
        let shares_changes = matches!(conflict.reason, ConflictReason::SharedChanges { .. });
        // Such a file was merged, so the tree has the mode.
        let merged = expected.filter(|_| shares_changes).map(|entry| entry.mode);
        let mode = merged.or_else(|| merged_mode(conflict).map(Mode::as_git_mode)).unwrap_or(found.mode);
        if mode != found.mode {
            return Ok(vec![other_mode(path, Undo::ByHand, mode, found.mode)]);
        }
        Ok(edits_of_text(conflict, &self.repo.store.read(found.id)?))
    }

    /// Compares a file that one which is gone may have become with what it was, except where the hunks of the patch land.
    /// Any other file that is in conflict as a whole has no edits.
    fn candidate(
        &self,
        path: &[u8],
        expected: Option<Entry>,
        found: Option<Entry>,
    ) -> Result<Vec<EditBeside>> {
        let conflicts = self.handed_over.candidates.get(path);
        let Some(((conflicts, expected), found)) = conflicts.zip(expected).zip(found) else {
            return Ok(Vec::new());
        };
        let text = self.repo.store.read(expected.id)?;
        let mut landed: Vec<Range<usize>> = Vec::new();
        for conflict in conflicts {
            let [base, _, theirs] = versions(conflict).map(|version| self.stop.text_of(version?));
            landed.extend(landed_lines(&text, base.unwrap_or_default(), theirs.unwrap_or_default()));
        }
        let edits = outside_edits(&text, &as_conflicts(landed), &self.repo.store.read(found.id)?);
        Ok(edits.iter().map(|edit| EditBeside::of_lines(path, Undo::ByHand, edit)).collect())
    }

    /// Describes the change of a file that was not in conflict.
    fn other_file(
        &self,
        path: &[u8],
        expected: Option<Entry>,
        found: Option<Entry>,
    ) -> Result<Vec<EditBeside>> {
        let (Some(expected), Some(found)) = (expected, found) else {
            return Ok(vec![match found {
                Some(_) => EditBeside::new(path, Undo::Unstage, "it is a new file"),
                None => EditBeside::new(path, Undo::Restore, "it is deleted"),
            }]);
        };
        if expected.mode != found.mode {
            return Ok(vec![other_mode(path, Undo::Restore, expected.mode, found.mode)]);
        }
        let (before, after) = (self.repo.store.read(expected.id), self.repo.store.read(found.id));
        // A submodule has no content here.
        let (Ok(before), Ok(after)) = (before, after) else {
            return Ok(vec![EditBeside::new(path, Undo::Restore, "it is changed")]);
        };
        if after.contains(&0) {
            return Ok(vec![EditBeside::new(path, Undo::Restore, "its content differs")]);
        }
        let edits = outside_edits(&before, &[], &after);
        Ok(edits.iter().map(|edit| EditBeside::of_lines(path, Undo::Restore, edit)).collect())
    }

    /// Returns each conflict about the path of a file that left no file at any of them.
    fn lost_files(&mut self) -> Result<Vec<EditBeside>> {
        let mut lost = Vec::new();
        for places in &self.handed_over.either {
            let mut is_there = false;
            for path in places {
                is_there |= self.resolved.entry(path.as_bytes())?.is_some();
            }
            if let Some(first) = places.first().filter(|_| !is_there) {
                let what = "it is deleted, at each of its paths";
                lost.push(EditBeside::new(first.as_bytes(), Undo::ByHand, what));
            }
        }
        Ok(lost)
    }

    /// Refuses a marker that is left in a file: of the conflict, whichever way the file was staged, or of a merge of the
    /// user's own. The automatic result and the texts that were merged may have lines that look like one.
    fn refuse_new_marker(&self, path: &[u8], expected: Option<Entry>, found: Entry) -> Result<()> {
        // A submodule has no content here.
        let Ok(text) = self.repo.store.read(found.id) else { return Ok(()) };
        let before = expected.and_then(|entry| self.repo.store.read(entry.id).ok());
        let mut versions = self.stop.merged_texts();
        versions.extend(before.iter().map(|text| text.as_slice()));
        match new_marker(path, &text, &versions).filter(|_| expected != Some(found)) {
            None => Ok(()),
            Some(line) => {
                let what = format!("`{}` is staged with a conflict marker in line {line}", printable(path));
                Err(Error::new(Kind::Conflict, what)
                    .hint("edit it, and stage it with `git add`")
                    .hint("cargo xtask rebase --continue"))
            }
        }
    }
}

/// Returns the lines of `candidate` where the hunks land that turn `base` into `theirs`.
fn landed_lines(candidate: &[u8], base: &[u8], theirs: &[u8]) -> Vec<Range<usize>> {
    let hunks = hunks_between(base, theirs);
    hunks.iter().map(|hunk| earlier_lines(candidate, base, hunk.old_lines()).lines).collect()
}

/// Returns ranges of lines as the conflicts of a text: from top to bottom, and apart.
fn as_conflicts(mut ranges: Vec<Range<usize>>) -> Vec<ConflictHunk> {
    ranges.sort_by_key(|range| range.start);
    let mut apart: Vec<Range<usize>> = Vec::new();
    for range in ranges {
        match apart.last_mut().filter(|last| range.start <= last.end) {
            Some(last) => last.end = last.end.max(range.end),
            None => apart.push(range),
        }
    }
    apart.into_iter().map(|marked| ConflictHunk { marked, base: 0..0, ours: 0..0, theirs: 0..0 }).collect()
}

/// Compares a file that is in conflict as a whole: whether it exists, and its mode.
fn whole_file(
    path: &[u8],
    whole: &WholeFile,
    expected: Option<Entry>,
    found: Option<Entry>,
) -> Option<EditBeside> {
    let Some(found) = found else {
        let is_lost = !whole.may_go && expected.is_some();
        return is_lost.then(|| EditBeside::new(path, Undo::Restore, "it is deleted"));
    };
    let regular = [Mode::File, Mode::Executable];
    let allowed = if whole.modes.is_empty() { &regular[..] } else { &whole.modes };
    let is_allowed = |mode: u32| allowed.iter().any(|allowed| allowed.as_git_mode() == mode);
    if is_allowed(found.mode) || expected.is_some_and(|expected| expected.mode == found.mode) {
        return None;
    }
    let mode = expected.map(|expected| expected.mode).or(allowed.first().map(|mode| mode.as_git_mode()));
    let undo = if expected.is_some() { Undo::Restore } else { Undo::ByHand };
    Some(other_mode(path, undo, mode.unwrap_or_default(), found.mode))
}

fn other_mode(path: &[u8], undo: Undo, expected: u32, found: u32) -> EditBeside {
    EditBeside::new(path, undo, format!("its mode is {found:06o}, expected {expected:06o}"))
}
