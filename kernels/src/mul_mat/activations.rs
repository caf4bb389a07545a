//! The activations of a group of tokens: their scales, and the corrections of their sums.

use std::ops::Range;

use super::{BLOCK, BLOCK_BYTES, Problem, SCALE_BYTES};
use crate::simd::Simd;
use crate::simd::half::to_f32;

/// A group of tokens.
#[derive(Debug, Default)]
pub struct Activations {
    /// The tokens.
    pub tokens: Range<usize>,
    /// By token, then by block.
    blocks: Vec<ActivationBlock>,
}

/// Scale and initial sum of the dot products with a token's block.
#[derive(Clone, Copy, Debug)]
pub struct ActivationBlock {
    /// The scale.
    pub scale: f32,
    /// Cancels the [`Simd::BYTE_OFFSET`] that the weights have.
    pub initial_sum: i32,
}

impl Activations {
    /// Reads the scales of a group of tokens.
    ///
    /// # Safety
    ///
    /// The processor has the instruction set `S`, and the problem has these tokens.
    #[inline(always)]
    pub unsafe fn read<S: Simd>(&mut self, problem: &Problem, tokens: Range<usize>) {
        self.blocks.clear();
        for token in tokens.clone() {
            for block in 0..problem.blocks() {
                // SAFETY: per this function's contract the processor has `S`, there is such a token, and it has these
                // blocks.
                self.blocks.push(unsafe { block_of::<S>(row(problem, token).add(block * BLOCK_BYTES)) });
            }
        }
        self.tokens = tokens;
    }

    /// Returns the blocks of a token, by its index in the group.
    #[inline(always)]
    pub fn blocks_of(&self, index: usize, problem: &Problem) -> *const ActivationBlock {
        self.blocks[index * problem.blocks()..].as_ptr()
    }
}

/// Returns the activations of a token.
///
/// # Safety
///
/// The problem has this token.
#[inline(always)]
pub unsafe fn row(problem: &Problem, token: usize) -> *const u8 {
    // SAFETY: per this function's contract there is such a token.
    unsafe { problem.activations.byte_add(token * problem.activations_token as usize).cast() }
}

/// # Safety
///
/// The processor has the instruction set `S`, and `from` points to a block of q8_0.
#[inline(always)]
unsafe fn block_of<S: Simd>(from: *const u8) -> ActivationBlock {
    // SAFETY: per this function's contract the processor has `S`, and there is a scale, and behind it a byte for each
    // value.
    unsafe {
        let quants = from.add(SCALE_BYTES).cast::<i8>();
        let mut sum = S::splat(0.0);
        for at in (0..BLOCK).step_by(S::LANES) {
            sum = S::add(sum, S::from_quants(quants.add(at)));
        }
        // Sums of 32 bytes are exact in f32.
        let sum = S::sum(sum) as i32;
        ActivationBlock {
            scale: to_f32(from.cast::<u16>().read_unaligned()),
            initial_sum: -S::BYTE_OFFSET * sum,
        }
    }
}
