//! The versions of the files with conflicts, and the lines of each version that are in conflict.

use std::ops::Range;

use espalier_series::{
    ConflictKind, ConflictReason, Content, FileConflict, FilePatch, Hunk, LineKind, MergeKind, Patch,
    RepoPath, Version, function_around_place,
};

use super::Stopped;

/// Number of lines of a function that are shown above and below the conflict.
const LINES_AROUND: usize = 200;
/// The same where there is no function.
const CONTEXT: usize = 20;

/// A file with a conflict, and the text of its versions.
pub struct ConflictedVersions<'s> {
    pub conflict: &'s FileConflict,
    /// The file in the patch; `None` if upstream put it into a folder that the patch moves, and if only a change of the
    /// patch is merged.
    file: Option<&'s FilePatch>,
    pub base: Option<FileText<'s>>,
    pub ours: Option<FileText<'s>>,
    pub theirs: Option<FileText<'s>>,
}

/// One version of a file.
pub struct FileText<'s> {
    pub path: &'s RepoPath,
    pub text: Vec<u8>,
}

/// One place with a conflict: lines, from 0, in each version that there is.
pub struct ConflictLines {
    /// The relation of the two sides, if it is a conflict of lines.
    pub kind: Option<ConflictKind>,
    /// In the text with markers.
    pub marked: Option<Range<usize>>,
    pub base: Option<Range<usize>>,
    pub ours: Option<Range<usize>>,
    pub theirs: Option<Range<usize>>,
}

/// Returns the files of the patch that have conflicts.
pub fn versions<'s>(stopped: &Stopped<'s>, patch: &'s Patch) -> Vec<ConflictedVersions<'s>> {
    let text = |version: &'s Option<Version>| {
        let version = version.as_ref()?;
        let text = stopped.replay.blob(version.id).ok()?.into_owned();
        Some(FileText { path: &version.path, text })
    };
    let conflicts =
        stopped.replayed.files.iter().enumerate().filter_map(|(at, file)| match &file.merge_kind {
            MergeKind::Conflict(conflict) => Some((at, &**conflict)),
            _ => None,
        });
    let versions = conflicts.map(|(at, conflict)| ConflictedVersions {
        conflict,
        file: patch.files.get(at).filter(|_| stopped.sibling.is_none()),
        base: text(&conflict.base),
        ours: text(&conflict.ours),
        theirs: text(&conflict.theirs),
    });
    versions.collect()
}

impl<'s> ConflictedVersions<'s> {
    /// Returns the hunks of the patch for this file.
    fn patch_hunks(&self) -> &'s [Hunk] {
        match self.file.map(|file| &file.content) {
            Some(Content::Text(hunks)) => hunks,
            _ => &[],
        }
    }

    /// Returns the hunks of the patch that are affected by the conflict at `lines`.
    pub fn affected_hunks(&self, lines: &ConflictLines) -> Vec<&'s Hunk> {
        let Some(base) = &lines.base else { return self.patch_hunks().iter().collect() };
        let touches = |hunk: &&Hunk| {
            let old = hunk.old_lines();
            old.start <= base.end && old.end >= base.start
        };
        self.patch_hunks().iter().filter(touches).collect()
    }

    /// Returns every place with a conflict. A conflict without markers concerns the whole file; if that is gone, there
    /// is one place for each hunk of the patch.
    pub fn places(&self) -> Vec<ConflictLines> {
        let are_lines = matches!(self.conflict.reason, ConflictReason::SameLines);
        let marked = self.conflict.hunks.iter().map(|hunk| ConflictLines {
            kind: are_lines.then(|| hunk.kind()),
            marked: Some(hunk.marked.clone()),
            base: self.base.as_ref().map(|_| hunk.base.clone()),
            ours: self.ours.as_ref().map(|_| hunk.ours.clone()),
            theirs: self.theirs.as_ref().map(|_| hunk.theirs.clone()),
        });
        let of_patch = self.patch_hunks().iter().map(|hunk| {
            let (old, new) = changed_lines(hunk);
            ConflictLines {
                kind: None,
                marked: None,
                base: self.base.as_ref().map(|_| old),
                ours: None,
                theirs: self.theirs.as_ref().map(|_| new),
            }
        });
        let is_gone = matches!(self.conflict.reason, ConflictReason::FileGone { .. });
        match (self.conflict.hunks.is_empty(), is_gone && !self.patch_hunks().is_empty()) {
            (false, _) => marked.collect(),
            (true, true) => of_patch.collect(),
            (true, false) => vec![self.whole()],
        }
    }

    fn whole(&self) -> ConflictLines {
        let all = |file: &Option<FileText<'_>>| file.as_ref().map(|file| 0..line_count(&file.text));
        ConflictLines {
            kind: None,
            marked: None,
            base: all(&self.base),
            ours: all(&self.ours),
            theirs: all(&self.theirs),
        }
    }
}

/// Returns the lines of a hunk without the context at its ends, in the old file and in the new one.
fn changed_lines(hunk: &Hunk) -> (Range<usize>, Range<usize>) {
    let kinds: Vec<LineKind> = hunk.lines.iter().map(|line| line.kind).collect();
    let first = kinds.iter().take_while(|kind| **kind == LineKind::Context).count();
    let last = kinds.iter().rev().take_while(|kind| **kind == LineKind::Context).count();
    let inner =
        |start: usize, count: usize| start + first..(start + count).saturating_sub(last).max(start + first);
    (inner(hunk.old_lines_before(), hunk.old_count), inner(hunk.new_lines_before(), hunk.new_count))
}

/// Returns the function around `lines` with its own lines, and those of them that are shown.
pub fn function_around(
    file: &FileText<'_>,
    lines: &Range<usize>,
) -> (Option<(String, Range<usize>)>, Range<usize>) {
    let Some(function) = function_around_place(file.path.as_bytes(), &file.text, lines) else {
        let end = (lines.end + CONTEXT).min(line_count(&file.text));
        return (None, lines.start.saturating_sub(CONTEXT).min(end)..end);
    };
    let start = function.lines.start.max(lines.start.saturating_sub(LINES_AROUND));
    let end = function.lines.end.min(lines.end + LINES_AROUND);
    (Some((function.name, function.lines)), start..end.max(start))
}

/// Iterates over the lines of a text, each with its line feed.
pub fn lines_of(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split_inclusive(|byte| *byte == b'\n')
}

/// Returns the number of lines of a text.
pub fn line_count(text: &[u8]) -> usize {
    lines_of(text).count()
}

/// Returns the text of some of the lines.
pub fn text_of<'t>(text: &'t [u8], lines: &Range<usize>) -> &'t [u8] {
    let end_of = |count: usize| lines_of(text).take(count).map(<[u8]>::len).sum::<usize>();
    text.get(end_of(lines.start)..end_of(lines.end)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{line_count, text_of};

    #[test]
    fn lines_are_cut_out_with_their_ends() {
        let text = b"one\r\ntwo\nthree";
        assert_eq!(line_count(text), 3);
        assert_eq!(text_of(text, &(0..1)), b"one\r\n");
        assert_eq!(text_of(text, &(1..3)), b"two\nthree");
        assert_eq!(text_of(text, &(2..2)), b"");
        assert_eq!(text_of(text, &(3..9)), b"");
    }
}
