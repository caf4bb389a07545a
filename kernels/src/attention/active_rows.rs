//! The rows that attend to a tile, and the masks of their tokens.

use super::division::ROWS;
use super::matrix::{AT_ONCE, Each};
use super::problem::{Cells, TILE};
use crate::simd::Simd;
use crate::simd::half::NEGATIVE_INFINITY;

/// The rows of an item that attend to a tile, by index in the block; padded with the index after the last row.
pub struct Active {
    rows: [u8; ROWS + AT_ONCE],
    /// For each row, the index of its token in the block.
    tokens: [u8; ROWS + AT_ONCE],
    /// Number of rows, without padding.
    pub count: usize,
}

impl Active {
    /// Selects those of `rows` rows whose token attends to the tile. A token has `group` rows; `left_out` of the first
    /// token's rows are in the block before.
    pub fn new(rows: usize, (group, left_out): (usize, usize), sees: &[bool]) -> Active {
        let mut active = Active { rows: [rows as u8; ROWS + AT_ONCE], tokens: [0; ROWS + AT_ONCE], count: 0 };
        let seeing = sees.iter().enumerate().filter(|(_, sees)| **sees);
        for (token, _) in seeing {
            for row in (token * group).max(left_out)..((token + 1) * group).min(left_out + rows) {
                active.rows[active.count] = (row - left_out) as u8;
                active.tokens[active.count] = token as u8;
                active.count += 1;
            }
        }
        active
    }

    /// Returns the index in the block of the token of the row at this place.
    pub fn token(&self, at: usize) -> usize {
        usize::from(self.tokens[at])
    }

    /// Returns the number of rows including padding.
    fn padded(&self) -> usize {
        self.count.next_multiple_of(AT_ONCE)
    }

    /// Iterates over [`AT_ONCE`] rows at a time: the place of the first, and their indexes.
    pub fn blocks(&self) -> impl Iterator<Item = (usize, Each<usize>)> {
        let blocks = self.rows[..self.padded()].as_chunks::<AT_ONCE>().0.iter().enumerate();
        blocks.map(|(at, rows)| (at * AT_ONCE, rows.map(usize::from)))
    }
}

/// A token of a stream.
#[derive(Clone, Copy)]
pub struct Token<'a> {
    /// The cells that it may attend to.
    pub cells: &'a Cells,
    /// The stream of Q.
    pub stream: usize,
    /// Index of the token in the stream.
    pub token: usize,
}

impl Token<'_> {
    /// Returns whether it attends to any of the first `count` cells of a tile. If so, writes their mask values to
    /// `mask`.
    ///
    /// # Safety
    ///
    /// The processor has the instruction set `S`, and the cells' pointers are valid for the problem's sizes and
    /// strides.
    #[inline(always)]
    pub unsafe fn sees<S: Simd>(self, tile: usize, count: usize, mask: &mut [f32; TILE]) -> bool {
        // SAFETY: per this function's contract the processor has `S` and the cells' pointers are valid.
        unsafe { self.has_tile(tile) && self.read_mask::<S>(tile, count, mask) }
    }

    /// # Safety
    ///
    /// The cells' pointers are valid for the problem's sizes and strides.
    unsafe fn has_tile(self, tile: usize) -> bool {
        let blocks = self.cells.blocks;
        let at = self.token * self.cells.blocks_token as usize;
        // SAFETY: per this function's contract `blocks` is null or has a bit for each tile of each token.
        blocks.is_null() || unsafe { *blocks.byte_add(at).add(tile / 32) } >> (tile % 32) & 1 == 1
    }

    /// # Safety
    ///
    /// As [`Token::sees`].
    #[inline(always)]
    unsafe fn read_mask<S: Simd>(self, tile: usize, count: usize, to: &mut [f32; TILE]) -> bool {
        let cells = self.cells;
        if cells.mask.is_null() {
            to[..count].fill(0.0);
            to[count..].fill(f32::NEG_INFINITY);
            return true;
        }
        let mut mask = [NEGATIVE_INFINITY; TILE];
        let stream = self.stream % cells.mask_streams as usize;
        let at = self.token * cells.mask_token as usize + stream * cells.mask_stream as usize;
        // SAFETY: per this function's contract the processor has `S` and the mask has these values.
        unsafe {
            let from = cells.mask.byte_add(at).cast::<u16>().add(tile * TILE);
            from.copy_to_nonoverlapping(mask.as_mut_ptr(), count);
            for at in (0..TILE).step_by(S::LANES) {
                S::store(to.as_mut_ptr().add(at), S::load_f16(mask.as_ptr().add(at)));
            }
        }
        // Without a branch, so that it is vectorised.
        mask.iter().fold(false, |any, one| any | (*one != NEGATIVE_INFINITY))
    }
}
