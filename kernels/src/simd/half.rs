//! 16-bit floats in plain arithmetic.

/// Converts half precision (IEEE 754 binary16) to f32.
#[must_use]
#[inline(always)]
pub fn to_f32(half: u16) -> f32 {
    let sign = u32::from(half & 0x8000) << 16;
    let rest = u32::from(half & 0x7fff) << 13;
    // The exponent's bias is 15 there and 127 here; the product is exact, also for subnormal numbers.
    let value = f32::from_bits(rest) * f32::from_bits((127 + 112) << 23);
    // Infinity and NaN have the largest exponent, here too.
    let bits = if rest >= 0x7c00 << 13 { rest | 0x7f80_0000 } else { value.to_bits() };
    f32::from_bits(sign | bits)
}

/// Converts to half precision, rounding to nearest, ties to even; too large values become infinite.
#[must_use]
#[inline(always)]
pub fn from_f32(x: f32) -> u16 {
    let sign = (x.to_bits() >> 16 & 0x8000) as u16;
    let size = x.abs();
    sign | if x.is_nan() {
        0x7e00
    } else if size >= 65_520.0 {
        0x7c00
    } else if size < f32::from_bits((127 - 14) << 23) {
        // The last place of 0.5 equals that of the smallest half-precision numbers: the sum is rounded to it.
        ((size + 0.5).to_bits() - 0.5f32.to_bits()) as u16
    } else {
        let bits = size.to_bits();
        (((bits + 0xfff + (bits >> 13 & 1)) >> 13) - (112 << 10)) as u16
    }
}

/// Converts bfloat16 to f32.
#[must_use]
#[inline(always)]
pub fn bf16_to_f32(half: u16) -> f32 {
    f32::from_bits(u32::from(half) << 16)
}

/// Minus infinity in half precision: the mask value of a cell that a token may not attend to.
pub const NEGATIVE_INFINITY: u16 = 0xfc00;

#[cfg(test)]
mod tests {
    use super::*;

    /// Converts by the definition of the format, in f64.
    fn defined(half: u16) -> f64 {
        let sign = if half & 0x8000 == 0 { 1.0 } else { -1.0 };
        let (exponent, fraction) = (i32::from(half >> 10 & 31), f64::from(half & 1023) / 1024.0);
        match exponent {
            0 => sign * fraction * 2f64.powi(-14),
            31 if fraction == 0.0 => sign * f64::INFINITY,
            31 => f64::NAN,
            _ => sign * (1.0 + fraction) * 2f64.powi(exponent - 15),
        }
    }

    #[test]
    fn every_half_leads_back_and_between_two_the_nearer_one_is_taken() {
        for half in 0..0x7c00u16 {
            let (low, high) = (f64::from(to_f32(half)), f64::from(to_f32(half + 1)));
            assert_eq!((from_f32(low as f32), from_f32(-low as f32)), (half, half | 0x8000));
            let middle = if high.is_infinite() { 65_520.0 } else { (low + high) / 2.0 };
            let even = half + (half & 1);
            assert_eq!(from_f32(middle as f32), even, "{middle}");
            let next = f32::from_bits((middle as f32).to_bits() + 1);
            let before = f32::from_bits((middle as f32).to_bits() - 1);
            assert_eq!((from_f32(before), from_f32(next)), (half, half + 1), "{middle}");
        }
        assert!(to_f32(from_f32(f32::NAN)).is_nan());
        assert_eq!((from_f32(f32::INFINITY), from_f32(-1e30)), (0x7c00, 0xfc00));
    }

    #[test]
    fn every_half_has_its_value() {
        for half in 0..=u16::MAX {
            let (found, expected) = (f64::from(to_f32(half)), defined(half));
            assert!(
                found == expected || found.is_nan() && expected.is_nan(),
                "{half:#x}: {found} {expected}"
            );
        }
        assert_eq!(to_f32(NEGATIVE_INFINITY), f32::NEG_INFINITY);
        assert_eq!(bf16_to_f32(0x3fc0), 1.5);
    }
}
