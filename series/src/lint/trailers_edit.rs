//! Insertion and replacement of trailers in a commit message, or in the text of a patch; every other byte is kept.

use super::trailers::PLACEHOLDER;
use crate::model::patch::{Patch, Trailer};
use crate::read::mail::{ends_message, find_trailers};

/// Returns `message` with those of `wanted` (key, value) that it does not have yet added to its last paragraph.
///
/// # Examples
///
/// ```
/// use espalier_series::add_trailers;
///
/// let wanted = [("Numerics".to_owned(), "identical".to_owned())];
/// let message = add_trailers("server: log the queue\n\nDrop-when: upstream logs it\n", &wanted);
/// assert_eq!(message, "server: log the queue\n\nDrop-when: upstream logs it\nNumerics: identical\n");
/// assert_eq!(add_trailers(&message, &wanted), message);
/// ```
pub fn add_trailers(message: &str, wanted: &[(String, String)]) -> String {
    let body: Vec<(usize, &str)> = message.lines().enumerate().skip(1).collect();
    let there = find_trailers(&body);
    let is_there = |key: &str| there.iter().any(|trailer| trailer.key.eq_ignore_ascii_case(key));
    let missing: String = wanted
        .iter()
        .filter(|(key, _)| !is_there(key))
        .map(|(key, value)| format!("{key}: {value}\n"))
        .collect();
    let gap = if there.is_empty() { "\n\n" } else { "\n" };
    if missing.is_empty() { message.to_owned() } else { format!("{}{gap}{missing}", message.trim_end()) }
}

/// The trailers of a patch that are set to another value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetWhich {
    /// Those whose value is [`PLACEHOLDER`], and missing ones.
    Unfilled,
    /// All.
    All,
}

/// Returns `text`, from which `patch` was parsed, with the value of the trailer `key` set; `None` if nothing changes. A
/// missing trailer is added as the last one.
///
/// # Examples
///
/// ```
/// use espalier_series::{SetWhich, parse, set_trailer};
///
/// let text = "\
/// From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001
/// From: A U Thor <author@example.com>
/// Date: Thu, 1 Jan 2026 00:00:00 +0000
/// Subject: [PATCH] add an empty file
///
/// Numerics: TODO
/// ---
/// diff --git a/empty b/empty
/// new file mode 100644
/// index 0000000000000000000000000000000000000000..e69de29bb2d1d6434b8b29ae775ad8c2e48c5391
/// ";
/// let patch = parse("0001-add-an-empty-file.patch", text.as_bytes()).unwrap();
/// let set = |value| set_trailer(text.as_bytes(), &patch, "Numerics", value, SetWhich::Unfilled);
/// assert_eq!(set("identical").unwrap(), text.replace("TODO", "identical").into_bytes());
/// assert_eq!(set("TODO"), None);
/// ```
pub fn set_trailer(text: &[u8], patch: &Patch, key: &str, value: &str, which: SetWhich) -> Option<Vec<u8>> {
    let is_it = |trailer: &&Trailer| trailer.key.eq_ignore_ascii_case(key);
    let found: Vec<&Trailer> = patch.trailers.iter().filter(is_it).collect();
    let is_old = |trailer: &&&Trailer| which == SetWhich::All || trailer.value == PLACEHOLDER;
    let old: Vec<usize> = found.iter().filter(is_old).map(|trailer| trailer.line).collect();
    let new_line = format!("{key}: {value}\n");
    let changed = match (old.first(), found.is_empty()) {
        (Some(_), _) => replace_lines(text, &old, &new_line),
        (None, true) => insert(text, patch, &new_line),
        (None, false) => return None,
    };
    (changed != text).then_some(changed)
}

/// Replaces the first of `lines` (from 1) by `new` and removes the others, each with its continuation lines.
fn replace_lines(text: &[u8], lines: &[usize], new: &str) -> Vec<u8> {
    let mut changed = Vec::with_capacity(text.len() + new.len());
    let mut in_old = false;
    for (number, line) in (1..).zip(text.split_inclusive(|byte| *byte == b'\n')) {
        in_old = lines.contains(&number) || (in_old && continues(line));
        if lines.first() == Some(&number) {
            changed.extend_from_slice(new.as_bytes());
        } else if !in_old {
            changed.extend_from_slice(line);
        }
    }
    changed
}

fn continues(line: &[u8]) -> bool {
    line.starts_with(b" ") || line.starts_with(b"\t")
}

