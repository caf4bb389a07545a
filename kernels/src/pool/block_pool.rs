//! The blocks: free list, reference counts and cached contents.
//!
//! A block that is released keeps its content until it is allocated again, which is when it is evicted: no cached block
//! is dropped before its space is needed.

use super::block::BlockId;
use super::contents::{ContentId, Contents};
use super::events::{Event, EventKind, Events};
use super::free_queue::FreeQueue;
use super::hash::{BlockHash, HashFunction};
use super::statistics::Statistics;

/// The pool's record of one block.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// Number of sequences that hold it; 0 exactly if it is in the free list.
    pub holders: u32,
    /// Content that it is cached with. Set at most once between two evictions.
    pub content: Option<ContentId>,
    /// Free, and another block that is not spare has the same content: evicting this one loses no cached content.
    is_spare: bool,
}

/// The blocks of a pool.
#[derive(Clone, Debug)]
pub struct BlockPool {
    block_size: u32,
    /// The first entry is unused, see [`BlockId`].
    blocks: Vec<Block>,
    free: FreeQueue,
    /// Number of free blocks with a content (evictable).
    evictable: u32,
    /// Number of times that a block became free.
    freed: u64,
    /// Contents of blocks and requests.
    pub contents: Contents,
    /// Events of cached blocks.
    pub events: Events,
    /// Counters; the gauges in it are 0 and computed on request.
    pub counters: Statistics,
}

impl BlockPool {
    /// Creates `block_count` free blocks of `block_size` cells each. `None`: not enough memory.
    pub fn new(block_count: u32, block_size: u32, events: Events, hash: HashFunction) -> Option<BlockPool> {
        let mut blocks = Vec::new();
        blocks.try_reserve_exact(block_count as usize + 1).ok()?;
        blocks.resize_with(block_count as usize + 1, Block::default);
        let free = FreeQueue::full(block_count)?;
        let (contents, counters) = (Contents::new(hash), Statistics::default());
        Some(BlockPool { block_size, blocks, free, evictable: 0, freed: 0, contents, events, counters })
    }

    /// Returns the number of cells in a block.
    pub fn block_size(&self) -> u32 {
        self.block_size
    }

    /// Returns the number of free blocks.
    pub fn free_count(&self) -> u32 {
        self.free.len()
    }

    /// Returns the free blocks in the order in which they will be allocated.
    pub fn free_blocks(&self) -> impl Iterator<Item = BlockId> {
        self.free.iter()
    }

    /// Returns the number of sequences that hold the block.
    pub fn holders(&self, block: BlockId) -> u32 {
        self.block(block).holders
    }

    /// Returns the content that the block is cached with.
    pub fn content(&self, block: BlockId) -> Option<ContentId> {
        self.block(block).content
    }

    /// Returns the hash that the block is cached with.
    pub fn hash(&self, block: BlockId) -> Option<BlockHash> {
        self.content(block).map(|content| self.contents.hash_of(content))
    }

    /// Allocates the first free block, for one holder. Its previous content is evicted.
    pub fn take(&mut self) -> Option<BlockId> {
        let block = self.free.pop_front()?;
        if self.evict(block) {
            self.evictable -= 1;
            self.counters.evicted_blocks += 1;
        }
        let taken = self.block_mut(block);
        (taken.holders, taken.is_spare) = (1, false);
        self.note_peak();
        Some(block)
    }

    /// Removes the block's content. Returns false if it had none.
    fn evict(&mut self, block: BlockId) -> bool {
        let Some(content) = self.block_mut(block).content.take() else {
            return false;
        };
        let hash = self.contents.hash_of(content);
        self.contents.remove_block(content, block);
        let block = block.first_cell(self.block_size);
        self.events.record(Event { block, hash, ..Event::of_kind(EventKind::Removed) });
        true
    }

    /// Adds a holder to the block; if it was free, it leaves the free list.
    pub fn hold(&mut self, block: BlockId) {
        if self.free.remove(block) {
            self.evictable -= u32::from(self.content(block).is_some());
        }
        let held = self.block_mut(block);
        (held.holders, held.is_spare) = (held.holders + 1, false);
        self.note_peak();
    }

