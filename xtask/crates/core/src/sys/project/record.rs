//! The record of a change: its description, the new files, and the files that it replaces.

use std::path::{Path, PathBuf};

use crate::config::layout::{Layout, UNDO};
use crate::error::{Error, Result};
use crate::next_command::quoted;
use crate::plan::pending::{Pending, PendingFile};
use crate::sys::machine::disk;
use crate::sys::work_trees::edit_repo::EditRepo;

/// File with the description.
pub(super) const MARKER: &str = "pending.json";

/// Folder with the files as they were before the change.
pub(super) const OLD: &str = ".espalier-old";

/// Completes the record of `pending` in its `stage`, which has the new files. Returns the change with the old files and
/// refs as they are now: a person may have written the new content of a file already, and an undo must not remove that.
pub(super) fn write(layout: &Layout, stage: &Path, pending: &Pending) -> Result<Pending> {
    let mut pending = pending.clone();
    for file in pending.files.iter_mut().filter(|file| file.old != file.new) {
        let found = disk::read_if_there(&layout.root().join(&file.path))?;
        file.old = found.as_deref().map(disk::sha256);
        if let Some(bytes) = found {
            disk::write_atomically(&stage.join(OLD).join(&file.path), &bytes)?;
        }
    }
    for moved in &mut pending.refs {
        let repo = EditRepo::open(&layout.edit(&moved.variant), &moved.variant)?;
        moved.old = repo.and_then(|repo| repo.ref_target(&moved.name)).map(|id| id.to_string());
    }
    // The values are plain strings, so serialization cannot fail.
    let marker = serde_json::to_vec_pretty(&pending).unwrap_or_default();
    disk::write_atomically(&stage.join(MARKER), &marker)?;
    Ok(pending)
}

/// Reads the description of the change in `folder`.
pub(super) fn read(folder: &Path) -> Result<Pending> {
    let pending: Pending = serde_json::from_slice(&disk::read(&folder.join(MARKER))?)
        .map_err(|error| damaged(folder, error.to_string()))?;
    match pending.stray_path() {
        Some(path) => Err(damaged(folder, format!("it names `{path}`"))),
        None => Ok(pending),
    }
}

/// Returns the error for a record in `folder` that cannot be used.
pub(super) fn damaged(folder: &Path, why: String) -> Error {
    let what = match folder.ends_with(UNDO) {
        true => "the record of the last change is damaged",
        false => "the record of an interrupted change is damaged",
    };
    Error::environment(what)
        .detail(why)
        .hint(format!("rm -rf {}    # then look at `git status`", quoted(&folder.display().to_string())))
}

/// Returns the path in `record` of the content that a file gets by an undo.
pub(super) fn saved(record: &Path, file: &PendingFile) -> PathBuf {
    if file.old == file.new { record.join(&file.path) } else { record.join(OLD).join(&file.path) }
}

/// Returns a path beside `place`, to which a person's file can be moved: the first at which nothing is yet.
pub(super) fn aside(place: &Path) -> PathBuf {
    let ends = std::iter::once(".mine".to_string()).chain((2_u32..).map(|number| format!(".mine{number}")));
    let mut paths = ends.map(|end| {
        let mut path = place.as_os_str().to_os_string();
        path.push(end);
        PathBuf::from(path)
    });
    paths.find(|path| !disk::exists(path)).unwrap_or_default()
}
