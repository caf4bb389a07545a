//! The text files that differ between the two trees.

use espalier_core::error::Result;
use espalier_core::sys::git::history;
use espalier_core::sys::git::store::Store;
use espalier_series::ObjectId;

use super::lines::ConflictedVersions;
use crate::rebase::target::SeriesMove;

/// Maximum number of files that are read.
const FILES_LIMIT: usize = 500;
/// Size limit of all of their versions, in bytes.
const BYTES_LIMIT: usize = 32 << 20;

/// A file that differs between the two trees.
pub struct ChangedFile {
    pub path: Vec<u8>,
    /// Its text in the old tree; empty if it is new.
    pub old: Vec<u8>,
    /// Its text in the new tree; empty if it is gone.
    pub new: Vec<u8>,
}

/// Returns the text files that differ between the two trees, those near the files in conflict first: of a large move not
/// all are read.
pub fn changed_files(
    series_move: &SeriesMove<'_>,
    conflicts: &[ConflictedVersions<'_>],
) -> Result<Vec<ChangedFile>> {
    let SeriesMove { store, stack, tip, .. } = series_move;
    let mut changed = history::changed_between(store, stack.pin.tree, tip.tree)?;
    let near = |path: &[u8]| {
        let paths = conflicts.iter().map(|versions| versions.conflict.path.as_bytes());
        paths.map(|conflict| common_parts(conflict, path)).max().unwrap_or(0)
    };
    // Stable: files that are equally near stay in the order of their paths.
    changed.sort_by_cached_key(|difference| std::cmp::Reverse(near(difference.path.as_slice())));
    let mut files = Vec::new();
    let mut left = BYTES_LIMIT;
    for difference in changed {
        let [old, new] = difference.blobs.map(|id| text_of_blob(store, id));
        let Some((old, new)) = old.zip(new).filter(|(old, new)| old.len() + new.len() <= left) else {
            continue;
        };
        left -= old.len() + new.len();
        files.push(ChangedFile { path: difference.path, old, new });
        if files.len() == FILES_LIMIT {
            break;
        }
    }
    Ok(files)
}

/// Returns the text of a blob; `None` if it is binary, or a submodule, which has no blob in the store.
fn text_of_blob(store: &Store, id: ObjectId) -> Option<Vec<u8>> {
    if id == ObjectId::ZERO {
        return Some(Vec::new());
    }
    let text = store.read(id).ok()?;
    (!text.contains(&0)).then(|| text.to_vec())
}

/// Returns the number of folders and names with which both paths begin.
fn common_parts(one: &[u8], other: &[u8]) -> usize {
    parts(one).zip(parts(other)).take_while(|(one, other)| one == other).count()
}

fn parts(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|byte| *byte == b'/')
}

#[cfg(test)]
mod tests {
    use super::common_parts;

    #[test]
    fn files_of_the_same_folder_are_near() {
        let common = |other: &str| common_parts(b"tools/server/server.cpp", other.as_bytes());
        assert_eq!(common("tools/server/server.cpp"), 3);
        assert_eq!(common("tools/server/tests/a.py"), 2);
        assert_eq!(common("tools/mtmd/a.cpp"), 1);
        assert_eq!(common("ggml/src/a.c"), 0);
    }
}
