//! New paths that some file system cannot distinguish from an existing path.

use std::collections::{HashMap, HashSet};

use super::refusal::TargetRefusal;
use crate::model::patch::{Change, Patch};
use crate::model::path::RepoPath;
use crate::model::printable::printable;
use crate::model::tree::{Tree, TreeError};

/// The collisions of a patch, by the index of the file in the patch.
pub(crate) type Collisions = HashMap<usize, TargetRefusal>;

/// Returns the paths that are gone after the patch: deleted, or renamed.
pub(crate) fn leaving_paths(patch: &Patch) -> HashSet<&[u8]> {
    let leaves = |change| matches!(change, Change::Delete | Change::Rename);
    let files = patch.files.iter().filter(|file| leaves(file.change));
    files.filter_map(|file| file.old.as_ref()).map(|side| side.path.as_bytes()).collect()
}

/// Compares the new paths of `patch` with each other and with the tree, ignoring case.
pub(crate) fn find_collisions(patch: &Patch, tree: &dyn Tree) -> Result<Collisions, TreeError> {
    let new_paths = new_paths(patch);
    let mut collisions = collisions_within(&new_paths);
    let mut finder = TreeFinder { tree, leaving: leaving_paths(patch), folders: HashMap::new() };
    for (index, path) in new_paths {
        if let Some(with) = finder.collision(path)? {
            let with = printable(&with);
            collisions.entry(index).or_insert(TargetRefusal::CaseCollision { with });
        }
    }
    Ok(collisions)
}

fn new_paths(patch: &Patch) -> Vec<(usize, &RepoPath)> {
    let is_new = |change| matches!(change, Change::Create | Change::Rename | Change::Copy);
    let files = patch.files.iter().enumerate().filter(|(_, file)| is_new(file.change));
    files.filter_map(|(index, file)| Some((index, &file.new.as_ref()?.path))).collect()
}

/// Returns the path and the folders that contain it, outermost first.
fn path_and_folders(path: &RepoPath) -> impl Iterator<Item = &[u8]> {
    path.folders().chain(std::iter::once(path.as_bytes()))
}

fn collisions_within(new_paths: &[(usize, &RepoPath)]) -> Collisions {
    let files: HashSet<&[u8]> = new_paths.iter().map(|(_, path)| path.as_bytes()).collect();
    let mut spellings: HashMap<Vec<u8>, &[u8]> = HashMap::new();
    let mut collisions = Collisions::new();
    for (index, path) in new_paths {
        for prefix in path_and_folders(path) {
            let first = *spellings.entry(folded(prefix)).or_insert(prefix);
            if first != prefix {
                let with = printable(first);
                collisions.insert(*index, TargetRefusal::CaseCollision { with });
            }
        }
        if let Some(file) = path.folders().find(|folder| files.contains(folder)) {
            let with = printable(file);
            collisions.insert(*index, TargetRefusal::FileAndFolder { with });
        }
    }
    collisions
}

/// Returns the first of `paths` that some file system cannot hold beside another of them, and why: they differ in case
/// only, or one of them is a folder of the other. No path may occur twice.
pub fn first_collision<'p>(paths: &[&'p RepoPath]) -> Option<(&'p RepoPath, TargetRefusal)> {
    let indexed: Vec<(usize, &RepoPath)> = paths.iter().copied().enumerate().collect();
    let (index, refusal) = collisions_within(&indexed).into_iter().min_by_key(|(index, _)| *index)?;
    Some((*paths.get(index)?, refusal))
}

/// Looks up new paths in a tree; caches the folders it has listed.
struct TreeFinder<'a> {
    tree: &'a dyn Tree,
    leaving: HashSet<&'a [u8]>,
    folders: HashMap<Vec<u8>, FoldedNames>,
}

/// The names in a folder by their case-folded form.
type FoldedNames = HashMap<Vec<u8>, Vec<Vec<u8>>>;

impl TreeFinder<'_> {
    /// Returns a path that is in the tree, stays there, and differs from `path`, or from a folder of it, in case only.
    fn collision(&mut self, path: &RepoPath) -> Result<Option<Vec<u8>>, TreeError> {
        let mut folder: &[u8] = b"";
        for prefix in path_and_folders(path) {
            let name = prefix.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
            let alike = self.names_like(folder, name)?;
            for other in alike.iter().filter(|other| other.as_slice() != name) {
                let full = joined(folder, other);
                if !self.leaving.contains(full.as_slice()) {
                    return Ok(Some(full));
                }
            }
            if !alike.iter().any(|other| other == name) {
                return Ok(None);
            }
            folder = prefix;
        }
        Ok(None)
    }

    /// Returns the names in `folder` that fold to the same as `name`.
    fn names_like(&mut self, folder: &[u8], name: &[u8]) -> Result<Vec<Vec<u8>>, TreeError> {
        if !self.folders.contains_key(folder) {
            let mut names = FoldedNames::new();
            for sibling in self.tree.siblings(folder)? {
                names.entry(folded(&sibling)).or_default().push(sibling);
            }
            self.folders.insert(folder.to_vec(), names);
        }
        let names = self.folders.get(folder);
        Ok(names.and_then(|names| names.get(&folded(name))).cloned().unwrap_or_default())
    }
}

fn joined(folder: &[u8], name: &[u8]) -> Vec<u8> {
    if folder.is_empty() { name.to_vec() } else { [folder, b"/", name].concat() }
}

/// Returns the form of a path that a case-insensitive file system compares.
fn folded(path: &[u8]) -> Vec<u8> {
    match std::str::from_utf8(path) {
        Ok(text) if !text.is_ascii() => text.to_lowercase().into_bytes(),
        _ => path.to_ascii_lowercase(),
    }
}

/// Returns whether any file of `patch` writes a path in `touched`.
pub(crate) fn touches_any(patch: &Patch, touched: &HashSet<RepoPath>) -> bool {
    patch.files.iter().flat_map(|file| file.paths()).any(|path| touched.contains(path))
}

/// Returns every path that `patch` writes.
pub(crate) fn all_written_paths(patch: &Patch) -> impl Iterator<Item = &RepoPath> {
    patch.files.iter().flat_map(|file| file.written_paths())
}

#[cfg(test)]
mod tests {
    use super::{TargetRefusal, first_collision};
    use crate::model::path::RepoPath;

    fn found(paths: &[&str]) -> Option<(String, TargetRefusal)> {
        let paths: Vec<RepoPath> = paths.iter().map(|path| RepoPath::new(path.as_bytes()).unwrap()).collect();
        let (path, refusal) = first_collision(&paths.iter().collect::<Vec<_>>())?;
        Some((path.to_string(), refusal))
    }

    #[test]
    fn paths_collide_by_case_or_as_file_and_folder() {
        let case = |with: &str| TargetRefusal::CaseCollision { with: with.to_string() };
        let folder = |with: &str| TargetRefusal::FileAndFolder { with: with.to_string() };
        for (paths, path, refusal) in [
            (["a/b", "c", "a/B"], "a/B", case("a/b")),
            (["a/b", "c", "A/d"], "A/d", case("a")),
            (["é", "c", "É"], "É", case("é")),
            (["a", "c", "a/b"], "a/b", folder("a")),
            (["a/b", "c", "a"], "a/b", folder("a")),
        ] {
            assert_eq!(found(&paths), Some((path.to_string(), refusal)), "{paths:?}");
        }
        assert_eq!(found(&["a/b", "a/c", "ab", "b/a"]), None);
        assert_eq!(found(&[]), None);
    }
}