    fn note_peak(&mut self) {
        let used = u64::from(self.block_count() - self.free.len());
        self.counters.blocks_used_peak = self.counters.blocks_used_peak.max(used);
    }

    /// Removes one holder from each of these blocks. A block without holders is free. Blocks without a content are
    /// allocated next, in the given order, then spare copies, and all others last. So the caller passes the end of a
    /// prompt first: fewer requests can use it than its beginning.
    pub fn release(&mut self, blocks: &[BlockId]) {
        let (mut without_content, mut spares) = (Vec::new(), Vec::new());
        for block in blocks {
            self.block_mut(*block).holders -= 1;
            if self.holders(*block) > 0 {
                continue;
            }
            self.freed += 1;
            let Some(content) = self.content(*block) else {
                without_content.push(*block);
                continue;
            };
            self.evictable += 1;
            if self.is_in_another_block(content, *block) {
                self.block_mut(*block).is_spare = true;
                spares.push(*block);
            } else {
                self.free.push_back(*block);
            }
        }
        self.free.push_front_all(&spares);
        self.free.push_front_all(&without_content);
    }

    /// Returns whether a block that is not spare, besides this one, has the content. Of several copies only one takes
    /// part in the LRU order: otherwise copies of one prompt would evict other prompts.
    fn is_in_another_block(&self, content: ContentId, block: BlockId) -> bool {
        let is_copy = |other: &BlockId| *other != block && !self.block(*other).is_spare;
        self.contents.blocks(content).iter().any(is_copy)
    }

    /// Caches the block, which has no content yet, with this content, so that requests can match it. `index` is its
    /// position in its prompt, in blocks. Returns false and changes nothing if it has a content.
    pub fn cache(&mut self, block: BlockId, content: ContentId, index: u32) -> bool {
        if self.content(block).is_some() {
            return false;
        }
        self.block_mut(block).content = Some(content);
        self.contents.add_block(content, block);
        self.counters.cached_blocks += 1;
        self.record_stored(block, content, index);
        true
    }

    fn record_stored(&mut self, block: BlockId, content: ContentId, index: u32) {
        let parent = self.contents.parent(content).map(|parent| self.contents.hash_of(parent));
        self.events.record(Event {
            block: block.first_cell(self.block_size),
            block_index: index,
            token_count: self.block_size,
            has_parent: u32::from(parent.is_some()),
            has_adapters: u32::from(self.contents.has_adapters(content)),
            hash: self.contents.hash_of(content),
            parent: parent.unwrap_or_default(),
            ..Event::of_kind(EventKind::Stored)
        });
    }

    /// Resets everything but the counters, whatever the current state.
    pub fn reset(&mut self) {
        self.blocks.fill_with(Block::default);
        self.free.refill();
        self.evictable = 0;
        self.freed += 1;
        self.contents = self.contents.restarted();
        self.events = self.events.restarted();
        self.events.record(Event::of_kind(EventKind::Cleared));
    }

    /// Returns a counter that increases with every block that becomes free or is cached, and with every in-flight block
    /// that ends.
    pub fn changes(&self) -> u64 {
        self.freed + self.counters.cached_blocks + self.contents.in_flight_ended()
    }

    /// Returns a snapshot of all counters and gauges.
    pub fn statistics(&self) -> Statistics {
        let (block_count, free) = (u64::from(self.block_count()), u64::from(self.free.len()));
        Statistics {
            block_count,
            block_size: u64::from(self.block_size),
            blocks_used: block_count - free,
            blocks_evictable: u64::from(self.evictable),
            blocks_empty: free - u64::from(self.evictable),
            refused_matches: self.contents.refused_matches(),
            ..self.counters
        }
    }

    /// Returns the number of blocks.
    pub fn block_count(&self) -> u32 {
        (self.blocks.len() - 1) as u32
    }

    fn block(&self, block: BlockId) -> &Block {
        &self.blocks[block.0 as usize]
    }

    fn block_mut(&mut self, block: BlockId) -> &mut Block {
        &mut self.blocks[block.0 as usize]
    }
}
