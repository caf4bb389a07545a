//! Other patches of the series that change a file with a conflict.

use std::collections::HashSet;
use std::ops::Range;

use espalier_series::{Content, FilePatch, Hunk, LineKind, Patch, RepoPath, enclosing_function};

use super::Stopped;
use super::elsewhere::is_telling;
use super::lines::{ConflictLines, ConflictedVersions, FileText, lines_of, text_of};
use crate::report::conflict::OtherPatch;

/// Returns the other patches that change the file of `versions`, in order; `function` is the one around the conflict at
/// `lines`.
pub fn other_patches(
    stopped: &Stopped<'_>,
    (versions, lines): (&ConflictedVersions<'_>, &ConflictLines),
    function: Option<&str>,
) -> Vec<OtherPatch> {
    // An earlier patch may have made lines of the base, a later one may change those that the patch leaves.
    let (before, after) = (
        telling_lines(versions.base.as_ref(), lines.base.as_ref()),
        telling_lines(versions.theirs.as_ref(), lines.theirs.as_ref()),
    );
    let conflict = versions.conflict;
    let here = [&conflict.base, &conflict.ours, &conflict.theirs].into_iter().flatten();
    let paths: Vec<&RepoPath> = here.map(|version| &version.path).chain([&conflict.path]).collect();
    let stack = &stopped.series_move.stack;
    let mut found = Vec::new();
    for (at, (patch, file)) in stack.patches.iter().zip(&stack.files).enumerate() {
        let changes: Vec<&FilePatch> = changes_of(patch, &paths).collect();
        if at == stopped.at || changes.is_empty() {
            continue;
        }
        let same_function = changes
            .iter()
            .any(|change| function.is_some_and(|function| changes_function(stopped, change, function)));
        let same_lines = changes.iter().any(|change| match at < stopped.at {
            true => has_lines(change, &before, |kind| kind == LineKind::Add),
            false => has_lines(change, &after, |kind| kind != LineKind::Add),
        });
        found.push(OtherPatch { file: file.file.clone(), same_function, same_lines });
    }
    found
}

fn changes_of<'p>(patch: &'p Patch, paths: &'p [&RepoPath]) -> impl Iterator<Item = &'p FilePatch> {
    patch.files.iter().filter(move |file| file.paths().any(|path| paths.contains(&path)))
}

/// Returns the lines of one side that say enough to be recognized.
fn telling_lines<'f>(file: Option<&'f FileText<'_>>, lines: Option<&Range<usize>>) -> HashSet<&'f [u8]> {
    let Some((file, lines)) = file.zip(lines) else { return HashSet::new() };
    let lines = lines_of(text_of(&file.text, lines)).map(<[u8]>::trim_ascii);
    lines.filter(|line| is_telling(&[*line])).collect()
}

/// Whether the hunks of a file patch have one of `lines` as a line of the kinds that count.
fn has_lines(change: &FilePatch, lines: &HashSet<&[u8]>, counts: impl Fn(LineKind) -> bool) -> bool {
    let Content::Text(hunks) = &change.content else { return false };
    let mut all = hunks.iter().flat_map(|hunk| hunk.lines.iter());
    all.any(|line| counts(line.kind) && lines.contains(line.bytes.trim_ascii()))
}

/// Whether a file of a patch is changed in the function with the head `function`, in the file that it was made from.
fn changes_function(stopped: &Stopped<'_>, change: &FilePatch, function: &str) -> bool {
    let (Some(old), Content::Text(hunks)) = (&change.old, &change.content) else { return false };
    let Some(text) = old.id.and_then(|id| stopped.replay.blob(id).ok()) else { return false };
    let is_in_it = |hunk: &Hunk| {
        let found = enclosing_function(old.path.as_bytes(), &text, first_change(hunk));
        found.is_some_and(|found| found.name == function)
    };
    hunks.iter().any(is_in_it)
}

/// Returns the line, from 0, of the first changed line in the file that the hunk was made from.
fn first_change(hunk: &Hunk) -> usize {
    let context = hunk.lines.iter().take_while(|line| line.kind == LineKind::Context).count();
    hunk.old_lines_before() + context
}
