//! Plain Rust, for every processor: the reference of the other instruction sets.

use super::{Levels, Simd};
use crate::attention::half;

/// Plain Rust.
#[derive(Clone, Copy, Debug)]
pub struct Portable;

const LANES: usize = 8;

fn each(f: impl Fn(usize) -> f32) -> [f32; LANES] {
    std::array::from_fn(f)
}

// SAFETY: there is nothing that a processor could lack.
unsafe impl Simd for Portable {
    const LANES: usize = LANES;
    const REGISTERS: usize = 16;
    type V = [f32; LANES];
    type Bytes = [u8; LANES];
    type Places = [u32; LANES];

    #[inline(always)]
    unsafe fn splat(x: f32) -> Self::V {
        [x; LANES]
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self::V {
        // SAFETY: the caller's promise.
        unsafe { from.cast::<Self::V>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn load_f16(from: *const u16) -> Self::V {
        // SAFETY: the caller's promise.
        let halves = unsafe { from.cast::<[u16; LANES]>().read_unaligned() };
        each(|i| half::to_f32(halves[i]))
    }

    #[inline(always)]
    unsafe fn load_bf16(from: *const u16) -> Self::V {
        // SAFETY: the caller's promise.
        let halves = unsafe { from.cast::<[u16; LANES]>().read_unaligned() };
        each(|i| half::bf16_to_f32(halves[i]))
    }

    #[inline(always)]
    unsafe fn splat_f16(from: *const u16) -> Self::V {
        // SAFETY: the caller's promise.
        [half::to_f32(unsafe { from.read_unaligned() }); LANES]
    }

    #[inline(always)]
    unsafe fn load_bytes(from: *const u8) -> Self::Bytes {
        // SAFETY: the caller's promise.
        unsafe { from.cast::<Self::Bytes>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn low_halves(bytes: Self::Bytes) -> Self::Bytes {
        bytes.map(|byte| byte & 15)
    }

    #[inline(always)]
    unsafe fn high_halves(bytes: Self::Bytes) -> Self::Bytes {
        bytes.map(|byte| byte >> 4)
    }

    #[inline(always)]
    unsafe fn look_up(bytes: Self::Bytes, table: &[i8; 16]) -> Self::Bytes {
        bytes.map(|byte| table[usize::from(byte)] as u8)
    }

    #[inline(always)]
    unsafe fn from_bytes(bytes: Self::Bytes) -> Self::V {
        each(|i| f32::from(bytes[i] as i8))
    }

    #[inline(always)]
    unsafe fn windows(word: u64, step: u32, width: u32) -> Self::Places {
        std::array::from_fn(|i| (word as u32 >> (i as u32 * step)) & ((1 << width) - 1))
    }

    #[inline(always)]
    unsafe fn pick(table: &Levels, at: Self::Places) -> Self::V {
        each(|i| table.numbers[at[i] as usize])
    }

    #[inline(always)]
    unsafe fn where_set(bits: u32, x: f32) -> Self::V {
        each(|i| if bits >> i & 1 == 1 { x } else { 0.0 })
    }

    #[inline(always)]
    unsafe fn store(to: *mut f32, v: Self::V) {
        // SAFETY: the caller's promise.
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
        // SAFETY: the caller's promise.
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
        // In two steps: 2^-252 is no number of single precision, and the smallest results are denormal.
        let power = |n: i32| f32::from_bits(((n + 127) << 23) as u32);
        each(|i| {
            let n = n[i] as i32;
            x[i] * power(n / 2) * power(n - n / 2)
        })
    }

    #[inline(always)]
    unsafe fn sums(of: [Self::V; 4]) -> [f32; 4] {
        // SAFETY: nothing is promised.
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
                // SAFETY: the caller's promise.
                unsafe { *to.add(i * to_stride + j) = *from.add(j * from_stride + i) };
            }
        }
    }
}
