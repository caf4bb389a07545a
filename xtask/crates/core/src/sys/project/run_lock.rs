//! Locks that decide which commands may run at the same time in one project.
//!
//! There are two. `run.lock` is held by the one command that builds or changes something. `project.lock` is shared by
//! all commands that need pins, patches, lock and store to stay unchanged: those that answer a question, and a build
//! while it compiles. A command that changes the project holds both exclusively.
//!
//! Child processes inherit both on purpose. When a run is killed, compilers that it started may still be writing; the
//! next run waits until the last of them has ended. Programs that use the network do not inherit them:
//! docs/decisions/0004-child-processes-inherit-the-run-lock.md.

use std::fs::{File, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{long_stage, pending};
use crate::config::layout::Layout;
use crate::error::{Error, Result};
use crate::next_command::quoted_bytes;
use crate::sys::machine::inherited_lock::InheritedLock;
use crate::sys::machine::running::is_running;
use crate::sys::machine::{clock, disk, owned, scratch};
use crate::ui::{self, Ui};

/// The access that a command needs, which decides what may run beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Answers a question, and adds at most objects to the store: may run beside a build and other readers.
    Read,
    /// Works in its own folders for a long time: may run beside readers, but only one at a time.
    Build,
    /// Changes pins, patches or edit repositories, or removes what others may read: exclusive.
    Change,
}

/// The locks, held until dropped.
#[derive(Debug)]
pub struct RunLock {
    _files: Vec<InheritedLock>,
}

/// Takes the locks of this project that `access` needs, and reports the run that it waits for. A run with exclusive
/// access sweeps leftovers of a killed run, and finishes the change that it had committed to.
pub fn take(layout: &Layout, ui: &Ui, access: Access) -> Result<RunLock> {
    owned::claim(layout)?;
    if access == Access::Read {
        let project = take_at(&layout.project_lock(), ui, true)?;
        if !disk::exists(&layout.pending()) {
            return Ok(RunLock { _files: vec![project] });
        }
        // The pending change of a killed run must be finished before anything is read; that requires exclusive locks.
    }
    let run = take_at(&layout.run_lock(), ui, false)?;
    let mut project = match access {
        Access::Build if !disk::exists(&layout.pending()) => take_if_free(&layout.project_lock())?,
        _ => Some(take_at(&layout.project_lock(), ui, false)?),
    };
    // While readers are running, their scratch folders stay; the next run sweeps the rest.
    if project.is_some() {
        sweep(layout)?;
        pending::finish_interrupted(layout, ui)?;
    }
    if access != Access::Change {
        // No other run can intervene: changing the project requires the run lock as well.
        drop(project.take());
        project = Some(take_at(&layout.project_lock(), ui, true)?);
    }
    Ok(RunLock { _files: std::iter::once(run).chain(project).collect() })
}

fn take_at(path: &Path, ui: &Ui, shared: bool) -> Result<InheritedLock> {
    let fail = |error: std::io::Error| disk::explain("lock", path, &error);
    let file = open(path)?;
    let tried = if shared { file.try_lock_shared() } else { file.try_lock() };
    match tried {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            ui.status("Waiting", format!("for another run in this folder to end{}", holder(path)));
            if shared { file.lock_shared() } else { file.lock() }.map_err(fail)?;
        }
        Err(TryLockError::Error(error)) => return Err(fail(error)),
    }
    held(file)
}

/// Takes the lock exclusively; `None` while another run holds it.
fn take_if_free(path: &Path) -> Result<Option<InheritedLock>> {
    let file = open(path)?;
    match file.try_lock() {
        Ok(()) => held(file).map(Some),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(disk::explain("lock", path, &error)),
    }
}

fn open(path: &Path) -> Result<File> {
    let options = File::options().create(true).truncate(false).write(true).open(path);
    options.map_err(|error| disk::explain("lock", path, &error))
}

