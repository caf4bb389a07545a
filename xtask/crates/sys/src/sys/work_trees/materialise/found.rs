//! What is on disk now.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use git2::IndexEntry;

use super::index::is_same_file;
use crate::error::Result;
use crate::series::{ObjectId, ObjectKind};
use crate::sys::git::ids::object_id;
use crate::sys::machine::disk;
use crate::sys::machine::native_path::{to_bytes, to_path};

/// What is on disk, without what a killed run left half-written.
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

/// What is on disk at one path.
pub(super) struct Found {
    pub id: ObjectId,
    pub mode: u32,
    /// It is the file in the index, by all that the system says of it: the content was not read.
    pub as_written: bool,
}

/// The file that we wrote is as we wrote it; any other one is hashed.
pub(super) fn look(folder: &Path, path: &[u8], written: Option<&IndexEntry>) -> Result<Found> {
    let file = folder.join(to_path(path));
    let meta = fs::symlink_metadata(&file).map_err(|error| disk::explain("look at", &file, &error))?;
    let mode = mode_of(&meta, written);
    if let Some(entry) = written
        && is_same_file(entry, &meta)
    {
        return Ok(Found { id: object_id(entry.id), mode, as_written: true });
    }
    let bytes = if meta.is_symlink() {
        let target = fs::read_link(&file).map_err(|error| disk::explain("read the link", &file, &error))?;
        to_bytes(&target)
    } else {
        disk::read(&file)?
    };
    let id = ObjectId::of(ObjectKind::Blob, &bytes);
    Ok(Found { id, mode, as_written: false })
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

/// Without such modes on disk, the index is right.
#[cfg(not(unix))]
pub(super) fn mode_of(_meta: &fs::Metadata, written: Option<&IndexEntry>) -> u32 {
    written.map_or(0o100_644, |entry| entry.mode)
}
