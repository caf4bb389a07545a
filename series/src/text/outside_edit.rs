//! Comparison of a resolved file with the automatic result of its merge: only the lines between markers may differ.

use super::line_diff::lines_of;
use super::line_index::LineIndex;
use super::markers::ConflictHunk;
use super::search::find_all;
use crate::model::printable::printable;

/// Number of lines that are compared to find the place in the resolved file that an edited part corresponds to.
const COMPARED: usize = 64;

/// A line outside of the conflicts that differs from the automatic result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutsideEdit {
    /// The line in the resolved file, from 1.
    pub line: usize,
    /// The line of the automatic result, safe to print; `None` past its end.
    pub expected: Option<String>,
    /// The line of the resolved file, safe to print; `None` past its end.
    pub found: Option<String>,
}

/// Returns the first line of `resolved` that differs from `marked`, a text with the conflicts `hunks`, outside of them;
/// `None` if there is none.
///
/// The parts between conflicts have to occur in order, the first at the start and the last at the end: then some choice
/// of texts for the conflicts gives `resolved`.
///
/// # Examples
///
/// ```
/// use espalier_series::{ConflictHunk, find_outside_edit};
///
/// let marked = b"one\n<<<<<<< v2\ntwo\n=======\n2\n>>>>>>> 0001-a.patch\nthree\n";
/// let hunks = [ConflictHunk { marked: 1..6, base: 1..1, ours: 1..2, theirs: 1..2 }];
/// assert_eq!(find_outside_edit(marked, &hunks, b"one\n2\ntwo\nthree\n"), None);
/// let edit = find_outside_edit(marked, &hunks, b"one\n2\nfour\n").unwrap();
/// assert_eq!((edit.line, edit.expected.as_deref(), edit.found.as_deref()), (3, Some("three"), Some("four")));
/// ```
pub fn find_outside_edit(marked: &[u8], hunks: &[ConflictHunk], resolved: &[u8]) -> Option<OutsideEdit> {
    let (marked, lines) = (lines_of(marked), lines_of(resolved));
    let parts = parts_outside(&marked, hunks);
    let index = LineIndex::of_lines(&lines);
    let resolved = Resolved { lines: &lines, index: &index };
    let (first, rest) = parts.split_first()?;
    if let Some(edit) = resolved.differs_at(first, 0, lines.len()) {
        return Some(edit);
    }
    let Some((last, middle)) = rest.split_last() else {
        return (lines.len() > first.len()).then(|| resolved.edit(first.len(), None, lines.len()));
    };
    let (mut at, end) = (first.len(), lines.len().saturating_sub(last.len()));
    for part in middle {
        match resolved.find(part, at..end.max(at)) {
            Some(found) => at = found + part.len(),
            None => return Some(resolved.nearest_edit(part, at..end.max(at))),
        }
    }
    resolved.differs_at_end(last, at)
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

struct Resolved<'r, 'a> {
    lines: &'r [&'a [u8]],
    index: &'r LineIndex<'a>,
}

impl Resolved<'_, '_> {
    /// Returns the first difference between `part` and the lines from `at` on, of which those up to `end` count.
    fn differs_at(&self, part: &[&[u8]], at: usize, end: usize) -> Option<OutsideEdit> {
        let mut lines = (at..).zip(part);
        let differs = |(at, line): &(usize, &&[u8])| *at >= end || self.lines.get(*at) != Some(*line);
        let (at, line) = lines.find(differs)?;
        Some(self.edit(at, Some(line), end))
    }

    /// Returns the last difference between `part` and the end of the text, of which the lines from `start` on count.
    fn differs_at_end(&self, part: &[&[u8]], start: usize) -> Option<OutsideEdit> {
        let lines = self.lines.get(start..).unwrap_or_default();
        let same = part.iter().rev().zip(lines.iter().rev()).take_while(|(one, other)| one == other).count();
        let expected = part.len().checked_sub(same + 1).and_then(|at| part.get(at))?;
        match lines.len().checked_sub(same + 1) {
            Some(at) => Some(self.edit(start + at, Some(expected), self.lines.len())),
            None => Some(self.edit(start, Some(expected), start)),
        }
    }

    /// Returns the first place of `part` among the lines `within`.
    fn find(&self, part: &[&[u8]], within: std::ops::Range<usize>) -> Option<usize> {
        if part.is_empty() {
            return Some(within.start);
        }
        let needle = self.index.ids_of(part.iter().copied())?;
        let haystack = self.index.ids.get(within.clone())?;
        find_all(haystack, &needle, 1).first().map(|at| within.start + at)
    }

