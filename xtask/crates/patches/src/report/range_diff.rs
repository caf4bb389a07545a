//! Changes of a patch's hunks between its versions before and after a rebase.

use espalier_series::{Hunk, LineKind, Patch, hunks_between};
use serde::Serialize;

use super::rebase::Fate;
use super::status::{hunk_texts, signed_line};

/// Classifies the change from `old` to `new`.
pub fn fate(old: &Patch, new: &Patch) -> Fate {
    if lines(old, Detail::All) == lines(new, Detail::All) {
        Fate::Unchanged
    } else if lines(old, Detail::ChangesOnly) == lines(new, Detail::ChangesOnly) {
        Fate::ContextOnly
    } else {
        Fate::Changed
    }
}

/// The difference between the hunks of two patches; `None` when there is none. Line numbers are ignored.
pub fn range_diff(old: &Patch, new: &Patch) -> Option<String> {
    let (old, new) = (lines(old, Detail::All).concat(), lines(new, Detail::All).concat());
    if old == new {
        return None;
    }
    // Omit the line numbers: they refer to the concatenated hunks, not to any file.
    let text = |hunk: &Hunk| {
        let lines = hunk.lines.iter().map(|line| signed_line(line.kind, line.bytes));
        ["@@".to_string()].into_iter().chain(lines).collect::<Vec<_>>().join("\n")
    };
    let hunks = hunks_between(old.as_bytes(), new.as_bytes());
    Some(hunks.iter().map(text).collect::<Vec<_>>().join("\n"))
}

/// Numbers of lines that two versions of a patch add and delete differently.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LinesBetween {
    /// Lines that only the old version adds or deletes.
    pub only_old: usize,
    /// Lines that only the new one adds or deletes.
    pub only_new: usize,
}

/// Returns the numbers of changed lines that are in one of the two versions only; context does not count. Without a new
/// version, all lines are in the old one.
pub fn lines_between(old: &Patch, new: Option<&Patch>) -> LinesBetween {
    let changes = |patch: &Patch| -> String {
        let lines = lines(patch, Detail::ChangesOnly);
        lines.into_iter().filter(|line| line.starts_with(['+', '-'])).collect()
    };
    let (old, new) = (changes(old), new.map(changes).unwrap_or_default());
    let hunks = hunks_between(old.as_bytes(), new.as_bytes());
    let count = |kind: LineKind| {
        hunks.iter().flat_map(|hunk| hunk.lines.iter()).filter(|line| line.kind == kind).count()
    };
    LinesBetween { only_old: count(LineKind::Delete), only_new: count(LineKind::Add) }
}

#[derive(Clone, Copy, PartialEq)]
enum Detail {
    All,
    ChangesOnly,
}

/// The hunks as lines: a heading where the file or the function changes, then their content.
fn lines(patch: &Patch, detail: Detail) -> Vec<String> {
    let mut lines = Vec::new();
    let mut file = None;
    for hunk in hunk_texts(patch) {
        if file.as_ref() != Some(&hunk.path) {
            lines.push(format!("## {} ##\n", hunk.path));
            file = Some(hunk.path.clone());
        }
        if detail == Detail::All {
            lines.push(format!("{}\n", without_numbers(&hunk.header)));
        }
        let wanted = |line: &&String| detail == Detail::All || !line.starts_with(' ');
        lines.extend(hunk.lines.iter().filter(wanted).map(|line| format!("{line}\n")));
    }
    lines
}

/// Shortens `@@ -1,7 +1,8 @@ function` to `@@ function`; other headers are kept.
fn without_numbers(header: &str) -> String {
    match header.strip_prefix("@@ ").and_then(|rest| rest.split_once(" @@")) {
        Some((_, section)) => format!("@@{section}"),
        None => header.to_string(),
    }
}

/// The fate of a replayed patch and its range-diff; a patch without a new version was dropped. Both a real rebase and a
/// dry run use this rule.
pub fn settled(old: &Patch, new: Option<&Patch>, no_range_diff: bool) -> (Fate, Option<String>) {
    let shown = new.filter(|_| !no_range_diff);
    (new.map_or(Fate::Dropped, |new| fate(old, new)), shown.and_then(|new| range_diff(old, new)))
}
