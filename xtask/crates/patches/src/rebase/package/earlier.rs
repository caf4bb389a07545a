//! Earlier patches of the series that changed the lines of a conflict, where upstream did not: a resolution has
//! consequences in the patches after it.

use std::ops::Range;

use espalier_core::error::Result;
use espalier_core::sys::git::tree::GitTree;
use espalier_core::sys::project::inputs::PatchFile;
use espalier_series::{Change, Content, FilePatch, Hunk, ObjectId, Patch, earlier_lines};

use super::Stopped;
use super::lines::{ConflictLines, ConflictedVersions, FileText, text_of};
use crate::rebase::target::SeriesMove;

/// Returns the files of the earlier patches that changed the lines when they were resolved or dropped; empty if it is not
/// known which did. `None` if upstream changed the lines, or if that is not known.
pub fn changed_by_earlier(
    stopped: &Stopped<'_>,
    versions: &ConflictedVersions<'_>,
    lines: &ConflictLines,
) -> Option<Vec<String>> {
    // What differs there is the sibling.
    lines.kind.filter(|_| stopped.sibling.is_none())?;
    let base = versions.base.as_ref().zip(lines.base.as_ref())?;
    let ours = versions.ours.as_ref().zip(lines.ours.as_ref())?;
    let SeriesMove { stack, tip, .. } = stopped.series_move;
    let old = upstream_lines(stopped, stack.pin.tree, base).ok()?;
    let new = upstream_lines(stopped, tip.tree, ours).ok()?;
    let is_upstreams = match (old, new) {
        (Some(old), Some(new)) => old != new,
        (None, None) => !is_created(stopped, base.0),
        _ => true,
    };
    (!is_upstreams).then(|| decided(stopped, base))
}

/// Returns the lines of the upstream tree `tree` that `lines` of the file come from; `None` if it lacks the file.
fn upstream_lines(
    stopped: &Stopped<'_>,
    tree: ObjectId,
    (file, lines): (&FileText<'_>, &Range<usize>),
) -> Result<Option<Vec<u8>>> {
    let store = stopped.series_move.store;
    let Some(entry) = GitTree::new(store, tree)?.entry(file.path.as_bytes())? else { return Ok(None) };
    let text = store.read(entry.id)?;
    let earlier = earlier_lines(&text, &file.text, lines.clone()).lines;
    Ok(Some(text_of(&text, &earlier).to_vec()))
}

/// Whether an earlier patch creates the file, so that it is not upstream's.
fn is_created(stopped: &Stopped<'_>, file: &FileText<'_>) -> bool {
    let creates = |change: &FilePatch| {
        change.change == Change::Create && change.new.as_ref().is_some_and(|new| new.path == *file.path)
    };
    earlier(stopped).any(|(_, patch, _)| patch.files.iter().any(creates))
}

/// The patches before the one that stopped: index, patch and file.
fn earlier<'s>(stopped: &Stopped<'s>) -> impl Iterator<Item = (usize, &'s Patch, &'s PatchFile)> {
    let stack = &stopped.series_move.stack;
    let patches = stack.patches.iter().zip(&stack.files).take(stopped.at).enumerate();
    patches.map(|(at, (patch, file))| (at, patch, file))
}

/// Returns the files of the earlier patches that a person has resolved or dropped, in this rebase or with a sibling: those
/// that made lines of the base, or, if there are none, those that change the file.
fn decided(stopped: &Stopped<'_>, base: (&FileText<'_>, &Range<usize>)) -> Vec<String> {
    let is_by_hand = |at: usize| {
        stopped.done.get(at).is_some_and(|done| done.by_hand) || stopped.series_move.sibling(at).is_some()
    };
    let (mut of_lines, mut of_file) = (Vec::new(), Vec::new());
    for (_, patch, file) in earlier(stopped).filter(|(at, _, _)| is_by_hand(*at)) {
        let is_it = |change: &&FilePatch| change.new.as_ref().is_some_and(|new| new.path == *base.0.path);
        let Some(change) = patch.files.iter().find(is_it) else { continue };
        of_file.push(file.file.clone());
        if made_lines(stopped, change, base) {
            of_lines.push(file.file.clone());
        }
    }
    if of_lines.is_empty() { of_file } else { of_lines }
}

/// Whether a file patch changed lines that `lines` of the base come from.
fn made_lines(
    stopped: &Stopped<'_>,
    change: &FilePatch,
    (base, lines): (&FileText<'_>, &Range<usize>),
) -> bool {
    let (Some(new), Content::Text(hunks)) = (&change.new, &change.content) else { return false };
    let Some(text) = new.id.and_then(|id| stopped.replay.blob(id).ok()) else { return false };
    let earlier = earlier_lines(&text, &base.text, lines.clone()).lines;
    let touches = |hunk: &Hunk| {
        let start = hunk.new_lines_before();
        start <= earlier.end && start + hunk.new_count >= earlier.start
    };
    hunks.iter().any(touches)
}
