//! Other patches of the series that change a file with a conflict.

use espalier_series::{Content, FilePatch, Hunk, LineKind, Patch, RepoPath, enclosing_function};

use super::Stopped;
use super::lines::ConflictedVersions;
use crate::report::conflict::OtherPatch;

/// Returns the other patches that change the file of `versions`, in order; `function` is the one around the conflict.
pub fn other_patches(
    stopped: &Stopped<'_>,
    versions: &ConflictedVersions<'_>,
    function: Option<&str>,
) -> Vec<OtherPatch> {
    let conflict = versions.conflict;
    let here = [&conflict.base, &conflict.ours, &conflict.theirs].into_iter().flatten();
    let paths: Vec<&RepoPath> = here.map(|version| &version.path).chain([&conflict.path]).collect();
    let stack = &stopped.series_move.stack;
    let mut found = Vec::new();
    for (at, (patch, file)) in stack.patches.iter().zip(&stack.files).enumerate() {
        let mut changes = changes_of(patch, &paths).peekable();
        if at != stopped.at && changes.peek().is_some() {
            let same_function = changes
                .any(|change| function.is_some_and(|function| changes_function(stopped, change, function)));
            found.push(OtherPatch { file: file.file.clone(), same_function });
        }
    }
    found
}

fn changes_of<'p>(patch: &'p Patch, paths: &'p [&RepoPath]) -> impl Iterator<Item = &'p FilePatch> {
    patch.files.iter().filter(move |file| file.paths().any(|path| paths.contains(&path)))
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
