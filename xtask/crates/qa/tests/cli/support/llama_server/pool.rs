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
    cached: BTreeMap<Key, Block>,
    /// Number of blocks in use that are not cached.
    uncached: usize,
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
    cached: Vec<Key>,
    uncached: usize,
}

impl Held {
    pub fn count(&self) -> usize {
        self.cached.len() + self.uncached
    }
}

impl Pool {
    pub fn new(count: usize) -> Pool {
        let (cached, gone) = (BTreeMap::new(), BTreeSet::new());
        Pool { count, cached, uncached: 0, evicted: 0, gone, peak: 0, clock: 0 }
    }

    pub fn used(&self) -> usize {
        self.uncached + self.cached.values().filter(|block| block.users > 0).count()
    }

    pub fn retained(&self) -> usize {
        self.cached.values().filter(|block| block.users == 0).count()
    }

    pub fn empty(&self) -> usize {
        self.count - self.uncached - self.cached.len()
    }

    /// Returns the computed content of a block, if it is cached.
    pub fn cells(&self, key: Key) -> Option<&[u64]> {
        self.cached.get(&key).map(|block| &block.cells[..])
    }

    /// Whether the block is or was cached.
    pub fn was_cached(&self, key: Key) -> bool {
        self.cached.contains_key(&key) || self.gone.contains(&key)
    }

    /// Whether a request uses the block now, so that another user needs no free block.
    pub fn is_used(&self, key: Key) -> bool {
        self.cached.get(&key).is_some_and(|block| block.users > 0)
    }

    /// Adds a user to a cached block.
    pub fn match_blocks(&mut self, held: &mut Held, key: Key) {
        self.cached.get_mut(&key).unwrap().users += 1;
        held.cached.push(key);
        self.peak = self.peak.max(self.used());
    }

    /// Allocates a block that no request uses: an empty one, or the least recently released one. Returns false if all
    /// are in use.
    pub fn take(&mut self, held: &mut Held) -> bool {
        if self.empty() == 0 && !self.evict() {
            return false;
        }
        self.uncached += 1;
        held.uncached += 1;
        self.peak = self.peak.max(self.used());
        true
    }

    /// Evicts the least recently released block. Returns false if no cached block is evictable.
    pub fn evict(&mut self) -> bool {
        let retained = self.cached.iter().filter(|(_, block)| block.users == 0);
        let Some(key) = retained.min_by_key(|(_, block)| block.left).map(|(key, _)| *key) else {
            return false;
        };
        self.cached.remove(&key);
        self.gone.insert(key);
        self.evicted += 1;
        true
    }

    /// Caches a full block of `held`, unless the same block is cached already.
    pub fn cache(&mut self, held: &mut Held, key: Key, cells: &[u64]) {
        if self.cached.contains_key(&key) {
            return;
        }
        self.cached.insert(key, Block { cells: cells.to_vec(), users: 1, left: 0 });
        held.cached.push(key);
        held.uncached -= 1;
        self.uncached -= 1;
    }

    /// Releases the blocks, the last one first, so that the end of a sequence is evicted before its start.
    pub fn release(&mut self, held: Held) {
        self.uncached -= held.uncached;
        for key in held.cached.iter().rev() {
            self.clock += 1;
            let block = self.cached.get_mut(key).unwrap();
            block.users -= 1;
            block.left = self.clock;
        }
    }
}
