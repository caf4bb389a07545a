//! The inputs of a gated delta net's recurrence, as the C side describes them.

use std::ffi::c_void;

use super::batch::Batch;

/// The recurrence of one layer: for each sequence and head, one token after the other,
///
/// ```text
/// S = S * exp(gate)              the decay, of the whole state or of each key dimension
/// d = beta * (v - S k)           the correction
/// S = S + d k^T
/// out = S q / sqrt(size)
/// ```
///
/// on states that lie in the cells of a cache. The layout is `struct espalier_gdn` of the C header. All values are f32.
/// Strides are in bytes, sizes in values.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Problem {
    /// Queries: rows of `size` values for each of `key_heads`.
    pub q: *const c_void,
    /// Keys: as the queries.
    pub k: *const c_void,
    /// Values: rows of `size` values for each of `heads`.
    pub v: *const c_void,
    /// Logarithm of the decay: `gate_size` values by head, then by token, then by sequence, contiguous.
    pub gate: *const f32,
    /// Factor of the correction: a value by head, then by token, then by sequence, contiguous.
    pub beta: *const f32,
    /// The cache: for each cell and head a matrix of `size` rows, one for each value dimension, of `size` columns, one
    /// for each key dimension; contiguous.
    pub states: *mut f32,
    /// The output: rows of `size` values by head, then by token, then by sequence, contiguous.
    pub out: *mut f32,
    /// The sequences, and their cells.
    pub batch: Batch,
    /// Stride between heads.
    pub q_head: u64,
    /// Stride between tokens.
    pub q_token: u64,
    /// Stride between sequences.
    pub q_seq: u64,
    /// Stride between heads.
    pub k_head: u64,
    /// Stride between tokens.
    pub k_token: u64,
    /// Stride between sequences.
    pub k_seq: u64,
    /// Stride between heads.
    pub v_head: u64,
    /// Stride between tokens.
    pub v_token: u64,
    /// Stride between sequences.
    pub v_seq: u64,
    /// Values in a row of Q, K, V and of a state.
    pub size: u32,
    /// 1 for a decay of the whole state, `size` for one of each key dimension.
    pub gate_size: u32,
    /// Number of heads of V, of the states and of the output.
    pub heads: u32,
    /// Number of heads of Q and of K; head `h` of V reads head `h % key_heads`.
    pub key_heads: u32,
}

/// Some rows of the states of one head: what a thread computes at once, for all sequences. Each row is a recurrence of
/// its own, so their division does not change the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// The head of V.
    pub head: usize,
    /// The first row.
    pub row: usize,
    /// Number of rows.
    pub rows: usize,
}

/// Number of rows that should stay in the L1 cache while tokens pass by: 16 KiB for a size of 128.
pub const BLOCK_ROWS: usize = 32;

/// Largest size of a row.
pub const SIZE_LIMIT: u32 = 256;

impl Item {
    /// Returns the rows in blocks of [`BLOCK_ROWS`].
    pub fn blocks(self) -> impl Iterator<Item = Item> {
        let end = self.row + self.rows;
        (self.row..end).step_by(BLOCK_ROWS).map(move |row| Item {
            row,
            rows: BLOCK_ROWS.min(end - row),
            ..self
        })
    }
}

impl Problem {
    /// Returns whether the decay is one of each key dimension (Kimi delta attention).
    #[must_use]
    pub fn decays_by_key(&self) -> bool {
        self.gate_size > 1
    }

    /// Returns the number of items.
    #[must_use]
    pub fn items(&self) -> usize {
        self.heads as usize * self.items_of_head()
    }

    /// Returns the item with this index.
    #[must_use]
    pub fn item(&self, number: usize) -> Item {
        let row = number % self.items_of_head() * self.item_rows();
        let rows = self.item_rows().min(self.size as usize - row);
        Item { head: number / self.items_of_head(), row, rows }
    }

    fn items_of_head(&self) -> usize {
        (self.size as usize).div_ceil(self.item_rows())
    }

    /// Returns the largest number of rows in an item: a whole head if each token has many exponentials, which all rows
    /// share.
    fn item_rows(&self) -> usize {
        let size = self.size as usize;
        if self.decays_by_key() { size } else { size.min(BLOCK_ROWS) }
    }

    /// Returns the number of values in the rows of an item.
    #[must_use]
    pub fn length(&self, item: &Item) -> usize {
        item.rows * self.size as usize
    }

    /// Returns the rows of a cell, contiguous.
    ///
    /// # Safety
    ///
    /// The cache has the cell.
    #[must_use]
    pub unsafe fn rows(&self, cell: usize, item: &Item) -> *mut f32 {
        let size = self.size as usize;
        let matrix = cell * self.heads as usize + item.head;
        // SAFETY: per this function's contract the cache has the cell, and so its rows.
        unsafe { self.states.add((matrix * size + item.row) * size) }
    }

    /// Returns the position of a token's head in gate, beta and output, which have values for each.
    #[must_use]
    pub fn position(&self, seq: usize, token: usize, head: usize) -> usize {
        (seq * self.batch.tokens as usize + token) * self.heads as usize + head
    }
}
