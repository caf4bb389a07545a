//! The options of a pool.

/// Dimensions of a pool. The layout is `struct espalier_pool_options` of the C header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct PoolOptions {
    /// Number of blocks of the layers that attend to all tokens; at least 1, and fewer than 2^31 cells in all.
    pub block_count: u32,
    /// Cells per block: a power of two, 1 to 4096.
    pub block_size: u32,
    /// Number of sequences, 1 to 65536; their ids are `0..sequence_count`.
    pub sequence_count: u32,
    /// Capacity of the event queue; 0 records no events.
    pub event_capacity: u32,
    /// Parts of a sequence's memory: [`PoolOptions::CELLS`], [`PoolOptions::WINDOW`], [`PoolOptions::STATE`]; 0: cells
    /// only.
    pub parts: u32,
    /// Distance in tokens of the snapshots for which there is no better reason; 0: none of them are taken.
    pub snapshot_interval: u32,
    /// Budget of all snapshots together, in bytes; 0: none are taken.
    pub snapshot_bytes: u64,
    /// Size of the sliding window in tokens: a token attends to itself and the `window - 1` before it. 0 exactly if
    /// `parts` has no window.
    pub window: u32,
    /// Number of blocks of the layers with a window: at least [`PoolOptions::blocks_of_windows`] for all sequences and
    /// one batch, and fewer than 2^31 cells in all. More of them keep the windows of ended sequences. 0 exactly if
    /// `parts` has no window.
    pub window_block_count: u32,
    /// 1: a block is closed where an extra of a request ends, and positions are indexes of tokens (`layout.rs`), as
    /// long as the request fits into the pool like that. 0: blocks are always filled.
    pub closes_blocks: u32,
    /// Largest number of tokens in a batch, which need blocks of the layers with a window before any of these is
    /// released. Not used without a window.
    pub batch_tokens: u32,
}

/// Blocks of the layers with a window that a sequence can hold beside its window, if it fills its blocks: its newest
/// block, which is partly filled; that of another sequence beside it, if it is a further choice; and the next one.
pub const BLOCKS_BESIDE_WINDOW: u64 = 3;

impl PoolOptions {
    /// One cell for each token (`ESPALIER_POOL_PART_CELLS`).
    pub const CELLS: u32 = 1;
    /// One cell for each of the last tokens of a sequence (`ESPALIER_POOL_PART_WINDOW`): a prompt is matched only at a
    /// boundary with the cells of the window before it.
    pub const WINDOW: u32 = 2;
    /// One state for each sequence (`ESPALIER_POOL_PART_STATE`): a prompt is matched only where a snapshot of it
    /// exists.
    pub const STATE: u32 = 4;

    /// Returns the number of blocks of `block_size` cells that this number of sequences takes in layers with a window of
    /// `window` tokens, beside one batch of up to `batch_tokens` tokens. They are counted nowhere else: a model's memory
    /// gets its size from here too.
    pub fn blocks_of_windows(window: u32, block_size: u32, sequences: u32, batch_tokens: u32) -> u64 {
        let of_one = u64::from(window.div_ceil(block_size)) + BLOCKS_BESIDE_WINDOW;
        let of_batch = u64::from(batch_tokens.div_ceil(block_size));
        u64::from(sequences).saturating_mul(of_one).saturating_add(of_batch)
    }

    /// Returns the number of blocks of the layers with a window that a sequence holds between two batches, if it fills
    /// its blocks, and to compute the next tokens, up to the size of a block.
    pub fn window_blocks(&self) -> u64 {
        PoolOptions::blocks_of_windows(self.window, self.block_size, 1, 0)
    }

    /// Returns the number of blocks of the layers with a window that one batch takes.
    pub(super) fn batch_blocks(&self) -> u64 {
        PoolOptions::blocks_of_windows(0, self.block_size, 0, self.batch_tokens)
    }

    /// Returns whether all fields are in range.
    pub(super) fn are_valid(&self) -> bool {
        let cells = u64::from(self.block_count) * u64::from(self.block_size);
        let parts = PoolOptions::CELLS | PoolOptions::WINDOW | PoolOptions::STATE;
        self.block_size.is_power_of_two()
            && self.block_size <= 4096
            && (1..1 << 31).contains(&cells)
            && (1..=65536).contains(&self.sequence_count)
            && self.parts & !parts == 0
            && self.closes_blocks <= 1
            && self.window_is_valid()
    }

    fn window_is_valid(&self) -> bool {
        if self.parts & PoolOptions::WINDOW == 0 {
            return self.window == 0 && self.window_block_count == 0;
        }
        let PoolOptions { window, block_size, sequence_count, batch_tokens, .. } = *self;
        let blocks = u64::from(self.window_block_count);
        window > 0
            && blocks >= PoolOptions::blocks_of_windows(window, block_size, sequence_count, batch_tokens)
            && blocks * u64::from(block_size) < 1 << 31
    }
}
