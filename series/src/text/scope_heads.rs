//! The scopes around a place, each with all lines of its head.
//!
//! `FunctionMap::scopes_around` takes each scope for one line. A parameter list is often indented less than the body
//! below it, so that its last line counts as a scope of its own; so does the last line of a condition. A change of such
//! a line is not a change of the scope: here a head has all of its lines.

use std::ops::Range;

use super::function::{SCOPE_SEARCH_LIMIT, indentation, is_control_flow, scope_indentation};
use crate::model::signed::signed;

/// Number of lines that a head may take.
const HEAD_LIMIT: usize = 64;

/// Returns the heads of the scopes around the last line before line `at` (from 0) that is not blank, innermost first:
/// lines above it that are indented less, each less than the one before, without control flow and statements. Returns
/// `None` if the search gets too long.
pub(crate) fn scope_heads(lines: &[&[u8]], at: usize) -> Option<Vec<Range<usize>>> {
    let mut heads = Vec::new();
    let Some(anchor) = lines.get(..at)?.iter().rposition(|line| indentation(line).is_some()) else {
        return Some(heads);
    };
    let lowest = anchor.saturating_sub(SCOPE_SEARCH_LIMIT);
    let mut limit = indentation(lines.get(anchor)?)?;
    let mut end = anchor;
    while limit > 0 {
        let is_outer = |line: &&[u8]| scope_indentation(line).is_some_and(|indent| indent < limit);
        let Some(found) = lines.get(lowest..end)?.iter().rposition(is_outer) else {
            return (lowest == 0).then_some(heads);
        };
        let last = lowest + found;
        let is_head = |first: &usize| lines.get(*first).is_some_and(is_outer);
        let first = first_line_of_head(lines, last).filter(is_head).unwrap_or(last);
        let head = first..end_of_head(lines, first).max(last + 1);
        limit = scope_indentation(lines.get(first)?)?;
        end = first;
        let text = lines.get(first)?.trim_ascii();
        // A scope that was closed above does not contain the line, but hides the scopes inside of it.
        if !is_control_flow(text) && !text.starts_with(b"}") && !is_statement(lines, &head, anchor) {
            heads.push(head);
        }
    }
    Some(heads)
}

/// Returns whether these lines are a statement or a declaration that has ended at line `anchor`: it contains nothing
/// below it.
fn is_statement(lines: &[&[u8]], head: &Range<usize>, anchor: usize) -> bool {
    let last = head.end.checked_sub(1).and_then(|last| lines.get(last));
    head.end <= anchor + 1 && last.is_some_and(|line| line.trim_ascii().ends_with(b";"))
}

/// Returns the line with the parenthesis that line `last` closes.
fn first_line_of_head(lines: &[&[u8]], last: usize) -> Option<usize> {
    let mut closed = -opened_by(lines.get(last)?);
    if closed <= 0 {
        return None;
    }
    for at in (last.saturating_sub(HEAD_LIMIT)..last).rev() {
        let line = lines.get(at)?;
        if ends_statement(line) {
            return None;
        }
        closed -= opened_by(line);
        if closed <= 0 {
            return (closed == 0).then_some(at);
        }
    }
    None
}

/// Returns the line after the one that closes the parentheses of line `first`; the line after `first` if none does.
pub(crate) fn end_of_head(lines: &[&[u8]], first: usize) -> usize {
    let mut open = 0;
    for (at, line) in lines.iter().enumerate().skip(first).take(HEAD_LIMIT + 1) {
        open += opened_by(line);
        if open <= 0 {
            return at + 1;
        }
        if ends_statement(line) {
            break;
        }
    }
    first + 1
}

/// Returns the number of parentheses that a line opens, less those that it closes.
fn opened_by(line: &[u8]) -> i64 {
    let count = |wanted: u8| line.iter().filter(|byte| **byte == wanted).count();
    signed(count(b'(')) - signed(count(b')'))
}

/// Returns whether no head goes on below this line.
fn ends_statement(line: &[u8]) -> bool {
    line.trim_ascii().last().is_none_or(|byte| b";{}".contains(byte))
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::scope_heads;
    use crate::text::line_diff::lines_of;

    /// Returns the heads around the place above the line that contains `below`.
    fn heads(text: &str, below: &str) -> Vec<Range<usize>> {
        let lines = lines_of(text.as_bytes());
        let at = text.lines().position(|line| line.contains(below)).unwrap();
        scope_heads(&lines, at).unwrap()
    }

    #[test]
    fn a_head_has_all_of_its_lines() {
        let text = "class box {\n    int one(int a,\n      int b,\n      int c) {\n        x();\n        y();\n    \
                    }\n};\n";
        assert_eq!(heads(text, "y();"), [1..4, 0..1]);
        let far = text.replace("\n      int", "\n            int");
        assert_eq!(heads(&far, "y();"), [1..4, 0..1]);
        assert_eq!(heads(&text.replace("a,\n      int b,\n      int c", "a"), "y();"), [1..2, 0..1]);
    }

    #[test]
    fn the_last_line_of_a_condition_is_not_a_scope() {
        let text = "int one(int a,\n    int b)\n{\n\tswitch (pick(a,\n\t    b)) {\n\tcase 1:\n\t\tx();\n\t\t\
                    y();\n\t}\n}\n";
        let whole = 0..2;
        assert_eq!(heads(text, "y();"), [whole.clone()]);
        let without = text.replace("\tswitch (pick(a,\n\t    b)) {\n", "\tswitch (a) {\n");
        assert_eq!(heads(&without, "y();"), [whole]);
    }

    /// An unbalanced parenthesis, or one above another statement, opens no head.
    #[test]
    fn a_line_that_closes_nothing_above_is_a_head_of_its_own() {
        for above in ["", "    z();\n", "    // see z(\n", "    ((\n"] {
            let text = format!(
                "class box {{\n{above}    int one() // :)\n    {{\n        x();\n        y();\n    }}\n}};\n"
            );
            let one = 1 + above.lines().count();
            assert_eq!(heads(&text, "y();").first(), Some(&(one..one + 1)), "{above}");
        }
    }

    #[test]
    fn a_statement_over_several_lines_ends_there() {
        let text = "int one(int a) {\n    call(a,\n        a);\n    x();\n}\n";
        let one = 0..1;
        assert_eq!(heads(text, "x();"), [one.clone()]);
        // Above its last line it has not ended.
        assert_eq!(heads(&text.replace("(a,\n", "(a,\n        b,\n"), "a);"), [1..4, one]);
    }
}
