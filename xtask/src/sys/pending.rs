//! Several files at once: all are written, or none.
//!
//! The new files are collected in a stage. Renaming the stage is the decision: before it nothing has
//! changed, after it the change is finished, by this run or by the next command.

use std::path::{Path, PathBuf};

use super::{disk, run_lock};
use crate::cmd::Context;
use crate::error::{Error, Kind, Result};
use crate::plan::layout::Layout;
use crate::plan::pending::{Finish, Pending, PendingFile};

const MARKER: &str = "pending.json";

/// Describes the change from the files of the project at `paths` to those of `stage`. A path that the stage
/// does not have goes away; one that is the same is left out.
pub fn describe(layout: &Layout, stage: &Path, what: &str, paths: &[String]) -> Result<Pending> {
    let mut files = Vec::new();
    for path in paths {
        let old = digest(&layout.root().join(path))?;
        let new = digest(&stage.join(path))?;
        if old != new {
            files.push(PendingFile { path: path.clone(), old, new });
        }
    }
    Ok(Pending { what: what.to_string(), files, remove_folders: Vec::new() })
}

fn digest(path: &Path) -> Result<Option<String>> {
    Ok(disk::read_if_there(path)?.map(|bytes| disk::sha256(&bytes)))
}

/// Makes the change of `stage` happen. The caller holds the run lock.
pub fn commit(layout: &Layout, stage: &Path, pending: &Pending) -> Result<()> {
    // The values are plain strings: they always have a JSON form.
    let marker = serde_json::to_vec_pretty(pending).unwrap_or_default();
    disk::write_atomically(&stage.join(MARKER), &marker)?;
    disk::rename(stage, &layout.pending())?;
    finish(layout)
}

/// Finishes what a killed run had decided. Costs nothing when there is nothing.
pub fn settle(context: &Context) -> Result<()> {
    if !disk::exists(&context.layout.pending()) {
        return Ok(());
    }
    let _lock = run_lock::take(context)?;
    if !disk::exists(&context.layout.pending()) {
        return Ok(());
    }
    let pending = read(&context.layout.pending())?;
    context.ui.status("Finishing", format!("{}, which was interrupted", pending.what));
    finish(&context.layout)
}

fn read(folder: &Path) -> Result<Pending> {
    let text = disk::read(&folder.join(MARKER))?;
    serde_json::from_slice(&text).map_err(|error| {
        Error::surroundings("the record of an interrupted change is damaged")
            .detail(error.to_string())
            .hint(format!("rm -rf {}    # then look at `git status`", folder.display()))
    })
}

fn finish(layout: &Layout) -> Result<()> {
    let folder = layout.pending();
    let pending = read(&folder)?;
    for file in &pending.files {
        finish_file(layout, &folder, file)?;
    }
    for path in &pending.remove_folders {
        disk::remove_folder(&layout.generated().join(path))?;
    }
    // Away first, so that a half-removed folder is never taken for a decision.
    let away = layout.scratch().join("finished");
    disk::create_folder(&layout.scratch())?;
    disk::remove_folder(&away)?;
    disk::rename(&folder, &away)?;
    disk::remove_folder(&away)
}

fn finish_file(layout: &Layout, folder: &Path, file: &PendingFile) -> Result<()> {
    let target: PathBuf = layout.root().join(&file.path);
    match file.finish(digest(&target)?.as_deref()) {
        Finish::Done => Ok(()),
        Finish::Do if file.new.is_none() => disk::remove_file(&target),
        Finish::Do => disk::write_atomically(&target, &disk::read(&folder.join(&file.path))?),
        Finish::Refuse => Err(changed_meanwhile(folder, &file.path)),
    }
}

fn changed_meanwhile(folder: &Path, path: &str) -> Error {
    Error::new(Kind::Conflict, format!("`{path}` was changed while a change of it waits to be finished"))
        .detail("an interrupted command has to finish first, and would overwrite it")
        .hint(format!("keep yours: mv {path} {path}.mine && git checkout {path}, then run any command"))
        .hint(format!(
            "or forget the unfinished change: rm -rf {}, then look at `git status`",
            folder.display()
        ))
}
