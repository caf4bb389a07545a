//! The block pool of the fake server: blocks are counted, their data is not stored.

use std::collections::{BTreeMap, BTreeSet};

/// Tokens of a block.
pub const BLOCK: usize = 64;

/// Key of a block: a hash of its owner and of all tokens up to its end.
pub type Key = u64;

/// The cached blocks, and counts of the others.
pub struct Pool {
    /// Total number of blocks.
    pub count: usize,
    published: BTreeMap<Key, Block>,
    /// Number of blocks in use that are not cached.
    unpublished: usize,
    /// Number of cached blocks that were reused for other content.
    pub evicted: usize,
    /// Keys of the evicted blocks.
    gone: BTreeSet<Key>,
    /// Maximum number of blocks in use at one moment.
    pub peak: usize,
    clock: u64,
}

struct Block {
    cells: Vec<u64>,
    users: usize,
    /// Time at which its last user released it.
    left: u64,
}

/// The blocks that one request holds.
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

    /// Returns the computed content of a block, if it is cached.
    pub fn cells(&self, key: Key) -> Option<&[u64]> {
        self.published.get(&key).map(|block| &block.cells[..])
    }

    /// Whether the block is or was cached.
    pub fn was_published(&self, key: Key) -> bool {
        self.published.contains_key(&key) || self.gone.contains(&key)
    }

    /// Whether a request uses the block now, so that another user needs no free block.
    pub fn is_used(&self, key: Key) -> bool {
        self.published.get(&key).is_some_and(|block| block.users > 0)
    }

    /// Adds a user to a cached block.
    pub fn attach(&mut self, held: &mut Held, key: Key) {
        self.published.get_mut(&key).unwrap().users += 1;
        held.published.push(key);
        self.peak = self.peak.max(self.used());
    }

    /// Allocates a block that no request uses: an empty one, or the least recently released one. Returns false if all
    /// are in use.
    pub fn take(&mut self, held: &mut Held) -> bool {
        if self.empty() == 0 && !self.evict() {
            return false;
        }
        self.unpublished += 1;
        held.unpublished += 1;
        self.peak = self.peak.max(self.used());
        true
    }

    /// Evicts the least recently released block. Returns false if no cached block is evictable.
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

    /// Caches a full block of `held`, unless the same block is cached already.
    pub fn publish(&mut self, held: &mut Held, key: Key, cells: &[u64]) {
        if self.published.contains_key(&key) {
            return;
        }
        self.published.insert(key, Block { cells: cells.to_vec(), users: 1, left: 0 });
        held.published.push(key);
        held.unpublished -= 1;
        self.unpublished -= 1;
    }

    /// Releases the blocks, the last one first, so that the end of a sequence is evicted before its start.
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
