//! How the hunks of a patch changed while it was moved.

use super::rebase::Fate;
use super::status::{hunk_texts, signed_line};
use crate::series::{Hunk, Patch, hunks_between};

/// Whether `new` still does what `old` did.
pub fn fate(old: &Patch, new: &Patch) -> Fate {
    if lines(old, Detail::All) == lines(new, Detail::All) {
        Fate::Unchanged
    } else if lines(old, Detail::ChangesOnly) == lines(new, Detail::ChangesOnly) {
        Fate::ContextOnly
    } else {
        Fate::Changed
    }
}

/// The difference between the hunks of two patches; nothing when there is none. Line numbers do not count.
pub fn range_diff(old: &Patch, new: &Patch) -> Option<String> {
    let (old, new) = (lines(old, Detail::All).concat(), lines(new, Detail::All).concat());
    if old == new {
        return None;
    }
    // The numbers of a hunk count lines of a text that nobody has.
    let text = |hunk: &Hunk| {
        let lines = hunk.lines.iter().map(|line| signed_line(line.kind, line.bytes));
        ["@@".to_string()].into_iter().chain(lines).collect::<Vec<_>>().join("\n")
    };
    let hunks = hunks_between(old.as_bytes(), new.as_bytes());
    Some(hunks.iter().map(text).collect::<Vec<_>>().join("\n"))
}

#[derive(Clone, Copy, PartialEq)]
enum Detail {
    All,
    ChangesOnly,
}

/// The hunks as lines: a heading where the file or the function changes, then what is in them.
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

/// `@@ -1,7 +1,8 @@ function` as `@@ function`. What is no hunk stays.
fn without_numbers(header: &str) -> String {
    match header.strip_prefix("@@ ").and_then(|rest| rest.split_once(" @@")) {
        Some((_, section)) => format!("@@{section}"),
        None => header.to_string(),
    }
}

/// What a patch that is settled became, and how its hunks changed: nothing of it is left without a new one. The one rule, for
/// a rebase that is made and for one that is only tried.
pub fn settled(old: &Patch, new: Option<&Patch>, no_range_diff: bool) -> (Fate, Option<String>) {
    let shown = new.filter(|_| !no_range_diff);
    (new.map_or(Fate::Dropped, |new| fate(old, new)), shown.and_then(|new| range_diff(old, new)))
}
