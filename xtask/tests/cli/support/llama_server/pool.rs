//! The block pool of the fake server: counted, not stored.

use std::collections::{BTreeMap, BTreeSet};

/// Tokens of a block.
pub const BLOCK: usize = 64;

/// Names a block by all tokens up to its end and by who may find it.
pub type Key = u64;

/// Published blocks, and counts of the others.
pub struct Pool {
    /// Blocks in all.
    pub count: usize,
    published: BTreeMap<Key, Block>,
    /// In use and not published.
    unpublished: usize,
    /// Blocks that were retained and are now another's.
    pub evicted: usize,
    /// What they were.
    gone: BTreeSet<Key>,
    /// The most that were in use at one moment.
    pub peak: usize,
    clock: u64,
}

struct Block {
    cells: Vec<u64>,
    users: usize,
    /// When its last user went.
    left: u64,
}

/// The blocks that one request has.
#[derive(Default)]
pub struct Held {
    published: Vec<Key>,
    unpublished: usize,
}

impl Held {
    pub fn count(&self) -> usize {
        self.published.len() + self.unpublished
    }
}

impl Pool {
    pub fn new(count: usize) -> Pool {
        let (published, gone) = (BTreeMap::new(), BTreeSet::new());
        Pool { count, published, unpublished: 0, evicted: 0, gone, peak: 0, clock: 0 }
    }

    pub fn used(&self) -> usize {
        self.unpublished + self.published.values().filter(|block| block.users > 0).count()
    }

    pub fn retained(&self) -> usize {
        self.published.values().filter(|block| block.users == 0).count()
    }

    pub fn empty(&self) -> usize {
        self.count - self.unpublished - self.published.len()
    }

    /// What was computed for a block, where it is known.
    pub fn cells(&self, key: Key) -> Option<&[u64]> {
        self.published.get(&key).map(|block| &block.cells[..])
    }

    /// Whether it is known, or was.
    pub fn was_published(&self, key: Key) -> bool {
        self.published.contains_key(&key) || self.gone.contains(&key)
    }

    /// Whether somebody uses it now, so that another user costs nothing.
    pub fn is_used(&self, key: Key) -> bool {
        self.published.get(&key).is_some_and(|block| block.users > 0)
    }

    /// One more user of a published block.
    pub fn attach(&mut self, held: &mut Held, key: Key) {
        self.published.get_mut(&key).unwrap().users += 1;
        held.published.push(key);
        self.peak = self.peak.max(self.used());
    }

    /// A block that nobody uses: an empty one, or the one that was left first. Returns false if all are in use.
    pub fn take(&mut self, held: &mut Held) -> bool {
        if self.empty() == 0 && !self.evict() {
            return false;
        }
        self.unpublished += 1;
        held.unpublished += 1;
        self.peak = self.peak.max(self.used());
        true
    }

    /// Returns false if nothing is retained.
    pub fn evict(&mut self) -> bool {
        let retained = self.published.iter().filter(|(_, block)| block.users == 0);
        let Some(key) = retained.min_by_key(|(_, block)| block.left).map(|(key, _)| *key) else {
            return false;
        };
        self.published.remove(&key);
        self.gone.insert(key);
        self.evicted += 1;
        true
    }

    /// A block of `held` is full, and others may find it; not where they find the same already.
    pub fn publish(&mut self, held: &mut Held, key: Key, cells: &[u64]) {
        if self.published.contains_key(&key) {
            return;
        }
        self.published.insert(key, Block { cells: cells.to_vec(), users: 1, left: 0 });
        held.published.push(key);
        held.unpublished -= 1;
        self.unpublished -= 1;
    }

    /// The end of a text is left before its beginning.
    pub fn release(&mut self, held: Held) {
        self.unpublished -= held.unpublished;
        for key in held.published.iter().rev() {
            self.clock += 1;
            let block = self.published.get_mut(key).unwrap();
            block.users -= 1;
            block.left = self.clock;
        }
    }
}
