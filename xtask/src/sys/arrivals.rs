//! Files that one tree has and another has not.

use std::collections::HashSet;

use crate::series::ObjectId;

use super::store::Store;
use crate::error::Result;
use crate::series::Arrival;

/// The files of `new` whose path `old` does not have.
pub fn between(store: &Store, old: ObjectId, new: ObjectId) -> Result<Vec<Arrival>> {
    let known: HashSet<Vec<u8>> = store.files(old)?.into_iter().map(|(path, _, _)| path).collect();
    let files = store.files(new)?.into_iter();
    let fresh = files.filter(|(path, mode, _)| mode & 0o170_000 == 0o100_000 && !known.contains(path));
    Ok(fresh.map(|(path, _, id)| Arrival { path, id }).collect())
}
