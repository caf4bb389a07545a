//! A git tree that is modified in memory: only the folders that a change touches are read and rewritten.

use std::collections::HashMap;

use espalier_series::{ObjectId, ObjectKind};

use super::store::Store;
pub use super::tree_object::Entry;
use super::tree_object::{FOLDER, Folder, join, parse, render_tree};
use crate::error::Result;

/// A tree of the store, modified in memory.
pub struct GitTree<'store> {
    store: &'store Store,
    /// Loaded folders by path; the path of the root is empty.
    folders: HashMap<Vec<u8>, Folder>,
}

impl<'store> GitTree<'store> {
    /// Opens the tree `root`, unmodified.
    pub fn new(store: &'store Store, root: ObjectId) -> Result<Self> {
        let mut tree = GitTree { store, folders: HashMap::new() };
        let folder = tree.read_folder(root)?;
        tree.folders.insert(Vec::new(), folder);
        Ok(tree)
    }

    /// Returns the entry at `path`, if any.
    pub fn entry(&mut self, path: &[u8]) -> Result<Option<Entry>> {
        let (parent, name) = split(path);
        if !self.load(parent)? {
            return Ok(None);
        }
        Ok(self.folders.get(parent).and_then(|folder| folder.get(name)).copied())
    }

    /// Returns the names in the folder `path`; empty if there is no such folder.
    pub fn names(&mut self, path: &[u8]) -> Result<Vec<Vec<u8>>> {
        if !self.load(path)? {
            return Ok(Vec::new());
        }
        Ok(self.folders.get(path).map(|folder| folder.keys().cloned().collect()).unwrap_or_default())
    }

    /// Whether `path`, or one of its parent folders, exists in any spelling of upper and lower case.
    pub fn has_any_case(&mut self, path: &[u8]) -> Result<bool> {
        let (parent, name) = split(path);
        if !parent.is_empty() {
            match self.entry(parent)? {
                Some(Entry { mode: FOLDER, .. }) => {}
                Some(_) => return Ok(true),
                None => return self.has_any_case(parent),
            }
        }
        Ok(self.names(parent)?.iter().any(|other| other.eq_ignore_ascii_case(name)))
    }

    /// Sets the file at `path` (creating its parents) or removes it; folders left empty are removed too.
    pub fn set(&mut self, path: &[u8], entry: Option<Entry>) -> Result<()> {
        let (parent, name) = split(path);
        if !self.load(parent)? {
            if entry.is_none() {
                return Ok(());
            }
            self.folders.insert(parent.to_vec(), Folder::new());
            self.set(parent, Some(Entry { mode: FOLDER, id: ObjectId::ZERO }))?;
        }
        self.change(parent, name, entry);
        self.mark(parent);
        Ok(())
    }

    /// Creates every changed folder in the store's memory and returns the id of the root.
    pub fn write(&mut self) -> Result<ObjectId> {
        self.write_folder(&[]).map(|id| id.unwrap_or(ObjectId::ZERO))
    }

    fn change(&mut self, parent: &[u8], name: &[u8], entry: Option<Entry>) {
        let Some(folder) = self.folders.get_mut(parent) else { return };
        match entry {
            Some(entry) => drop(folder.insert(name.to_vec(), entry)),
            None => drop(folder.remove(name)),
        }
    }

    /// Marks every folder down to `path` as changed: a zero id means "to be written".
    fn mark(&mut self, path: &[u8]) {
        let mut current = path;
        while !current.is_empty() {
            let (parent, name) = split(current);
            self.change(parent, name, Some(Entry { mode: FOLDER, id: ObjectId::ZERO }));
            current = parent;
        }
    }

    fn load(&mut self, path: &[u8]) -> Result<bool> {
        if self.folders.contains_key(path) {
            return Ok(true);
        }
        match self.entry(path)? {
            Some(Entry { mode: FOLDER, id }) => {
                let folder = self.read_folder(id)?;
                self.folders.insert(path.to_vec(), folder);
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    fn read_folder(&self, id: ObjectId) -> Result<Folder> {
        parse(id, &self.store.read(id)?)
    }

    /// Returns `None` for a folder that became empty.
    fn write_folder(&mut self, path: &[u8]) -> Result<Option<ObjectId>> {
        let Some(folder) = self.folders.get(path) else { return Ok(None) };
        let changed: Vec<Vec<u8>> = folder
            .iter()
            .filter(|(_, entry)| entry.mode == FOLDER && entry.id == ObjectId::ZERO)
            .map(|(name, _)| name.clone())
            .collect();
        for name in changed {
            let id = self.write_folder(&join(path, &name))?;
            self.change(path, &name, id.map(|id| Entry { mode: FOLDER, id }));
            if id.is_none() {
                self.folders.remove(&join(path, &name));
            }
        }
        let Some(folder) = self.folders.get(path) else { return Ok(None) };
        if folder.is_empty() && !path.is_empty() {
            return Ok(None);
        }
        Ok(Some(self.store.make(ObjectKind::Tree, render_tree(folder))))
    }
}

fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (&[], path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(store: &Store, text: &str) -> Entry {
        Entry { mode: 0o100_644, id: store.write(ObjectKind::Blob, text.as_bytes()).unwrap() }
    }

    /// Returns the id that libgit2's own index computes for the same files.
    fn tree_by_index(repo: &git2::Repository, files: &[(&str, Entry)]) -> ObjectId {
        let mut index = git2::Index::new().unwrap();
        for (path, entry) in files {
            let zero = git2::IndexTime::new(0, 0);
            let entry = git2::IndexEntry {
                ctime: zero,
                mtime: zero,
                dev: 0,
                ino: 0,
                mode: entry.mode,
                uid: 0,
                gid: 0,
                file_size: 0,
                id: crate::sys::git::ids::oid(entry.id),
                flags: 0,
                flags_extended: 0,
                path: path.as_bytes().to_vec(),
            };
            index.add(&entry).unwrap();
        }
        crate::sys::git::ids::object_id(index.write_tree_to(repo).unwrap())
    }

    #[test]
    fn trees_have_the_ids_that_git_gives() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        let repo = git2::Repository::open_bare(folder.path()).unwrap();
        let (a, b) = (file(&store, "a"), file(&store, "b"));
        // `a-b`, `a/..`, `a.c`: names whose order depends on git's rule for the slash.
        let start = tree_by_index(&repo, &[("a-b", a), ("a/x/y", b), ("a.c", a), ("z", b)]);
        let mut tree = GitTree::new(&store, start).unwrap();
        assert_eq!(tree.entry(b"a/x/y").unwrap(), Some(b));
        assert_eq!(tree.entry(b"a/x/y/z").unwrap(), None);
        assert_eq!(tree.names(b"").unwrap().len(), 4);
        tree.set(b"a/x/y", None).unwrap();
        tree.set(b"a/new/deep/file", Some(a)).unwrap();
        tree.set(b"z", Some(a)).unwrap();
        let want = tree_by_index(&repo, &[("a-b", a), ("a/new/deep/file", a), ("a.c", a), ("z", a)]);
        assert_eq!(tree.write().unwrap(), want);
        tree.set(b"a/new/deep/file", None).unwrap();
        tree.set(b"a/x/y", Some(b)).unwrap();
        tree.set(b"z", Some(b)).unwrap();
        assert_eq!(tree.write().unwrap(), start);
    }

    #[test]
    fn a_damaged_tree_does_not_panic() {
        for text in [&b"100644"[..], b"100644 name", b"100644 name\0short", b"9 n\0aaaaaaaaaaaaaaaaaaaa"] {
            assert!(parse(ObjectId::ZERO, text).is_err());
        }
    }
}
