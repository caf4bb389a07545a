//! The series engine's view of a tree in the store.

use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use espalier_series::ObjectId;
use espalier_series::{Arrivals, Tree, TreeEntry, TreeError};

use super::arrivals;
use super::ids::mode_of;
use super::store::{Bytes, Store};
use super::tree::GitTree;
use crate::error::{Error, Result};

/// One tree of the store, read lazily folder by folder.
pub struct StoreTree<'store> {
    store: &'store Store,
    root: ObjectId,
    folders: RefCell<GitTree<'store>>,
    /// Upstream's tree that the series was made for, and the target tree.
    range: Option<(ObjectId, ObjectId)>,
    arrivals: OnceCell<Rc<Arrivals>>,
}

impl<'store> StoreTree<'store> {
    /// Opens the tree `root`.
    pub fn new(store: &'store Store, root: ObjectId) -> Result<Self> {
        let folders = RefCell::new(GitTree::new(store, root)?);
        Ok(StoreTree { store, root, folders, range: None, arrivals: OnceCell::new() })
    }

    /// Opens the tree `root` between upstream's trees `pin` and `tip`: files that were added from one to the other
    /// count as arrived.
    pub fn in_range(store: &'store Store, root: ObjectId, pin: ObjectId, tip: ObjectId) -> Result<Self> {
        Ok(StoreTree { range: Some((pin, tip)), ..StoreTree::new(store, root)? })
    }

    /// Returns its id.
    pub fn id(&self) -> ObjectId {
        self.root
    }

    fn paths_where(
        &self,
        wanted: impl Fn(&[u8], ObjectId) -> bool,
    ) -> std::result::Result<Vec<Vec<u8>>, TreeError> {
        let files = self.store.files(self.root).map_err(tree_error)?;
        Ok(files.into_iter().filter(|(path, _, id)| wanted(path, *id)).map(|(path, _, _)| path).collect())
    }
}

fn tree_error(error: Error) -> TreeError {
    TreeError { message: error.to_string() }
}

/// Bytes just read from disk have no other owner: they are moved out, not copied.
fn owned<'a>(bytes: Bytes) -> Cow<'a, [u8]> {
    Cow::Owned(Arc::unwrap_or_clone(bytes))
}

impl Tree for StoreTree<'_> {
    fn entry(&self, path: &[u8]) -> std::result::Result<Option<TreeEntry>, TreeError> {
        let entry = self.folders.borrow_mut().entry(path).map_err(tree_error)?;
        Ok(entry.map(|entry| TreeEntry { mode: mode_of(entry.mode), id: entry.id }))
    }

    fn blob(&self, id: ObjectId) -> std::result::Result<Cow<'_, [u8]>, TreeError> {
        self.store.read(id).map(owned).map_err(tree_error)
    }

    fn siblings(&self, folder: &[u8]) -> std::result::Result<Vec<Vec<u8>>, TreeError> {
        self.folders.borrow_mut().names(folder).map_err(tree_error)
    }

    fn find_blob(&self, id: ObjectId) -> std::result::Result<Vec<Vec<u8>>, TreeError> {
        self.paths_where(|_, found| found == id)
    }

    fn find_file_name(&self, file_name: &[u8]) -> std::result::Result<Vec<Vec<u8>>, TreeError> {
        self.paths_where(|path, _| path.rsplit(|byte| *byte == b'/').next() == Some(file_name))
    }

    fn remembered_blob(&self, id: ObjectId) -> std::result::Result<Option<Cow<'_, [u8]>>, TreeError> {
        // An object that the store never had is an answer, not an error.
        Ok(self.store.read(id).ok().map(owned))
    }

    fn arrivals(&self) -> std::result::Result<Rc<Arrivals>, TreeError> {
        if let Some(known) = self.arrivals.get() {
            return Ok(Rc::clone(known));
        }
        let found = match self.range {
            Some((pin, tip)) => arrivals::between(self.store, pin, tip).map_err(tree_error)?,
            None => Arrivals::default(),
        };
        Ok(Rc::clone(self.arrivals.get_or_init(|| Rc::new(found))))
    }
}
