//! Block ids and their cells.

/// Id of a block, counted from 1. 0 is not a block: the free list uses it for its ends, and the C ABI does not have it
/// (it uses first cells).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockId(pub u32);

impl BlockId {
    /// Returns the first cell of the block, in cells from the start of the pool.
    pub fn first_cell(self, block_size: u32) -> u32 {
        (self.0 - 1) * block_size
    }
}
