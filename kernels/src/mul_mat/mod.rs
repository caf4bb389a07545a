//! Matrix multiplication (GEMM) on the CPU: weights of type q8_0 times activations, for any number of tokens.
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

/// Number of tokens for which the weights are transposed once. With rows of up to 8,192 values, the activations of a group
/// fit into an L2 cache of 1 MiB.
pub const GROUP: usize = 64;

/// A matrix product. The layout is `struct espalier_mul_mat` of the C header. Strides are in bytes.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Problem {
    /// Rows of `size` values in q8_0.
    pub weights: *const c_void,
    /// A row of `size` values in q8_0 for each token. A dot product with a quant of -128 is unspecified: upstream's
    /// conversion gives one for NaN only, and for blocks whose scale is zero.
    pub activations: *const c_void,
    /// A row of `rows` values in f32 for each token; overlaps neither of the others.
    pub out: *mut f32,
    /// Stride between rows of the weights.
    pub weights_row: u64,
    /// Stride between tokens of the activations.
    pub activations_token: u64,
    /// Stride between tokens of the output: a multiple of 4.
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
            && self.out_token.is_multiple_of(4)
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
    // SAFETY: the caller guarantees valid pointers, an output that overlaps nothing, and a share of its own.
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
        let (tiles, tokens) = ((problem.rows as usize).div_ceil(S::LANES), problem.tokens as usize);
        if self.share.thread >= tiles {
            return;
        }
        for start in (0..tokens).step_by(GROUP) {
            // SAFETY: `Isa::run` has checked the instruction set, and the caller of `compute_on` guarantees the rest:
            // there are these rows and tokens, and the tiles are this thread's.
            unsafe {
                group.read::<S>(problem, start..tokens.min(start + GROUP));
                for first in self.share.of(tiles).map(|number| number * S::LANES) {
                    let next = first + self.share.threads * S::LANES;
                    let rows = Rows::new::<S>(problem, first, next);
                    Product { problem, rows, group }.compute::<S>(tile);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BLOCK, BLOCK_BYTES, GROUP, Problem, compute_on};
    use crate::attention::guarded::Guarded;
    use crate::attention::testing::{Random, cases};
    use crate::share::Share;
    use crate::simd::half;
    use crate::simd::isa::Isa;

    /// A problem with its memory, which ends at unreadable pages.
    struct Case {
        size: usize,
        /// Bytes after each row of the weights, and after the activations of each token; those of a scale are NaN.
        gap: usize,
        rows: usize,
        tokens: usize,
        weights: Guarded<u8>,
        activations: Guarded<u8>,
    }

    /// Returns the bytes of `rows` rows of q8_0, with gaps between them. Some quants are the extreme ones.
    fn encoded(rows: usize, [size, gap]: [usize; 2], lowest: i8, random: &mut Random) -> Vec<u8> {
        let mut bytes = Vec::new();
        for block in 0..rows * size / BLOCK {
            if block > 0 && block.is_multiple_of(size / BLOCK) {
                bytes.extend(std::iter::repeat_n(0xff, gap));
            }
            bytes.extend(half::from_f32(random.normal() / 64.0).to_le_bytes());
            let is_extreme = random.below(4) == 0;
            bytes.extend((0..BLOCK).map(|_| {
                let any = (random.below(255) as i32 - 127) as i8;
                (if is_extreme { random.one_of(&[lowest, 127]) } else { any }) as u8
            }));
        }
        bytes
    }

    /// A problem of several threads.
    struct Shared(Problem);

    // SAFETY: each thread writes to rows of its own, which is what these tests check.
    unsafe impl Sync for Shared {}

    impl Case {
        fn new(random: &mut Random) -> Case {
            let size = BLOCK * (1 + random.below(9));
            let (rows, tokens) =
                (1 + random.below(70), random.one_of(&[1, 2, 3, 5, 8, 13, GROUP, GROUP + 21]));
            let gap = random.one_of(&[0, 2, 34, 35]);
            Case {
                size,
                gap,
                rows,
                tokens,
                weights: Guarded::new(&encoded(rows, [size, gap], -128, random)),
                activations: Guarded::new(&encoded(tokens, [size, gap], -127, random)),
            }
        }

        /// Returns the bytes from one row to the next.
        fn row_stride(&self) -> usize {
            self.size / BLOCK * BLOCK_BYTES + self.gap
        }

        /// Returns the problem of some tokens. The output has a gap after each of them.
        fn problem(&self, first: usize, tokens: usize, out: &mut [f32]) -> Problem {
            Problem {
                weights: self.weights.as_ptr().cast(),
                activations: self.activations[first * self.row_stride()..].as_ptr().cast(),
                out: out.as_mut_ptr(),
                weights_row: self.row_stride() as u64,
                activations_token: self.row_stride() as u64,
                out_token: 4 * self.stride() as u64,
                size: self.size as u32,
                rows: self.rows as u32,
                tokens: tokens as u32,
            }
        }

        fn stride(&self) -> usize {
            self.rows + 3
        }

        fn out(&self, tokens: usize) -> Guarded<f32> {
            Guarded::new(&vec![f32::NAN; (tokens - 1) * self.stride() + self.rows])
        }

        /// Computes some tokens with `threads` threads at once.
        fn computed(&self, isa: Isa, first: usize, tokens: usize, threads: usize) -> Vec<f32> {
            let mut out = self.out(tokens);
            let shared = Shared(self.problem(first, tokens, &mut out));
            std::thread::scope(|scope| {
                for thread in 0..threads {
                    let shared = &shared;
                    // SAFETY: the case has memory for all rows and tokens.
                    let compute = move || unsafe { compute_on(isa, &shared.0, Share { thread, threads }) };
                    scope.spawn(move || assert!(compute()));
                }
            });
            out.to_vec()
        }

        /// Returns the product of a row with a token, and the sum of the magnitudes of its terms.
        fn expected(&self, row: usize, token: usize) -> (f64, f64) {
            let blocks = |bytes: &[u8], index: usize| {
                let row = &bytes[index * self.row_stride()..][..self.size / BLOCK * BLOCK_BYTES];
                row.as_chunks::<BLOCK_BYTES>().0.to_vec()
            };
            let (weights, activations) = (blocks(&self.weights, row), blocks(&self.activations, token));
            let products = weights.iter().zip(&activations).map(|(weights, activations)| {
                let scale = |block: &[u8]| f64::from(half::to_f32(u16::from_le_bytes([block[0], block[1]])));
                let quants = weights[2..].iter().zip(&activations[2..]);
                let sum: i32 = quants.map(|(w, x)| i32::from(*w as i8) * i32::from(*x as i8)).sum();
                f64::from(sum) * scale(weights) * scale(activations)
            });
            products.fold((0.0, 0.0), |(sum, size), product| (sum + product, size + product.abs()))
        }
    }

    fn all_cases(seed: u64, check: impl Fn(&Case, Isa, &mut Random)) {
        for isa in Isa::here() {
            for number in 0..cases(60) {
                let mut random = Random((seed << 32) + number);
                check(&Case::new(&mut random), isa, &mut random);
            }
        }
    }

    #[test]
    fn products_are_those_of_a_reference_in_double_precision() {
        all_cases(1, |case, isa, random| {
            let out = case.computed(isa, 0, case.tokens, 1 + random.below(5));
            for (token, row) in (0..case.tokens).flat_map(|token| (0..case.rows).map(move |row| (token, row)))
            {
                let (value, terms) = case.expected(row, token);
                let found = f64::from(out[token * case.stride() + row]);
                // Three roundings for each term: of the scales' product, of the term, and of the sum.
                let bound = terms * f64::from(f32::EPSILON) * (2 + case.size / BLOCK) as f64;
                assert!((found - value).abs() <= bound, "{isa:?}: {found}, expected {value} within {bound}");
            }
        });
    }

    #[test]
    fn nothing_is_written_between_the_tokens() {
        all_cases(2, |case, isa, _| {
            let out = case.computed(isa, 0, case.tokens, 2);
            for gap in out.chunks(case.stride()).filter_map(|token| token.get(case.rows..)) {
                assert!(gap.iter().all(|value| value.is_nan()), "{isa:?}: {gap:?}");
            }
        });
    }

    /// A token's results are the same in each batch, with any number of threads.
    #[test]
    fn products_depend_on_neither_the_batch_nor_the_threads() {
        all_cases(3, |case, isa, random| {
            let together = case.computed(isa, 0, case.tokens, 1 + random.below(5));
            for token in 0..case.tokens {
                let alone = case.computed(isa, token, 1, 1 + random.below(5));
                assert_eq!(alone, together[token * case.stride()..][..case.rows], "{isa:?}, token {token}");
            }
        });
    }

    /// A row whose scales are not finite does not change the others of its tile.
    #[test]
    fn infinities_stay_in_their_rows() {
        all_cases(4, |case, isa, random| {
            let mut bytes = case.weights.to_vec();
            let row = random.below(case.rows);
            bytes[row * case.row_stride()..][..2].copy_from_slice(&0x7c00u16.to_le_bytes());
            let changed =
                Case { weights: Guarded::new(&bytes), activations: Guarded::new(&case.activations), ..*case };
            let (before, after) = (case.computed(isa, 0, 1, 1), changed.computed(isa, 0, 1, 1));
            assert!(!after[row].is_finite(), "{isa:?}: {}", after[row]);
            let others = (0..case.rows).filter(|other| *other != row);
            others.for_each(|other| assert_eq!(before[other], after[other], "{isa:?}"));
        });
    }

    #[test]
    fn sizes_that_do_not_fit_are_not_supported() {
        let mut random = Random(5);
        let case = Case::new(&mut random);
        let mut out = case.out(case.tokens);
        let problem = case.problem(0, case.tokens, &mut out);
        assert!(problem.is_supported());
        let row = problem.weights_row - case.gap as u64;
        for changed in [
            Problem { size: problem.size + 16, ..problem },
            Problem { weights_row: row - 1, ..problem },
            Problem { activations_token: row - 1, ..problem },
            Problem { out_token: 4 * u64::from(problem.rows) - 4, ..problem },
            Problem { out_token: 4 * u64::from(problem.rows) + 2, ..problem },
        ] {
            assert!(!changed.is_supported(), "{changed:?}");
            // SAFETY: nothing is read or written.
            assert!(!unsafe { compute_on(Isa::Scalar, &changed, Share { thread: 0, threads: 1 }) });
        }
    }

    /// A thread keeps its memory from one product to the next, also to a larger or a smaller one. Without values the result
    /// is zero.
    #[test]
    fn one_thread_multiplies_matrices_of_any_size_in_turn() {
        for isa in Isa::here() {
            let mut random = Random(6 << 32);
            for number in 0..cases(60) {
                let case = Case::new(&mut random);
                let size = if number % 8 == 0 { 0 } else { case.size };
                let mut out = case.out(case.tokens);
                let problem = Problem { size: size as u32, ..case.problem(0, case.tokens, &mut out) };
                // SAFETY: the case has memory for all rows and tokens.
                assert!(unsafe { compute_on(isa, &problem, Share { thread: 0, threads: 1 }) });
                let expected = if size == 0 { vec![0.0; case.rows] } else { case.computed(isa, 0, 1, 1) };
                assert_eq!(out[..case.rows], expected, "{isa:?}");
            }
        }
    }
}
