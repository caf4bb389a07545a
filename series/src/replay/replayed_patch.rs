//! Conversion of a replayed patch back to a patch, without git.

use super::patch::Replay;
use crate::judge::replayed::{MergeKind, Replayed, ReplayedFile, Version};
use crate::model::mode::FileMode;
use crate::model::patch::{Change, Content, FilePatch, FileSide, Patch};
use crate::model::tree::TreeError;
use crate::text::line_diff::hunks_between;

/// Returns `patch` adapted to the new tree: its message, and its files as they are there. Files whose change is already
/// present are left out; those with conflicts too.
pub fn replayed_patch(patch: &Patch, replayed: &Replayed, replay: &Replay<'_>) -> Result<Patch, TreeError> {
    on_new_tree(patch, replayed, replay, Places::Old)
}

/// As [`replayed_patch`], with the line numbers of the new tree: it is exact there, after the patches before it.
pub fn exact_patch(patch: &Patch, replayed: &Replayed, replay: &Replay<'_>) -> Result<Patch, TreeError> {
    on_new_tree(patch, replayed, replay, Places::New)
}

/// The line numbers of hunks that only moved.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Places {
    /// Those of the tree that the patch was made for: such a patch is compared with what it was.
    Old,
    /// Those of the new tree.
    New,
}

fn on_new_tree(
    patch: &Patch,
    replayed: &Replayed,
    replay: &Replay<'_>,
    places: Places,
) -> Result<Patch, TreeError> {
    let mut files = Vec::new();
    for (file, now) in patch.files.iter().zip(&replayed.files) {
        match now.merge_kind {
            MergeKind::AlreadyThere | MergeKind::Conflict(_) => {}
            MergeKind::Unchanged if now.followed.is_none() => files.push(file.clone()),
            _ => files.push(new_file_patch(file, now, replay, places)?),
        }
    }
    Ok(Patch { files, ..patch.clone() })
}

fn new_file_patch(
    file: &FilePatch,
    now: &ReplayedFile,
    replay: &Replay<'_>,
    places: Places,
) -> Result<FilePatch, TreeError> {
    let moves =
        now.before.as_ref().map(|version| &version.path) != now.after.as_ref().map(|version| &version.path);
    let change = match file.change {
        Change::Modify | Change::Rename if moves => Change::Rename,
        Change::Modify | Change::Rename => Change::Modify,
        other => other,
    };
    let is_unchanged = match now.merge_kind {
        MergeKind::Unchanged => true,
        MergeKind::Placed => places == Places::Old,
        _ => false,
    };
    let content = match (&file.content, &now.before, &now.after) {
        (Content::Text(_), Some(before), Some(after)) if before.id == after.id => Content::Unchanged,
        (Content::Text(_), Some(before), Some(after)) if !is_unchanged => {
            Content::Text(hunks_between(&replay.blob(before.id)?, &replay.blob(after.id)?))
        }
        (content, _, _) => content.clone(),
    };
    let (old, new) = (now.before.as_ref().map(side), now.after.as_ref().map(side));
    Ok(FilePatch { change, old, new, content, line: file.line })
}

fn side(version: &Version) -> FileSide {
    FileSide { path: version.path.clone(), mode: FileMode::of_entry(version.mode), id: Some(version.id) }
}
