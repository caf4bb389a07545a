//! Counters and gauges of the pool.

/// Their present values. The layout is `struct espalier_pool_statistics` of the C header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Statistics {
    /// Number of blocks of the layers without a window; the same for the gauges below.
    pub block_count: u64,
    /// Number of cells in a block.
    pub block_size: u64,
    /// Blocks that a sequence holds.
    pub blocks_used: u64,
    /// Free blocks with cached content (evictable).
    pub blocks_evictable: u64,
    /// Free blocks without cached content.
    pub blocks_empty: u64,
    /// High-water mark of used blocks.
    pub blocks_used_peak: u64,
    /// Number of blocks that were cached, in all groups.
    pub cached_blocks: u64,
    /// Number of cached blocks that were evicted, without those that a sequence leaves behind its window.
    pub evicted_blocks: u64,
    /// Number of reserves refused because of too few free blocks.
    pub refused_reserves: u64,
    /// Number of hash collisions: equal hashes of different contents.
    pub refused_matches: u64,
    /// Number of snapshots.
    pub snapshots: u64,
    /// Bytes of all snapshots.
    pub snapshot_bytes: u64,
    /// Number of snapshots that were restored.
    pub snapshot_hits: u64,
    /// Number of snapshots that were evicted when another one was taken, without replaced tails.
    pub evicted_snapshots: u64,
    /// Number of snapshots that were not taken because the budget had no bytes left for them.
    pub refused_snapshots: u64,
    /// Number of blocks of the layers with a window; 0 if there are none.
    pub window_block_count: u64,
    /// Blocks of them that a sequence holds.
    pub window_blocks_used: u64,
    /// Free blocks of them with cached content (evictable).
    pub window_blocks_evictable: u64,
    /// High-water mark of used blocks of them.
    pub window_blocks_used_peak: u64,
}
