//! Numbers about the pool.

/// A snapshot. The layout is `struct espalier_pool_statistics` of the C header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Statistics {
    /// Blocks of the pool.
    pub block_count: u64,
    /// Cells of a block.
    pub block_size: u64,
    /// Blocks that a sequence holds.
    pub blocks_used: u64,
    /// Free blocks whose content is known.
    pub blocks_retained: u64,
    /// Free blocks whose content is not known.
    pub blocks_empty: u64,
    /// The most blocks that were ever used at a time.
    pub blocks_used_peak: u64,
    /// Attaches that were told to wait.
    pub waited_attaches: u64,
    /// Blocks that were published.
    pub published_blocks: u64,
    /// Retained blocks that were taken for something else.
    pub evicted_blocks: u64,
    /// Reserves that were refused for want of free blocks.
    pub refused_reserves: u64,
    /// Hashes that were found, but stood for something else: collisions.
    pub refused_matches: u64,
}
