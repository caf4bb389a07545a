//! A git index that remembers what was written where, and when.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::UNIX_EPOCH;

use git2::{Index, IndexEntry, IndexTime};

use super::Wanted;
use crate::error::Result;
use crate::sys::native_path::to_path;
use crate::sys::{disk, store};

pub(super) fn open_index(path: &Path) -> Result<BTreeMap<Vec<u8>, IndexEntry>> {
    // An index that cannot be read says nothing: every file is then compared by its content.
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

pub(super) fn index_entry(folder: &Path, path: &[u8], wanted: &Wanted) -> Result<IndexEntry> {
    let file = folder.join(to_path(path));
    let meta = fs::symlink_metadata(&file).map_err(|error| disk::explain("look at", &file, &error))?;
    Ok(IndexEntry {
        ctime: IndexTime::new(0, 0),
        mtime: time_of(&meta),
        dev: 0,
        ino: 0,
        mode: wanted.mode,
        uid: 0,
        gid: 0,
        file_size: u32::try_from(meta.len()).unwrap_or(u32::MAX),
        id: wanted.id,
        flags: 0,
        flags_extended: 0,
        path: path.to_vec(),
    })
}

pub(super) fn time_of(meta: &fs::Metadata) -> IndexTime {
    let since =
        meta.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    IndexTime::new(i32::try_from(since.as_secs()).unwrap_or(i32::MAX), since.subsec_nanos())
}
