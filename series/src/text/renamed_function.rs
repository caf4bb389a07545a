//! A function that a newer text has under another name, shown by its uses.

use super::identifiers::{last_word, names_in};
use super::line_diff::{ChangedRun, run_at, slice};
use super::scope_heads::end_of_head;

/// Returns whether the function with the head at line `own` of `base` is the one with the head at line `there` of
/// `ours`, although its head is in another place: upstream may have moved parts of the function into new ones above it.
/// `runs` are the changes from base to ours.
///
/// The head differs in the name only. Neither text has both names, and each line of the base with the old name is, in
/// the same order, a line of ours with the new one; all but the head are replaced where they were, line by line. So
/// everything that called the one calls the other.
pub(crate) fn is_renamed(
    base: &[&[u8]],
    ours: &[&[u8]],
    runs: &[ChangedRun],
    own: usize,
    there: usize,
) -> bool {
    let (Some(old), Some(new)) = (Head::at(base, own), Head::at(ours, there)) else { return false };
    if old.name == new.name || old.rest != new.rest {
        return false;
    }
    if !lines_with(ours, old.name).is_empty() || !lines_with(base, new.name).is_empty() {
        return false;
    }
    let (before, after) = (lines_with(base, old.name), lines_with(ours, new.name));
    let is_same = |(at, now): (&usize, &usize)| {
        let line = base.get(*at).map(|line| with_other_name(line, old.name, new.name));
        let is_replaced = |run: &ChangedRun| {
            run.old.len() == run.new.len() && run.new.start + (*at - run.old.start) == *now
        };
        let is_in_place = || run_at(runs, *at).is_some_and(is_replaced);
        line.as_deref() == ours.get(*now).copied() && ((*at, *now) == (own, there) || is_in_place())
    };
    let is_head = |pair: (&usize, &usize)| pair == (&own, &there);
    let pairs = || before.iter().zip(&after);
    before.len() > 1 && before.len() == after.len() && pairs().all(is_same) && pairs().any(is_head)
}

/// The head of a function, in parts.
struct Head<'l, 'a> {
    name: &'a [u8],
    /// Its first line before and after the name, and the lines below.
    rest: (&'a [u8], &'a [u8], &'l [&'a [u8]]),
}

impl<'l, 'a> Head<'l, 'a> {
    /// Returns the head whose first line is line `at`; `None` without parameters.
    fn at(lines: &'l [&'a [u8]], at: usize) -> Option<Head<'l, 'a>> {
        let line = *lines.get(at)?;
        let (first, after) = line.split_at_checked(line.iter().position(|byte| *byte == b'(')?)?;
        let name = last_word(first);
        let before = first.strip_suffix(name).filter(|_| !name.is_empty())?;
        Some(Head { name, rest: (before, after, slice(lines, at + 1..end_of_head(lines, at))) })
    }
}

/// Returns the lines that have a name.
fn lines_with(lines: &[&[u8]], name: &[u8]) -> Vec<usize> {
    let has_name = |line: &[u8]| names_in(line).any(|(_, word)| word == name);
    lines.iter().enumerate().filter(|(_, line)| has_name(line)).map(|(at, _)| at).collect()
}

/// Returns a line with another name in place of a name.
fn with_other_name(line: &[u8], name: &[u8], other: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    let mut copied = 0;
    for (at, word) in names_in(line).filter(|(_, word)| *word == name) {
        text.extend_from_slice(line.get(copied..at).unwrap_or_default());
        text.extend_from_slice(other);
        copied = at + word.len();
    }
    text.extend_from_slice(line.get(copied..).unwrap_or_default());
    text
}

#[cfg(test)]
mod tests {
    use super::is_renamed;
    use crate::text::line_diff::{histogram_runs, lines_of};

    /// Returns whether the function at line 0 of `base` is the one at line `there` of `ours`.
    fn renamed(base: &str, ours: &str, there: usize) -> bool {
        let (base, ours) = (lines_of(base.as_bytes()), lines_of(ours.as_bytes()));
        is_renamed(&base, &ours, &histogram_runs(&base, &ours), 0, there)
    }

    #[test]
    fn the_uses_show_that_a_function_has_another_name() {
        let text = |above: &str, name: &str, call: &str| {
            format!(
                "{above}int {name}(int a,\n    int b) {{\n    one();\n}}\n\nint run() {{\n    return {call}(1);\n}}\n"
            )
        };
        let base = text("", "walk", "walk");
        let above = "int first(int a) {\n    two();\n}\n\n";
        assert!(renamed(&base, &text(above, "walk_by", "walk_by"), 4));
        assert!(!renamed(&base, &text(above, "walk_by", "first"), 4), "nothing calls it");
        assert!(!renamed(&base, &text(above, "walk_by", "walk"), 4), "the old name is still used");
        assert!(!renamed(&base, &text(above, "walk_by", "walk_by"), 0), "another function");
        let parameters = text(above, "walk_by", "walk_by").replace("int b", "int c");
        assert!(!renamed(&base, &parameters, 4), "other parameters");
        let used_before = format!("{base}int walk_by;\n");
        assert!(!renamed(&used_before, &text(above, "walk_by", "walk_by"), 4), "the name was there before");
        let moved = text(above, "walk_by", "other") + "\nint more() {\n    return walk_by(1);\n}\n";
        assert!(!renamed(&base, &moved, 4), "its caller calls another one");
    }
}
