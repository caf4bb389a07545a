//! The blocks: who is free, who is held how often, and what was published.
//!
//! A block that is given up keeps its content until it is taken for something else, which is when
//! it is evicted: nothing is thrown away before its room is needed.

use super::block::BlockId;
use super::contents::{ContentId, Contents};
use super::events::{Event, EventKind, Events};
use super::free_queue::FreeQueue;
use super::hash::{BlockHash, HashFunction};
use super::statistics::Statistics;

/// What the pool knows of one block.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// How many sequences hold it; 0 exactly when it is in the free list.
    pub holders: u32,
    /// What it was published as. Set at most once between two evictions.
    pub content: Option<ContentId>,
    /// Free, and another block that is not spare has the same content: evicting this one loses nothing.
    is_spare: bool,
}

/// The blocks of a pool.
#[derive(Clone, Debug)]
pub struct BlockPool {
    block_size: u32,
    /// The first one is nobody, see [`BlockId`].
    blocks: Vec<Block>,
    free: FreeQueue,
    /// How many free blocks have a content.
    retained: u32,
    /// How often blocks became free.
    freed: u64,
    /// What blocks and requests hold.
    pub contents: Contents,
    /// What happened to published blocks.
    pub events: Events,
    /// What only grows; the rest is 0, and looked up when it is asked for.
    pub counters: Statistics,
}

impl BlockPool {
    /// `block_count` free blocks of `block_size` cells each. `None`: not enough memory.
    pub fn new(block_count: u32, block_size: u32, events: Events, hash: HashFunction) -> Option<BlockPool> {
        let mut blocks = Vec::new();
        blocks.try_reserve_exact(block_count as usize + 1).ok()?;
        blocks.resize_with(block_count as usize + 1, Block::default);
        let free = FreeQueue::full(block_count)?;
        let (contents, counters) = (Contents::new(hash), Statistics::default());
        Some(BlockPool { block_size, blocks, free, retained: 0, freed: 0, contents, events, counters })
    }

    /// Cells of a block.
    pub fn block_size(&self) -> u32 {
        self.block_size
    }

    /// How many blocks can be taken.
    pub fn free_count(&self) -> u32 {
        self.free.len()
    }

    /// The free blocks in the order in which they will be taken.
    pub fn free_blocks(&self) -> impl Iterator<Item = BlockId> {
        self.free.iter()
    }

    /// How many sequences hold the block.
    pub fn holders(&self, block: BlockId) -> u32 {
        self.block(block).holders
    }

    /// What the block was published as.
    pub fn content(&self, block: BlockId) -> Option<ContentId> {
        self.block(block).content
    }

    /// The hash the block was published with.
    pub fn hash(&self, block: BlockId) -> Option<BlockHash> {
        self.content(block).map(|content| self.contents.hash_of(content))
    }

    /// Takes the free block in front, for one holder. What it held before is evicted.
    pub fn take(&mut self) -> Option<BlockId> {
        let block = self.free.pop_front()?;
        if self.evict(block) {
            self.retained -= 1;
            self.counters.evicted_blocks += 1;
        }
        let taken = self.block_mut(block);
        (taken.holders, taken.is_spare) = (1, false);
        self.note_peak();
        Some(block)
    }

    /// The block loses its content. False: it had none.
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

    /// One more sequence holds the block; if it was free, it is not any more.
    pub fn hold(&mut self, block: BlockId) {
        if self.free.remove(block) {
            self.retained -= u32::from(self.content(block).is_some());
        }
        let held = self.block_mut(block);
        (held.holders, held.is_spare) = (held.holders + 1, false);
        self.note_peak();
    }

    fn note_peak(&mut self) {
        let used = u64::from(self.block_count() - self.free.len());
        self.counters.blocks_used_peak = self.counters.blocks_used_peak.max(used);
    }

    /// One holder of each of these blocks gives it up. A block without holders is free. Blocks
    /// without a content are taken next, in the given order, then spare copies, and all others
    /// last. So the caller names the end of a prompt first: it is of use to fewer than its beginning.
    pub fn give_up(&mut self, blocks: &[BlockId]) {
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
            self.retained += 1;
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

    /// Does a block that is not spare, besides this one, have the content? Of several copies only
    /// one takes part in the LRU order: otherwise copies of one prompt would push out other prompts.
    fn is_in_another_block(&self, content: ContentId, block: BlockId) -> bool {
        let is_copy = |other: &BlockId| *other != block && !self.block(*other).is_spare;
        self.contents.blocks(content).iter().any(is_copy)
    }

    /// The block, which has no content yet, holds this one from now on and can be attached.
    /// `index` is its place in its prompt, in blocks. False, and nothing is changed: it has one.
    pub fn publish(&mut self, block: BlockId, content: ContentId, index: u32) -> bool {
        if self.content(block).is_some() {
            return false;
        }
        self.block_mut(block).content = Some(content);
        self.contents.add_block(content, block);
        self.counters.published_blocks += 1;
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

    /// Every content is forgotten. False, and nothing is changed: a block is in use.
    pub fn forget(&mut self) -> bool {
        if self.free.len() < self.block_count() {
            return false;
        }
        for number in 1..=self.block_count() {
            self.block_mut(BlockId(number)).is_spare = false;
            if let Some(content) = self.block_mut(BlockId(number)).content.take() {
                self.contents.remove_block(content, BlockId(number));
            }
        }
        self.retained = 0;
        self.events.record(Event::of_kind(EventKind::Cleared));
        true
    }

    /// As at the start, whatever state this is in; only what is counted goes on.
    pub fn reset(&mut self) {
        self.blocks.fill_with(Block::default);
        self.free.refill();
        self.retained = 0;
        self.freed += 1;
        self.contents = self.contents.restarted();
        self.events = self.events.restarted();
        self.events.record(Event::of_kind(EventKind::Cleared));
    }

    /// Goes up with every block that becomes free or is published, and with every promise that is withdrawn.
    pub fn changes(&self) -> u64 {
        self.freed + self.counters.published_blocks + self.contents.withdrawals()
    }

    /// A snapshot of all numbers.
    pub fn statistics(&self) -> Statistics {
        let (block_count, free) = (u64::from(self.block_count()), u64::from(self.free.len()));
        Statistics {
            block_count,
            block_size: u64::from(self.block_size),
            blocks_used: block_count - free,
            blocks_retained: u64::from(self.retained),
            blocks_empty: free - u64::from(self.retained),
            refused_matches: self.contents.refused_matches(),
            ..self.counters
        }
    }

    /// How many blocks there are.
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
