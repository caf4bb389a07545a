//! Online softmax over one tile after the other: <https://arxiv.org/abs/2112.05682>.

use super::matrix::{AT_ONCE, Each};
use super::problem::TILE;
use crate::simd::Simd;
use crate::simd::exp::exp;

/// Running softmax state of a row; all sums are scaled by `exp(-maximum)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct State {
    /// The largest score.
    pub maximum: f32,
    /// The sum of the weights.
    pub sum: f32,
}

impl State {
    /// The state before any score.
    pub const EMPTY: State = State { maximum: f32::NEG_INFINITY, sum: 0.0 };

    /// Adds the score of an attention sink, which has no value. Returns the factor to rescale the accumulators.
    #[must_use]
    pub fn take_sink(&mut self, score: f32) -> f32 {
        let maximum = self.maximum.max(score);
        let factor = factor(self.maximum, maximum);
        *self = State { maximum, sum: self.sum * factor + (score - maximum).exp() };
        factor
    }
}

/// Returns `exp(old - new)`, also if no score was added yet.
#[must_use]
pub fn factor(old: f32, new: f32) -> f32 {
    if old == f32::NEG_INFINITY {
        0.0
    } else if old == new {
        1.0
    } else {
        (old - new).exp()
    }
}

/// Turns the scores of a tile into weights, for [`AT_ONCE`] rows, and updates their states. Returns the factors to
/// rescale each row's accumulators.
///
/// # Safety
///
/// The processor has the instruction set `S`; each row has [`TILE`] scores.
#[inline(always)]
pub unsafe fn weigh<S: Simd>(scores: Each<*mut f32>, states: &mut Each<State>) -> Each<f32> {
    // SAFETY: per this function's contract each row has `TILE` scores, and `TILE` is a multiple of `LANES`.
    unsafe {
        let mut largest = [S::splat(f32::NEG_INFINITY); AT_ONCE];
        for (largest, scores) in largest.iter_mut().zip(scores) {
            for at in (0..TILE).step_by(S::LANES) {
                *largest = S::max(*largest, S::load(scores.add(at)));
            }
        }
        let largest = S::largests(largest);
        let mut sums = [S::splat(0.0); AT_ONCE];
        let mut factors = [0.0; AT_ONCE];
        for (i, state) in states.iter_mut().enumerate() {
            let before = state.maximum;
            state.maximum = if largest[i] <= before { before } else { largest[i] };
            // If all cells are masked, all weights are zero. A maximum may drop a NaN; the sum does not.
            let base = if state.maximum == f32::NEG_INFINITY { 0.0 } else { state.maximum };
            let minus = S::splat(-base);
            for at in (0..TILE).step_by(S::LANES) {
                let to = scores[i].add(at);
                let weight = exp::<S>(S::add(S::load(to), minus));
                S::store(to, weight);
                sums[i] = S::add(sums[i], weight);
            }
            factors[i] = factor(before, state.maximum);
        }
        let sums = S::sums(sums);
        for i in 0..AT_ONCE {
            states[i].sum = states[i].sum * factors[i] + sums[i];
        }
        factors
    }
}

/// Computes `most * tanh(x)`.
///
/// # Safety
///
/// The processor has the instruction set `S`.
#[inline(always)]
pub unsafe fn cap<S: Simd>(x: S::V, most: f32) -> S::V {
    // SAFETY: per this function's contract the processor has `S`.
    unsafe {
        let size = S::magnitude(x);
        let small = exp::<S>(S::mul(size, S::splat(-2.0)));
        let one = S::splat(1.0);
        let tanh = S::div(S::sub(one, small), S::add(one, small));
        S::mul(S::splat(most), S::copy_sign(tanh, x))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::Simd;
    use crate::simd::isa::Isa;

    struct Cap(f32);

    impl crate::simd::Work for Cap {
        type Output = f32;

        unsafe fn run<S: Simd>(self) -> f32 {
            let mut to = [0.0; crate::simd::MAX_LANES];
            // SAFETY: `Work::run` is called with the instruction set, and a vector fits.
            unsafe { S::store(to.as_mut_ptr(), cap::<S>(S::splat(self.0), 30.0)) };
            to[0]
        }
    }

    #[test]
    fn scores_are_capped_on_each_instruction_set() {
        for isa in Isa::here() {
            for i in -12_000..12_000 {
                let x = i as f32 / 1000.0;
                let (found, expected) = (isa.run(Cap(x)), 30.0 * f64::from(x).tanh());
                assert!((f64::from(found) - expected).abs() <= 6e-6, "{isa:?} {x}: {found} {expected}");
            }
            let ends = [f32::INFINITY, f32::NEG_INFINITY].map(|x| isa.run(Cap(x)));
            assert_eq!(ends, [30.0, -30.0], "{isa:?}");
            assert!(isa.run(Cap(f32::NAN)).is_nan(), "{isa:?}");
        }
    }

    #[test]
    fn a_sink_takes_weight_and_gives_no_value() {
        let mut state = State::EMPTY;
        assert_eq!(state.take_sink(2.0), 0.0);
        assert_eq!(state, State { maximum: 2.0, sum: 1.0 });
        let mut state = State { maximum: 3.0, sum: 1.0 };
        assert_eq!(state.take_sink(3.0), 1.0);
        assert_eq!(state.sum, 2.0);
    }
}
