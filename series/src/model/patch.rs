//! A patch as data. Everything in here has passed the parser's checks.

use super::hunk_lines::{HunkLines, LineKind};
use super::mode::FileMode;
use super::object_id::ObjectId;
use super::path::RepoPath;

/// One patch file: a commit message and the files it changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch {
    /// The file's name, `NNNN-slug.patch`.
    pub name: String,
    /// The author as the mail header says it, decoded: `Name <address>`.
    pub author: String,
    /// The date as the mail header says it.
    pub date: String,
    /// The first line of the commit message, without the `[PATCH n/m]` prefix.
    pub subject: String,
    /// Line of the subject in the patch file, from 1.
    pub subject_line: usize,
    /// The rest of the commit message, trailers included, without blank lines at either end.
    pub body: String,
    /// The trailers found in the last paragraph of the body.
    pub trailers: Vec<Trailer>,
    /// The files, in the patch's order. Never empty; no path is written twice.
    pub files: Vec<FilePatch>,
}

impl Patch {
    /// The commit message: subject, blank line, body; ends with a line feed.
    pub fn message(&self) -> String {
        if self.body.is_empty() {
            format!("{}\n", self.subject)
        } else {
            format!("{}\n\n{}\n", self.subject, self.body)
        }
    }
}

/// One `Key: value` line at the end of a commit message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trailer {
    /// What stands before the colon.
    pub key: String,
    /// What stands after it, continuation lines joined with one space.
    pub value: String,
    /// Line in the patch file, from 1.
    pub line: usize,
}

/// What happens to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It is new: there is no old side.
    Create,
    /// It goes: there is no new side.
    Delete,
    /// It stays where it is; its content or its mode changes.
    Modify,
    /// It moves, and its content or mode may change.
    Rename,
    /// It stays, and a copy of it is made, which may differ.
    Copy,
}

/// One `diff --git` of a patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePatch {
    /// What happens.
    pub change: Change,
    /// The file before; `None` for [`Change::Create`].
    pub old: Option<FileSide>,
    /// The file after; `None` for [`Change::Delete`].
    pub new: Option<FileSide>,
    /// How the content changes.
    pub content: Content,
    /// Line of `diff --git` in the patch file, from 1.
    pub line: usize,
}

impl FilePatch {
    /// The path to show: the new one, or the old one of a deleted file.
    pub fn path(&self) -> Option<&RepoPath> {
        self.new.as_ref().or(self.old.as_ref()).map(|side| &side.path)
    }

    /// The paths that differ after the file patch: a rename writes two, a copy only its target.
    pub(crate) fn written_paths(&self) -> impl Iterator<Item = &RepoPath> {
        let old = self.old.as_ref().filter(|_| matches!(self.change, Change::Delete | Change::Rename));
        old.into_iter().chain(&self.new).map(|side| &side.path)
    }

    /// Every path that this file patch reads or writes.
    pub fn paths(&self) -> impl Iterator<Item = &RepoPath> {
        self.old.iter().chain(self.new.iter()).map(|side| &side.path)
    }
}

/// A file before or after a patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSide {
    /// Where it is.
    pub path: RepoPath,
    /// Its mode; `None` when the patch does not say, which means unchanged.
    pub mode: Option<FileMode>,
    /// Its blob; `None` when the patch does not say, which means unchanged.
    pub id: Option<ObjectId>,
}

/// How the content of a file changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// Not at all: a pure rename, copy or mode change, or an empty file made or deleted.
    Unchanged,
    /// By hunks, in order, never overlapping; at least one.
    Text(Vec<Hunk>),
    /// By a `GIT binary patch`.
    Binary(BinaryPatch),
}

/// One hunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    /// First line in the old file, from 1; with `old_count` 0, the line it follows.
    pub old_start: usize,
    /// Lines taken from the old file.
    pub old_count: usize,
    /// First line in the new file, from 1; with `new_count` 0, the line it follows.
    pub new_start: usize,
    /// Lines given to the new file.
    pub new_count: usize,
    /// What follows the second `@@`: the function above the hunk, cut by git at 80 bytes.
    pub section: Vec<u8>,
    /// The lines, in order.
    pub lines: HunkLines,
    /// Line of the `@@` in the patch file, from 1.
    pub line: usize,
}

impl Hunk {
    /// How many lines of the old file come before the hunk.
    pub fn old_lines_before(&self) -> usize {
        lines_before(self.old_start, self.old_count)
    }

    /// Its lines in the old file, from 0.
    pub fn old_lines(&self) -> std::ops::Range<usize> {
        let before = self.old_lines_before();
        before..before + self.old_count
    }

    /// How many lines of the new file come before the hunk.
    pub fn new_lines_before(&self) -> usize {
        lines_before(self.new_start, self.new_count)
    }

    /// The lines it expects to find, each with its line feed if it has one.
    pub fn pre_image(&self) -> impl Iterator<Item = &[u8]> {
        let lines = self.lines.iter().filter(|line| line.kind != LineKind::Add);
        lines.map(|line| line.bytes)
    }

    /// The lines it leaves behind, each with its line feed if it has one.
    pub fn post_image(&self) -> impl Iterator<Item = &[u8]> {
        let lines = self.lines.iter().filter(|line| line.kind != LineKind::Delete);
        lines.map(|line| line.bytes)
    }

    /// The header as a report shows it, without the section: `@@ -1,7 +1,8 @@`.
    pub fn header(&self) -> String {
        format!("@@ -{},{} +{},{} @@", self.old_start, self.old_count, self.new_start, self.new_count)
    }
}

/// A range that is empty starts *after* the line it names; any other starts *at* it.
fn lines_before(start: usize, count: usize) -> usize {
    if count == 0 { start } else { start.saturating_sub(1) }
}

/// The two halves of a `GIT binary patch`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BinaryPatch {
    /// From old to new.
    pub forward: BinaryHalf,
    /// From new to old; git always writes it.
    pub reverse: Option<BinaryHalf>,
}

/// One half of a `GIT binary patch`, inflated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BinaryHalf {
    /// The whole content.
    Literal(Vec<u8>),
    /// A git delta against the other side.
    Delta(Vec<u8>),
}
