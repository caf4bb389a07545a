//! Work in an edit repository that `git status` does not report: files whose flags in the index exclude them from it,
//! files that the user's own settings ignore, and linked work trees.
//!
//! Another repository in the same place would have none of it.

use std::path::Path;

use espalier_series::{ObjectId, lossy};

use super::edit_ignored::LINKED;
use super::edit_repo::EditRepo;
use crate::error::Result;
use crate::sys::machine::disk;
use crate::sys::machine::native_path::{to_bytes, to_path};

/// Returns files that differ from the index although their flags there say that they need not be compared:
/// `skip-worktree` and `assume-unchanged`.
pub fn flagged_files(repo: &EditRepo) -> Result<Vec<String>> {
    let stdout = repo.git().args(["ls-files", "-v", "--stage", "-z"]).success()?;
    let entries = stdout.split(|byte| *byte == 0).filter_map(IndexEntry::parse);
    let changed = entries.filter(|entry| entry.is_flagged() && entry.is_changed_in(repo.folder()));
    Ok(changed.map(|entry| lossy(entry.path).into_owned()).collect())
}

/// Returns untracked files that no `.gitignore` in the tree ignores, whatever `.git/info/exclude` and the setting
/// `core.excludesFile` say; the links to the overlay's files do not count.
pub fn untracked_files(repo: &EditRepo) -> Result<Vec<String>> {
    let stdout =
        repo.git().args(["ls-files", "--others", "-z", "--exclude-per-directory=.gitignore"]).success()?;
    let linked = disk::read_if_there(&repo.git_dir().join(LINKED))?.unwrap_or_default();
    // Where the system has no links for every user, there are copies.
    let is_link = |path: &[u8]| cfg!(not(unix)) || repo.folder().join(to_path(path)).is_symlink();
    let is_ours = |path: &[u8]| linked.split(|byte| *byte == b'\n').any(|line| line == path) && is_link(path);
    let paths = stdout.split(|byte| *byte == 0).filter(|path| !path.is_empty());
    Ok(paths.filter(|path| !is_ours(path)).map(|path| lossy(path).into_owned()).collect())
}

/// Returns the folders of the work trees that `git worktree add` linked to the repository in `folder`, which need not
/// be readable.
pub fn linked_work_trees(folder: &Path) -> Vec<String> {
    let entries = disk::folders_in(&folder.join(".git/worktrees"));
    let mut folders: Vec<String> = entries.iter().map(|entry| linked_to(entry)).collect();
    folders.sort();
    folders
}

/// Returns the folder of a linked work tree, given the folder of its metadata, which stands for one that is unknown.
fn linked_to(entry: &Path) -> String {
    let text = disk::read_if_there(&entry.join("gitdir")).ok().flatten().unwrap_or_default();
    let git_file = entry.join(to_path(text.trim_ascii_end()));
    let folder = git_file.parent().filter(|_| !text.is_empty()).unwrap_or(entry);
    folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf()).display().to_string()
}

/// One line of `git ls-files -v --stage`: `TAG MODE ID STAGE`, a tab and the path.
struct IndexEntry<'a> {
    tag: u8,
    mode: &'a [u8],
    id: &'a [u8],
    path: &'a [u8],
}

impl<'a> IndexEntry<'a> {
    fn parse(line: &'a [u8]) -> Option<IndexEntry<'a>> {
        let tab = line.iter().position(|byte| *byte == b'\t')?;
        let mut words = line.get(..tab)?.split(|byte| *byte == b' ');
        let (tag, mode, id) = (words.next()?, words.next()?, words.next()?);
        Some(IndexEntry { tag: *tag.first()?, mode, id, path: line.get(tab + 1..)? })
    }

    /// `S` is `skip-worktree`; lower case is `assume-unchanged`.
    fn is_flagged(&self) -> bool {
        self.tag == b'S' || self.tag.is_ascii_lowercase()
    }

    /// Whether the file in the work tree is another one. A missing file holds no work.
    fn is_changed_in(&self, folder: &Path) -> bool {
        let path = folder.join(to_path(self.path));
        if !disk::exists(&path) {
            return false;
        }
        let (mode, content) = match std::fs::read_link(&path) {
            Ok(target) => ("120000", Ok(to_bytes(&target))),
            Err(_) if disk::is_executable(&path) => ("100755", disk::read(&path)),
            Err(_) => ("100644", disk::read(&path)),
        };
        let is_same = |content: Vec<u8>| ObjectId::of_blob(&content).to_string().as_bytes() == self.id;
        // What cannot be read, such as a folder in its place, is not the file.
        !content.is_ok_and(is_same) || (cfg!(unix) && mode.as_bytes() != self.mode)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_linked_work_tree_is_named_by_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let metadata = folder.path().join(".git/worktrees");
        assert_eq!(linked_work_trees(folder.path()), [""; 0]);
        std::fs::create_dir_all(metadata.join("gone")).unwrap();
        std::fs::create_dir_all(metadata.join("there")).unwrap();
        std::fs::write(metadata.join("there/gitdir"), b"/no/such/place/.git\n").unwrap();
        let gone = metadata.join("gone").canonicalize().unwrap().display().to_string();
        let mut expected = [gone, "/no/such/place".to_string()];
        expected.sort();
        assert_eq!(linked_work_trees(folder.path()), expected);
    }

    #[test]
    fn a_flag_hides_only_what_is_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let id = ObjectId::of_blob(b"x\n");
        let line = |tag: &str| format!("{tag} 100644 {id} 0\ta.c").into_bytes();
        let is_hidden = |tag: &str| {
            let line = line(tag);
            let entry = IndexEntry::parse(&line).unwrap();
            entry.is_flagged() && entry.is_changed_in(folder.path())
        };
        let is_changed = || ["S", "h", "s", "H"].map(is_hidden);
        assert_eq!(is_changed(), [false; 4]);
        std::fs::write(folder.path().join("a.c"), b"x\n").unwrap();
        assert_eq!(is_changed(), [false; 4]);
        std::fs::write(folder.path().join("a.c"), b"y\n").unwrap();
        assert_eq!(is_changed(), [true, true, true, false]);
        std::fs::remove_file(folder.path().join("a.c")).unwrap();
        std::fs::create_dir(folder.path().join("a.c")).unwrap();
        assert_eq!(is_changed(), [true, true, true, false]);
    }
}
