//! Comparison of a resolved file with the automatic result of its merge: only the lines between markers may differ.

use std::ops::Range;

use super::line_diff::{ChangedRun, changed_runs, lines_of, slice};
use super::line_index::LineIndex;
use super::markers::ConflictHunk;
use super::search::find_all;
use crate::model::printable::printable;

/// Maximum number of equal lines over which an insertion is moved to the conflict that it may belong to.
const MOVED: usize = 10_000;

/// Consecutive lines outside of the conflicts that differ from the automatic result. One of the two sides may be empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutsideEdit {
    /// The first line in the resolved file, from 1; of deleted lines, the line that follows their place.
    pub line: usize,
    /// The lines of the automatic result.
    pub expected: EditedLines,
    /// The lines of the resolved file.
    pub found: EditedLines,
}

/// One side of an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditedLines {
    /// Number of lines.
    pub count: usize,
    /// The first of them, safe to print; `None` if there are none.
    pub first: Option<String>,
}

impl EditedLines {
    fn of(lines: &[&[u8]]) -> EditedLines {
        EditedLines { count: lines.len(), first: lines.first().map(|line| printable(line)) }
    }
}

/// Returns every place at which `resolved` differs from `marked`, a text with the conflicts `hunks`, outside of them,
/// from top to bottom; empty if `resolved` is a resolution of these conflicts and nothing else.
///
/// The parts between conflicts have to occur in order, the first at the start and the last at the end: then some choice
/// of texts for the conflicts gives `resolved`.
///
/// # Examples
///
/// ```
/// use espalier_series::{ConflictHunk, outside_edits};
///
/// let marked = b"one\n<<<<<<< v2\ntwo\n=======\n2\n>>>>>>> 0001-a.patch\nthree\n";
/// let hunks = [ConflictHunk { marked: 1..6, base: 1..1, ours: 1..2, theirs: 1..2 }];
/// assert!(outside_edits(marked, &hunks, b"one\n2\ntwo\nthree\n").is_empty());
/// let edits = outside_edits(marked, &hunks, b"one\n2\nfour\n");
/// let texts = (edits[0].expected.first.as_deref(), edits[0].found.first.as_deref());
/// assert_eq!((edits.len(), edits[0].line, texts), (1, 3, (Some("three"), Some("four"))));
/// ```
pub fn outside_edits(marked: &[u8], hunks: &[ConflictHunk], resolved: &[u8]) -> Vec<OutsideEdit> {
    let (marked, found) = (lines_of(marked), lines_of(resolved));
    let parts = parts_outside(&marked, hunks);
    if is_resolution(&parts, &found) {
        return Vec::new();
    }
    let expected: Vec<&[u8]> = parts.concat();
    let mut conflicts = Vec::with_capacity(hunks.len());
    for part in parts.iter().take(hunks.len()) {
        conflicts.push(conflicts.last().copied().unwrap_or(0) + part.len());
    }
    let compared = Compared { expected: &expected, found: &found, conflicts: &conflicts };
    let runs = changed_runs(&expected, &found).into_iter();
    runs.filter(|run| !compared.is_resolved_text(run)).map(|run| compared.edit(&run)).collect()
}

/// Returns the runs of lines above, between and below the conflicts: one more than there are conflicts.
fn parts_outside<'l, 'a>(marked: &'l [&'a [u8]], hunks: &[ConflictHunk]) -> Vec<&'l [&'a [u8]]> {
    let mut at = 0;
    let mut parts = Vec::with_capacity(hunks.len() + 1);
    for hunk in hunks {
        parts.push(marked.get(at..hunk.marked.start).unwrap_or_default());
        at = hunk.marked.end;
    }
    parts.push(marked.get(at..).unwrap_or_default());
    parts
}

/// Whether `lines` are the parts in order, with any lines between two of them.
fn is_resolution(parts: &[&[&[u8]]], lines: &[&[u8]]) -> bool {
    let Some((first, rest)) = parts.split_first() else { return lines.is_empty() };
    let Some((last, middle)) = rest.split_last() else { return lines == *first };
    let Some(end) = lines.len().checked_sub(last.len()) else { return false };
    if !(lines.starts_with(first) && lines.ends_with(last)) {
        return false;
    }
    let index = LineIndex::of_lines(lines);
    let mut at = first.len();
    for part in middle {
        match find(&index, part, at..end) {
            Some(found) => at = found + part.len(),
            None => return false,
        }
    }
    at <= end
}

