//! Checks of what came back from a person or a program: nothing but what was in conflict differs from the automatic
//! result of the merge, whatever the other side says. A patch that is edited on request may differ in all of its files.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use espalier_core::error::{Error, Kind, Result};
use espalier_core::sys::git::history::changed_between;
use espalier_core::sys::git::tree::{Entry, GitTree};
use espalier_core::sys::work_trees::rebase_repo::RebaseRepo;
use espalier_series::{
    ConflictReason, FileConflict, Mode, ObjectId, OutsideEdit, RepoPath, find_outside_edit, first_marker,
    printable,
};

use super::conflict::{Stop, merged_mode};

/// Maximum number of edits that are shown.
const SHOWN: usize = 20;

/// An edit of something that was not in conflict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditBeside {
    /// The file, with the line if there is one.
    place: String,
    /// The difference.
    what: String,
}

impl fmt::Display for EditBeside {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.place, self.what)
    }
}

impl EditBeside {
    fn new(path: &[u8], what: impl Into<String>) -> EditBeside {
        EditBeside { place: printable(path), what: what.into() }
    }

    fn at_line(path: &[u8], edit: &OutsideEdit) -> EditBeside {
        let shown = |line: &Option<String>| match line {
            Some(line) => format!("`{line}`"),
            None => "no line".to_string(),
        };
        let what = format!("expected {}, found {}", shown(&edit.expected), shown(&edit.found));
        EditBeside { place: format!("{}:{}", printable(path), edit.line), what }
    }
}

/// Returns an error that names the edits, unless there are none.
pub fn refuse(beside: &[EditBeside], file: &str, work: &str) -> Result<()> {
    if beside.is_empty() {
        return Ok(());
    }
    let what = match beside.len() {
        1 => format!("an edit is beside what was in conflict in {file}"),
        count => format!("{count} edits are beside what was in conflict in {file}"),
    };
    let error = beside
        .iter()
        .take(SHOWN)
        .fold(Error::new(Kind::Conflict, what), |error, edit| error.detail(edit.to_string()));
    let error = match beside.len().checked_sub(SHOWN) {
        Some(more @ 1..) => error.detail(format!("and {more} more")),
        _ => error,
    };
    Err(error
        .hint(format!("undo it in {work}, `git add` the files, then: cargo xtask rebase --continue"))
        .hint("or accept it as a part of this patch: cargo xtask rebase --continue --allow-edits")
        .hint("or make it later, in a patch of its own or in this one: cargo xtask edit"))
}

/// Returns the edits in `resolved`, the tree that the user staged, of something that `stop` did not hand over.
///
/// # Errors
///
/// When a conflict marker is left in a file.
pub fn edits_beside(stop: &Stop, repo: &RebaseRepo, resolved: ObjectId) -> Result<Vec<EditBeside>> {
    let mut check = Check {
        repo,
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

/// Files and parts of files that a person may change.
struct HandedOver<'s> {
    /// Files of which only the lines between markers are in conflict.
    texts: BTreeMap<&'s [u8], &'s FileConflict>,
    /// Files that are in conflict as a whole.
    files: BTreeMap<&'s [u8], WholeFile>,
    /// Paths of which at least one has to have a file.
    either: Vec<Vec<&'s RepoPath>>,
}

/// A file in conflict as a whole.
#[derive(Debug, Clone, Default)]
struct WholeFile {
    /// Whether it may be deleted.
    may_go: bool,
    /// The modes of its versions; any, if there are none.
    modes: Vec<Mode>,
}

impl<'s> HandedOver<'s> {
    fn of(stop: &'s Stop) -> HandedOver<'s> {
        let mut all = HandedOver { texts: BTreeMap::new(), files: BTreeMap::new(), either: Vec::new() };
        for conflict in stop.replayed.conflicts() {
            match conflict.hunks.is_empty() {
                true => all.add_whole(conflict),
                false => drop(all.texts.insert(conflict.path.as_bytes(), conflict)),
            }
        }
        if stop.may_edit {
            all.texts.clear();
            let versions = stop.replayed.files.iter().flat_map(|file| [&file.before, &file.after]);
            let paths = versions.flatten().map(|version| &version.path);
            let in_conflict = stop.replayed.conflicts().map(|conflict| &conflict.path);
            for path in paths.chain(in_conflict) {
                all.files.insert(path.as_bytes(), WholeFile { may_go: true, modes: Vec::new() });
            }
        }
        all
    }

    /// Adds a conflict without markers: all of its paths.
    fn add_whole(&mut self, conflict: &'s FileConflict) {
        let FileConflict { path, reason, base, ours, theirs, .. } = conflict;
        let versions = || [base, ours, theirs].into_iter().flatten();
        let modes: Vec<Mode> = versions().map(|version| version.mode).collect();
        let mut add = |path: &'s [u8], may_go: bool| {
            self.files.insert(path, WholeFile { may_go, modes: modes.clone() });
        };
        let is_lost_without = match reason {
            ConflictReason::Binary | ConflictReason::FileExists => true,
            ConflictReason::FileGone { candidates } => {
                // The change may belong there; the file itself stays.
                candidates.iter().for_each(|candidate| add(candidate.path.as_bytes(), false));
                false
            }
            _ => false,
        };
        // The paths in the versions: of a renamed file, the old one too.
        versions().for_each(|version| add(version.path.as_bytes(), true));
        add(path.as_bytes(), !is_lost_without);
        let places = match reason {
            ConflictReason::FolderMoved { from, to } => vec![from, to],
            ConflictReason::FolderLeft { to } => vec![path, to],
            ConflictReason::RenamedTwice { from, by_patch, by_upstream } => vec![from, by_patch, by_upstream],
            _ => return,
        };
        places.iter().for_each(|path| add(path.as_bytes(), true));
        self.either.push(places);
    }
}

/// The comparison of the automatic result and the tree that the user staged.
struct Check<'s> {
    repo: &'s RebaseRepo,
    handed_over: HandedOver<'s>,
    automatic: GitTree<'s>,
    resolved: GitTree<'s>,
}

