//! Numbers of 16 bits, by plain arithmetic.

/// The value of a number in half precision (IEEE 754 binary16).
#[must_use]
#[inline(always)]
pub fn to_f32(half: u16) -> f32 {
    let sign = u32::from(half & 0x8000) << 16;
    let rest = u32::from(half & 0x7fff) << 13;
    // The exponent's bias is 15 there and 127 here; the product is exact, also for denormal numbers.
    let value = f32::from_bits(rest) * f32::from_bits((127 + 112) << 23);
    // Infinity and what is no number have the largest exponent, here too.
    let bits = if rest >= 0x7c00 << 13 { rest | 0x7f80_0000 } else { value.to_bits() };
    f32::from_bits(sign | bits)
}

/// The value of a bfloat16.
#[must_use]
#[inline(always)]
pub fn bf16_to_f32(half: u16) -> f32 {
    f32::from_bits(u32::from(half) << 16)
}

/// Minus infinity in half precision: what masks have for a cell that a token may not see.
pub const NEGATIVE_INFINITY: u16 = 0xfc00;

#[cfg(test)]
mod tests {
    use super::*;

    /// By the definition, in double precision.
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