/// Returns the first place of `part` among the lines `within`.
fn find(index: &LineIndex<'_>, part: &[&[u8]], within: Range<usize>) -> Option<usize> {
    if part.is_empty() {
        return Some(within.start);
    }
    let needle = index.ids_of(part.iter().copied())?;
    let haystack = index.ids.get(within.clone())?;
    find_all(haystack, &needle, 1).first().map(|at| within.start + at)
}

/// The automatic result without its conflicts, and the resolved file.
struct Compared<'c, 'a> {
    expected: &'c [&'a [u8]],
    found: &'c [&'a [u8]],
    /// The place of each conflict: the line of `expected` that follows it, from 0.
    conflicts: &'c [usize],
}

impl Compared<'_, '_> {
    /// Whether a run can be the text that replaces a conflict: it only inserts lines, at a conflict, or beside it with
    /// equal lines in between, which a line diff cannot tell apart.
    fn is_resolved_text(&self, run: &ChangedRun) -> bool {
        run.old.is_empty() && self.conflicts.iter().any(|conflict| self.can_move(run, *conflict))
    }

    /// Whether the insertion `run` gives the same text at the line `to`.
    fn can_move(&self, run: &ChangedRun, to: usize) -> bool {
        let at = run.old.start;
        if at.abs_diff(to) > MOVED {
            return false;
        }
        if to <= at {
            let above = self.found.get(..run.new.end).unwrap_or_default();
            return above.ends_with(slice(self.expected, to..at));
        }
        let below = self.found.get(run.new.start..).unwrap_or_default();
        below.starts_with(slice(self.expected, at..to))
    }

    fn edit(&self, run: &ChangedRun) -> OutsideEdit {
        let found = self.found_in_place(run);
        OutsideEdit {
            line: found.start + 1,
            expected: EditedLines::of(slice(self.expected, run.old.clone())),
            found: EditedLines::of(slice(self.found, found)),
        }
    }