impl Check<'_> {
    fn file(&mut self, path: &[u8]) -> Result<Option<EditBeside>> {
        let (expected, found) = (self.automatic.entry(path)?, self.resolved.entry(path)?);
        if let Some(found) = found {
            self.refuse_new_marker(path, expected, found)?;
        }
        if let Some(conflict) = self.handed_over.texts.get(path) {
            return self.text(conflict, expected, found);
        }
        match self.handed_over.files.get(path) {
            Some(whole) => Ok(whole_file(path, whole, expected, found)),
            None if expected == found => Ok(None),
            None => self.other_file(path, expected, found).map(Some),
        }
    }

    /// Compares a file with markers: its mode, and the lines outside of the markers.
    fn text(
        &self,
        conflict: &FileConflict,
        expected: Option<Entry>,
        found: Option<Entry>,
    ) -> Result<Option<EditBeside>> {
        let path = conflict.path.as_bytes();
        let Some(found) = found else { return Ok(Some(EditBeside::new(path, "it is deleted"))) };
        let shares_changes = matches!(conflict.reason, ConflictReason::SharedChanges { .. });
        // Such a file was merged, so the tree has the mode.
        let merged = expected.filter(|_| shares_changes).map(|entry| entry.mode);
        let mode = merged.or_else(|| merged_mode(conflict).map(Mode::as_git_mode)).unwrap_or(found.mode);
        if mode != found.mode {
            return Ok(Some(other_mode(path, mode, found.mode)));
        }
        let (marked, resolved) =
            (conflict.marked.as_deref().unwrap_or_default(), self.repo.store.read(found.id)?);
        let edit = find_outside_edit(marked, &conflict.hunks, &resolved);
        Ok(edit.map(|edit| EditBeside::at_line(path, &edit)))
    }

    /// Describes the change of a file that was not in conflict.
    fn other_file(&self, path: &[u8], expected: Option<Entry>, found: Option<Entry>) -> Result<EditBeside> {
        let (Some(expected), Some(found)) = (expected, found) else {
            let what = if found.is_some() { "it is a new file" } else { "it is deleted" };
            return Ok(EditBeside::new(path, what));
        };
        if expected.mode != found.mode {
            return Ok(other_mode(path, expected.mode, found.mode));
        }
        let (before, after) = (self.repo.store.read(expected.id), self.repo.store.read(found.id));
        // A submodule has no content here.
        let (Ok(before), Ok(after)) = (before, after) else {
            return Ok(EditBeside::new(path, "it is changed"));
        };
        let edit = find_outside_edit(&before, &[], &after).filter(|_| !after.contains(&0));
        Ok(match edit {
            Some(edit) => EditBeside::at_line(path, &edit),
            None => EditBeside::new(path, "its content differs"),
        })
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
                lost.push(EditBeside::new(first.as_bytes(), "it is deleted, at each of its paths"));
            }
        }
        Ok(lost)
    }

    /// Refuses a marker that is left in a file: of the conflict, whichever way the file was staged, or of a merge of the
    /// user's own. The automatic result may have lines that look like one.
    fn refuse_new_marker(&self, path: &[u8], expected: Option<Entry>, found: Entry) -> Result<()> {
        if expected == Some(found) {
            return Ok(());
        }
        let marker = |entry: Entry| self.repo.store.read(entry.id).ok().and_then(|text| first_marker(&text));
        match marker(found).filter(|_| expected.and_then(marker).is_none()) {
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

/// Compares a file that is in conflict as a whole: whether it exists, and its mode.
fn whole_file(
    path: &[u8],
    whole: &WholeFile,
    expected: Option<Entry>,
    found: Option<Entry>,
) -> Option<EditBeside> {
    let Some(found) = found else {
        let is_lost = !whole.may_go && expected.is_some();
        return is_lost.then(|| EditBeside::new(path, "it is deleted"));
    };
    let regular = [Mode::File, Mode::Executable];
    let allowed = if whole.modes.is_empty() { &regular[..] } else { &whole.modes };
    let is_allowed = |mode: u32| allowed.iter().any(|allowed| allowed.as_git_mode() == mode);
    if is_allowed(found.mode) || expected.is_some_and(|expected| expected.mode == found.mode) {
        return None;
    }
    let mode = expected.map(|expected| expected.mode).or(allowed.first().map(|mode| mode.as_git_mode()));
    Some(other_mode(path, mode.unwrap_or_default(), found.mode))
}

fn other_mode(path: &[u8], expected: u32, found: u32) -> EditBeside {
    EditBeside::new(path, format!("its mode is {found:06o}, expected {expected:06o}"))
}
