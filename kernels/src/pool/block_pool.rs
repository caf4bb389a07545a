//! The blocks: free list, reference counts and cached contents.
//!
//! A block that is released keeps its content until it is allocated again, which is when it is evicted: no cached block
//! is dropped before its space is needed.

use super::block::BlockId;
use super::contents::{ContentId, Contents};
use super::events::{Event, EventKind, Events};
use super::free_queue::FreeQueue;
use super::groups::{Group, Groups};
use super::hash::{BlockHash, HashFunction};
use super::statistics::Statistics;

/// The pool's record of one block.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// Number of sequences that hold it; 0 exactly if it is in the free list.
    pub holders: u32,
    /// Content that it is cached with. Set at most once between two evictions.
    pub content: Option<ContentId>,
    /// Free, and allocated before the cached blocks in LRU order: another block that is not spare has the same content,
    /// or no prompt is expected to need it.
    is_spare: bool,
}

/// The blocks of one group.
#[derive(Clone, Debug)]
struct BlockGroup {
    /// The first entry is unused, see [`BlockId`].
    blocks: Vec<Block>,
    free: FreeQueue,
    /// Number of free blocks with a content (evictable).
    evictable: u32,
    /// High-water mark of used blocks.
    used_peak: u32,
}

impl BlockGroup {
    /// Creates `block_count` free blocks. `None`: not enough memory.
    fn new(block_count: u32) -> Option<BlockGroup> {
        let mut blocks = Vec::new();
        blocks.try_reserve_exact(block_count as usize + 1).ok()?;
        blocks.resize_with(block_count as usize + 1, Block::default);
        Some(BlockGroup { blocks, free: FreeQueue::full(block_count)?, evictable: 0, used_peak: 0 })
    }

    fn block_count(&self) -> u32 {
        (self.blocks.len() - 1) as u32
    }

    fn used(&self) -> u32 {
        self.block_count() - self.free.len()
    }

    fn note_peak(&mut self) {
        self.used_peak = self.used_peak.max(self.used());
    }

    /// Frees all blocks without their contents, whatever the current state.
    fn reset(&mut self) {
        self.blocks.fill_with(Block::default);
        self.free.refill();
        self.evictable = 0;
    }
}

/// The blocks of a pool, by group.
#[derive(Clone, Debug)]
pub struct BlockPool {
    block_size: u32,
    groups: Groups<BlockGroup>,
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
    /// Creates this number of free blocks in each group, of `block_size` cells each. `None`: not enough memory.
    pub fn new(
        block_counts: Groups<u32>,
        block_size: u32,
        events: Events,
        hash: HashFunction,
    ) -> Option<BlockPool> {
        let blocks_of = |group: Group| BlockGroup::new(block_counts[group]);
        let groups = Groups::new(blocks_of(Group::Full)?, blocks_of(Group::Window)?);
        let (contents, counters) = (Contents::new(hash), Statistics::default());
        Some(BlockPool { block_size, groups, freed: 0, contents, events, counters })
    }

    /// Returns the number of cells in a block.
    pub fn block_size(&self) -> u32 {
        self.block_size
    }

    /// Returns the number of free blocks of the group.
    pub fn free_count(&self, group: Group) -> u32 {
        self.groups[group].free.len()
    }

    /// Returns the free blocks of the group in the order in which they will be allocated.
    pub fn free_blocks(&self, group: Group) -> impl Iterator<Item = BlockId> {
        self.groups[group].free.iter()
    }

    /// Returns the number of sequences that hold the block.
    pub fn holders(&self, group: Group, block: BlockId) -> u32 {
        self.block(group, block).holders
    }

    /// Returns the content that the block is cached with.
    pub fn content(&self, group: Group, block: BlockId) -> Option<ContentId> {
        self.block(group, block).content
    }

    /// Returns the hash that the block is cached with.
    pub fn hash(&self, group: Group, block: BlockId) -> Option<BlockHash> {
        self.content(group, block).map(|content| self.contents.hash_of(content))
    }

    /// Returns the block of the group to match for this content. Of several copies it is one that a sequence holds, if
    /// there is any: then no free block is needed, and attention reads one block for both. Otherwise it is the earliest
    /// cached.
    pub fn block_to_match(&self, group: Group, content: ContentId) -> Option<BlockId> {
        let copies = self.contents.blocks(group, content);
        let held = copies.iter().find(|block| self.holders(group, **block) > 0);
        held.or(copies.first()).copied()
    }

    /// Allocates the first free block of the group, for one holder. Its previous content is evicted. In the layers with
    /// a window that is not counted for spare blocks: it is how a long sequence recycles those that it leaves behind.
    pub fn take(&mut self, group: Group) -> Option<BlockId> {
        let block = self.groups[group].free.pop_front()?;
        let is_recycled = group == Group::Window && self.block(group, block).is_spare;
        if self.evict(group, block) {
            self.groups[group].evictable -= 1;
            self.counters.evicted_blocks += u64::from(!is_recycled);
        }
        let taken = self.block_mut(group, block);
        (taken.holders, taken.is_spare) = (1, false);
        self.groups[group].note_peak();
        Some(block)
    }

    /// Removes the content of a block: no request can match it any more. A free one is allocated next. Returns false if
    /// it had none.
    pub fn uncache(&mut self, group: Group, block: BlockId) -> bool {
        if !self.evict(group, block) {
            return false;
        }
        if self.groups[group].free.remove(block) {
            self.groups[group].evictable -= 1;
            self.groups[group].free.push_front(block);
        }
        true
    }

