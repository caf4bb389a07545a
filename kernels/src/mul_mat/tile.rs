//! As many rows of the weights as a vector has lanes, transposed, and their products with the activations.

use super::activations::{self, Activations, BlockOfToken};
use super::{BLOCK_BYTES, Problem, SCALE_BYTES};
use crate::simd::{MAX_LANES, Simd};

/// Columns of a block: groups of four bytes.
const COLUMNS: usize = 8;

/// A tile. Lanes past the last row of the weights repeat it.
#[derive(Debug, Default)]
pub struct Tile {
    /// The first row, and the number of rows.
    rows: (usize, usize),
    /// For each block its columns, of one group for each lane.
    quants: Vec<i32>,
    /// For each block the scale of each lane.
    scales: Vec<f32>,
}

impl Tile {
    /// Reads and transposes the rows from `first` on.
    ///
    /// # Safety
    ///
    /// The processor has the instruction set `S`, and the problem has this row.
    #[inline(always)]
    pub unsafe fn read<S: Simd>(&mut self, problem: &Problem, first: usize) {
        let (rows, blocks) = (problem.rows as usize, problem.blocks());
        self.rows = (first, S::LANES.min(rows - first));
        self.quants.resize(blocks * COLUMNS * S::LANES, 0);
        self.scales.resize(blocks * S::LANES, 0.0);
        // SAFETY: per this function's contract the processor has `S`; no row is past the last one, and each has these
        // blocks. The buffers have space for them.
        unsafe {
            let rows: [*const u8; MAX_LANES] =
                std::array::from_fn(|lane| row(problem, (first + lane).min(rows - 1)));
            for block in 0..blocks {
                let at = rows.map(|row| row.add(block * BLOCK_BYTES));
                let scales = at.map(|at| at.cast::<u16>().read_unaligned());
                let quants = at.map(|at| at.add(SCALE_BYTES).cast::<i8>());
                S::columns_of_bytes(&quants, self.quants.as_mut_ptr().add(block * COLUMNS * S::LANES));
                let to = self.scales.as_mut_ptr().add(block * S::LANES);
                S::store(to, S::load_f16(scales.as_ptr()));
            }
        }
    }

    /// Multiplies the rows by the activations, and writes the products to the output. Meanwhile the rows from `next` on,
    /// if there are any, are fetched into the cache.
    ///
    /// # Safety
    ///
    /// The processor has the instruction set `S`. The tile and the activations were read from this problem. No other
    /// thread writes these rows of the output.
    #[inline(always)]
    pub unsafe fn multiply<S: Simd>(&self, problem: &Problem, activations: &Activations, next: usize) {
        let count = activations.tokens.len();
        let mut at = 0;
        // SAFETY: as per this function's contract; `some` gets tokens of the group only.
        unsafe {
            if S::REGISTERS >= 32 {
                while at + 8 <= count {
                    self.some::<S, 8>(problem, activations, at, next);
                    at += 8;
                }
            }
            while at + 4 <= count {
                self.some::<S, 4>(problem, activations, at, next);
                at += 4;
            }
            while at < count {
                self.some::<S, 1>(problem, activations, at, next);
                at += 1;
            }
        }
    }

    /// Does so for `N` tokens of the group, from `index` on; several tokens fetch the next rows.
    ///
    /// # Safety
    ///
    /// As [`Tile::multiply`], and the group has these tokens.
    #[inline(always)]
    unsafe fn some<S: Simd, const N: usize>(
        &self,
        problem: &Problem,
        activations: &Activations,
        index: usize,
        next: usize,
    ) {
        let first = activations.tokens.start + index;
        // One token is done before they would arrive.
        let fetches = index == 0 && N > 1 && next < problem.rows as usize;
        let ahead = fetches.then_some((row(problem, next), problem.weights_row as usize));
        // SAFETY: per this function's contract the processor has `S`, and the group has these tokens.
        unsafe {
            let tokens: [Token; N] = std::array::from_fn(|i| Token {
                quants: activations::row(problem, first + i).add(SCALE_BYTES),
                blocks: activations.blocks_of(index + i, problem),
            });
            let products = self.products::<S, N>(&tokens, problem.blocks(), ahead);
            for (i, sums) in products.into_iter().enumerate() {
                self.store::<S>(problem, first + i, sums);
            }
        }
    }

    /// Returns the products of the rows with `N` tokens. `ahead`: the first of the rows to fetch, and their stride.
    ///
    /// # Safety
    ///
    /// The processor has the instruction set `S`; the tile and the tokens have these blocks.
    #[inline(always)]
    unsafe fn products<S: Simd, const N: usize>(
        &self,
        tokens: &[Token; N],
        blocks: usize,
        ahead: Option<(*const u8, usize)>,
    ) -> [S::V; N] {
        // SAFETY: per this function's contract the processor has `S`, and the tile and the tokens have these blocks.
        unsafe {
            let mut sums = [S::splat(0.0); N];
            for block in 0..blocks {
                if let Some((row, stride)) = ahead {
                    (0..S::LANES)
                        .for_each(|i| S::prefetch(row.wrapping_add(i * stride + block * BLOCK_BYTES)));
                }
                let mut products = tokens.map(|token| S::splat_pair((*token.blocks.add(block)).start));
                for column in 0..COLUMNS {
                    let weights =
                        S::load_pairs(self.quants.as_ptr().add((block * COLUMNS + column) * S::LANES));
                    for (token, products) in tokens.iter().zip(&mut products) {
                        let x =
                            token.quants.add(block * BLOCK_BYTES).cast::<i32>().add(column).read_unaligned();
                        *products = S::add_byte_products(weights, S::splat_pair(x), *products);
                    }
                }
                let scales = S::load(self.scales.as_ptr().add(block * S::LANES));
                for i in 0..N {
                    let scale = S::mul(scales, S::splat((*tokens[i].blocks.add(block)).scale));
                    sums[i] = S::mul_add(S::from_sums(products[i]), scale, sums[i]);
                }
            }
            sums
        }
    }

    /// Writes the products of the rows with one token.
    ///
    /// # Safety
    ///
    /// As [`Tile::multiply`], and the problem has this token.
    #[inline(always)]
    unsafe fn store<S: Simd>(&self, problem: &Problem, token: usize, sums: S::V) {
        let (first, rows) = self.rows;
        // SAFETY: per this function's contract the processor has `S`, and the token's output has these rows.
        unsafe {
            let to = problem.out.byte_add(token * problem.out_token as usize).add(first);
            if rows == S::LANES {
                return S::store(to, sums);
            }
            let mut all = [0.0; MAX_LANES];
            S::store(all.as_mut_ptr(), sums);
            to.copy_from_nonoverlapping(all.as_ptr(), rows);
        }
    }
}

/// Returns a row of the weights; a row past the last one must not be read.
#[inline(always)]
fn row(problem: &Problem, row: usize) -> *const u8 {
    problem.weights.cast::<u8>().wrapping_add(row * problem.weights_row as usize)
}

/// The activations of a token.
#[derive(Clone, Copy, Debug)]
struct Token {
    /// The first quant.
    quants: *const u8,
    /// Scale and start of each block.
    blocks: *const BlockOfToken,
}
