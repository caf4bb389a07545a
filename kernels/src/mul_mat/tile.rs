//! As many rows of the weights as a vector has lanes, and blocks of them, transposed.

use super::{BLOCK_BYTES, Problem, SCALE_BYTES};
use crate::simd::{MAX_LANES, Simd};

/// Columns of a block: groups of four bytes.
pub const COLUMNS: usize = 8;

/// Some rows, one in each lane. Lanes past the last row of the weights repeat it.
#[derive(Clone, Copy, Debug)]
pub struct Rows {
    lanes: [*const u8; MAX_LANES],
    /// The first row.
    pub first: usize,
    /// Number of rows.
    pub count: usize,
    /// The rows that this thread multiplies next: the first one, and their stride. `None` if these are its last.
    next: Option<(*const u8, usize)>,
}

impl Rows {
    /// Returns the rows from `first` on, which has to exist. `next`: the first row of the next ones.
    #[inline(always)]
    pub fn new<S: Simd>(problem: &Problem, first: usize, next: usize) -> Rows {
        let (rows, stride) = (problem.rows as usize, problem.weights_row as usize);
        let row = |row: usize| problem.weights.cast::<u8>().wrapping_add(row * stride);
        Rows {
            lanes: std::array::from_fn(|lane| row((first + lane).min(rows - 1))),
            first,
            count: S::LANES.min(rows - first),
            next: (next < rows).then_some((row(next), stride)),
        }
    }

    /// Reads and transposes a block.
    ///
    /// # Safety
    ///
    /// The processor has the instruction set `S`, the rows have this block, and `to` has space for it.
    #[inline(always)]
    pub unsafe fn read<S: Simd>(&self, block: usize, to: *mut Block) {
        // SAFETY: per this function's contract the processor has `S`, the rows have this block, and `to` has space for
        // it.
        unsafe {
            let at = self.lanes.map(|row| row.add(block * BLOCK_BYTES));
            let scales = at.map(|at| at.cast::<u16>().read_unaligned());
            S::columns_of_bytes(&at.map(|at| at.add(SCALE_BYTES).cast()), (&raw mut (*to).quants).cast());
            S::store((&raw mut (*to).scales).cast(), S::load_f16(scales.as_ptr()));
        }
    }

    /// Fetches a block of the next rows into the cache.
    ///
    /// # Safety
    ///
    /// The processor has the instruction set `S`.
    #[inline(always)]
    pub unsafe fn fetch_next<S: Simd>(&self, block: usize) {
        if let Some((row, stride)) = self.next {
            // SAFETY: per this function's contract the processor has `S`.
            (0..S::LANES)
                .for_each(|i| unsafe { S::prefetch(row.wrapping_add(i * stride + block * BLOCK_BYTES)) });
        }
    }
}

/// A block of some rows, transposed. With fewer lanes than the largest vector has, its columns are shorter.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct Block {
    /// A group of four quants of each lane, for each column.
    pub quants: [i32; COLUMNS * MAX_LANES],
    /// The scale of each lane.
    pub scales: [f32; MAX_LANES],
}

impl Block {
    /// All values are zero.
    pub const ZERO: Block = Block { quants: [0; COLUMNS * MAX_LANES], scales: [0.0; MAX_LANES] };
}
