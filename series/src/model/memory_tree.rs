//! A tree in memory: the smallest [`Tree`], for tests and for trying patches on synthetic files.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use super::arrivals::Arrivals;
use super::entry::TreeEntry;
use super::mode::Mode;
use super::object_id::ObjectId;
use super::tree::{Tree, TreeError};

/// Files by path; a folder exists if it contains files.
#[derive(Debug, Clone, Default)]
pub struct MemoryTree {
    files: BTreeMap<Vec<u8>, TreeEntry>,
    blobs: HashMap<ObjectId, Vec<u8>>,
    arrivals: Rc<Arrivals>,
}

impl MemoryTree {
    /// Creates a tree without files.
    pub fn new() -> MemoryTree {
        MemoryTree::default()
    }

    /// Puts a file, a symlink or a submodule at `path`.
    pub fn put(&mut self, path: &str, mode: Mode, content: &[u8]) {
        let id = self.remember(content);
        self.files.insert(path.as_bytes().to_vec(), TreeEntry { mode, id });
    }

    /// Keeps a blob without an entry in the tree, as a git store does; returns its id.
    pub fn remember(&mut self, content: &[u8]) -> ObjectId {
        let id = ObjectId::of_blob(content);
        self.blobs.insert(id, content.to_vec());
        id
    }

    /// Removes the file at `path`. Its blob is still remembered, as in a git store.
    pub fn remove(&mut self, path: &str) {
        self.files.remove(path.as_bytes());
    }

    /// Records all files of this tree that `pin` does not have as added since the pin.
    pub fn came_after(&mut self, pin: &MemoryTree) {
        self.arrivals = Rc::new(Arrivals::between(&pin.files, &self.files));
    }

    /// Returns the first component after `prefix` of the first path at or after `from`, and whether it is a folder.
    fn first_name(&self, prefix: &[u8], from: &[u8]) -> Option<(&[u8], bool)> {
        let (path, _) = self.files.range(from.to_vec()..).next()?;
        let mut parts = path.strip_prefix(prefix)?.splitn(2, |byte| *byte == b'/');
        Some((parts.next()?, parts.next().is_some()))
    }

    fn paths_where(&self, wanted: impl Fn(&[u8], &TreeEntry) -> bool) -> Vec<Vec<u8>> {
        let found = self.files.iter().filter(|(path, entry)| wanted(path, entry));
        found.map(|(path, _)| path.clone()).collect()
    }
}

impl Tree for MemoryTree {
    fn entry(&self, path: &[u8]) -> Result<Option<TreeEntry>, TreeError> {
        if let Some(entry) = self.files.get(path) {
            return Ok(Some(*entry));
        }
        let folder = [path, b"/"].concat();
        let first_inside = self.files.range(folder.clone()..).next();
        let is_folder = first_inside.is_some_and(|(inside, _)| inside.starts_with(&folder));
        Ok(is_folder.then_some(TreeEntry { mode: Mode::Folder, id: ObjectId::ZERO }))
    }

    fn blob(&self, id: ObjectId) -> Result<Cow<'_, [u8]>, TreeError> {
        let missing = || TreeError { message: format!("blob {id} is missing") };
        self.blobs.get(&id).map(|bytes| Cow::Borrowed(bytes.as_slice())).ok_or_else(missing)
    }

    fn siblings(&self, folder: &[u8]) -> Result<Vec<Vec<u8>>, TreeError> {
        let prefix = if folder.is_empty() { Vec::new() } else { [folder, b"/"].concat() };
        let mut names = Vec::new();
        let mut from = prefix.clone();
        while let Some((name, is_folder)) = self.first_name(&prefix, &from) {
            // `0` is the character after `/`, so it skips the contents of the folder `name`; NUL is the smallest
            // character, so it skips the file `name` alone.
            let next: &[u8] = if is_folder { b"0" } else { b"\0" };
            from = [&prefix, name, next].concat();
            names.push(name.to_vec());
        }
        Ok(names)
    }

    fn find_blob(&self, id: ObjectId) -> Result<Vec<Vec<u8>>, TreeError> {
        Ok(self.paths_where(|_, entry| entry.id == id))
    }

    fn find_file_name(&self, file_name: &[u8]) -> Result<Vec<Vec<u8>>, TreeError> {
        let is_named = |path: &[u8]| path.rsplit(|byte| *byte == b'/').next() == Some(file_name);
        Ok(self.paths_where(|path, _| is_named(path)))
    }

    fn remembered_blob(&self, id: ObjectId) -> Result<Option<Cow<'_, [u8]>>, TreeError> {
        Ok(self.blobs.get(&id).map(|bytes| Cow::Borrowed(bytes.as_slice())))
    }

    fn arrivals(&self) -> Result<Rc<Arrivals>, TreeError> {
        Ok(Rc::clone(&self.arrivals))
    }
}

#[cfg(test)]
mod tests {
    use super::{MemoryTree, Mode, Tree};

    #[test]
    fn lists_what_is_directly_in_a_folder() {
        let mut tree = MemoryTree::new();
        for path in ["a.c", "a/x", "a/y/z", "a0", "ab", "ab-c", "b/x"] {
            tree.put(path, Mode::File, b"");
        }
        let names = |folder: &[u8]| tree.siblings(folder).unwrap();
        assert_eq!(names(b""), [&b"a.c"[..], b"a", b"a0", b"ab", b"ab-c", b"b"]);
        assert_eq!(names(b"a"), [b"x", b"y"]);
        assert!(names(b"a.c").is_empty() && names(b"none").is_empty());
    }
}
