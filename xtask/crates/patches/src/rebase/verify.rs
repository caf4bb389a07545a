//! Checks of what came back from a person or a program: nothing but what was in conflict differs from the automatic
//! result of the merge, whatever the other side says. A patch that is edited on request may differ in all of its files.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt;
use std::ops::Range;

use espalier_core::error::{Error, Kind, Result};
use espalier_core::next_command::{git_in, quoted_bytes};
use espalier_core::sys::git::history::changed_between;
use espalier_core::sys::git::tree::{Entry, GitTree};
use espalier_core::sys::work_trees::rebase_repo::{AUTOMATIC, RebaseRepo};
use espalier_series::{
    ConflictHunk, ConflictReason, EditedLines, FileConflict, Mode, ObjectId, OutsideEdit, RepoPath,
    earlier_lines, hunks_between, new_marker, outside_edits, printable,
};
use serde::Serialize;
use serde_json::json;

use super::stop::{Stop, merged_mode, versions};
use crate::report::content::PathText;

/// Start of a path that is relative to the root of the work tree in any case.
const HERE: &[u8] = b"./";
/// Maximum number of edits of one file that are shown.
const SHOWN_IN_FILE: usize = 10;
/// Maximum number of files whose edits are shown.
const SHOWN_FILES: usize = 20;
/// Maximum number of edits in the data of a refusal.
const EDITS_LIMIT: usize = 200;

/// An edit of something that was not in conflict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditBeside {
    /// The file.
    path: Vec<u8>,
    /// The difference.
    what: String,
    /// The lines in it, if the edit is of lines.
    lines: Option<OutsideEdit>,
    /// The way to undo it.
    undo: Undo,
}

/// The way to undo an edit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Undo {
    /// The automatic result has the file, and nothing in it was to be resolved.
    Restore,
    /// The automatic result does not have the file.
    Unstage,
    /// The file has the resolution too.
    ByHand,
}

impl fmt::Display for EditBeside {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = printable(&self.path);
        let Some(OutsideEdit { line, found, .. }) = &self.lines else {
            return write!(out, "{path}: {}", self.what);
        };
        match line + found.count.saturating_sub(1) {
            last if last == *line => write!(out, "{path}:{line}: {}", self.what),
            last => write!(out, "{path}:{line}-{last}: {}", self.what),
        }
    }
}

impl EditBeside {
    /// The file.
    pub fn path(&self) -> &[u8] {
        &self.path
    }

    fn new(path: &[u8], undo: Undo, what: impl Into<String>) -> EditBeside {
        EditBeside { path: path.to_vec(), what: what.into(), lines: None, undo }
    }

    fn of_lines(path: &[u8], undo: Undo, edit: &OutsideEdit) -> EditBeside {
        EditBeside { lines: Some(edit.clone()), ..EditBeside::new(path, undo, describe(edit)) }
    }
}

/// An edit in the data of a refusal; docs/reference/conflict-json.md describes every key.
#[derive(Serialize)]
struct EditData<'e> {
    #[serde(flatten)]
    path: PathText,
    description: &'e str,
    undo: Undo,
    line: Option<usize>,
    expected: Option<LinesData<'e>>,
    found: Option<LinesData<'e>>,
}

/// One side of an edit.
#[derive(Serialize)]
struct LinesData<'e> {
    lines: usize,
    first: Option<&'e str>,
}

impl<'e> EditData<'e> {
    fn of(edit: &'e EditBeside) -> EditData<'e> {
        let side = |side: &'e EditedLines| LinesData { lines: side.count, first: side.first.as_deref() };
        let lines = edit.lines.as_ref();
        EditData {
            path: PathText::from(edit.path.as_slice()),
            description: &edit.what,
            undo: edit.undo,
            line: lines.map(|lines| lines.line),
            expected: lines.map(|lines| side(&lines.expected)),
            found: lines.map(|lines| side(&lines.found)),
        }
    }
}

/// Describes an edit of lines, without its place.
fn describe(edit: &OutsideEdit) -> String {
    let OutsideEdit { expected, found, .. } = edit;
    let is = |side: &EditedLines| if side.count == 1 { "is" } else { "are" };
    match (shown(expected), shown(found)) {
        (Some(gone), None) => format!("{gone} {} deleted", is(expected)),
        (None, Some(new)) => format!("{new} {} added", is(found)),
        (Some(line), Some(same)) if expected.count == 1 && line == same => {
            format!("{line} ends otherwise than expected")
        }
        (expected, found) => {
            let [expected, found] = [expected, found].map(|side| side.unwrap_or("nothing".to_string()));
            format!("expected {expected}, found {found}")
        }
    }
}

/// Returns the lines of one side for display: the only one, or their number and the first.
fn shown(side: &EditedLines) -> Option<String> {
    let first = match side.first.as_deref()? {
        "" => "an empty line".to_string(),
        line => format!("`{line}`"),
    };
    Some(if side.count == 1 { first } else { format!("{} lines from {first} on", side.count) })
}

/// Returns the edits for display, grouped by file: a limited number of each, and the number of the others.
pub fn listed(beside: &[EditBeside]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut files = beside.chunk_by(|one, next| one.path == next.path);
    for edits in files.by_ref().take(SHOWN_FILES) {
        lines.extend(edits.iter().take(SHOWN_IN_FILE).map(ToString::to_string));
        let more = edits.len().saturating_sub(SHOWN_IN_FILE);
        if let Some(edit) = edits.first().filter(|_| more > 0) {
            lines.push(format!("{}: and {more} more", printable(&edit.path)));
        }
    }
    let more: usize = files.map(<[EditBeside]>::len).sum();
    if more > 0 {
        lines.push(format!("and {more} more in other files"));
    }
    lines
}

/// Edits beside the conflict that the user accepts as a part of the patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllowedEdits {
    /// None.
    Nothing,
    /// Those of these files.
    InFiles(Vec<Vec<u8>>),
    /// All.
    All,
}

