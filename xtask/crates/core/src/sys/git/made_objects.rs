//! Writes objects that a run created in memory to a repository.

use std::collections::HashSet;

use espalier_series::{ObjectId, ObjectKind};
use git2::Odb;

use super::ids::object_type;
use super::store::{Store, write_failed};
use super::tree_object::{self, FOLDER};
use crate::error::{Error, Result};

/// Writes `commit`, its ancestors, and their trees and blobs, as far as this run created them. Objects that the store
/// has on disk are borrowed.
pub fn write_made(store: &Store, commit: ObjectId, to: &Odb<'_>) -> Result<()> {
    let mut writer = Writer { store, to, written: HashSet::new() };
    let mut next = Some(commit);
    while let Some(commit) = next {
        next = writer.write_commit(commit)?;
    }
    Ok(())
}

struct Writer<'a> {
    store: &'a Store,
    to: &'a Odb<'a>,
    written: HashSet<ObjectId>,
}

impl Writer<'_> {
    /// Writes one commit and returns its parent; `None` if the commit is already in the store.
    fn write_commit(&mut self, id: ObjectId) -> Result<Option<ObjectId>> {
        let Some(text) = self.store.made_object(id) else { return Ok(None) };
        let header = |key: &str| {
            let mut lines = text.split(|byte| *byte == b'\n').take(2);
            let value = lines.find_map(|line| line.strip_prefix(key.as_bytes()))?;
            std::str::from_utf8(value).ok()?.parse().ok()
        };
        let tree = header("tree ").ok_or_else(|| Error::environment(format!("{id} is not a commit")))?;
        self.write_tree(tree)?;
        self.write(ObjectKind::Commit, id, &text)?;
        Ok(header("parent "))
    }

    fn write_tree(&mut self, id: ObjectId) -> Result<()> {
        let made = self.store.made_object(id).filter(|_| !self.written.contains(&id));
        let Some(text) = made else { return Ok(()) };
        for (_, entry) in tree_object::parse(id, &text)? {
            if entry.mode == FOLDER {
                self.write_tree(entry.id)?;
            } else if let Some(blob) = self.store.made_object(entry.id) {
                self.write(ObjectKind::Blob, entry.id, &blob)?;
            }
        }
        self.write(ObjectKind::Tree, id, &text)
    }

    fn write(&mut self, kind: ObjectKind, id: ObjectId, bytes: &[u8]) -> Result<()> {
        if self.written.insert(id) {
            self.to.write(object_type(kind), bytes).map_err(|error| write_failed(&error))?;
        }
        Ok(())
    }
}
