//! Folders of stages that outlive the run lock: each belongs to the process that holds the lock file beside it.
//!
//! `sync` tests its stage while other runs come and go. None of them may use or remove its folder, and a folder that a
//! killed run left must not stay. The system releases the lock file of a process however it ends, and child processes
//! do not inherit it: a folder whose lock file is free belongs to no process.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::config::layout::Layout;
use crate::error::Result;
use crate::sys::machine::{disk, owned};

/// The ownership of a folder by this process, until dropped. The owner removes the folder before that.
#[derive(Debug)]
pub struct Ownership {
    lock_file: PathBuf,
    _held: File,
}

/// Creates an empty folder that belongs to this process. The caller holds the run lock, as a sweep does.
pub fn create(layout: &Layout) -> Result<(PathBuf, Ownership)> {
    let folder = disk::scratch_folder(&layout.stages(), "stage")?.keep();
    let lock_file = layout.stages().join(lock_name(&name_of(&folder)));
    let fail = |error: std::io::Error| disk::explain("lock", &lock_file, &error);
    let file = File::options().create(true).truncate(false).write(true).open(&lock_file).map_err(fail)?;
    file.lock().map_err(fail)?;
    Ok((folder, Ownership { lock_file, _held: file }))
}

/// Removes every folder that belongs to no process. The caller holds the run lock.
pub fn sweep(layout: &Layout) -> Result<()> {
    let stages = layout.stages();
    owned::sweep(&stages, |name| !is_held(&stages.join(lock_name(name))))
}

/// Returns a folder that belongs to a process; `None` if there is none.
#[must_use]
pub fn owned(layout: &Layout) -> Option<PathBuf> {
    let stages = layout.stages();
    disk::folders_in(&stages).into_iter().find(|folder| is_held(&stages.join(lock_name(&name_of(folder)))))
}

/// Returns the name of the lock file of a folder; it is its own.
fn lock_name(name: &str) -> String {
    format!("{}.lock", name.strip_suffix(".lock").unwrap_or(name))
}

fn name_of(folder: &Path) -> String {
    folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Whatever cannot be found out counts as held: a folder that is left costs space, one that is removed a run.
fn is_held(lock_file: &Path) -> bool {
    match File::open(lock_file) {
        Ok(file) => file.try_lock_shared().is_err(),
        Err(error) => error.kind() != ErrorKind::NotFound,
    }
}

impl Drop for Ownership {
    fn drop(&mut self) {
        // The next sweep removes it otherwise.
        let _ = disk::remove_file(&self.lock_file);
    }
}
