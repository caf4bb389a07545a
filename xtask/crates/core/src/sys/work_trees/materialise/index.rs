//! A git index that records what was written where, and when.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::UNIX_EPOCH;

use git2::{Index, IndexEntry, IndexTime};

use super::WantedFile;
use crate::error::Result;
use crate::sys::git::ids::oid;
use crate::sys::git::store;
use crate::sys::machine::disk;
use crate::sys::machine::native_path::to_path;

pub(super) fn open_index(path: &Path) -> Result<BTreeMap<Vec<u8>, IndexEntry>> {
    // An unreadable index counts as empty: every file is then compared by its content.
    let Ok(index) = Index::open(path) else { return Ok(BTreeMap::new()) };
    Ok(index.iter().map(|entry| (entry.path.clone(), entry)).collect())
}

pub(super) fn write_index(path: &Path, entries: &[IndexEntry]) -> Result<()> {
    let fail = |error: git2::Error| store::write_failed(&error);
    let mut index = Index::open(path).map_err(fail)?;
    index.clear().map_err(fail)?;
    for entry in entries {
        index.add(entry).map_err(fail)?;
    }
    index.write().map_err(fail)
}

pub(super) fn index_entry(folder: &Path, path: &[u8], wanted: &WantedFile) -> Result<IndexEntry> {
    let file = folder.join(to_path(path));
    let meta = fs::symlink_metadata(&file).map_err(|error| disk::explain("look at", &file, &error))?;
    Ok(IndexEntry {
        ctime: changed(&meta),
        mtime: time_of(&meta),
        dev: 0,
        ino: inode(&meta),
        mode: wanted.mode,
        uid: 0,
        gid: 0,
        file_size: u32::try_from(meta.len()).unwrap_or(u32::MAX),
        id: oid(wanted.id),
        flags: 0,
        flags_extended: 0,
        path: path.to_vec(),
    })
}

/// Whether the file is the one that was written, as far as its metadata tells: size and modification time are not
/// enough, because `cp -p` can reproduce both.
pub(super) fn is_same_file(entry: &IndexEntry, meta: &fs::Metadata) -> bool {
    entry.mtime == time_of(meta)
        && entry.ctime == changed(meta)
        && entry.ino == inode(meta)
        && u64::from(entry.file_size) == meta.len()
}

/// Returns the inode's change time, which no program can set. The index has 32 bits for it.
#[cfg(unix)]
fn changed(meta: &fs::Metadata) -> IndexTime {
    use std::os::unix::fs::MetadataExt;
    let nanoseconds = u32::try_from(meta.ctime_nsec()).unwrap_or_default();
    IndexTime::new(i32::try_from(meta.ctime()).unwrap_or(i32::MAX), nanoseconds)
}

/// Returns the lower half of the inode number.
#[cfg(unix)]
fn inode(meta: &fs::Metadata) -> u32 {
    use std::os::unix::fs::MetadataExt;
    u32::try_from(meta.ino() & u64::from(u32::MAX)).unwrap_or_default()
}

#[cfg(not(unix))]
fn changed(_meta: &fs::Metadata) -> IndexTime {
    IndexTime::new(0, 0)
}

#[cfg(not(unix))]
fn inode(_meta: &fs::Metadata) -> u32 {
    0
}

pub(super) fn time_of(meta: &fs::Metadata) -> IndexTime {
    let since =
        meta.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    IndexTime::new(i32::try_from(since.as_secs()).unwrap_or(i32::MAX), since.subsec_nanos())
}
