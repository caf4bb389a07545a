//! Line diffs of two texts.

use std::ops::Range;

use imara_diff::{Algorithm, Diff, Interner, NoSliderHeuristic, Token};

use super::function::FunctionMap;
use super::language::Language;
use crate::model::hunk_lines::{HunkLines, LineKind};
use crate::model::lines::split_inclusive;
use crate::model::patch::Hunk;

/// Number of context lines around a change, as git writes them.
const CONTEXT: usize = 3;

/// A run of changed lines: removed and added ones. One of the two may be empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChangedRun {
    /// Lines of the old text, from 0.
    pub old: Range<usize>,
    /// Lines of the new text, from 0.
    pub new: Range<usize>,
}

impl ChangedRun {
    /// Returns the position in the new text of line `at` of the old one, if this is the last run above it.
    pub fn line_below(&self, at: usize) -> usize {
        at + self.new.end - self.old.end
    }

    /// Returns the number of removed and added lines.
    pub fn size(&self) -> usize {
        self.old.len() + self.new.len()
    }
}

/// Splits a text into lines, each with its line feed if it has one.
pub(crate) fn lines_of(text: &[u8]) -> Vec<&[u8]> {
    let mut rest = text;
    let next = || {
        let (line, after) = split_inclusive(rest);
        rest = after;
        (!line.is_empty()).then_some(line)
    };
    std::iter::from_fn(next).collect()
}

/// Returns a range of lines; empty if it is out of bounds.
pub(crate) fn slice<'l, 'a>(lines: &'l [&'a [u8]], range: Range<usize>) -> &'l [&'a [u8]] {
    lines.get(range).unwrap_or_default()
}

/// Returns the differences of two texts, from top to bottom; two runs never touch.
pub(crate) fn changed_runs(old: &[&[u8]], new: &[&[u8]]) -> Vec<ChangedRun> {
    numbered_runs(old, new, Algorithm::Myers)
}

/// Numbers the lines of the compared texts: equal lines have equal numbers.
pub(crate) struct LineNumbers<'a>(Interner<&'a [u8]>);

impl<'a> LineNumbers<'a> {
    /// Creates a table for texts of about `lines` lines in all.
    pub fn new(lines: usize) -> LineNumbers<'a> {
        LineNumbers(Interner::new(lines))
    }

    /// Returns the number of each line.
    pub fn of(&mut self, lines: &[&'a [u8]]) -> Vec<Token> {
        lines.iter().map(|line| self.0.intern(*line)).collect()
    }

    /// Returns the number of distinct lines.
    pub fn count(&self) -> usize {
        self.0.num_tokens() as usize
    }

    /// Returns the differences of two numbered texts as git's merges compute them: by histogram diff, each change moved
    /// down as far as possible.
    pub fn runs(&self, old: &[Token], new: &[Token]) -> Vec<ChangedRun> {
        self.runs_by(Algorithm::Histogram, old, new)
    }

    fn runs_by(&self, algorithm: Algorithm, old: &[Token], new: &[Token]) -> Vec<ChangedRun> {
        let mut diff = Diff::default();
        diff.compute_with(algorithm, old, new, self.0.num_tokens());
        diff.postprocess_with(old, new, NoSliderHeuristic);
        let lines = |range: Range<u32>| range.start as usize..range.end as usize;
        diff.hunks().map(|hunk| ChangedRun { old: lines(hunk.before), new: lines(hunk.after) }).collect()
    }
}

/// Returns the [`LineNumbers::runs`] of two texts.
pub(crate) fn histogram_runs(old: &[&[u8]], new: &[&[u8]]) -> Vec<ChangedRun> {
    numbered_runs(old, new, Algorithm::Histogram)
}

fn numbered_runs(old: &[&[u8]], new: &[&[u8]], algorithm: Algorithm) -> Vec<ChangedRun> {
    let mut numbers = LineNumbers::new(old.len() + new.len());
    let (old, new) = (numbers.of(old), numbers.of(new));
    numbers.runs_by(algorithm, &old, &new)
}