impl AllowedEdits {
    /// Returns what the values of `--allow-edits` accept; `None` if it was not given.
    pub fn of(given: Option<&[OsString]>) -> AllowedEdits {
        let path = |path: &OsString| {
            let path = path.as_encoded_bytes();
            path.strip_prefix(HERE).unwrap_or(path).to_vec()
        };
        match given {
            None => AllowedEdits::Nothing,
            Some([]) => AllowedEdits::All,
            Some(paths) => AllowedEdits::InFiles(paths.iter().map(path).collect()),
        }
    }

    fn has(&self, edit: &EditBeside) -> bool {
        match self {
            AllowedEdits::Nothing => false,
            AllowedEdits::InFiles(paths) => paths.contains(&edit.path),
            AllowedEdits::All => true,
        }
    }

    /// Refuses a file without such an edit: a path that is misspelt would allow nothing without a word.
    fn refuse_unused(&self, beside: &[EditBeside]) -> Result<()> {
        let AllowedEdits::InFiles(paths) = self else { return Ok(()) };
        let Some(unused) = paths.iter().find(|path| !beside.iter().any(|edit| edit.path == **path)) else {
            return Ok(());
        };
        let what = format!("`{}` has no edit beside what was in conflict", printable(unused));
        let error = listed(beside).into_iter().fold(Error::usage(what), Error::detail);
        Err(match beside.is_empty() {
            true => error.hint("leave it out: cargo xtask rebase --continue"),
            false => error.hint(format!("name these files: {}", command_that_allows(beside))),
        })
    }
}

/// Returns the command that accepts all of the edits, by the names of their files unless there are very many.
fn command_that_allows(beside: &[EditBeside]) -> String {
    let paths: BTreeSet<&[u8]> = beside.iter().map(EditBeside::path).collect();
    let mut command = "cargo xtask rebase --continue --allow-edits".to_string();
    if paths.len() <= SHOWN_FILES {
        for path in paths {
            // A name that begins with `-` would be read as a flag.
            let path = if path.starts_with(b"-") { [HERE, path].concat() } else { path.to_vec() };
            command += &format!(" {}", quoted_bytes(&path));
        }
    }
    command
}

/// Returns an error that names the edits that are not allowed and the way to undo them, unless there are none; `later` is
/// the way to make them after the rebase.
pub fn refuse(
    beside: &[EditBeside],
    allowed: &AllowedEdits,
    (file, work): (&str, &str),
    later: &str,
) -> Result<()> {
    allowed.refuse_unused(beside)?;
    let refused: Vec<EditBeside> = beside.iter().filter(|edit| !allowed.has(edit)).cloned().collect();
    let what = match refused.len() {
        0 => return Ok(()),
        1 => format!("an edit is beside what was in conflict in {file}"),
        count => format!("{count} edits are beside what was in conflict in {file}"),
    };
    let data: Vec<EditData<'_>> = refused.iter().take(EDITS_LIMIT).map(EditData::of).collect();
    let error = Error::new(Kind::Conflict, what)
        .with_data("edits", json!(data))
        .with_data("edits_left_out", json!(refused.len() - data.len()));
    let error = listed(&refused).into_iter().fold(error, Error::detail);
    // The files that are allowed already are in the command too.
    let allow = command_that_allows(beside);
    Err(with_ways_to_undo(error, &refused, &git_in(work))
        .hint(format!("or accept it as a part of this patch: {allow}"))
        .hint(format!("or make it later, {later}")))
}

/// Adds the commands that undo the edits; `git` is the start of a git command in the work tree.
fn with_ways_to_undo(error: Error, beside: &[EditBeside], git: &str) -> Error {
    let ways = [
        (Undo::Unstage, "leave the new files out", "rm --cached --quiet".to_string()),
        (Undo::Restore, "undo it", format!("checkout {AUTOMATIC}")),
        (Undo::ByHand, "compare with the automatic result, and undo it by hand", format!("diff {AUTOMATIC}")),
    ];
    let mut error = error;
    let mut is_by_hand = false;
    for (undo, intention, command) in ways {
        let mut paths: Vec<&[u8]> = Vec::new();
        paths.extend(beside.iter().filter(|edit| edit.undo == undo).map(|edit| edit.path.as_slice()));
        paths.dedup();
        if !paths.is_empty() {
            let names: Vec<String> = paths.iter().take(SHOWN_FILES).map(|path| quoted_bytes(path)).collect();
            error = error.hint(format!("{intention}: {git} {command} -- {}", names.join(" ")));
            is_by_hand = undo == Undo::ByHand;
        }
    }
    match is_by_hand {
        true => error.hint("`git add` the files, then: cargo xtask rebase --continue"),
        false => error.hint("then: cargo xtask rebase --continue"),
    }
}

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

