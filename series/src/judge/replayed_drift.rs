//! Drift of a replayed patch: the classes that its replay decided, with the places that illustrate them.

use super::classify::{classify_hunks, file_drift, is_result, other_blob};
use super::drift::{FileDrift, FileDriftKind, PatchClass};
use super::replayed::{ConflictReason, MergeKind, ReplayedFile, Step};
use crate::apply::target::FoundFile;
use crate::model::mode::{FileMode, Mode};
use crate::model::object_id::ObjectId;
use crate::model::patch::{Content, FilePatch, Patch};
use crate::model::tree::{Tree, TreeError};

impl Step {
    /// Returns the drift of each file of `patch`, whose replay on `tree` this is; empty if it is exact. If upstream's
    /// history contains the patch, only files that still have the change say so.
    pub(crate) fn drift(&self, patch: &Patch, tree: &dyn Tree) -> Result<Vec<FileDrift>, TreeError> {
        if self.replayed.class() == PatchClass::Exact {
            return Ok(Vec::new());
        }
        let is_upstreamed = !self.upstreamed.is_empty();
        let files = if is_upstreamed { &self.upstreamed } else { &self.replayed.files };
        let is_shown = |now: &ReplayedFile| !is_upstreamed || now.merge_kind == MergeKind::AlreadyThere;
        let files = patch.files.iter().zip(files).filter(|(_, now)| is_shown(now));
        files.map(|(file, now)| Ok(file_drift(file, kind_of_drift(file, now, tree)?))).collect()
    }
}

fn kind_of_drift(file: &FilePatch, now: &ReplayedFile, tree: &dyn Tree) -> Result<FileDriftKind, TreeError> {
    match (&now.merge_kind, &now.followed) {
        (MergeKind::Conflict(conflict), _) => kind_of_conflict(&conflict.reason, file, now, tree),
        (MergeKind::AlreadyThere, _) if is_done(file, now) => Ok(FileDriftKind::Upstreamed),
        (MergeKind::AlreadyThere, _) => difference(file, now, tree),
        (_, Some(followed)) => Ok(FileDriftKind::Moved { to: followed.to.to_string() }),
        (MergeKind::Unchanged, None) => Ok(FileDriftKind::Exact),
        (
            MergeKind::Placed
            | MergeKind::Merged
            | MergeKind::PartlyThere { .. }
            | MergeKind::DeletedByBoth { .. },
            None,
        ) => difference(file, now, tree),
    }
}

fn kind_of_conflict(
    reason: &ConflictReason,
    file: &FilePatch,
    now: &ReplayedFile,
    tree: &dyn Tree,
) -> Result<FileDriftKind, TreeError> {
    Ok(match reason {
        ConflictReason::Refused { refusal } => FileDriftKind::Refused { refusal: refusal.clone() },
        ConflictReason::FileExists => FileDriftKind::PathExists,
        ConflictReason::FileGone { candidates } if candidates.is_empty() => FileDriftKind::TargetDeleted,
        ConflictReason::FileGone { candidates } => {
            FileDriftKind::TargetRenamed { candidates: candidates.clone() }
        }
        ConflictReason::FolderMoved { to, .. }
        | ConflictReason::FolderLeft { to }
        | ConflictReason::RenamedTwice { by_upstream: to, .. } => FileDriftKind::Moved { to: to.to_string() },
        ConflictReason::SameLines
        | ConflictReason::LookAlike { .. }
        | ConflictReason::DeletedButChanged
        | ConflictReason::Binary
        | ConflictReason::SharedChanges { .. } => difference(file, now, tree)?,
    })
}

/// Returns whether the file is just as the patch would leave it.
fn is_done(file: &FilePatch, now: &ReplayedFile) -> bool {
    let Some(before) = &now.before else { return true };
    let mode = FileMode::of_entry(before.mode);
    now.hunks.is_empty() || mode.is_some_and(|mode| is_result(file, FoundFile { mode, id: before.id }))
}

/// Returns how the file differs from the one that the patch was made from.
fn difference(file: &FilePatch, now: &ReplayedFile, tree: &dyn Tree) -> Result<FileDriftKind, TreeError> {
    let found = now.before.as_ref().map_or(ObjectId::ZERO, |before| before.id);
    let expected = file.old.as_ref().and_then(|old| old.id).unwrap_or(found);
    if expected != found {
        return match &file.content {
            Content::Text(hunks) if !now.hunks.is_empty() => {
                classify_hunks(file, hunks, (expected, found), Some(&now.hunks), tree)
            }
            _ => Ok(other_blob(file, expected, found)),
        };
    }
    Ok(other_place(file, now))
}

/// Returns how a file with the right content differs: by its mode, or else by its path.
fn other_place(file: &FilePatch, now: &ReplayedFile) -> FileDriftKind {
    let (Some(old), Some(before)) = (&file.old, &now.before) else { return FileDriftKind::Exact };
    match old.mode {
        Some(expected) if Mode::from(expected) != before.mode => {
            FileDriftKind::ModeDiffers { expected: Mode::from(expected), found: before.mode }
        }
        _ => FileDriftKind::Moved { to: before.path.to_string() },
    }
}