/// Returns the hunks that turn `before` into `after`, with git's context and sections. They are not from a patch file,
/// so their patch line is 0.
///
/// # Examples
///
/// ```
/// use espalier_series::{LineKind, hunks_between};
///
/// let hunks = hunks_between(b"one\ntwo\nthree\n", b"one\n2\nthree\n");
/// assert_eq!(hunks.len(), 1);
/// assert_eq!(hunks[0].header(), "@@ -1,3 +1,3 @@");
/// let kinds: Vec<LineKind> = hunks[0].lines.iter().map(|line| line.kind).collect();
/// assert_eq!(kinds, [LineKind::Context, LineKind::Delete, LineKind::Add, LineKind::Context]);
///
/// assert!(hunks_between(b"one\n", b"one\n").is_empty());
/// ```
pub fn hunks_between(before: &[u8], after: &[u8]) -> Vec<Hunk> {
    let (old, new) = (lines_of(before), lines_of(after));
    let runs = changed_runs(&old, &new);
    let functions = FunctionMap::new(&old, Language::Braces);
    let together = runs.chunk_by(|one, next| next.old.start - one.old.end <= 2 * CONTEXT);
    together.map(|runs| hunk_of(runs, &old, &new, &functions)).collect()
}

fn hunk_of(runs: &[ChangedRun], old: &[&[u8]], new: &[&[u8]], functions: &FunctionMap<'_>) -> Hunk {
    let first = runs.first().map_or(0, |run| run.old.start);
    let last = runs.last().map_or(0, |run| run.old.end);
    let start = first.saturating_sub(CONTEXT);
    let end = (last + CONTEXT).min(old.len());
    let new_start = runs.first().map_or(0, |run| run.new.start) - (first - start);
    let mut lines = HunkLines::default();
    let mut add = |kind: LineKind, text: &[&[u8]]| {
        text.iter().for_each(|line| lines.push(kind, &[line]));
    };
    let mut at = start;
    for run in runs {
        add(LineKind::Context, old.get(at..run.old.start).unwrap_or_default());
        add(LineKind::Delete, old.get(run.old.clone()).unwrap_or_default());
        add(LineKind::Add, new.get(run.new.clone()).unwrap_or_default());
        at = run.old.end;
    }
    add(LineKind::Context, old.get(at..end).unwrap_or_default());
    let count = |without: LineKind| lines.iter().filter(|line| line.kind != without).count();
    let (old_count, new_count) = (count(LineKind::Add), count(LineKind::Delete));
    Hunk {
        old_start: first_line(start, old_count),
        old_count,
        new_start: first_line(new_start, new_count),
        new_count,
        section: functions.section_before(start).to_vec(),
        lines,
        line: 0,
    }
}

/// Returns the first line of a range in a hunk header; an empty range starts at the line before it.
fn first_line(before: usize, count: usize) -> usize {
    if count == 0 { before } else { before + 1 }
}

#[cfg(test)]
mod tests {
    use super::{changed_runs, hunks_between, lines_of};
    use crate::apply::text::apply_hunks;

    fn numbered(count: usize) -> String {
        (1..=count).map(|line| format!("line {line}\n")).collect()
    }

    #[test]
    fn runs_are_what_went_and_what_came() {
        let (old, new) = (lines_of(b"a\nb\nc\n"), lines_of(b"a\nB\nc\nd\n"));
        let runs = changed_runs(&old, &new);
        let seen: Vec<_> = runs.iter().map(|run| (run.old.clone(), run.new.clone())).collect();
        assert_eq!(seen, [(1..2, 1..2), (3..3, 3..4)]);
    }

    #[test]
    fn hunks_give_the_new_text_and_are_cut_like_gits() {
        let before = numbered(40);
        let after =
            before.replace("line 5\n", "five\n").replace("line 30\n", "").replace("line 11\n", "x\ny\n");
        let hunks = hunks_between(before.as_bytes(), after.as_bytes());
        let headers: Vec<String> = hunks.iter().map(|hunk| hunk.header()).collect();
        assert_eq!(headers, ["@@ -2,13 +2,14 @@", "@@ -27,7 +28,6 @@"]);
        assert_eq!(apply_hunks(before.as_bytes(), &hunks).unwrap(), after.as_bytes());
    }

    #[test]
    fn a_file_can_come_from_nothing() {
        let hunks = hunks_between(b"", b"a\nb");
        assert_eq!(hunks[0].header(), "@@ -0,0 +1,2 @@");
        assert!(hunks_between(b"a\n", b"a\n").is_empty());
    }
}
