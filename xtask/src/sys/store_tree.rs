//! The series engine's view of a tree in the store.

use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::Arc;

use git2::Oid;

use super::git_tree::GitTree;
use super::store::{Bytes, Store};
use crate::error::Result;
use crate::series::{Mode, Tree, TreeEntry, TreeError};

/// One tree of the store, read folder by folder as it is asked for.
pub struct StoreTree<'store> {
    store: &'store Store,
    root: Oid,
    folders: RefCell<GitTree<'store>>,
}

impl<'store> StoreTree<'store> {
    /// The tree `root`.
    pub fn new(store: &'store Store, root: Oid) -> Result<Self> {
        Ok(StoreTree { store, root, folders: RefCell::new(GitTree::new(store, root)?) })
    }

    fn paths_where(
        &self,
        wanted: impl Fn(&[u8], Oid) -> bool,
    ) -> std::result::Result<Vec<Vec<u8>>, TreeError> {
        let files = self.store.files(self.root).map_err(tree_error)?;
        Ok(files.into_iter().filter(|(path, _, id)| wanted(path, *id)).map(|(path, _, _)| path).collect())
    }
}

fn tree_error(error: crate::error::Error) -> TreeError {
    TreeError { message: error.to_string() }
}

/// Nobody else holds what was just read from disk: it is handed on, not copied.
fn owned<'a>(bytes: Bytes) -> Cow<'a, [u8]> {
    Cow::Owned(Arc::unwrap_or_clone(bytes))
}

/// A mode that git does not write is as untouchable as a submodule.
fn mode_of(git_mode: u32) -> Mode {
    match git_mode {
        0o040_000 => Mode::Folder,
        0o100_644 | 0o100_664 => Mode::File,
        0o100_755 => Mode::Executable,
        0o120_000 => Mode::Symlink,
        _ => Mode::Submodule,
    }
}

impl Tree for StoreTree<'_> {
    fn entry(&self, path: &[u8]) -> std::result::Result<Option<TreeEntry>, TreeError> {
        let entry = self.folders.borrow_mut().entry(path).map_err(tree_error)?;
        Ok(entry.map(|entry| TreeEntry { mode: mode_of(entry.mode), id: entry.id }))
    }

    fn blob(&self, id: Oid) -> std::result::Result<Cow<'_, [u8]>, TreeError> {
        self.store.read(id).map(owned).map_err(tree_error)
    }

    fn siblings(&self, folder: &[u8]) -> std::result::Result<Vec<Vec<u8>>, TreeError> {
        self.folders.borrow_mut().names(folder).map_err(tree_error)
    }

    fn find_blob(&self, id: Oid) -> std::result::Result<Vec<Vec<u8>>, TreeError> {
        self.paths_where(|_, found| found == id)
    }

    fn find_file_name(&self, file_name: &[u8]) -> std::result::Result<Vec<Vec<u8>>, TreeError> {
        self.paths_where(|path, _| path.rsplit(|byte| *byte == b'/').next() == Some(file_name))
    }

    fn remembered_blob(&self, id: Oid) -> std::result::Result<Option<Cow<'_, [u8]>>, TreeError> {
        // The store may never have had it: that is an answer, not a failure.
        Ok(self.store.read(id).ok().map(owned))
    }
}