/// Files and parts of files that a person may change.
struct HandedOver<'s> {
    /// Files of which only the lines between markers are in conflict.
    texts: BTreeMap<&'s [u8], &'s FileConflict>,
    /// Files that are in conflict as a whole.
    files: BTreeMap<&'s [u8], WholeFile>,
    /// Candidates for the new path of files that are gone, which may change where the hunks of the patch land; with the
    /// conflicts about those files.
    candidates: BTreeMap<&'s [u8], Vec<&'s FileConflict>>,
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
        let mut all = HandedOver {
            texts: BTreeMap::new(),
            files: BTreeMap::new(),
            candidates: BTreeMap::new(),
            either: Vec::new(),
        };
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
            let of_patch = stop.sibling.iter().flat_map(|sibling| &sibling.paths);
            for path in paths.chain(in_conflict).chain(of_patch) {
                all.files.insert(path.as_bytes(), WholeFile { may_go: true, modes: Vec::new() });
                all.candidates.remove(path.as_bytes());
            }
        }
        // A file that is in conflict as a whole itself may change anywhere.
        let whole = stop.replayed.conflicts().filter(|conflict| conflict.hunks.is_empty());
        for version in whole.flat_map(versions).flatten() {
            all.candidates.remove(version.path.as_bytes());
        }
        all
    }

    /// Adds a conflict without markers: all of its paths.
    fn add_whole(&mut self, conflict: &'s FileConflict) {
        let FileConflict { path, reason, base, ours, theirs, .. } = conflict;
        let versions = || [base, ours, theirs].into_iter().flatten();
        if let ConflictReason::FileGone { candidates } = reason {
            for candidate in candidates {
                self.candidates.entry(candidate.path.as_bytes()).or_default().push(conflict);
            }
        }
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
        match new_marker(&text, &versions).filter(|_| expected != Some(found)) {
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

#[cfg(test)]
mod tests {
    use super::{AllowedEdits, EditBeside, EditedLines, OutsideEdit, Undo, command_that_allows, listed};

    fn edit(path: &str, line: usize, sides: [(usize, &str); 2]) -> EditBeside {
        let side = |(count, first): (usize, &str)| EditedLines {
            count,
            first: (count > 0).then(|| first.to_string()),
        };
        let [expected, found] = sides.map(side);
        EditBeside::of_lines(path.as_bytes(), Undo::Restore, &OutsideEdit { line, expected, found })
    }

    #[test]
    fn an_edit_says_its_lines_and_what_was_there() {
        for (sides, text) in [
            ([(1, "a"), (1, "b")], "f.c:7: expected `a`, found `b`"),
            ([(1, "a"), (3, "b")], "f.c:7-9: expected `a`, found 3 lines from `b` on"),
            ([(1, "a"), (0, "")], "f.c:7: `a` is deleted"),
            ([(2, ""), (0, "")], "f.c:7: 2 lines from an empty line on are deleted"),
            ([(0, ""), (1, "")], "f.c:7: an empty line is added"),
            ([(1, "a"), (1, "a")], "f.c:7: `a` ends otherwise than expected"),
        ] {
            assert_eq!(edit("f.c", 7, sides).to_string(), text);
        }
    }

    #[test]
    fn the_command_that_allows_edits_names_each_file_once_and_is_read_back() {
        let change = [(1, "a"), (1, "b")];
        let edits = [edit("-f.c", 1, change), edit("a b.c", 1, change), edit("a b.c", 9, change)];
        let command = command_that_allows(&edits);
        assert_eq!(command, "cargo xtask rebase --continue --allow-edits ./-f.c 'a b.c'");
        let allowed = AllowedEdits::of(Some(&["./-f.c".into(), "a b.c".into()]));
        assert!(edits.iter().all(|edit| allowed.has(edit)));
        assert!(!allowed.has(&edit("c.c", 1, change)));
        let many: Vec<EditBeside> = (0..21).map(|number| edit(&format!("{number}.c"), 1, change)).collect();
        assert!(command_that_allows(&many).ends_with(" --allow-edits"));
    }

    #[test]
    fn no_place_is_left_out_without_a_word() {
        let of =
            |path: String, count: usize| (1..=count).map(move |line| edit(&path, line, [(1, "a"), (1, "b")]));
        let mut edits: Vec<EditBeside> = of("a.c".to_string(), 13).collect();
        edits.extend((10..31).flat_map(|number| of(format!("b{number}.c"), 1)));
        let lines = listed(&edits);
        assert_eq!((lines.len(), lines[10].as_str()), (10 + 1 + 19 + 1, "a.c: and 3 more"));
        assert_eq!(lines.last().map(String::as_str), Some("and 2 more in other files"));
    }
}
