//! The rows of K or V that are read together: a tile, as the cache has it.

use super::division::padded;
use super::encoding::{Encoding, Rows};
use super::kv_type::{KvType, with_encoding};
use super::matrix::{Each, MANY, rows_by_columns, rows_by_rows};
use super::problem::TILE;
use super::simd::{MOST_LANES, Simd};

/// Rows of K or V.
#[derive(Clone, Copy, Debug)]
pub struct Tile {
    /// The row of the first cell.
    pub first: *const u8,
    /// Bytes from one cell's row to the next.
    pub stride: usize,
    /// Cells: at most [`TILE`].
    pub cells: usize,
    /// Values in a row.
    pub size: usize,
    /// Their type.
    pub kind: KvType,
    /// Bytes from the beginning of each row that memory is asked for some rows in advance.
    pub ahead: usize,
}

/// Safety, of all methods: the processor has the instruction set, the rows are there, and what is written to has room.
#[allow(clippy::missing_safety_doc, reason = "it is the block's")]
impl Tile {
    /// Whether its rows can be read in whole vectors.
    pub fn is_whole<S: Simd>(&self) -> bool {
        self.size.is_multiple_of(S::LANES)
    }

    /// `to[i][cell] = a[i] . row of the cell`. Rows are whole.
    #[inline(always)]
    pub unsafe fn scores<S: Simd>(&self, a: Each<*const f32>, to: Each<*mut f32>) {
        with_encoding!(self.kind, encoding => {
            let rows = Rows::new(encoding, self.first, self.stride, self.ahead);
            // SAFETY: the caller's promise.
            unsafe { rows_by_rows::<S, _>(a, rows, self.cells, self.size, to) }
        });
    }

    /// `to[i] = weights[i][cell] * row of the cell`, summed up for all cells. Rows are whole.
    #[inline(always)]
    pub unsafe fn weighted<S: Simd>(&self, weights: Each<*const f32>, to: Each<*mut f32>) {
        with_encoding!(self.kind, encoding => {
            let rows = Rows::new(encoding, self.first, self.stride, self.ahead);
            // SAFETY: the caller's promise.
            unsafe { rows_by_columns::<S, _>(weights, rows, self.cells, self.size, to) }
        });
    }

    /// Writes the rows to `to`, each padded with zeros.
    #[inline(always)]
    pub unsafe fn decode<S: Simd>(&self, to: *mut f32) {
        // SAFETY: the caller's promise.
        unsafe { self.decode_some::<S>(0, self.cells, to) }
    }

    /// Writes the rows to the columns of `to`, whose rows have [`TILE`] numbers. `some` has room for a few rows. What is in the
    /// columns after the last cell means nothing.
    #[inline(always)]
    pub unsafe fn decode_to_columns<S: Simd>(&self, some: *mut f32, to: *mut f32) {
        let stride = padded(self.size as u32);
        for first in (0..self.cells).step_by(S::LANES) {
            // SAFETY: the caller's promise.
            unsafe {
                self.decode_some::<S>(first, S::LANES.min(self.cells - first), some);
                for at in (0..stride).step_by(S::LANES) {
                    S::transpose(some.add(at), stride, to.add(at * TILE + first), TILE);
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn decode_some<S: Simd>(&self, first: usize, cells: usize, to: *mut f32) {
        with_encoding!(self.kind, encoding => {
            for cell in 0..cells {
                // SAFETY: the caller's promise.
                unsafe {
                    let row = self.first.add((first + cell) * self.stride);
                    decode_row::<S, _>(encoding, row, self.size, to.add(cell * padded(self.size as u32)));
                }
            }
        });
    }
}

/// # Safety
///
/// As the methods of [`Tile`].
#[inline(always)]
unsafe fn decode_row<S: Simd, E: Encoding>(encoding: E, row: *const u8, size: usize, to: *mut f32) {
    let whole = size / S::LANES * S::LANES;
    let many = if S::LOOKS_UP_BYTES { size / (MANY * S::LANES) * (MANY * S::LANES) } else { 0 };
    // SAFETY: the caller's promise; types in blocks have whole vectors.
    unsafe {
        for at in (0..many).step_by(MANY * S::LANES) {
            for (i, vector) in encoding.vectors::<S, MANY>(row, at).into_iter().enumerate() {
                S::store(to.add(at + i * S::LANES), vector);
            }
        }
        for at in (many..whole).step_by(S::LANES) {
            S::store(to.add(at), encoding.vector::<S>(row, at));
        }
        if whole < size {
            let mut rest = [0u8; MOST_LANES * size_of::<f32>()];
            let bytes = (size - whole) * encoding.block().1;
            row.add(whole * encoding.block().1).copy_to_nonoverlapping(rest.as_mut_ptr(), bytes);
            S::store(to.add(whole), encoding.vector::<S>(rest.as_ptr(), 0));
        }
        for at in (size.next_multiple_of(S::LANES)..padded(size as u32)).step_by(S::LANES) {
            S::store(to.add(at), S::splat(0.0));
        }
    }
}
