//! The files added to and removed from a tree since the pin.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::entry::TreeEntry;
use super::mode::Mode;
use super::object_id::ObjectId;

/// A file that exists in only one of two trees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrival {
    /// Its path.
    pub path: Vec<u8>,
    /// Its blob.
    pub id: ObjectId,
}

/// The files of a tree by path.
type Entries = BTreeMap<Vec<u8>, TreeEntry>;

/// The differences between the paths of a tree and those of the pin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Arrivals {
    /// The files that the pin does not have.
    pub came: Vec<Arrival>,
    /// The files that only the pin has.
    pub gone: Vec<Arrival>,
    moved: HashSet<ObjectId>,
}

impl Arrivals {
    /// Compares the contents of both trees, by path. Entries that are not regular files are ignored.
    pub fn between(pin: &Entries, tree: &Entries) -> Arrivals {
        let (came, gone) = (only_in(tree, pin), only_in(pin, tree));
        let (arrived, left) = (counts(&came), counts(&gone));
        let is_moved = |(id, count): (&ObjectId, &usize)| left.get(id).is_some_and(|left| left >= count);
        let moved = arrived.iter().filter(|(id, count)| is_moved((id, count))).map(|(id, _)| *id).collect();
        Arrivals { came, gone, moved }
    }

    /// Returns whether each added file with the blob `id` is a removed one under another name, and so not a new file.
    pub(crate) fn is_moved(&self, id: ObjectId) -> bool {
        self.moved.contains(&id)
    }
}

fn only_in(tree: &Entries, other: &Entries) -> Vec<Arrival> {
    let is_file = |entry: &TreeEntry| matches!(entry.mode, Mode::File | Mode::Executable);
    let fresh = tree.iter().filter(|(path, entry)| is_file(entry) && !other.contains_key(*path));
    fresh.map(|(path, entry)| Arrival { path: path.clone(), id: entry.id }).collect()
}

fn counts(files: &[Arrival]) -> HashMap<ObjectId, usize> {
    let mut counts = HashMap::new();
    files.iter().for_each(|file| *counts.entry(file.id).or_default() += 1);
    counts
}
