//! How blocks and their cells are counted.

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
