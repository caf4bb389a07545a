//! Matrix products on the CPU: weights of type q8_0 times activations, for any number of tokens.
//!
//! Upstream computes a few dot products at a time, and multiplies the sums of each 32 values by their scales while they
//! still are spread over the lanes of a vector. Here each lane has a row of the weights: a vector of sums is complete
//! after 32 values, and is scaled once for all its rows. The rows are transposed for that, once for up to [`GROUP`]
//! tokens.
//!
//! * [`Problem`]: the inputs. [`compute`]: their product, a thread's share.
//! * [`tile`]: some rows of the weights, transposed. [`activations`]: scales of a group of tokens. [`product`]: the dot
//!   products of both.
//!
//! The sums of 32 values are exact; those of the blocks are in f32, in the order of the blocks. The result depends
//! neither on the number of threads nor on the other tokens of a batch.

pub mod activations;
pub mod product;
pub mod tile;

use std::cell::RefCell;
use std::ffi::c_void;

use self::activations::Activations;
use self::product::Product;
use self::tile::{Block, Rows};
use crate::share::Share;
use crate::simd::isa::Isa;
use crate::simd::{Simd, Work};

/// Values in a block of q8_0.
pub const BLOCK: usize = 32;

/// Bytes of a block of q8_0: the scale in f16, and a byte for each value.
pub const BLOCK_BYTES: usize = SCALE_BYTES + BLOCK;

/// Bytes of the scale, with which a block begins.
pub const SCALE_BYTES: usize = 2;

/// Number of tokens for which the weights are transposed once: their activations stay in the L2 cache meanwhile.
pub const GROUP: usize = 64;

/// A matrix product. The layout is `struct espalier_mul_mat` of the C header. Strides are in bytes.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Problem {
    /// Rows of `size` values in q8_0.
    pub weights: *const c_void,
    /// A row of `size` values in q8_0 for each token. No quant is -128.
    pub activations: *const c_void,
    /// A row of `rows` values in f32 for each token.
    pub out: *mut f32,
    /// Stride between rows of the weights.
    pub weights_row: u64,
    /// Stride between tokens of the activations.
    pub activations_token: u64,
    /// Stride between tokens of the output.
    pub out_token: u64,
    /// Values in a row of the weights: a multiple of 32.
    pub size: u32,
    /// Number of rows of the weights.
    pub rows: u32,
    /// Number of tokens.
    pub tokens: u32,
}

impl Problem {
    /// Returns whether the sizes are supported.
    #[must_use]
    pub fn is_supported(&self) -> bool {
        let bytes = (self.blocks() * BLOCK_BYTES) as u64;
        (self.size as usize).is_multiple_of(BLOCK)
            && self.weights_row >= bytes
            && self.activations_token >= bytes
            && self.out_token >= 4 * u64::from(self.rows)
    }

    /// Returns the number of blocks in a row.
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.size as usize / BLOCK
    }
}

/// Memory of one thread, kept from one product to the next: it would be mapped and unmapped by each of them.
#[derive(Debug, Default)]
struct Scratch {
    group: Activations,
    tile: Vec<Block>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// Computes a thread's share. Returns false, and writes nothing, if the sizes are not supported.
///
/// # Safety
///
/// The problem's pointers are valid for its sizes and strides, and the output does not overlap the others. No two
/// threads have the same share.
#[must_use]
pub unsafe fn compute(problem: &Problem, share: Share) -> bool {
    // SAFETY: as per this function's contract.
    unsafe { compute_on(Isa::chosen(), problem, share) }
}

/// The same on an instruction set.
///
/// # Safety
///
/// As [`compute`].
unsafe fn compute_on(isa: Isa, problem: &Problem, share: Share) -> bool {
    if !problem.is_supported() {
        return false;
    }
    SCRATCH.with_borrow_mut(|scratch| isa.run(OneThread { problem, share, scratch }));
    true
}

/// The work of one thread. [`compute_on`] has checked the sizes.
struct OneThread<'a> {
    problem: &'a Problem,
    share: Share,
    scratch: &'a mut Scratch,
}

impl Work for OneThread<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let (problem, Scratch { group, tile }) = (self.problem, self.scratch);
        let (rows, tokens) = (problem.rows as usize, problem.tokens as usize);
        for start in (0..tokens).step_by(GROUP) {
            // SAFETY: `Isa::run` has checked the instruction set, and the caller of `compute_on` guarantees the rest:
            // there are these rows and tokens, and the tiles are this thread's.
            unsafe {
                group.read::<S>(problem, start..tokens.min(start + GROUP));
                for first in self.share.of(rows.div_ceil(S::LANES)).map(|number| number * S::LANES) {
                    let next = first + self.share.threads * S::LANES;
                    let rows = Rows::new::<S>(problem, first, next);
                    Product { problem, rows, group }.compute::<S>(tile);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
