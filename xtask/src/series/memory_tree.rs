//! A tree in memory: the smallest [`Tree`], for tests and for trying patches on made-up files.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use git2::Oid;

use super::apply::blob_id;
use super::mode::Mode;
use super::tree::{Tree, TreeEntry, TreeError};

/// Files by path; folders are there because files are in them.
#[derive(Debug, Clone, Default)]
pub struct MemoryTree {
    files: BTreeMap<Vec<u8>, TreeEntry>,
    blobs: HashMap<Oid, Vec<u8>>,
}

impl MemoryTree {
    /// A tree without files.
    pub fn new() -> MemoryTree {
        MemoryTree::default()
    }

    /// Puts a file, a symlink or a submodule at `path`.
    pub fn put(&mut self, path: &str, mode: Mode, content: &[u8]) {
        let id = self.remember(content);
        self.files.insert(path.as_bytes().to_vec(), TreeEntry { mode, id });
    }

    /// Keeps a blob without naming it in the tree, as a git store does; gives its id.
    pub fn remember(&mut self, content: &[u8]) -> Oid {
        let id = blob_id(content);
        self.blobs.insert(id, content.to_vec());
        id
    }

    /// Removes the file at `path`. Its blob is still remembered, as in a git store.
    pub fn remove(&mut self, path: &str) {
        self.files.remove(path.as_bytes());
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
        Ok(is_folder.then_some(TreeEntry { mode: Mode::Folder, id: Oid::ZERO_SHA1 }))
    }

    fn blob(&self, id: Oid) -> Result<Cow<'_, [u8]>, TreeError> {
        let missing = || TreeError { message: format!("blob {id} is missing") };
        self.blobs.get(&id).map(|bytes| Cow::Borrowed(bytes.as_slice())).ok_or_else(missing)
    }

    fn siblings(&self, folder: &[u8]) -> Result<Vec<Vec<u8>>, TreeError> {
        let prefix = if folder.is_empty() { Vec::new() } else { [folder, b"/"].concat() };
        let inside = self.files.range(prefix.clone()..).map(|(path, _)| path.strip_prefix(&*prefix));
        let rests = inside.map_while(|rest| rest);
        let names = rests.filter_map(|rest| rest.split(|byte| *byte == b'/').next());
        let unique: BTreeSet<Vec<u8>> = names.map(<[u8]>::to_vec).collect();
        Ok(unique.into_iter().collect())
    }

    fn find_blob(&self, id: Oid) -> Result<Vec<Vec<u8>>, TreeError> {
        Ok(self.paths_where(|_, entry| entry.id == id))
    }

    fn find_file_name(&self, file_name: &[u8]) -> Result<Vec<Vec<u8>>, TreeError> {
        let is_named = |path: &[u8]| path.rsplit(|byte| *byte == b'/').next() == Some(file_name);
        Ok(self.paths_where(|path, _| is_named(path)))
    }

    fn remembered_blob(&self, id: Oid) -> Result<Option<Cow<'_, [u8]>>, TreeError> {
        Ok(self.blobs.get(&id).map(|bytes| Cow::Borrowed(bytes.as_slice())))
    }
}
