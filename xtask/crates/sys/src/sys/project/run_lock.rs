//! One run at a time: two must not build in the same folder.
//!
//! The lock is inherited by the programs that we start, on purpose. When a run is killed, compilers
//! that it started may still be writing; the next run waits for the last of them.

use std::fs::{File, TryLockError};
use std::path::Path;

use super::pending;
use crate::error::{Error, Result};
use crate::plan::layout::Layout;
use crate::sys::machine::{disk, ours};
use crate::ui::Ui;

/// Held until dropped.
#[derive(Debug)]
pub struct RunLock {
    _file: File,
}

/// Takes the lock of this project, says so when it has to wait, sweeps what a killed run
/// left, and finishes what it had decided.
pub fn take(layout: &Layout, ui: &Ui) -> Result<RunLock> {
    ours::claim(layout)?;
    let lock = take_at(&layout.run_lock(), ui)?;
    sweep(layout)?;
    pending::finish_interrupted(layout, ui)?;
    Ok(lock)
}

fn take_at(path: &Path, ui: &Ui) -> Result<RunLock> {
    let fail = |error: std::io::Error| disk::explain("lock", path, &error);
    let file = File::options().create(true).truncate(false).write(true).open(path).map_err(fail)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            ui.status("Waiting", "for another run in this folder to end");
            file.lock().map_err(fail)?;
        }
        Err(TryLockError::Error(error)) => return Err(fail(error)),
    }
    inherit(&file).map_err(|error| Error::surroundings(format!("could not share the run lock: {error}")))?;
    Ok(RunLock { _file: file })
}

#[cfg(unix)]
fn inherit(file: &File) -> std::io::Result<()> {
    Ok(rustix::io::fcntl_setfd(file, rustix::io::FdFlags::empty())?)
}

#[cfg(not(unix))]
fn inherit(_file: &File) -> std::io::Result<()> {
    Ok(())
}

/// Whoever holds the lock is alone: scratch and lock files that are still here belong to a run that
/// was killed.
fn sweep(layout: &Layout) -> Result<()> {
    ours::remove_folder(&layout.scratch())?;
    let trees = layout.generated().join("trees");
    // libgit2 writes refs and indexes as `NAME.lock`, and refuses to when there is one already.
    for folder in [layout.store(), trees] {
        ours::sweep(&folder, |name| name.ends_with(".lock"))?;
    }
    let edits = disk::folders_in(&layout.generated().join("edit"));
    for git_dir in edits.iter().map(|edit| edit.join(".git")).chain([layout.store()]) {
        sweep_refs(&git_dir.join("refs/espalier"))?;
    }
    let builds = disk::folders_in(&layout.generated().join("build"));
    let ours = ["applied", "dist", "store.git", "trees"].map(|name| layout.generated().join(name));
    for folder in builds.into_iter().chain(ours).chain([layout.generated(), layout.root().to_path_buf()]) {
        ours::sweep(&folder, is_temporary)?;
    }
    Ok(())
}

/// Refs of ours have names with several parts: the locks may lie at any depth.
fn sweep_refs(folder: &Path) -> Result<()> {
    if !disk::exists(folder) {
        return Ok(());
    }
    let locks = disk::files_below(folder)?.into_iter();
    let mut locks = locks.filter(|file| file.extension().is_some_and(|extension| extension == "lock"));
    locks.try_for_each(|lock| disk::remove_file(&folder.join(lock)))
}

fn is_temporary(name: &str) -> bool {
    name.starts_with(disk::TEMPORARY_PREFIX)
}
