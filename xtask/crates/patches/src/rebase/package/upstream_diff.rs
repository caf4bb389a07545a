//! Upstream's change of a file around a conflict, from the two trees alone: the commits that made it are often missing.

use std::ops::Range;

use espalier_core::error::Result;
use espalier_core::sys::git::store::{Bytes, Store};
use espalier_core::sys::git::tree::GitTree;
use espalier_series::{Hunk, ObjectId, RepoPath, earlier_lines, hunks_between};

use super::diff_text::{diff_text, fitting, of_file};
use super::lines::{ConflictLines, ConflictedVersions, FileText, function_around};
use crate::rebase::target::SeriesMove;
use crate::report::conflict::UpstreamDiff;
use crate::report::content::Content;

/// Size limit of a diff, in bytes.
pub const DIFF_LIMIT: usize = 8 << 10;

/// The change of a file around one place.
pub struct ChangeAround {
    /// It in the description, of limited size.
    pub diff: UpstreamDiff,
    /// All of it.
    pub whole: Vec<u8>,
    /// The first line in the new file of each hunk of `diff`.
    pub shown: Vec<usize>,
}

/// Returns the change between the two trees of the file of `versions` in the function around `lines`, or near them where
/// there is no function; `None` if there is none, or if it is not text.
pub fn change_around(
    series_move: &SeriesMove<'_>,
    versions: &ConflictedVersions<'_>,
    lines: &ConflictLines,
) -> Result<Option<ChangeAround>> {
    let SeriesMove { store, stack, tip, .. } = series_move;
    let Some(base) = &versions.base else { return Ok(None) };
    let new_path = versions.ours.as_ref().map_or(base.path, |ours| ours.path);
    let (old, new) = (file_at(store, stack.pin.tree, base.path)?, file_at(store, tip.tree, new_path)?);
    let (old, new) = match (old, new) {
        (Some(old), Some(new)) => (old, new),
        (Some(_), None) => return Ok(Some(ChangeAround::of_file("deleted file", base.path))),
        (None, Some(_)) => return Ok(Some(ChangeAround::of_file("new file", new_path))),
        (None, None) => return Ok(None),
    };
    let is_text = !old.contains(&0) && !new.contains(&0);
    let Some((ours, lines)) = versions.ours.as_ref().zip(lines.ours.as_ref()).filter(|_| is_text) else {
        return Ok(None);
    };
    // Earlier patches of the series are in the file too, and not upstream's.
    let at = earlier_lines(&new, &ours.text, lines.clone()).lines;
    let file = FileText { path: new_path, text: new.to_vec() };
    let (_, around) = function_around(&file, &at);
    let paths = [base.path.as_bytes(), new_path.as_bytes()];
    Ok(ChangeAround::of_hunks(paths, &hunks_between(&old, &new), (&at, &around)))
}

/// Returns the file at `path` of an upstream tree, if it has one.
fn file_at(store: &Store, tree: ObjectId, path: &RepoPath) -> Result<Option<Bytes>> {
    let entry = GitTree::new(store, tree)?.entry(path.as_bytes())?;
    entry.map(|entry| store.read(entry.id)).transpose()
}

impl ChangeAround {
    fn of_file(what: &str, path: &RepoPath) -> ChangeAround {
        let whole = of_file(what, path.as_bytes());
        let diff = UpstreamDiff { content: Content::of(&whole, DIFF_LIMIT), hunks_left_out: 0 };
        ChangeAround { diff, whole, shown: Vec::new() }
    }

    /// Takes the hunks that touch the lines `around` of the new file, those nearest to the lines `at` first.
    fn of_hunks(
        paths: [&[u8]; 2],
        all: &[Hunk],
        (at, around): (&Range<usize>, &Range<usize>),
    ) -> Option<ChangeAround> {
        let near = |hunk: &Hunk| distance(hunk, around) == 0;
        let mut hunks: Vec<(usize, &Hunk)> = all.iter().enumerate().filter(|(_, hunk)| near(hunk)).collect();
        if hunks.is_empty() {
            return None;
        }
        let whole = diff_text(paths, hunks.iter().map(|(_, hunk)| *hunk));
        hunks.sort_by_key(|(_, hunk)| distance(hunk, at));
        let kept = fitting(&hunks, DIFF_LIMIT);
        let kept: Vec<&Hunk> = kept.into_iter().filter_map(|at| all.get(at)).collect();
        let content = Content::of(&diff_text(paths, kept.iter().copied()), DIFF_LIMIT);
        let diff = UpstreamDiff { content, hunks_left_out: all.len() - kept.len() };
        Some(ChangeAround { diff, whole, shown: kept.iter().map(|hunk| hunk.new_start).collect() })
    }
}

/// Returns the number of lines between a hunk and `lines` of the new file; 0 if they touch.
fn distance(hunk: &Hunk, lines: &Range<usize>) -> usize {
    let start = hunk.new_lines_before();
    let end = start + hunk.new_count;
    start.saturating_sub(lines.end).max(lines.start.saturating_sub(end))
}

#[cfg(test)]
mod tests {
    use serde_json::to_value;

    use super::{ChangeAround, DIFF_LIMIT, hunks_between};

    /// Returns a text of 400 lines, of which the given ones are changed.
    fn text(changed: &[usize]) -> Vec<u8> {
        let line = |at: usize| match changed.contains(&at) {
            true => format!("line {at} {}\n", "changed ".repeat(200)),
            false => format!("line {at}\n"),
        };
        (0..400).map(line).collect::<String>().into_bytes()
    }

    #[test]
    fn the_nearest_hunks_are_shown_and_the_others_counted() {
        let hunks = hunks_between(&text(&[]), &text(&[10, 60, 110, 160, 210, 260, 310]));
        let around = ChangeAround::of_hunks([b"a.c", b"a.c"], &hunks, (&(210..211), &(50..320))).unwrap();
        let diff = to_value(&around.diff).unwrap();
        let shown = diff["text"].as_str().unwrap();
        assert!(shown.len() <= DIFF_LIMIT, "{}", shown.len());
        assert_eq!(around.shown, [108, 158, 208, 258]);
        assert_eq!(diff["hunks_left_out"], 3);
        assert!(!shown.contains("+line 60 ") && shown.contains("+line 210 "), "{shown}");
        let whole = String::from_utf8(around.whole).unwrap();
        assert!(whole.contains("+line 60 ") && !whole.contains("+line 10 "), "{whole}");
        assert!(ChangeAround::of_hunks([b"a.c", b"a.c"], &hunks, (&(30..31), &(25..40))).is_none());
    }
}
