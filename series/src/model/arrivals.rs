//! Which files came to a tree since the pin, and which went.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::entry::TreeEntry;
use super::mode::Mode;
use super::object_id::ObjectId;

/// A file that one of two trees has and the other has not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrival {
    /// Where it is.
    pub path: Vec<u8>,
    /// Its blob.
    pub id: ObjectId,
}

/// The files of a tree by path.
type Entries = BTreeMap<Vec<u8>, TreeEntry>;

/// How the paths of a tree differ from those of the pin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Arrivals {
    /// The files that the pin has not.
    pub came: Vec<Arrival>,
    /// The files that only the pin has.
    pub gone: Vec<Arrival>,
    moved: HashSet<ObjectId>,
}

impl Arrivals {
    /// From all that is in both trees, by path. Of what is no regular file nothing is told.
    pub fn between(pin: &Entries, tree: &Entries) -> Arrivals {
        let (came, gone) = (only_in(tree, pin), only_in(pin, tree));
        let (arrived, left) = (counts(&came), counts(&gone));
        let is_moved = |(id, count): (&ObjectId, &usize)| left.get(id).is_some_and(|left| left >= count);
        let moved = arrived.iter().filter(|(id, count)| is_moved((id, count))).map(|(id, _)| *id).collect();
        Arrivals { came, gone, moved }
    }

    /// Whether each file that came with the blob `id` is one that went, under another name: then it is no other one.
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