fn held(mut file: File) -> Result<InheritedLock> {
    // Only informs people who wait, so a failed write is ignored.
    let _ = file.set_len(0).and_then(|()| file.write_all(&Holder::this_run().render()));
    InheritedLock::new(file)
        .map_err(|error| Error::environment(format!("could not share the run lock: {error}")))
}

/// The run that last took a lock, as recorded in the lock's file.
#[derive(Serialize, Deserialize)]
struct Holder {
    pid: u32,
    /// The program as users call it, and its arguments.
    command: String,
    since: u64,
}

impl Holder {
    fn this_run() -> Holder {
        let words = std::env::args_os().skip(1).map(|word| quoted_bytes(word.as_encoded_bytes()));
        let words: Vec<String> = std::iter::once(ui::program().words().to_string()).chain(words).collect();
        Holder { pid: std::process::id(), command: words.join(" "), since: clock::now() }
    }

    fn render(&self) -> Vec<u8> {
        // Numbers and a string, so serialization cannot fail.
        serde_json::to_vec(self).unwrap_or_default()
    }

    fn describe(&self) -> String {
        let Holder { pid, command, since } = self;
        let seconds = clock::now().saturating_sub(*since);
        let (minutes, seconds) = (seconds / 60, seconds % 60);
        match is_running(*pid) {
            Some(false) => format!(": a child of `{command}`, process {pid}, which has ended"),
            Some(true) | None => {
                format!(": `{command}`, process {pid}, running for {minutes} min {seconds} s")
            }
        }
    }
}

fn holder(path: &Path) -> String {
    let text = disk::read_if_there(path).ok().flatten().unwrap_or_default();
    serde_json::from_slice(&text).map(|holder: Holder| holder.describe()).unwrap_or_default()
}

/// Removes scratch and lock files, and stages without an owner. The caller holds the lock exclusively, so they belong
/// to a run that was killed.
fn sweep(layout: &Layout) -> Result<()> {
    owned::remove_folder(&layout.scratch())?;
    long_stage::sweep(layout)?;
    scratch::sweep(layout);
    let trees = layout.generated().join("trees");
    // libgit2 writes refs and indices as `NAME.lock`, and refuses to if one already exists.
    for folder in [layout.store(), trees] {
        owned::sweep(&folder, |name| name.ends_with(".lock"))?;
    }
    git_dirs(layout).iter().try_for_each(|git_dir| sweep_refs(&git_dir.join("refs/espalier")))?;
    written_folders(layout).iter().try_for_each(|folder| owned::sweep_temporary(folder))
}

/// Returns the object store, and the git folder of each edit repository.
fn git_dirs(layout: &Layout) -> Vec<PathBuf> {
    let edits = disk::folders_in(&layout.generated().join("edit"));
    edits.into_iter().map(|edit| edit.join(".git")).chain([layout.store()]).collect()
}

/// Returns every persistent folder in which [`disk::write_atomically`] writes: a killed run leaves its temporary file
/// beside the destination. Materialised trees are swept when they are updated.
fn written_folders(layout: &Layout) -> Vec<PathBuf> {
    const KEPT: [&str; 5] = ["applied", "compiled", "dist", "tested", "trees"];
    let generated = layout.generated();
    let git_dirs = git_dirs(layout).into_iter().flat_map(|git_dir| [git_dir.join("info"), git_dir]);
    let many = ["build", "rebase"].map(|name| disk::folders_in(&generated.join(name)));
    let kept = KEPT.iter().map(|name| generated.join(name));
    let single = [generated.clone(), layout.root().to_path_buf(), layout.root().join("docs/measurements")];
    git_dirs.chain(many.into_iter().flatten()).chain(kept).chain(single).collect()
}

/// Our refs have names with several components: the locks may be at any depth.
fn sweep_refs(folder: &Path) -> Result<()> {
    if !disk::exists(folder) {
        return Ok(());
    }
    let locks = disk::files_below(folder)?.into_iter();
    let mut locks = locks.filter(|file| file.extension().is_some_and(|extension| extension == "lock"));
    locks.try_for_each(|lock| disk::remove_file(&folder.join(lock)))
}
