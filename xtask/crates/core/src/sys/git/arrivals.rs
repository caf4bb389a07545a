//! Files that exist in one tree and not in another.

use std::collections::BTreeMap;

use espalier_series::ObjectId;
use espalier_series::{Arrivals, TreeEntry};

use super::ids::mode_of;
use super::store::Store;
use crate::error::Result;

/// Returns the regular files that were added, and those that were removed, between the trees `old` and `new`.
pub fn between(store: &Store, old: ObjectId, new: ObjectId) -> Result<Arrivals> {
    Ok(Arrivals::between(&entries(store, old)?, &entries(store, new)?))
}

fn entries(store: &Store, tree: ObjectId) -> Result<BTreeMap<Vec<u8>, TreeEntry>> {
    let files = store.files(tree)?.into_iter();
    Ok(files.map(|(path, mode, id)| (path, TreeEntry { mode: mode_of(mode), id })).collect())
}
