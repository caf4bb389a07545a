//! The record of a change: its description, the new files, and the files that it replaces.

use std::path::{Path, PathBuf};

use crate::config::layout::{Layout, UNDO};
use crate::error::{Error, Result};
use crate::next_command::quoted;
use crate::plan::pending::{Pending, PendingFile, PendingRef};
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
    write_marker(stage, &pending)?;
    Ok(pending)
}

/// Adds the last change to the record of `pending` in its `stage`; its files are as it left them. Returns both as one
/// change, that of `last`: folders that it removed, and messages that it withdrew, are not those that are there now.
pub(super) fn join(layout: &Layout, stage: &Path, last: &Pending, pending: &Pending) -> Result<Pending> {
    let record = layout.undo();
    let mut files = Vec::new();
    for file in &last.files {
        let now = pending.files.iter().find(|other| other.path == file.path);
        let new = now.map_or_else(|| file.new.clone(), |now| now.new.clone());
        let joined = PendingFile { path: file.path.clone(), old: file.old.clone(), new };
        if now.is_none() && joined.new.is_some() {
            copy(&layout.root().join(&file.path), &stage.join(&file.path))?;
        }
        if joined.old.is_some() && joined.old != joined.new {
            copy(&saved(&record, file), &stage.join(OLD).join(&file.path))?;
        }
        files.push(joined);
    }
    let is_new = |file: &&PendingFile| !last.files.iter().any(|other| other.path == file.path);
    files.extend(pending.files.iter().filter(is_new).cloned());
    let refs = last.refs.iter().filter(|moved| is_where_it_was_moved(layout, moved)).cloned().collect();
    let (offers_taken, remove_folders) = (Vec::new(), Vec::new());
    let joined = Pending { files, refs, offers_taken, remove_folders, ..last.clone() };
    write_marker(stage, &joined)?;
    Ok(joined)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    disk::write_atomically(to, &disk::read(from)?)
}

fn is_where_it_was_moved(layout: &Layout, moved: &PendingRef) -> bool {
    let Ok(Some(repo)) = EditRepo::open(&layout.edit(&moved.variant), &moved.variant) else { return false };
    repo.ref_target(&moved.name).map(|id| id.to_string()).as_ref() == Some(&moved.id)
}

fn write_marker(stage: &Path, pending: &Pending) -> Result<()> {
    // The values are plain strings, so serialization cannot fail.
    let marker = serde_json::to_vec_pretty(pending).unwrap_or_default();
    disk::write_atomically(&stage.join(MARKER), &marker)
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
