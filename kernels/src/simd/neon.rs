//! NEON: every 64-bit Arm processor.

use std::arch::aarch64::*;

use super::{Simd, Work};

/// NEON. Half precision is converted by instructions that the baseline has under another name.
#[derive(Clone, Copy, Debug)]
pub struct Neon;

// SAFETY (of the block and of every method): per the trait's contract the pointers are valid; every 64-bit Arm
// processor has NEON.
unsafe impl Simd for Neon {
    const LANES: usize = 4;
    const REGISTERS: usize = 32;
    type V = float32x4_t;
    type Pairs = int32x4_t;

    #[inline(never)]
    unsafe fn run<W: Work>(work: W) -> W::Output {
        unsafe { work.run::<Self>() }
    }

    #[inline(always)]
    unsafe fn splat(x: f32) -> Self::V {
        unsafe { vdupq_n_f32(x) }
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self::V {
        unsafe { vld1q_f32(from) }
    }

    #[inline(always)]
    unsafe fn load_f16(from: *const u16) -> Self::V {
        unsafe { vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(from))) }
    }

    #[inline(always)]
    unsafe fn load_bf16(from: *const u16) -> Self::V {
        unsafe { vreinterpretq_f32_u32(vshlq_n_u32::<16>(vmovl_u16(vld1_u16(from)))) }
    }

    #[inline(always)]
    unsafe fn splat_f16(from: *const u16) -> Self::V {
        unsafe { vcvt_f32_f16(vreinterpret_f16_u16(vdup_n_u16(from.read_unaligned()))) }
    }

    #[inline(always)]
    unsafe fn halves_of(bytes: [u8; 16]) -> [[u8; 16]; 2] {
        unsafe {
            let bytes = vld1q_u8(bytes.as_ptr());
            let halves = [vandq_u8(bytes, vdupq_n_u8(15)), vshrq_n_u8::<4>(bytes)];
            std::mem::transmute::<[uint8x16_t; 2], [[u8; 16]; 2]>(halves)
        }
    }

    #[inline(always)]
    unsafe fn look_up(bytes: [u8; 16], table: &[i8; 16]) -> [i8; 16] {
        unsafe {
            let quants = vqtbl1q_s8(vld1q_s8(table.as_ptr()), vld1q_u8(bytes.as_ptr()));
            std::mem::transmute::<int8x16_t, [i8; 16]>(quants)
        }
    }

    #[inline(always)]
    unsafe fn from_quants(from: *const i8) -> Self::V {
        unsafe {
            let four = vcreate_s8(u64::from(from.cast::<u32>().read_unaligned()));
            vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(four))))
        }
    }

    #[inline(always)]
    unsafe fn no_products() -> Self::Pairs {
        unsafe { vdupq_n_s32(0) }
    }

    #[inline(always)]
    unsafe fn load_pairs(from: *const i32) -> Self::Pairs {
        unsafe { vld1q_s32(from) }
    }

    #[inline(always)]
    unsafe fn store_pairs(to: *mut i32, pairs: Self::Pairs) {
        unsafe { vst1q_s32(to, pairs) }
    }

    #[inline(always)]
    unsafe fn splat_pair(pair: i32) -> Self::Pairs {
        unsafe { vdupq_n_s32(pair) }
    }

    #[inline(always)]
    unsafe fn to_pairs(of: [Self::V; 2]) -> Self::Pairs {
        unsafe {
            let [first, second] = [vqmovn_s32(vcvtnq_s32_f32(of[0])), vqmovn_s32(vcvtnq_s32_f32(of[1]))];
            vreinterpretq_s32_s16(vcombine_s16(first, second))
        }
    }

    #[inline(always)]
    unsafe fn add_products(a: Self::Pairs, b: Self::Pairs, sums: Self::Pairs) -> Self::Pairs {
        unsafe {
            let (a, b) = (vreinterpretq_s16_s32(a), vreinterpretq_s16_s32(b));
            let low = vmull_s16(vget_low_s16(a), vget_low_s16(b));
            vaddq_s32(sums, vpaddq_s32(low, vmull_high_s16(a, b)))
        }
    }

    #[inline(always)]
    unsafe fn from_sums(sums: Self::Pairs) -> Self::V {
        unsafe { vcvtq_f32_s32(sums) }
    }

    #[inline(always)]
    unsafe fn pairs_of_rows(first: *const i8, second: *const i8) -> [Self::Pairs; 2] {
        unsafe {
            let (first, second) = (vld1_s8(first), vld1_s8(second));
            [
                vreinterpretq_s32_s16(vmovl_s8(vzip1_s8(first, second))),
                vreinterpretq_s32_s16(vmovl_s8(vzip2_s8(first, second))),
            ]
        }
    }

    #[inline(always)]
    unsafe fn columns_of_pairs(from: *const i8, from_stride: usize, to: *mut i32, to_stride: usize) {
        unsafe {
            let row = |i: usize| vreinterpretq_f32_s16(vmovl_s8(vld1_s8(from.add(i * from_stride))));
            store_columns([row(0), row(1), row(2), row(3)], to.cast(), to_stride);
        }
    }

    #[inline(always)]
    unsafe fn add_byte_products(weights: Self::Pairs, x: Self::Pairs, sums: Self::Pairs) -> Self::Pairs {
        unsafe {
            let (weights, x) = (vreinterpretq_s8_s32(weights), vreinterpretq_s8_s32(x));
            let low = vpaddlq_s16(vmull_s8(vget_low_s8(weights), vget_low_s8(x)));
            let high = vpaddlq_s16(vmull_high_s8(weights, x));
            vaddq_s32(sums, vpaddq_s32(low, high))
        }
    }

    #[inline(always)]
    unsafe fn store(to: *mut f32, v: Self::V) {
        unsafe { vst1q_f32(to, v) }
    }

    #[inline(always)]
    unsafe fn add(a: Self::V, b: Self::V) -> Self::V {
        unsafe { vaddq_f32(a, b) }
    }

    #[inline(always)]
    unsafe fn sub(a: Self::V, b: Self::V) -> Self::V {
        unsafe { vsubq_f32(a, b) }
    }

    #[inline(always)]
    unsafe fn div(a: Self::V, b: Self::V) -> Self::V {
        unsafe { vdivq_f32(a, b) }
    }

    #[inline(always)]
    unsafe fn mul(a: Self::V, b: Self::V) -> Self::V {
        unsafe { vmulq_f32(a, b) }
    }

    #[inline(always)]
    unsafe fn mul_add(a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        unsafe { vfmaq_f32(c, a, b) }
    }

    #[inline(always)]
    unsafe fn max(a: Self::V, b: Self::V) -> Self::V {
        unsafe { vmaxq_f32(a, b) }
    }

    #[inline(always)]
    unsafe fn min(a: Self::V, b: Self::V) -> Self::V {
        unsafe { vbslq_f32(vcltq_f32(a, b), a, b) }
    }

    #[inline(always)]
    unsafe fn repeat<const BITS: usize>(from: *const f32) -> Self::V {
        unsafe { vld1q_dup_f32(from) }
    }

    #[inline(always)]
    unsafe fn with_last_bits<const BITS: usize>(a: Self::V, bits: u32) -> Self::V {
        unsafe {
            let rest = vandq_u32(vreinterpretq_u32_f32(a), vdupq_n_u32(u32::MAX << BITS));
            vreinterpretq_f32_u32(vorrq_u32(rest, vdupq_n_u32(bits)))
        }
    }

    #[inline(always)]
    unsafe fn unless_hidden(mask: Self::V, a: Self::V) -> Self::V {
        unsafe { vbslq_f32(vceqq_f32(mask, vdupq_n_f32(f32::NEG_INFINITY)), mask, a) }
    }

    #[inline(always)]
    unsafe fn copy_sign(a: Self::V, b: Self::V) -> Self::V {
        unsafe { vbslq_f32(vdupq_n_u32(1 << 31), b, a) }
    }

    #[inline(always)]
    unsafe fn round(a: Self::V) -> Self::V {
        unsafe { vrndnq_f32(a) }
    }

    #[inline(always)]
    unsafe fn times_power_of_two(x: Self::V, n: Self::V) -> Self::V {
        unsafe {
            let n = vcvtq_s32_f32(n);
            let first = vshrq_n_s32::<1>(n);
            let rest = vsubq_s32(n, first);
            let power = |n| vreinterpretq_f32_s32(vshlq_n_s32::<23>(vaddq_s32(n, vdupq_n_s32(127))));
            vmulq_f32(vmulq_f32(x, power(first)), power(rest))
        }
    }

    #[inline(always)]
    unsafe fn sums(of: [Self::V; 4]) -> [f32; 4] {
        unsafe {
            let sum = vpaddq_f32(vpaddq_f32(of[0], of[1]), vpaddq_f32(of[2], of[3]));
            std::mem::transmute::<float32x4_t, [f32; 4]>(sum)
        }
    }

    #[inline(always)]
    unsafe fn sum(a: Self::V) -> f32 {
        unsafe { vaddvq_f32(a) }
    }

    #[inline(always)]
    unsafe fn largest(a: Self::V) -> f32 {
        unsafe { vmaxnmvq_f32(a) }
    }

    #[inline(always)]
    unsafe fn transpose(from: *const f32, from_stride: usize, to: *mut f32, to_stride: usize) {
        unsafe {
            let row = |i: usize| Self::load(from.add(i * from_stride));
            store_columns([row(0), row(1), row(2), row(3)], to, to_stride);
        }
    }
}

/// Writes the columns of four rows; the stride is in floats.
///
/// # Safety
///
/// `to` has space for the columns.
#[inline(always)]
unsafe fn store_columns(rows: [float32x4_t; 4], to: *mut f32, to_stride: usize) {
    // SAFETY: per this function's contract `to` has space.
    unsafe {
        let pairs = |a, b| (vtrn1q_f32(a, b), vtrn2q_f32(a, b));
        let ((even_a, odd_a), (even_b, odd_b)) = (pairs(rows[0], rows[1]), pairs(rows[2], rows[3]));
        for (at, a, b) in [(0, even_a, even_b), (1, odd_a, odd_b)] {
            let (a, b) = (vreinterpretq_f64_f32(a), vreinterpretq_f64_f32(b));
            vst1q_f32(to.add(at * to_stride), vreinterpretq_f32_f64(vtrn1q_f64(a, b)));
            vst1q_f32(to.add((at + 2) * to_stride), vreinterpretq_f32_f64(vtrn2q_f64(a, b)));
        }
    }
}
