//! Lines of a text, traced back to an older version of it.

use std::ops::Range;

use super::line_diff::{ChangedRun, changed_runs, lines_of};

/// The lines of an older text that some lines of a newer one come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EarlierLines {
    /// The lines, from 0; empty if all of them are new.
    pub lines: Range<usize>,
    /// Whether the newer text differs in them.
    pub is_changed: bool,
}

/// Returns the lines of `before` that the lines `lines`, from 0, of `after` come from.
///
/// # Examples
///
/// ```
/// use espalier_series::earlier_lines;
///
/// let found = earlier_lines(b"one\ntwo\nthree\n", b"zero\none\n2\nthree\n", 2..3);
/// assert_eq!((found.lines, found.is_changed), (1..2, true));
/// let found = earlier_lines(b"one\ntwo\nthree\n", b"zero\none\n2\nthree\n", 3..4);
/// assert_eq!((found.lines, found.is_changed), (2..3, false));
/// ```
pub fn earlier_lines(before: &[u8], after: &[u8], lines: Range<usize>) -> EarlierLines {
    let runs = changed_runs(&lines_of(before), &lines_of(after));
    let touching: Vec<&ChangedRun> = runs.iter().filter(|run| touches(&run.new, &lines)).collect();
    let start = match touching.first() {
        Some(run) if run.new.start <= lines.start => run.old.start,
        _ => earlier_line(&runs, lines.start),
    };
    let end = match touching.last() {
        Some(run) if run.new.end >= lines.end => run.old.end,
        _ => earlier_line(&runs, lines.end),
    };
    EarlierLines { lines: start..end.max(start), is_changed: !touching.is_empty() }
}

/// Whether a changed run of the newer text is among `lines`. Lines that were only deleted have no extent there: they
/// count at both ends too, and so does every run at an empty range.
fn touches(new: &Range<usize>, lines: &Range<usize>) -> bool {
    match new.is_empty() || lines.is_empty() {
        true => new.start <= lines.end && new.end >= lines.start,
        false => new.start < lines.end && new.end > lines.start,
    }
}

/// Returns the position in the older text of a line of the newer one that no run contains.
fn earlier_line(runs: &[ChangedRun], at: usize) -> usize {
    match runs.iter().take_while(|run| run.new.end <= at).last() {
        Some(run) => at + run.old.end - run.new.end,
        None => at,
    }
}

#[cfg(test)]
mod tests {
    use super::earlier_lines;

    fn traced(before: &str, after: &str, lines: std::ops::Range<usize>) -> (std::ops::Range<usize>, bool) {
        let found = earlier_lines(before.as_bytes(), after.as_bytes(), lines);
        (found.lines, found.is_changed)
    }

    #[test]
    fn changes_above_move_lines_and_changes_in_them_are_told_apart() {
        let before = "a\nb\nc\nd\ne\n";
        assert_eq!(traced(before, before, 1..3), (1..3, false));
        assert_eq!(traced(before, "x\ny\na\nb\nc\nd\ne\n", 3..5), (1..3, false));
        assert_eq!(traced(before, "c\nd\ne\n", 1..2), (3..4, false));
        assert_eq!(traced(before, "a\nb\nC\nd\ne\n", 1..4), (1..4, true));
        assert_eq!(traced(before, "a\nb\nC\nD\ne\n", 2..3), (2..4, true));
    }

    #[test]
    fn deleted_lines_are_found_where_they_were() {
        assert_eq!(traced("a\nb\nc\nd\n", "a\nd\n", 1..1), (1..3, true));
        assert_eq!(traced("a\nb\nc\nd\n", "a\nd\n", 0..1), (0..3, true));
        assert_eq!(traced("a\nd\n", "a\nb\nc\nd\n", 1..3), (1..1, true));
    }
}
