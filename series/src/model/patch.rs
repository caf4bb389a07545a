//! A patch as data. All values have passed the parser's checks.

use super::hunk_lines::{HunkLines, LineKind};
use super::mode::FileMode;
use super::object_id::ObjectId;
use super::path::RepoPath;

/// One patch file: a commit message and the files it changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch {
    /// The file's name, `NNNN-slug.patch`.
    pub name: String,
    /// The author as in the mail header, decoded: `Name <address>`.
    pub author: String,
    /// The date as in the mail header.
    pub date: String,
    /// The first line of the commit message, without the `[PATCH n/m]` prefix.
    pub subject: String,
    /// Line of the subject in the patch file, from 1.
    pub subject_line: usize,
    /// The rest of the commit message, trailers included, without blank lines at either end.
    pub body: String,
    /// The trailers found in the last paragraph of the body.
    pub trailers: Vec<Trailer>,
    /// The files, in the patch's order; empty only for a sibling that drops its patch. No path is written twice.
    pub files: Vec<FilePatch>,
}

/// The trailer of a sibling without a diff: the reason why its patch is dropped in that generation.
pub const DROPPED_BECAUSE: &str = "Dropped-because";

impl Patch {
    /// Returns the reason why a sibling without a diff drops its patch; `None` for any other patch.
    pub fn dropped_because(&self) -> Option<&str> {
        let mut trailers = self.trailers.iter().filter(|_| self.is_dropped());
        let reason = trailers.find(|trailer| trailer.key.eq_ignore_ascii_case(DROPPED_BECAUSE));
        reason.map(|trailer| trailer.value.as_str())
    }

    /// Returns whether it is a sibling without a diff: the patch that it replaces is dropped in its generation.
    pub fn is_dropped(&self) -> bool {
        self.files.is_empty()
    }

    /// Returns the commit message: subject, blank line, body; ends with a line feed.
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
    /// The text before the colon.
    pub key: String,
    /// The text after it, continuation lines joined with one space.
    pub value: String,
    /// Line in the patch file, from 1.
    pub line: usize,
}

/// The kind of a change to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The file is new: there is no old side.
    Create,
    /// The file is deleted: there is no new side.
    Delete,
    /// The path stays; content or mode changes.
    Modify,
    /// The path changes; content or mode may change too.
    Rename,
    /// The file stays, and a copy is made, which may differ.
    Copy,
}

/// One `diff --git` of a patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePatch {
    /// The kind of the change.
    pub change: Change,
    /// The file before; `None` for [`Change::Create`].
    pub old: Option<FileSide>,
    /// The file after; `None` for [`Change::Delete`].
    pub new: Option<FileSide>,
    /// The change to the content.
    pub content: Content,
    /// Line of `diff --git` in the patch file, from 1.
    pub line: usize,
}

impl FilePatch {
    /// Returns the path to show: the new one, or the old one of a deleted file.
    pub fn path(&self) -> Option<&RepoPath> {
        self.new.as_ref().or(self.old.as_ref()).map(|side| &side.path)
    }

    /// Returns the paths that the file patch changes: both of a rename, only the target of a copy.
    pub(crate) fn written_paths(&self) -> impl Iterator<Item = &RepoPath> {
        let old = self.old.as_ref().filter(|_| matches!(self.change, Change::Delete | Change::Rename));
        old.into_iter().chain(&self.new).map(|side| &side.path)
    }

    /// Returns every path that this file patch reads or writes.
    pub fn paths(&self) -> impl Iterator<Item = &RepoPath> {
        self.old.iter().chain(self.new.iter()).map(|side| &side.path)
    }
}

/// A file before or after a patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSide {
    /// Its path.
    pub path: RepoPath,
    /// Its mode; `None` if the patch omits it, which means unchanged.
    pub mode: Option<FileMode>,
    /// Its blob; `None` if the patch omits it, which means unchanged.
    pub id: Option<ObjectId>,
}

/// The change to the content of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// None: a pure rename, copy or mode change, or an empty file created or deleted.
    Unchanged,
    /// Hunks, in order, never overlapping; at least one.
    Text(Vec<Hunk>),
    /// A `GIT binary patch`.
    Binary(BinaryPatch),
}

/// One hunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    /// First line in the old file, from 1; with `old_count` 0, the line it follows.
    pub old_start: usize,
    /// Number of lines in the old file.
    pub old_count: usize,
    /// First line in the new file, from 1; with `new_count` 0, the line it follows.
    pub new_start: usize,
    /// Number of lines in the new file.
    pub new_count: usize,
    /// The text after the second `@@`: the function above the hunk, cut by git at 80 bytes.
    pub section: Vec<u8>,
    /// The lines, in order.
    pub lines: HunkLines,
    /// Line of the `@@` in the patch file, from 1.
    pub line: usize,
}

impl Hunk {
    /// Returns the number of lines of the old file before the hunk.
    pub fn old_lines_before(&self) -> usize {
        lines_before(self.old_start, self.old_count)
    }

    /// Returns its lines in the old file, from 0.
    pub fn old_lines(&self) -> std::ops::Range<usize> {
        let before = self.old_lines_before();
        before..before + self.old_count
    }

    /// Returns the number of lines of the new file before the hunk.
    pub fn new_lines_before(&self) -> usize {
        lines_before(self.new_start, self.new_count)
    }

    /// Returns the lines it expects to find, each with its line feed if it has one.
    pub fn pre_image(&self) -> impl Iterator<Item = &[u8]> {
        let lines = self.lines.iter().filter(|line| line.kind != LineKind::Add);
        lines.map(|line| line.bytes)
    }

    /// Returns the lines that result from it, each with its line feed if it has one.
    pub fn post_image(&self) -> impl Iterator<Item = &[u8]> {
        let lines = self.lines.iter().filter(|line| line.kind != LineKind::Delete);
        lines.map(|line| line.bytes)
    }

    /// Returns the header as reports show it, without the section: `@@ -1,7 +1,8 @@`.
    pub fn header(&self) -> String {
        format!("@@ -{},{} +{},{} @@", self.old_start, self.old_count, self.new_start, self.new_count)
    }
}

/// Returns the number of lines before a range. An empty range starts *after* the line it names; any other starts *at*
/// it.
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
