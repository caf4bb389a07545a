//! Several files at once: all are written, or none.
//!
//! The new files are collected in a stage. Renaming the stage is the decision: before it nothing has
//! changed, after it the change is finished, by this run or by the next command.

use super::ours;
use std::path::{Path, PathBuf};

use super::{disk, run_lock};
use crate::context::Context;
use crate::error::{Error, Kind, Result};
use crate::plan::layout::Layout;
use crate::plan::next_command::quoted;
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
    ours::rename(stage, &layout.pending())?;
    finish(layout)
}

/// Finishes what a killed run had decided. Costs nothing when there is nothing.
pub fn settle(context: &Context) -> Result<()> {
    let is_decided = disk::exists(&context.layout.pending());
    // That of a series is finished by whoever takes the lock.
    if !is_decided && disk::folders_in(&context.layout.pending_series()).is_empty() {
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
            .hint(format!("rm -rf {}    # then look at `git status`", quoted(&folder.display().to_string())))
    })
}

fn finish(layout: &Layout) -> Result<()> {
    let folder = layout.pending();
    let pending = read(&folder)?;
    // All are looked at before the first is written: what cannot be finished is not begun.
    for file in &pending.files {
        sweep_beside(&layout.root().join(&file.path))?;
        next_act(layout, &folder, file)?;
    }
    for file in &pending.files {
        finish_file(layout, &folder, file)?;
    }
    for path in &pending.remove_folders {
        ours::remove_folder(&layout.generated().join(path))?;
    }
    // Away first, so that a half-removed folder is never taken for a decision.
    let away = layout.scratch().join("finished");
    disk::create_folder(&layout.scratch())?;
    ours::remove_folder(&away)?;
    ours::rename(&folder, &away)?;
    ours::remove_folder(&away)
}

/// A run that was killed while it wrote here left its temporary file, which would be no patch of a series.
fn sweep_beside(path: &Path) -> Result<()> {
    let Some(folder) = path.parent() else { return Ok(()) };
    ours::sweep(folder, |name| name.starts_with(disk::TEMPORARY_PREFIX))
}

fn next_act(layout: &Layout, folder: &Path, file: &PendingFile) -> Result<Finish> {
    match file.finish(digest(&layout.root().join(&file.path))?.as_deref()) {
        Finish::Refuse => Err(changed_meanwhile(folder, &file.path)),
        act => Ok(act),
    }
}

fn finish_file(layout: &Layout, folder: &Path, file: &PendingFile) -> Result<()> {
    let target: PathBuf = layout.root().join(&file.path);
    match next_act(layout, folder, file)? {
        Finish::Do if file.new.is_none() => disk::remove_file(&target),
        Finish::Do => disk::write_atomically(&target, &disk::read(&folder.join(&file.path))?),
        Finish::Done | Finish::Refuse => Ok(()),
    }
}

fn changed_meanwhile(folder: &Path, path: &str) -> Error {
    let [yours, aside] = [path.to_string(), format!("{path}.mine")].map(|path| quoted(&path));
    Error::new(Kind::Conflict, format!("`{path}` was changed while a change of it waits to be finished"))
        .detail("an interrupted command has to finish first, and would overwrite it")
        .hint(format!("keep yours: mv {yours} {aside} && git checkout {yours}    # then run any command"))
        .hint(format!(
            "or forget the unfinished change: rm -rf {}    # then look at `git status`",
            quoted(&folder.display().to_string())
        ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A project with two files, and a stage that changes one and takes one away; nothing is decided yet.
    fn project(folder: &Path) -> (Layout, Pending) {
        let layout = Layout::new(folder);
        crate::sys::ours::claim(&layout).unwrap();
        disk::write_atomically(&folder.join("patches/0001-a.patch"), b"old").unwrap();
        disk::write_atomically(&folder.join("patches/0002-b.patch"), b"goes").unwrap();
        disk::write_atomically(&layout.stage().join("patches/0001-a.patch"), b"new").unwrap();
        let paths = ["patches/0001-a.patch", "patches/0002-b.patch"].map(String::from);
        let pending = describe(&layout, &layout.stage(), "a test", &paths).unwrap();
        (layout, pending)
    }

    /// What a run leaves that is killed while it writes the first file.
    fn decide_and_be_killed(folder: &Path) -> Layout {
        let (layout, pending) = project(folder);
        let marker = serde_json::to_vec(&pending).unwrap();
        disk::write_atomically(&layout.stage().join(MARKER), &marker).unwrap();
        ours::rename(&layout.stage(), &layout.pending()).unwrap();
        let half = format!("patches/{}half", disk::TEMPORARY_PREFIX);
        disk::write_atomically(&folder.join(half), b"ne").unwrap();
        layout
    }

    fn files(folder: &Path) -> Vec<PathBuf> {
        disk::files_below(&folder.join("patches")).unwrap()
    }

    #[test]
    fn all_files_change_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let (layout, pending) = project(folder.path());
        commit(&layout, &layout.stage(), &pending).unwrap();
        assert_eq!(files(folder.path()), [PathBuf::from("0001-a.patch")]);
        assert_eq!(disk::read(&folder.path().join("patches/0001-a.patch")).unwrap(), b"new");
        assert!(!disk::exists(&layout.pending()) && !disk::exists(&layout.stage()));
    }

    #[test]
    fn a_half_written_file_of_a_killed_run_is_swept() {
        let folder = tempfile::tempdir().unwrap();
        let layout = decide_and_be_killed(folder.path());
        finish(&layout).unwrap();
        assert_eq!(files(folder.path()), [PathBuf::from("0001-a.patch")]);
        assert!(!disk::exists(&layout.pending()));
    }

    #[test]
    fn what_a_person_wrote_meanwhile_stays() {
        let folder = tempfile::tempdir().unwrap();
        let layout = decide_and_be_killed(folder.path());
        let path = folder.path().join("patches/0001-a.patch");
        disk::write_atomically(&path, b"mine").unwrap();
        assert_eq!(finish(&layout).unwrap_err().kind, Kind::Conflict);
        assert_eq!(disk::read(&path).unwrap(), b"mine");
        assert_eq!(files(folder.path()).len(), 2, "another file of the change was touched");
        assert!(disk::exists(&layout.pending()));
    }
}
