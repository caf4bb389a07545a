//! The exponential function and the sigmoid.

use super::Simd;

/// Computes `exp(x)` for `x <= 0`, to 2 units in the last place. NaN in, NaN out.
///
/// # Safety
///
/// The processor has the instruction set `S`.
#[inline(always)]
pub unsafe fn exp<S: Simd>(x: S::V) -> S::V {
    /// Below this the result is 0 in f32.
    const LEAST: f32 = -110.0;
    // ln 2 in two parts, of which the first has few enough bits for its product with an integer to be exact.
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    // Taylor series up to the seventh power: within ln 2 / 2 of 0 the truncation error is 1e-8 of the value.
    const SERIES: [f32; 8] = [1.0 / 5040.0, 1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0];
    // SAFETY: per this function's contract the processor has `S`.
    unsafe {
        let x = S::max(S::splat(LEAST), x);
        let n = S::round(S::mul(x, S::splat(std::f32::consts::LOG2_E)));
        let rest = S::mul_add(n, S::splat(-LN_2_HIGH), x);
        let rest = S::mul_add(n, S::splat(-LN_2_LOW), rest);
        let mut sum = S::splat(SERIES[0]);
        for factor in &SERIES[1..] {
            sum = S::mul_add(sum, rest, S::splat(*factor));
        }
        S::times_power_of_two(sum, n)
    }
}

/// Computes the sigmoid `1 / (1 + exp(-x))`. NaN in, NaN out.
///
/// # Safety
///
/// The processor has the instruction set `S`.
#[inline(always)]
pub unsafe fn sigmoid<S: Simd>(x: S::V) -> S::V {
    // SAFETY: per this function's contract the processor has `S`.
    unsafe {
        // Both exponents are at most 0: neither part overflows.
        let above = exp::<S>(S::min(S::splat(0.0), x));
        let small = exp::<S>(S::sub(S::splat(0.0), S::magnitude(x)));
        S::div(above, S::add(S::splat(1.0), small))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::isa::Isa;
    use crate::simd::{MAX_LANES, Work};

    struct Exp(f32);

    impl Work for Exp {
        type Output = f32;

        unsafe fn run<S: Simd>(self) -> f32 {
            let mut to = [0.0; MAX_LANES];
            // SAFETY: `Work::run` is called with the instruction set, and a vector fits.
            unsafe { S::store(to.as_mut_ptr(), exp::<S>(S::splat(self.0))) };
            to[0]
        }
    }

    #[test]
    fn the_exponential_is_right_on_each_instruction_set() {
        for isa in Isa::here() {
            for i in 0..110_000 {
                let x = -(i as f32) / 1000.0;
                let (found, expected) = (isa.run(Exp(x)), f64::from(x).exp());
                let unit = f64::from(f32::EPSILON) * expected + 1.5e-45;
                assert!((f64::from(found) - expected).abs() <= 2.0 * unit, "{isa:?} {x}: {found} {expected}");
            }
            assert_eq!((isa.run(Exp(0.0)), isa.run(Exp(f32::NEG_INFINITY))), (1.0, 0.0), "{isa:?}");
            assert!(isa.run(Exp(f32::NAN)).is_nan(), "{isa:?}");
        }
    }

    struct Sigmoid(f32);

    impl Work for Sigmoid {
        type Output = f32;

        unsafe fn run<S: Simd>(self) -> f32 {
            let mut to = [0.0; MAX_LANES];
            // SAFETY: `Work::run` is called with the instruction set, and a vector fits.
            unsafe { S::store(to.as_mut_ptr(), sigmoid::<S>(S::splat(self.0))) };
            to[0]
        }
    }

    #[test]
    fn the_sigmoid_is_right_on_each_instruction_set() {
        for isa in Isa::here() {
            for i in -100_000..100_000 {
                let x = i as f32 / 1000.0;
                let (found, expected) = (isa.run(Sigmoid(x)), 1.0 / (1.0 + (-f64::from(x)).exp()));
                let unit = f64::from(f32::EPSILON) * expected + 1.5e-45;
                assert!((f64::from(found) - expected).abs() <= 6.0 * unit, "{isa:?} {x}: {found} {expected}");
            }
            let ends = [f32::INFINITY, f32::NEG_INFINITY].map(|x| isa.run(Sigmoid(x)));
            assert_eq!(ends, [1.0, 0.0], "{isa:?}");
            assert!(isa.run(Sigmoid(f32::NAN)).is_nan(), "{isa:?}");
        }
    }
}
