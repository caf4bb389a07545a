//! The products of some rows with a group of tokens.

use super::activations::{self, ActivationBlock, Activations};
use super::tile::{Block, COLUMNS, Rows};
use super::{BLOCK_BYTES, Problem, SCALE_BYTES};
use crate::simd::{MAX_LANES, Simd};

/// Some rows and a group of tokens.
#[derive(Clone, Copy, Debug)]
pub struct Product<'a> {
    /// Weights, activations and output.
    pub problem: &'a Problem,
    /// The rows.
    pub rows: Rows,
    /// The tokens.
    pub group: &'a Activations,
}

impl Product<'_> {
    /// Computes the products, and writes them to the output. `tile` is scratch memory.
    ///
    /// # Safety
    ///
    /// The processor has the instruction set `S`, and the rows are those of its lanes. The problem's pointers are valid,
    /// and the group was read from it. No other thread writes these rows of the output.
    #[inline(always)]
    pub unsafe fn compute<S: Simd>(self, tile: &mut Vec<Block>) {
        // SAFETY: the caller guarantees processor, pointers and rows; the tile gets a block for each of the rows' first.
        unsafe {
            tile.resize(self.problem.blocks(), Block::ZERO);
            let mut index = 0;
            if S::REGISTERS >= 32 {
                index = self.compute_each::<S, 8>(tile, index);
            }
            index = self.compute_each::<S, 4>(tile, index);
            self.compute_each::<S, 1>(tile, index);
        }
    }

    /// Computes `N` tokens at a time, from `index` on. Returns the index of the first token that is left. The first tokens
    /// read each block, and the later ones find it in the tile.
    ///
    /// # Safety
    ///
    /// As [`Product::compute`], and the tile has as many blocks as the rows.
    #[inline(always)]
    unsafe fn compute_each<S: Simd, const N: usize>(self, tile: &mut [Block], mut index: usize) -> usize {
        while index + N <= self.group.tokens.len() {
            // SAFETY: per this function's contract the processor has `S`, and the tile has as many blocks as the rows and
            // each token. The loop's condition is that the group has these tokens.
            unsafe {
                let tokens: [Token; N] =
                    std::array::from_fn(|i| Token::new(self.problem, self.group, index + i));
                let mut sums = [S::splat(0.0); N];
                for (number, block) in tile.iter_mut().enumerate() {
                    if index == 0 {
                        self.rows.fetch_next::<S>(number);
                        self.rows.read::<S>(number, block);
                    }
                    add_products::<S, N>(block, &tokens, number, &mut sums);
                }
                sums.into_iter().enumerate().for_each(|(i, sums)| self.store::<S>(index + i, sums));
            }
            index += N;
        }
        index
    }

    /// Writes the products with one token.
    ///
    /// # Safety
    ///
    /// As [`Product::compute`], and the group has this token.
    #[inline(always)]
    unsafe fn store<S: Simd>(self, index: usize, sums: S::V) {
        let Product { problem, rows, group } = self;
        // SAFETY: per this function's contract the processor has `S`, and the token's output has these rows.
        unsafe {
            let token = (group.tokens.start + index) * problem.out_token as usize;
            let to = problem.out.byte_add(token).add(rows.first);
            if rows.count == S::LANES {
                return S::store(to, sums);
            }
            let mut all = [0.0; MAX_LANES];
            S::store(all.as_mut_ptr(), sums);
            to.copy_from_nonoverlapping(all.as_ptr(), rows.count);
        }
    }
}

/// The activations of a token.
#[derive(Clone, Copy, Debug)]
struct Token {
    /// The first quant.
    quants: *const u8,
    /// Scale and start of each block.
    blocks: *const ActivationBlock,
}

impl Token {
    /// Returns a token of a group, by its index there.
    ///
    /// # Safety
    ///
    /// The problem has the group's tokens, and the group this one.
    #[inline(always)]
    unsafe fn new(problem: &Problem, group: &Activations, index: usize) -> Token {
        // SAFETY: per this function's contract there is such a token.
        let row = unsafe { activations::row(problem, group.tokens.start + index) };
        Token { quants: row.wrapping_add(SCALE_BYTES), blocks: group.blocks_of(index, problem) }
    }
}

/// Adds the dot products of a block with `N` tokens to their sums. `number`: index of the block in its row.
///
/// # Safety
///
/// The processor has the instruction set `S`, with which the block was read. The tokens have a block of this index, and
/// their group is alive.
#[inline(always)]
unsafe fn add_products<S: Simd, const N: usize>(
    block: &Block,
    tokens: &[Token; N],
    number: usize,
    sums: &mut [S::V; N],
) {
    // SAFETY: per this function's contract the processor has `S`, and the tokens have this block.
    unsafe {
        let mut products = tokens.map(|token| S::splat_pair((*token.blocks.add(number)).initial_sum));
        for column in 0..COLUMNS {
            let weights = S::load_pairs(block.quants.as_ptr().add(column * S::LANES));
            for (token, products) in tokens.iter().zip(&mut products) {
                let x = token.quants.add(number * BLOCK_BYTES).cast::<i32>().add(column).read_unaligned();
                *products = S::add_byte_products(weights, S::splat_pair(x), *products);
            }
        }
        let scales = S::load(block.scales.as_ptr());
        for i in 0..N {
            let scale = S::mul(scales, S::splat((*tokens[i].blocks.add(number)).scale));
            sums[i] = S::mul_add(S::from_sums(products[i]), scale, sums[i]);
        }
    }
}