    /// Returns the lines that were found in place of the expected ones. Beside a conflict its resolved text is in the
    /// same run: then at most as many lines count as were expected.
    fn found_in_place(&self, run: &ChangedRun) -> Range<usize> {
        let Range { start, end } = run.new;
        let count = run.old.len();
        let is_conflict = |at: &usize| self.conflicts.contains(at);
        if count == 0 {
            return start..end;
        }
        match (is_conflict(&run.old.start), is_conflict(&run.old.end)) {
            (false, false) => start..end,
            (false, true) => start..end.min(start + count),
            (true, _) => start.max(end.saturating_sub(count))..end,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ConflictHunk, OutsideEdit, outside_edits};

    /// Two conflicts, each of one line, with `b` and `c` between them.
    const MARKED: &str =
        "a\n<<<<<<< v2\n1\n=======\n2\n>>>>>>> p\nb\nc\n<<<<<<< v2\n3\n=======\n4\n>>>>>>> p\nd\ne\n";

    fn hunk(marked: std::ops::Range<usize>) -> ConflictHunk {
        ConflictHunk { marked, base: 0..0, ours: 0..0, theirs: 0..0 }
    }

    /// Returns each edit as its line, and the number and the first of the expected and of the found lines.
    fn shown(edits: &[OutsideEdit]) -> Vec<String> {
        let side =
            |count: usize, first: &Option<String>| format!("{count}{}", first.as_deref().unwrap_or_default());
        let show = |edit: &OutsideEdit| {
            let (expected, found) = (&edit.expected, &edit.found);
            format!(
                "{}: {} {}",
                edit.line,
                side(expected.count, &expected.first),
                side(found.count, &found.first)
            )
        };
        edits.iter().map(show).collect()
    }

    fn edits(resolved: &str) -> Vec<String> {
        shown(&outside_edits(MARKED.as_bytes(), &[hunk(1..6), hunk(8..13)], resolved.as_bytes()))
    }

    #[test]
    fn any_text_may_replace_a_conflict() {
        for resolved in [
            "a\n1\nb\nc\n4\nd\ne\n",
            "a\nb\nc\nd\ne\n",
            "a\nx\ny\nb\nb\nc\nc\nd\nd\ne\n",
            "a\nb\nc\nb\nc\nd\ne\nd\ne\n",
        ] {
            assert_eq!(edits(resolved), [""; 0], "{resolved}");
        }
    }

    #[test]
    fn a_line_beside_is_named_wherever_it_is() {
        assert_eq!(edits("A\n1\nb\nc\n4\nd\ne\n"), ["1: 1a 1A"]);
        assert_eq!(edits("x\na\n1\nb\nc\n4\nd\ne\n"), ["1: 0 1x"]);
        assert_eq!(edits("a\n1\nb\nC\n4\nd\ne\n"), ["4: 1c 1C"]);
        assert_eq!(edits("a\n1\nB\nc\n4\nd\ne\n"), ["3: 1b 1B"]);
        assert_eq!(edits("a\n1\nb\nc\n4\nd\nE\n"), ["7: 1e 1E"]);
        assert_eq!(edits("a\n1\nb\nc\n4\nd\ne\nf\n"), ["8: 0 1f"]);
        assert_eq!(edits("a\nb\nc\nd\ne"), ["5: 1e 1e"]);
        assert_eq!(edits(""), ["1: 5a 0"]);
    }

    /// The line is the one at which the deleted line was, not the last one that is the same.
    #[test]
    fn a_deleted_line_is_named_at_its_place() {
        assert_eq!(edits("a\n1\nb\nc\n4\nd\n"), ["7: 1e 0"]);
        assert_eq!(edits("a\n1\nb\nd\ne\n"), ["4: 1c 0"]);
        let marked = "<<<<<<< v2\n1\n=======\n2\n>>>>>>> p\n\n// used by\n}\n\nz\n";
        let edits = outside_edits(marked.as_bytes(), &[hunk(0..5)], b"1\n\n}\n\nz\n");
        assert_eq!(shown(&edits), ["3: 1// used by 0"]);
    }

    #[test]
    fn every_place_is_named() {
        assert_eq!(edits("A\n1\nb\nC\n4\nd\ne\nf\n"), ["1: 1a 1A", "4: 1c 1C", "8: 0 1f"]);
        let before: String = (0..40).map(|line| format!("line {line}\n")).collect();
        let after = before.replace("line 3\nline 4\n", "three\nfour\nfive\n").replace("line 30\n", "");
        let edits = outside_edits(before.as_bytes(), &[], after.as_bytes());
        assert_eq!(shown(&edits), ["4: 2line 3 3three", "32: 1line 30 0"]);
    }

    /// The resolution begins with the line that follows the conflict, so a diff places it one line further down.
    #[test]
    fn a_resolution_among_equal_lines_is_not_an_edit() {
        let marked = "a\n<<<<<<< v2\n1\n=======\n2\n>>>>>>> p\n}\nb\nc\n";
        let edits = outside_edits(marked.as_bytes(), &[hunk(1..6)], b"a\n}\ny\n}\nb\nC\n");
        assert_eq!(shown(&edits), ["6: 1c 1C"]);
    }

    #[test]
    fn without_conflicts_nothing_may_differ() {
        assert!(outside_edits(b"a\n", &[], b"a\n").is_empty());
        assert_eq!(outside_edits(b"a\n", &[], b"a\nb\n")[0].line, 2);
        assert!(outside_edits(b"", &[], b"").is_empty());
    }

    #[test]
    fn stays_linear_on_repetition() {
        let marked = "x\n".repeat(100_000);
        let hunks = [hunk(0..1), hunk(50_000..50_001), hunk(99_999..100_000)];
        let resolved = format!("{}y\n{}", "x\n".repeat(60_000), "x\n".repeat(39_000));
        assert!(!outside_edits(marked.as_bytes(), &hunks, resolved.as_bytes()).is_empty());
    }
}