    /// Returns the first difference between `part`, which does not occur, and the place where most of it is.
    fn nearest_edit(&self, part: &[&[u8]], within: std::ops::Range<usize>) -> OutsideEdit {
        let agreeing = |start: &usize| {
            let lines = self.lines.get(*start..within.end).unwrap_or_default();
            part.iter().zip(lines).take(COMPARED).filter(|(one, other)| one == other).count()
        };
        let nearest = within.clone().rev().max_by_key(agreeing).unwrap_or(within.start);
        let edit = self.differs_at(part, nearest, within.end);
        // It differs: it occurs nowhere.
        edit.unwrap_or_else(|| self.edit(nearest, part.first(), within.end))
    }

    fn edit(&self, at: usize, expected: Option<&&[u8]>, end: usize) -> OutsideEdit {
        let found = self.lines.get(at).filter(|_| at < end);
        let shown = |line: &&[u8]| printable(line);
        OutsideEdit { line: at + 1, expected: expected.map(shown), found: found.map(shown) }
    }
}

#[cfg(test)]
mod tests {
    use super::{ConflictHunk, find_outside_edit};

    /// Two conflicts, each of one line, with `b` and `c` between them.
    const MARKED: &str =
        "a\n<<<<<<< v2\n1\n=======\n2\n>>>>>>> p\nb\nc\n<<<<<<< v2\n3\n=======\n4\n>>>>>>> p\nd\ne\n";

    fn edit(resolved: &str) -> Option<(usize, Option<String>, Option<String>)> {
        let hunk = |marked| ConflictHunk { marked, base: 0..0, ours: 0..0, theirs: 0..0 };
        let hunks = [hunk(1..6), hunk(8..13)];
        let found = find_outside_edit(MARKED.as_bytes(), &hunks, resolved.as_bytes())?;
        Some((found.line, found.expected, found.found))
    }

    fn at(line: usize, expected: &str, found: &str) -> Option<(usize, Option<String>, Option<String>)> {
        let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        Some((line, text(expected), text(found)))
    }

    #[test]
    fn any_text_may_replace_a_conflict() {
        for resolved in [
            "a\n1\nb\nc\n4\nd\ne\n",
            "a\nb\nc\nd\ne\n",
            "a\nx\ny\nb\nb\nc\nc\nd\nd\ne\n",
            "a\nb\nc\nb\nc\nd\ne\nd\ne\n",
        ] {
            assert_eq!(edit(resolved), None, "{resolved}");
        }
    }

    #[test]
    fn a_line_beside_is_named_wherever_it_is() {
        assert_eq!(edit("A\n1\nb\nc\n4\nd\ne\n"), at(1, "a", "A"));
        assert_eq!(edit("x\na\n1\nb\nc\n4\nd\ne\n"), at(1, "a", "x"));
        assert_eq!(edit("a\n1\nb\nC\n4\nd\ne\n"), at(4, "c", "C"));
        assert_eq!(edit("a\n1\nB\nc\n4\nd\ne\n"), at(3, "b", "B"));
        assert_eq!(edit("a\n1\nb\nc\n4\nd\nE\n"), at(7, "e", "E"));
        assert_eq!(edit("a\n1\nb\nc\n4\nd\ne\nf\n"), at(8, "e", "f"));
        assert_eq!(edit("a\n1\nb\nc\n4\nd\n"), at(6, "e", "d"));
        assert_eq!(edit("a\n1\nb\nd\ne\n"), at(4, "c", ""));
        assert_eq!(edit("a\nb\nc\nd\ne"), at(5, "e", "e"));
        assert_eq!(edit(""), at(1, "a", ""));
    }

    #[test]
    fn without_conflicts_nothing_may_differ() {
        assert_eq!(find_outside_edit(b"a\n", &[], b"a\n"), None);
        assert_eq!(find_outside_edit(b"a\n", &[], b"a\nb\n").unwrap().line, 2);
        assert_eq!(find_outside_edit(b"", &[], b""), None);
    }

    #[test]
    fn stays_linear_on_repetition() {
        let marked = "x\n".repeat(100_000);
        let hunk = |at: usize| ConflictHunk { marked: at..at + 1, base: 0..0, ours: 0..0, theirs: 0..0 };
        let hunks = [hunk(0), hunk(50_000), hunk(99_999)];
        let resolved = format!("{}y\n{}", "x\n".repeat(60_000), "x\n".repeat(39_000));
        assert!(find_outside_edit(marked.as_bytes(), &hunks, resolved.as_bytes()).is_some());
    }
}
