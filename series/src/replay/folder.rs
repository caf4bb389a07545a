//! Search for the new place of a folder that upstream moved and into which a patch puts a new file.

use std::collections::BTreeMap;

use super::applied_series::AppliedSeries;
use super::follow::{MovedFile, find_moved};
use crate::model::path::RepoPath;
use crate::model::tree::{Tree, TreeError};

/// Maximum number of files of a folder that are searched for elsewhere.
const LOOKED_FOR: usize = 50;

/// Returns the new path of `path` if its folder was moved. Like git, it counts as moved if the pin has the folder, the
/// tree does not, and most of its surviving files are in one other folder. `None` if it was not moved.
pub(crate) fn find_moved_folder(
    path: &RepoPath,
    applied: &AppliedSeries<'_>,
    tree: &dyn Tree,
) -> Result<Option<RepoPath>, TreeError> {
    let Some(folder) = path.folders().last() else { return Ok(None) };
    if applied.pin.entry(folder)?.is_none() || tree.entry(folder)?.is_some() {
        return Ok(None);
    }
    let mut votes: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
    for name in applied.pin.siblings(folder)?.iter().take(LOOKED_FOR) {
        let sibling = [folder, b"/", name].concat();
        let Some(entry) = applied.pin.entry(&sibling)? else { continue };
        if let MovedFile::At { path, .. } = find_moved((&sibling, entry.id), applied, tree)? {
            *votes.entry(path.folders().last().unwrap_or_default().to_vec()).or_default() += 1;
        }
    }
    let most = votes.into_iter().max_by_key(|(_, files)| *files);
    let new_path = most.map(|(folder, _)| match folder.is_empty() {
        true => path.file_name().to_vec(),
        false => [&folder, b"/".as_slice(), path.file_name()].concat(),
    });
    Ok(new_path.and_then(|path| RepoPath::new(&path).ok()))
}
