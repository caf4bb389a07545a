//! The files of a patch applied to a tree, each exactly or with the reason why not.

use std::collections::HashSet;
use std::sync::Arc;

use super::collision::{find_collisions, leaving_paths};
use super::file::{Mismatch, apply_checked};
use super::target::{Failure, FoundFile, require_free_path, require_pre_image};
use crate::model::patch::{Change, Content, FilePatch, Patch};
use crate::model::path::RepoPath;
use crate::model::tree::{NewFile, Tree, TreeChange, TreeError};

/// The result of each file of a patch.
pub(crate) type FileResults = Vec<Result<Vec<TreeChange>, Failure>>;

/// Applies each file of `patch` to `tree`, which is not changed.
pub(crate) fn apply_files(patch: &Patch, tree: &dyn Tree) -> Result<FileResults, TreeError> {
    let mut collisions = find_collisions(patch, tree)?;
    let leaving = leaving_paths(patch);
    let mut results = FileResults::new();
    for (index, file) in patch.files.iter().enumerate() {
        let result = match collisions.remove(&index) {
            Some(refusal) => Err(Failure::Refused(refusal)),
            None => apply_one(file, tree, &leaving),
        };
        results.push(match result {
            Err(Failure::Tree(error)) => return Err(error),
            other => other,
        });
    }
    Ok(results)
}

/// Returns the changes of one file of a patch, if it is exact.
pub(crate) fn apply_one(
    file: &FilePatch,
    tree: &dyn Tree,
    leaving: &HashSet<&[u8]>,
) -> Result<Vec<TreeChange>, Failure> {
    let found = match &file.old {
        Some(side) => Some(require_pre_image(tree, side, leaving)?),
        None => None,
    };
    let moves = !matches!(file.change, Change::Modify | Change::Delete);
    if let Some(side) = file.new.as_ref().filter(|_| moves) {
        require_free_path(tree, &side.path, leaving)?;
    }
    let mut changes = Vec::new();
    if let Some(side) = file.old.as_ref().filter(|_| takes_old_away(file)) {
        changes.push(TreeChange { path: side.path.clone(), new: None });
    }
    let new_file = new_file(file, found, tree)?;
    if let (Some(path), Some(new_file)) = (new_path(file), new_file) {
        changes.push(TreeChange { path: path.clone(), new: Some(new_file) });
    }
    Ok(changes)
}

fn takes_old_away(file: &FilePatch) -> bool {
    matches!(file.change, Change::Delete | Change::Rename)
}

fn new_path(file: &FilePatch) -> Option<&RepoPath> {
    file.new.as_ref().map(|side| &side.path)
}

/// Returns the file after the patch; `None` if it is deleted.
fn new_file(file: &FilePatch, found: Option<FoundFile>, tree: &dyn Tree) -> Result<Option<NewFile>, Failure> {
    let stated_mode = file.new.as_ref().and_then(|side| side.mode);
    let kept_mode = found.map(|found| found.mode);
    let is_unchanged = file.content == Content::Unchanged;
    if let (Some(found), true, Some(_)) = (found, is_unchanged, &file.new) {
        let mode = stated_mode.unwrap_or(found.mode);
        return Ok(Some(NewFile { mode, id: found.id, content: None }));
    }
    let pre_image = match found {
        Some(found) => tree.blob(found.id)?,
        None => Default::default(),
    };
    let Some((content, id)) = apply_checked(&pre_image, file).map_err(contradiction)? else {
        return Ok(None);
    };
    let no_mode = || Failure::Contradiction("the patch names no mode for a new file".to_owned());
    let mode = stated_mode.or(kept_mode).ok_or_else(no_mode)?;
    Ok(Some(NewFile { mode, id, content: Some(Arc::new(content)) }))
}

/// Returns the failure for a mismatch: the pre-image is the one that the patch names, so the patch contradicts itself.
fn contradiction(mismatch: Mismatch) -> Failure {
    Failure::Contradiction(match mismatch {
        Mismatch::Hunk(at) => {
            format!("hunk {} does not fit line {} of its own pre-image", at.hunk + 1, at.line)
        }
        Mismatch::PostImageDiffers { expected, found } => {
            format!("the result is blob {found}, the `index` line says {expected}")
        }
        Mismatch::BinaryDelta => "the binary delta does not fit its own pre-image".to_owned(),
        Mismatch::DeleteLeavesContent => "the deleted file is not empty after it".to_owned(),
        other => format!("{other:?}"),
    })
}
