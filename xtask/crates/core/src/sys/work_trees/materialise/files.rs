//! Operations on single files: writing, removing, naming.

use std::fs;
use std::path::Path;

use super::WantedFile;
use crate::error::Result;
use crate::sys::git::store::Store;
use crate::sys::machine::disk;
use crate::sys::machine::native_path::to_path;

/// Removes the file, and the folders that become empty.
pub(super) fn remove(folder: &Path, path: &[u8]) -> Result<()> {
    let file = folder.join(to_path(path));
    disk::remove_file(&file)?;
    let mut parent = file.parent();
    while let Some(empty) = parent.filter(|parent| *parent != folder) {
        if fs::remove_dir(empty).is_err() {
            break;
        }
        parent = empty.parent();
    }
    Ok(())
}

/// Removes the folder and those in it, innermost first; a folder that is not empty stays, with its parents.
fn remove_empty_folders(folder: &Path) {
    disk::folders_in(folder)
        .iter()
        .filter(|folder| !folder.is_symlink())
        .for_each(|folder| remove_empty_folders(folder));
    let _ = fs::remove_dir(folder);
}

pub(super) fn write(store: &Store, folder: &Path, path: &[u8], wanted: &WantedFile) -> Result<()> {
    let file = folder.join(to_path(path));
    if file.is_dir() && !file.is_symlink() {
        // A user's files in there would have been detected before: there are none.
        remove_empty_folders(&file);
    }
    let bytes = store.read(wanted.id)?;
    if wanted.mode == 0o120_000 {
        return write_link(&file, &bytes);
    }
    disk::write_atomically(&file, &bytes)?;
    set_mode(&file, wanted.mode)
}

#[cfg(unix)]
pub(super) fn set_mode(file: &Path, mode: u32) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(file, fs::Permissions::from_mode(mode & 0o777))
        .map_err(|error| disk::explain("set the mode of", file, &error))
}

#[cfg(not(unix))]
pub(super) fn set_mode(_file: &Path, _mode: u32) -> Result<()> {
    Ok(())
}

#[cfg(unix)]
pub(super) fn write_link(file: &Path, target: &[u8]) -> Result<()> {
    if let Some(parent) = file.parent() {
        disk::create_folder(parent)?;
    }
    disk::remove_file(file)?;
    std::os::unix::fs::symlink(to_path(target), file).map_err(|error| disk::explain("link", file, &error))
}

#[cfg(not(unix))]
pub(super) fn write_link(file: &Path, _target: &[u8]) -> Result<()> {
    Err(crate::error::Error::environment(format!(
        "`{}` is a link, which this system cannot make",
        file.display()
    )))
}
