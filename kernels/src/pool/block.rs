//! One block of the pool, and how blocks, cells and indexes are counted.

use super::contents::ContentId;

/// A block, counted from 1. The number 0 is nobody: the free list uses it for its ends, and its
/// C counterpart does not exist (the border speaks of first cells).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockId(pub u32);

impl BlockId {
    /// The first cell of the block, in cells from the start of the pool.
    pub fn first_cell(self, block_size: u32) -> u32 {
        (self.0 - 1) * block_size
    }
}

/// What the pool knows of one block.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// How many sequences hold it; 0 exactly when it is in the free list.
    pub holders: u32,
    /// What it was published as. Set at most once between two evictions.
    pub content: Option<ContentId>,
}
