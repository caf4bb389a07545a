//! Plain Rust for every processor: the reference for the other instruction sets.

use super::{Simd, Work};
use crate::simd::half;

/// Plain Rust.
#[derive(Clone, Copy, Debug)]
pub struct Portable;

const LANES: usize = 8;

fn each(f: impl Fn(usize) -> f32) -> [f32; LANES] {
    std::array::from_fn(f)
}

/// Packs a pair: its first integer has the lower bits.
fn pair([first, second]: [i16; 2]) -> i32 {
    i32::from(first as u16) | i32::from(second) << 16
}

fn unpair(pair: i32) -> [i32; 2] {
    [i32::from(pair as i16), pair >> 16]
}

// SAFETY: plain Rust needs no processor features.
unsafe impl Simd for Portable {
    const LANES: usize = LANES;
    const REGISTERS: usize = 16;
    type V = [f32; LANES];
    type Pairs = [i32; LANES];

    #[inline(never)]
    unsafe fn run<W: Work>(work: W) -> W::Output {
        // SAFETY: every processor can run it.
        unsafe { work.run::<Self>() }
    }

    #[inline(always)]
    unsafe fn splat(x: f32) -> Self::V {
        [x; LANES]
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self::V {
        // SAFETY: per the trait's contract `from` points to as many values.
        unsafe { from.cast::<Self::V>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn load_f16(from: *const u16) -> Self::V {
        // SAFETY: per the trait's contract `from` points to as many values.
        let halves = unsafe { from.cast::<[u16; LANES]>().read_unaligned() };
        each(|i| half::to_f32(halves[i]))
    }

    #[inline(always)]
    unsafe fn load_bf16(from: *const u16) -> Self::V {
        // SAFETY: per the trait's contract `from` points to as many values.
        let halves = unsafe { from.cast::<[u16; LANES]>().read_unaligned() };
        each(|i| half::bf16_to_f32(halves[i]))
    }

    #[inline(always)]
    unsafe fn splat_f16(from: *const u16) -> Self::V {
        // SAFETY: per the trait's contract `from` points to a value.
        [half::to_f32(unsafe { from.read_unaligned() }); LANES]
    }

    #[inline(always)]
    unsafe fn halves_of(bytes: [u8; 16]) -> [[u8; 16]; 2] {
        [bytes.map(|byte| byte & 15), bytes.map(|byte| byte >> 4)]
    }

    #[inline(always)]
    unsafe fn look_up(bytes: [u8; 16], table: &[i8; 16]) -> [i8; 16] {
        bytes.map(|byte| table[usize::from(byte)])
    }

    #[inline(always)]
    unsafe fn from_quants(from: *const i8) -> Self::V {
        // SAFETY: per the trait's contract `from` points to as many values.
        let quants = unsafe { from.cast::<[i8; LANES]>().read() };
        each(|i| f32::from(quants[i]))
    }

    #[inline(always)]
    unsafe fn no_products() -> Self::Pairs {
        [0; LANES]
    }

    #[inline(always)]
    unsafe fn load_pairs(from: *const i32) -> Self::Pairs {
        // SAFETY: per the trait's contract `from` points to as many pairs.
        unsafe { from.cast::<Self::Pairs>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn store_pairs(to: *mut i32, pairs: Self::Pairs) {
        // SAFETY: per the trait's contract `to` has space for as many pairs.
        unsafe { to.cast::<Self::Pairs>().write_unaligned(pairs) }
    }

    #[inline(always)]
    unsafe fn splat_pair(pair: i32) -> Self::Pairs {
        [pair; LANES]
    }

    #[inline(always)]
    unsafe fn to_pairs(of: [Self::V; 2]) -> Self::Pairs {
        let number = |at: usize| of[at / LANES][at % LANES].round_ties_even() as i16;
        std::array::from_fn(|i| pair([number(2 * i), number(2 * i + 1)]))
    }

    #[inline(always)]
    unsafe fn add_products(a: Self::Pairs, b: Self::Pairs, sums: Self::Pairs) -> Self::Pairs {
        std::array::from_fn(|i| {
            let ([a, c], [b, d]) = (unpair(a[i]), unpair(b[i]));
            // They overflow only for pairs of a row whose scale is NaN anyway.
            sums[i].wrapping_add((a * b).wrapping_add(c * d))
        })
    }

    #[inline(always)]
    unsafe fn from_sums(sums: Self::Pairs) -> Self::V {
        each(|i| sums[i] as f32)
    }

    #[inline(always)]
    unsafe fn pairs_of_rows(first: *const i8, second: *const i8) -> [Self::Pairs; 2] {
        // SAFETY: per the trait's contract both rows have as many quants.
        let quant = |row: *const i8, at: usize| i16::from(unsafe { *row.add(at) });
        [0, LANES].map(|at| std::array::from_fn(|i| pair([quant(first, at + i), quant(second, at + i)])))
    }

    #[inline(always)]
    unsafe fn columns_of_pairs(from: *const i8, from_stride: usize, to: *mut i32, to_stride: usize) {
        for i in 0..LANES {
            for j in 0..LANES {
                // SAFETY: per the trait's contract the rows and columns exist.
                unsafe {
                    let row = from.add(j * from_stride + 2 * i);
                    *to.add(i * to_stride + j) = pair([i16::from(*row), i16::from(*row.add(1))]);
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn add_byte_products(weights: Self::Pairs, x: Self::Pairs, sums: Self::Pairs) -> Self::Pairs {
        let bytes = |group: i32| group.to_ne_bytes().map(|byte| i32::from(byte as i8));
        std::array::from_fn(|lane| {
            let (weights, x) = (bytes(weights[lane]), bytes(x[lane]));
            sums[lane] + weights.into_iter().zip(x).map(|(weight, x)| weight * x).sum::<i32>()
        })
    }

    #[inline(always)]
    unsafe fn store(to: *mut f32, v: Self::V) {
        // SAFETY: per the trait's contract `to` has space for as many values.
        unsafe { to.cast::<Self::V>().write_unaligned(v) }
    }

    #[inline(always)]
    unsafe fn add(a: Self::V, b: Self::V) -> Self::V {
        each(|i| a[i] + b[i])
    }

    #[inline(always)]
    unsafe fn sub(a: Self::V, b: Self::V) -> Self::V {
        each(|i| a[i] - b[i])
    }

    #[inline(always)]
    unsafe fn div(a: Self::V, b: Self::V) -> Self::V {
        each(|i| a[i] / b[i])
    }

    #[inline(always)]
    unsafe fn mul(a: Self::V, b: Self::V) -> Self::V {
        each(|i| a[i] * b[i])
    }

    #[inline(always)]
    unsafe fn mul_add(a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        each(|i| a[i] * b[i] + c[i])
    }

    #[inline(always)]
    unsafe fn max(a: Self::V, b: Self::V) -> Self::V {
        each(|i| if a[i] > b[i] { a[i] } else { b[i] })
    }

    #[inline(always)]
    unsafe fn min(a: Self::V, b: Self::V) -> Self::V {
        each(|i| if a[i] < b[i] { a[i] } else { b[i] })
    }

    #[inline(always)]
    unsafe fn repeat<const BITS: usize>(from: *const f32) -> Self::V {
        // SAFETY: per the trait's contract `from` points to as many values.
        each(|i| unsafe { *from.add(i >> BITS) })
    }

    #[inline(always)]
    unsafe fn with_last_bits<const BITS: usize>(a: Self::V, bits: u32) -> Self::V {
        each(|i| f32::from_bits(a[i].to_bits() & (u32::MAX << BITS) | bits))
    }

    #[inline(always)]
    unsafe fn unless_hidden(mask: Self::V, a: Self::V) -> Self::V {
        each(|i| if mask[i] == f32::NEG_INFINITY { mask[i] } else { a[i] })
    }

    #[inline(always)]
    unsafe fn copy_sign(a: Self::V, b: Self::V) -> Self::V {
        each(|i| a[i].copysign(b[i]))
    }

    #[inline(always)]
    unsafe fn round(a: Self::V) -> Self::V {
        each(|i| a[i].round_ties_even())
    }

    #[inline(always)]
    unsafe fn times_power_of_two(x: Self::V, n: Self::V) -> Self::V {
        // In two steps: 2^-252 is not representable in f32, and the smallest results are subnormal.
        let power = |n: i32| f32::from_bits(((n + 127) << 23) as u32);
        each(|i| {
            let n = n[i] as i32;
            x[i] * power(n / 2) * power(n - n / 2)
        })
    }

    #[inline(always)]
    unsafe fn sums(of: [Self::V; 4]) -> [f32; 4] {
        // SAFETY: `sum` has no requirements in plain Rust.
        of.map(|a| unsafe { Self::sum(a) })
    }

    #[inline(always)]
    unsafe fn sum(a: Self::V) -> f32 {
        ((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7]))
    }

    #[inline(always)]
    unsafe fn largest(a: Self::V) -> f32 {
        a.into_iter().fold(f32::NEG_INFINITY, |a, b| if a > b { a } else { b })
    }

    #[inline(always)]
    unsafe fn transpose(from: *const f32, from_stride: usize, to: *mut f32, to_stride: usize) {
        for i in 0..LANES {
            for j in 0..LANES {
                // SAFETY: per the trait's contract the rows and columns exist.
                unsafe { *to.add(i * to_stride + j) = *from.add(j * from_stride + i) };
            }
        }
    }
}