    /// Removes the block's content. Returns false if it had none.
    fn evict(&mut self, group: Group, block: BlockId) -> bool {
        let Some(content) = self.block_mut(group, block).content.take() else {
            return false;
        };
        let hash = self.contents.hash_of(content);
        self.contents.remove_block(group, content, block);
        let (block, group) = (block.first_cell(self.block_size), group as u32);
        self.events.record(Event { block, group, hash, ..Event::of_kind(EventKind::Removed) });
        true
    }

    /// Adds a holder to the block; if it was free, it leaves the free list.
    pub fn hold(&mut self, group: Group, block: BlockId) {
        if self.groups[group].free.remove(block) {
            self.groups[group].evictable -= u32::from(self.content(group, block).is_some());
        }
        let held = self.block_mut(group, block);
        (held.holders, held.is_spare) = (held.holders + 1, false);
        self.groups[group].note_peak();
    }

    /// Removes one holder from each of these blocks. A block without holders is free. Blocks without a content are
    /// allocated next, in the given order, then spare copies, and all others last. So the caller passes the end of a
    /// prompt first: fewer requests can use it than its beginning.
    pub fn release(&mut self, group: Group, blocks: &[BlockId]) {
        self.release_all(group, blocks, false);
    }

    /// The same for blocks that no prompt is expected to need: those with a content are allocated before other cached
    /// blocks too.
    pub fn release_scratch(&mut self, group: Group, blocks: &[BlockId]) {
        self.release_all(group, blocks, true);
    }

    fn release_all(&mut self, group: Group, blocks: &[BlockId], are_scratch: bool) {
        let (mut without_content, mut spares) = (Vec::new(), Vec::new());
        for block in blocks {
            self.block_mut(group, *block).holders -= 1;
            if self.holders(group, *block) > 0 {
                continue;
            }
            self.freed += 1;
            let Some(content) = self.content(group, *block) else {
                without_content.push(*block);
                continue;
            };
            self.groups[group].evictable += 1;
            if are_scratch || self.is_in_another_block(group, content, *block) {
                self.block_mut(group, *block).is_spare = true;
                spares.push(*block);
            } else {
                self.groups[group].free.push_back(*block);
            }
        }
        self.groups[group].free.push_front_all(&spares);
        self.groups[group].free.push_front_all(&without_content);
    }

    /// Returns whether a block that is not spare, besides this one, has the content. Of several copies only one takes
    /// part in the LRU order: otherwise copies of one prompt would evict other prompts.
    fn is_in_another_block(&self, group: Group, content: ContentId, block: BlockId) -> bool {
        let is_copy = |other: &BlockId| *other != block && !self.block(group, *other).is_spare;
        self.contents.blocks(group, content).iter().any(is_copy)
    }

    /// Caches the block, which has no content yet, with this content, so that requests can match it. `index` is its
    /// position in its prompt, in blocks. Returns false and changes nothing if it has a content.
    pub fn cache(&mut self, group: Group, block: BlockId, content: ContentId, index: u32) -> bool {
        if self.content(group, block).is_some() {
            return false;
        }
        self.block_mut(group, block).content = Some(content);
        self.contents.add_block(group, content, block);
        self.counters.cached_blocks += 1;
        self.record_stored(group, block, content, index);
        true
    }

    fn record_stored(&mut self, group: Group, block: BlockId, content: ContentId, index: u32) {
        let parent = self.contents.parent(content).map(|parent| self.contents.hash_of(parent));
        self.events.record(Event {
            block: block.first_cell(self.block_size),
            block_index: index,
            token_count: self.contents.token_count(content),
            has_parent: u32::from(parent.is_some()),
            has_adapters: u32::from(self.contents.has_adapters(content)),
            group: group as u32,
            hash: self.contents.hash_of(content),
            parent: parent.unwrap_or_default(),
            ..Event::of_kind(EventKind::Stored)
        });
    }

    /// Resets everything but the counters, whatever the current state.
    pub fn reset(&mut self) {
        Group::ALL.into_iter().for_each(|group| self.groups[group].reset());
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
        let (full, window) = (&self.groups[Group::Full], &self.groups[Group::Window]);
        Statistics {
            block_count: u64::from(full.block_count()),
            block_size: u64::from(self.block_size),
            blocks_used: u64::from(full.used()),
            blocks_evictable: u64::from(full.evictable),
            blocks_empty: u64::from(full.free.len() - full.evictable),
            blocks_used_peak: u64::from(full.used_peak),
            refused_matches: self.contents.refused_matches(),
            window_block_count: u64::from(window.block_count()),
            window_blocks_used: u64::from(window.used()),
            window_blocks_evictable: u64::from(window.evictable),
            window_blocks_used_peak: u64::from(window.used_peak),
            ..self.counters
        }
    }

    /// Returns the number of blocks of the group.
    pub fn block_count(&self, group: Group) -> u32 {
        self.groups[group].block_count()
    }

    fn block(&self, group: Group, block: BlockId) -> &Block {
        &self.groups[group].blocks[block.0 as usize]
    }

    fn block_mut(&mut self, group: Group, block: BlockId) -> &mut Block {
        &mut self.groups[group].blocks[block.0 as usize]
    }
}
