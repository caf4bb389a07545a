//! The current state on disk.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use espalier_series::{ObjectId, ObjectKind};
use git2::IndexEntry;

use super::index::is_same_file;
use crate::error::Result;
use crate::sys::git::ids::object_id;
use crate::sys::machine::disk;
use crate::sys::machine::native_path::{to_bytes, to_path};

/// Returns the files on disk, except temporary files of a killed run.
pub(super) fn files_there(folder: &Path) -> Result<BTreeSet<Vec<u8>>> {
    let mut there = BTreeSet::new();
    for path in disk::files_below(folder)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if disk::is_temporary(&name) {
            disk::remove_file(&folder.join(&path))?;
        } else {
            there.insert(to_bytes(&path));
        }
    }
    Ok(there)
}

/// The state on disk at one path.
pub(super) struct FileOnDisk {
    pub id: ObjectId,
    pub mode: u32,
    /// Whether it matches the file in the index by all metadata of the system: its content was not read.
    pub as_written: bool,
}

/// Examines one path; a file whose metadata matches the index counts as unmodified, any other file is hashed.
pub(super) fn look(folder: &Path, path: &[u8], written: Option<&IndexEntry>) -> Result<FileOnDisk> {
    let file = folder.join(to_path(path));
    let meta = fs::symlink_metadata(&file).map_err(|error| disk::explain("look at", &file, &error))?;
    let mode = mode_of(&meta, written);
    if let Some(entry) = written
        && is_same_file(entry, &meta)
    {
        return Ok(FileOnDisk { id: object_id(entry.id), mode, as_written: true });
    }
    let bytes = if meta.is_symlink() {
        let target = fs::read_link(&file).map_err(|error| disk::explain("read the link", &file, &error))?;
        to_bytes(&target)
    } else {
        disk::read(&file)?
    };
    let id = ObjectId::of(ObjectKind::Blob, &bytes);
    Ok(FileOnDisk { id, mode, as_written: false })
}

#[cfg(unix)]
pub(super) fn mode_of(meta: &fs::Metadata, _written: Option<&IndexEntry>) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    match (meta.is_symlink(), meta.permissions().mode() & 0o100 != 0) {
        (true, _) => 0o120_000,
        (false, true) => 0o100_755,
        (false, false) => 0o100_644,
    }
}

/// Assumes the mode in the index, because this system has no such modes on disk.
#[cfg(not(unix))]
pub(super) fn mode_of(_meta: &fs::Metadata, written: Option<&IndexEntry>) -> u32 {
    written.map_or(0o100_644, |entry| entry.mode)
}
