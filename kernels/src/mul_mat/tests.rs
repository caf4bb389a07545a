//! The kernel against a reference in f64.

use super::{BLOCK, BLOCK_BYTES, GROUP, Problem, compute_on};
use crate::attention::guarded::Guarded;
use crate::attention::testing::{Random, cases};
use crate::share::Share;
use crate::simd::half;
use crate::simd::isa::Isa;

/// A problem with its memory, which ends at unreadable pages.
struct Case {
    size: usize,
    rows: usize,
    tokens: usize,
    weights: Guarded<u8>,
    activations: Guarded<u8>,
}

/// Returns the bytes of `rows` rows of q8_0. Some quants are the extreme ones.
fn encoded(rows: usize, size: usize, lowest: i8, random: &mut Random) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(rows * size / BLOCK * BLOCK_BYTES);
    for _ in 0..rows * size / BLOCK {
        bytes.extend(half::from_f32(random.normal() / 64.0).to_le_bytes());
        let is_extreme = random.below(4) == 0;
        bytes.extend((0..BLOCK).map(|_| {
            let any = (random.below(255) as i32 - 127) as i8;
            (if is_extreme { random.one_of(&[lowest, 127]) } else { any }) as u8
        }));
    }
    bytes
}

impl Case {
    fn new(random: &mut Random) -> Case {
        let size = BLOCK * (1 + random.below(9));
        let (rows, tokens) = (1 + random.below(70), random.one_of(&[1, 2, 3, 5, 8, 13, GROUP, GROUP + 21]));
        Case {
            size,
            rows,
            tokens,
            weights: Guarded::new(&encoded(rows, size, -128, random)),
            activations: Guarded::new(&encoded(tokens, size, -127, random)),
        }
    }

    fn row_bytes(&self) -> usize {
        self.size / BLOCK * BLOCK_BYTES
    }

    /// Returns the problem of some tokens. The output has a gap after each of them.
    fn problem(&self, first: usize, tokens: usize, out: &mut [f32]) -> Problem {
        Problem {
            weights: self.weights.as_ptr().cast(),
            activations: self.activations[first * self.row_bytes()..].as_ptr().cast(),
            out: out.as_mut_ptr(),
            weights_row: self.row_bytes() as u64,
            activations_token: self.row_bytes() as u64,
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

    /// Computes some tokens with `threads` threads, one after the other.
    fn computed(&self, isa: Isa, first: usize, tokens: usize, threads: usize) -> Vec<f32> {
        let mut out = self.out(tokens);
        let problem = self.problem(first, tokens, &mut out);
        for thread in 0..threads {
            // SAFETY: the case has memory for all rows and tokens.
            assert!(unsafe { compute_on(isa, &problem, Share { thread, threads }) });
        }
        out.to_vec()
    }

    /// Returns the product of a row with a token, and the sum of the magnitudes of its terms.
    fn expected(&self, row: usize, token: usize) -> (f64, f64) {
        let blocks = |bytes: &[u8], index: usize| {
            bytes[index * self.row_bytes()..][..self.row_bytes()].as_chunks::<BLOCK_BYTES>().0.to_vec()
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
            let mut random = Random(seed + number);
            check(&Case::new(&mut random), isa, &mut random);
        }
    }
}

#[test]
fn products_are_those_of_a_reference_in_double_precision() {
    all_cases(1, |case, isa, random| {
        let out = case.computed(isa, 0, case.tokens, 1 + random.below(5));
        for (token, row) in (0..case.tokens).flat_map(|token| (0..case.rows).map(move |row| (token, row))) {
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
        bytes[row * case.row_bytes()..][..2].copy_from_slice(&0x7c00u16.to_le_bytes());
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
    for changed in [
        Problem { size: problem.size + 16, ..problem },
        Problem { weights_row: problem.weights_row - 1, ..problem },
        Problem { activations_token: problem.activations_token - 1, ..problem },
        Problem { out_token: 4 * u64::from(problem.rows) - 1, ..problem },
    ] {
        assert!(!changed.is_supported(), "{changed:?}");
        // SAFETY: nothing is read or written.
        assert!(!unsafe { compute_on(Isa::Scalar, &changed, Share { thread: 0, threads: 1 }) });
    }
}
