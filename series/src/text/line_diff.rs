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
/// Number of common lines below the last difference that are compared too, because a change can be moved down over
/// lines that are equal to its own. Where more are needed, all are.
const ROOM_BELOW: usize = 32;

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

/// Returns the run that contains line `at` of the old text.
pub(crate) fn run_at(runs: &[ChangedRun], at: usize) -> Option<&ChangedRun> {
    let before = runs.partition_point(|run| run.old.start <= at);
    before.checked_sub(1).and_then(|last| runs.get(last)).filter(|run| run.old.contains(&at))
}

/// Returns the position in the new text of line `at` of the old one; `None` if a run contains it.
pub(crate) fn image(runs: &[ChangedRun], at: usize) -> Option<usize> {
    let before = runs.partition_point(|run| run.old.start <= at);
    match before.checked_sub(1).and_then(|last| runs.get(last)) {
        Some(last) if at < last.old.end => None,
        Some(last) => Some(last.line_below(at)),
        None => Some(at),
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
    trimmed_runs(old, new, algorithm, ROOM_BELOW)
}

/// Numbers only the lines from the one above the first difference to `room` lines below the last one. The result is
/// that of whole texts: a diff leaves out common lines at both ends anyway, and then moves changes down as far as
/// possible; if one of them might go further than the lines that are left, all are numbered.
fn trimmed_runs(old: &[&[u8]], new: &[&[u8]], algorithm: Algorithm, room: usize) -> Vec<ChangedRun> {
    let above = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let (old_rest, new_rest) = (slice(old, above..old.len()), slice(new, above..new.len()));
    if old_rest.is_empty() && new_rest.is_empty() {
        return Vec::new();
    }
    let both_from_below = old_rest.iter().rev().zip(new_rest.iter().rev());
    let below = both_from_below.take_while(|(old, new)| old == new).count();
    let (start, left_out) = (above.saturating_sub(1), below.saturating_sub(room));
    let old_part = slice(old, start..old.len() - left_out);
    let new_part = slice(new, start..new.len() - left_out);
    let runs = whole_runs(old_part, new_part, algorithm);
    let is_at_end = |run: &ChangedRun| run.old.end == old_part.len() || run.new.end == new_part.len();
    if left_out > 0 && runs.last().is_some_and(is_at_end) {
        return whole_runs(old, new, algorithm);
    }
    let shifted = |lines: Range<usize>| lines.start + start..lines.end + start;
    runs.into_iter().map(|run| ChangedRun { old: shifted(run.old), new: shifted(run.new) }).collect()
}

fn whole_runs(old: &[&[u8]], new: &[&[u8]], algorithm: Algorithm) -> Vec<ChangedRun> {
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
    use super::{Algorithm, changed_runs, hunks_between, image, lines_of, run_at, trimmed_runs, whole_runs};
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

    #[test]
    fn a_line_has_its_place_in_the_new_text() {
        let runs = changed_runs(&lines_of(b"a\nb\nc\nd\n"), &lines_of(b"x\na\nB\nc\nd\n"));
        assert_eq!([0, 1, 2, 3].map(|at| image(&runs, at)), [Some(1), None, Some(3), Some(4)]);
        assert_eq!(run_at(&runs, 1).map(|run| run.new.clone()), Some(2..3));
        assert_eq!(run_at(&runs, 2), None);
    }

    /// Returns `count` lines of which many are equal, so that changes can be moved over their neighbours.
    fn repetitive(state: &mut u32, count: usize) -> Vec<&'static [u8]> {
        const LINES: [&[u8]; 4] = [b"}\n", b"\n", b"    a();\n", b"int f(void) {\n"];
        let next = || {
            *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            LINES[(*state >> 16) as usize % LINES.len()]
        };
        std::iter::repeat_with(next).take(count).collect()
    }

    /// Whatever part of the common lines is numbered, the runs are those of whole texts.
    #[test]
    fn common_lines_at_both_ends_change_nothing() {
        let mut state = 7;
        for round in 0..4_000 {
            let [above, below] = [0, 1].map(|_| repetitive(&mut state, round % 9));
            let [old, new] = [round % 5, round % 4].map(|count| repetitive(&mut state, count));
            let text = |middle: &[&'static [u8]]| [above.as_slice(), middle, below.as_slice()].concat();
            let (old, new) = (text(&old), text(&new));
            for algorithm in [Algorithm::Myers, Algorithm::Histogram] {
                let whole = whole_runs(&old, &new, algorithm);
                for room in 0..4 {
                    let trimmed = trimmed_runs(&old, &new, algorithm, room);
                    assert_eq!(trimmed, whole, "{algorithm:?}, room {room}: {old:?} {new:?}");
                }
            }
        }
    }

    /// The second change can be moved down over more lines than are numbered at first.
    #[test]
    fn a_change_is_moved_down_over_all_equal_lines() {
        let equal = "x\n".repeat(1_000);
        let (old, new) = (format!("old\ny\n{equal}"), format!("y\nx\n{equal}"));
        let runs = changed_runs(&lines_of(old.as_bytes()), &lines_of(new.as_bytes()));
        let seen: Vec<_> = runs.iter().map(|run| (run.old.clone(), run.new.clone())).collect();
        assert_eq!(seen, [(0..1, 0..0), (1_002..1_002, 1_001..1_002)]);
    }
}