/// Inserts after the last trailer, or as a paragraph of its own at the end of the message.
fn insert(text: &[u8], patch: &Patch, new: &str) -> Vec<u8> {
    let after = patch.trailers.last().map_or(patch.subject_line, |trailer| trailer.line);
    let mut changed = Vec::with_capacity(text.len() + new.len());
    let mut inserted = false;
    for (number, line) in (1..).zip(text.split_inclusive(|byte| *byte == b'\n')) {
        let is_end = match patch.trailers.is_empty() {
            true => ends_message(line.strip_suffix(b"\n").unwrap_or(line)),
            false => !continues(line),
        };
        if !inserted && number > after && is_end {
            inserted = true;
            let gap = if patch.trailers.is_empty() { paragraph_gap(&changed) } else { "" };
            changed.extend_from_slice(gap.as_bytes());
            changed.extend_from_slice(new.as_bytes());
        }
        changed.extend_from_slice(line);
    }
    changed
}

fn paragraph_gap(before: &[u8]) -> &'static str {
    if before.ends_with(b"\n\n") { "" } else { "\n" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::parse::parse;

    fn wanted(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn missing_trailers_join_those_that_are_there() {
        let all = wanted(&[("Upstream-Status", "Pending"), ("Numerics", "TODO")]);
        assert_eq!(add_trailers("a\n", &all), "a\n\nUpstream-Status: Pending\nNumerics: TODO\n");
        let signed = "a\n\nWhy: because.\n\nSigned-off-by: A <a@b>\nNumerics: identical\n";
        assert_eq!(add_trailers(signed, &all), format!("{signed}Upstream-Status: Pending\n"));
        assert_eq!(
            add_trailers("a\n\nprose: x\nmore\n", &all[..1]),
            "a\n\nprose: x\nmore\n\nUpstream-Status: Pending\n"
        );
        assert_eq!(add_trailers("fix: a\n", &all[..1]), "fix: a\n\nUpstream-Status: Pending\n");
    }

    const DIFF: &str = "---\n f | 0\n\ndiff --git a/f b/f\nnew file mode 100644\nindex \
        0000000000000000000000000000000000000000..e69de29bb2d1d6434b8b29ae775ad8c2e48c5391\n";

    fn set(message: &str, key: &str, value: &str, which: SetWhich) -> Option<String> {
        let head = "From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001\nFrom: A <a@b>\n\
                    Date: Thu, 1 Jan 2026 00:00:00 +0000\nSubject: [PATCH] s\n\n";
        let text = format!("{head}{message}{DIFF}");
        let patch = parse("0001-s.patch", text.as_bytes()).unwrap();
        let changed = set_trailer(text.as_bytes(), &patch, key, value, which)?;
        let again = parse("0001-s.patch", &changed).unwrap();
        assert!(again.trailers.iter().any(|trailer| trailer.key == key && trailer.value == value));
        let changed = String::from_utf8(changed).unwrap();
        Some(changed.strip_prefix(head).unwrap().strip_suffix(DIFF).unwrap().to_owned())
    }

    #[test]
    fn only_empty_trailers_are_set() {
        let message = "why\n\nNumerics: TODO\nDrop-when: never\n";
        let set = |key: &str, value: &str, which| set(message, key, value, which);
        let numerics = set("Numerics", "identical", SetWhich::Unfilled).unwrap();
        assert_eq!(numerics, "why\n\nNumerics: identical\nDrop-when: never\n");
        assert_eq!(set("Drop-when", "soon", SetWhich::Unfilled), None);
        assert_eq!(set("Drop-when", "never", SetWhich::All), None);
        let soon = set("Drop-when", "soon", SetWhich::All).unwrap();
        assert_eq!(soon, "why\n\nNumerics: TODO\nDrop-when: soon\n");
    }

    #[test]
    fn one_that_is_missing_becomes_the_last() {
        let add = |message: &str| set(message, "Numerics", "identical", SetWhich::Unfilled).unwrap();
        assert_eq!(add(""), "Numerics: identical\n");
        assert_eq!(add("why\n"), "why\n\nNumerics: identical\n");
        assert_eq!(add("Bug: x\n y\n"), "Bug: x\n y\nNumerics: identical\n");
        let all = set("Bug: x\n y\nBug: z\nA: b\n", "Bug", "q", SetWhich::All).unwrap();
        assert_eq!(all, "Bug: q\nA: b\n");
    }
}
