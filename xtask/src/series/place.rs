//! Where a patch that is not exact would go, for reports about the patches after it.
//!
//! Nothing is ever built from this: `apply` takes what is exact and nothing else.

use std::collections::HashSet;
use std::sync::Arc;

use super::apply::blob_id;
use super::apply_patch::apply_one;
use super::apply_text::apply_hunks;
use super::collision::leaving_paths;
use super::drift::{FileDriftKind, HunkClass, HunkDrift, PatchClass, PatchDrift};
use super::mode::FileMode;
use super::model::{Change, Content, FilePatch, Hunk, Patch};
use super::target::{Failure, require_room};
use super::tree::{NewFile, Tree, TreeChange, TreeError};

/// What `patch` would change in `tree` when each hunk goes where it fits. Hunks and files that
/// upstream has already are left out.
///
/// `None` unless there is exactly one such place for each of the others, in its own function.
pub(crate) fn place_patch(
    patch: &Patch,
    drift: &PatchDrift,
    tree: &dyn Tree,
) -> Result<Option<Vec<TreeChange>>, TreeError> {
    if drift.class == PatchClass::Upstreamed {
        return Ok(Some(Vec::new()));
    }
    let leaving = leaving_paths(patch);
    let mut changes = Vec::new();
    for (file, found) in patch.files.iter().zip(&drift.files) {
        match place_file(file, &found.kind, tree, &leaving) {
            Ok(Some(placed)) => changes.extend(placed),
            Err(Failure::Tree(error)) => return Err(error),
            Ok(None) | Err(_) => return Ok(None),
        }
    }
    changes.sort_by_key(|change| change.new.is_some());
    Ok(Some(changes))
}

fn place_file(
    file: &FilePatch,
    kind: &FileDriftKind,
    tree: &dyn Tree,
    leaving: &HashSet<&[u8]>,
) -> Result<Option<Vec<TreeChange>>, Failure> {
    match (kind, &file.content) {
        (FileDriftKind::Exact, _) => apply_one(file, tree, leaving).map(Some),
        (FileDriftKind::Upstreamed, _) => Ok(Some(Vec::new())),
        (FileDriftKind::Hunks { hunks: drifts, .. }, Content::Text(hunks)) => {
            let Some(moved) = moved_hunks(hunks, drifts) else { return Ok(None) };
            place_hunks(file, &moved, tree, leaving)
        }
        _ => Ok(None),
    }
}

/// The hunks at the places where they fit, in the order of the file as it is now.
fn moved_hunks(hunks: &[Hunk], drifts: &[HunkDrift]) -> Option<Vec<Hunk>> {
    let mut moved = Vec::new();
    for (hunk, drift) in hunks.iter().zip(drifts) {
        let offset = match drift.class {
            HunkClass::Exact => 0,
            HunkClass::Shifted { offset } => isize::try_from(offset).ok()?,
            HunkClass::Upstreamed => continue,
            HunkClass::MovedFunction { .. } | HunkClass::Ambiguous | HunkClass::Conflict => return None,
        };
        let old_start = hunk.old_start.checked_add_signed(offset)?;
        moved.push(Hunk { old_start, ..hunk.clone() });
    }
    moved.sort_by_key(Hunk::old_lines_before);
    Some(moved)
}

fn place_hunks(
    file: &FilePatch,
    hunks: &[Hunk],
    tree: &dyn Tree,
    leaving: &HashSet<&[u8]>,
) -> Result<Option<Vec<TreeChange>>, Failure> {
    let Some(old) = &file.old else { return Ok(None) };
    let Some(entry) = tree.entry(old.path.as_bytes())? else { return Ok(None) };
    let Some(found_mode) = FileMode::of_entry(entry.mode) else { return Ok(None) };
    let Ok(content) = apply_hunks(&tree.blob(entry.id)?, hunks) else { return Ok(None) };
    let mut changes = Vec::new();
    if matches!(file.change, Change::Delete | Change::Rename) {
        changes.push(TreeChange { path: old.path.clone(), new: None });
    }
    let Some(new) = &file.new else {
        return Ok(content.is_empty().then_some(changes));
    };
    if file.change != Change::Modify {
        require_room(tree, &new.path, leaving)?;
    }
    let mode = if new.mode == old.mode { found_mode } else { new.mode.unwrap_or(found_mode) };
    let file = NewFile { mode, id: blob_id(&content), content: Some(Arc::new(content)) };
    changes.push(TreeChange { path: new.path.clone(), new: Some(file) });
    Ok(Some(changes))
}
