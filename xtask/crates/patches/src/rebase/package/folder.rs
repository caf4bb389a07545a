//! The package of a stopped patch as a folder, which another program can work from.

use std::path::Path;

use espalier_core::error::Result;
use espalier_core::sys::machine::{disk, owned};

use crate::report::conflict::{ConflictPackage, json_text};
use crate::report::conflict_readme::readme;

/// Writes the package to `folder`, in place of an earlier one: complete, or not at all. All names in it are ours.
pub fn write(package: &ConflictPackage, folder: &Path, scratch: &Path) -> Result<()> {
    let new = disk::scratch_folder(scratch, "conflict")?;
    let home = new.path().join("conflict");
    disk::write_atomically(&home.join("conflict.json"), (json_text(package) + "\n").as_bytes())?;
    disk::write_atomically(&home.join("README.md"), espalier_series::visible(&readme(package)).as_bytes())?;
    for hunk in &package.hunks {
        for (name, text) in &hunk.texts {
            disk::write_atomically(&home.join(&hunk.folder).join(name), text)?;
        }
    }
    if !package.related.is_empty() {
        let diffs: Vec<&[u8]> = package.related.iter().map(|change| change.whole.as_slice()).collect();
        disk::write_atomically(&home.join("related.diff"), &diffs.concat())?;
    }
    remove(folder)?;
    owned::rename(&home, folder)
}

/// Removes the package; a missing one is not an error.
pub fn remove(folder: &Path) -> Result<()> {
    owned::remove_folder(folder)
}
