//! NEON: every 64-bit Arm processor.

use std::arch::aarch64::*;

use super::{Levels, Simd};

/// NEON. Half precision is converted by instructions that the base has under another name.
#[derive(Clone, Copy, Debug)]
pub struct Neon;

// SAFETY (of the block and of every method): the caller promises the pointers; the instructions are always there.
unsafe impl Simd for Neon {
    const LANES: usize = 4;
    const REGISTERS: usize = 32;
    type V = float32x4_t;
    type Bytes = uint8x8_t;
    type Places = uint32x4_t;

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

    /// The upper four are zero.
    #[inline(always)]
    unsafe fn load_bytes(from: *const u8) -> Self::Bytes {
        unsafe { vcreate_u8(u64::from(from.cast::<u32>().read_unaligned())) }
    }

    #[inline(always)]
    unsafe fn low_halves(bytes: Self::Bytes) -> Self::Bytes {
        unsafe { vand_u8(bytes, vdup_n_u8(15)) }
    }

    #[inline(always)]
    unsafe fn high_halves(bytes: Self::Bytes) -> Self::Bytes {
        unsafe { vshr_n_u8::<4>(bytes) }
    }

    #[inline(always)]
    unsafe fn look_up(bytes: Self::Bytes, table: &[i8; 16]) -> Self::Bytes {
        unsafe { vqtbl1_u8(vld1q_u8(table.as_ptr().cast()), bytes) }
    }

    #[inline(always)]
    unsafe fn from_bytes(bytes: Self::Bytes) -> Self::V {
        unsafe { vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(vreinterpret_s8_u8(bytes))))) }
    }

    #[inline(always)]
    unsafe fn windows(word: u64, step: u32, width: u32) -> Self::Places {
        unsafe {
            let step = -(step as i32);
            let shifts = vmulq_n_s32(vld1q_s32([0, 1, 2, 3].as_ptr()), step);
            vandq_u32(vshlq_u32(vdupq_n_u32(word as u32), shifts), vdupq_n_u32((1 << width) - 1))
        }
    }

    #[inline(always)]
    unsafe fn pick(table: &Levels, at: Self::Places) -> Self::V {
        unsafe {
            let mut places = [0u32; 4];
            vst1q_u32(places.as_mut_ptr(), at);
            vld1q_f32(places.map(|place| table.numbers[place as usize]).as_ptr())
        }
    }

    #[inline(always)]
    unsafe fn where_set(bits: u32, x: f32) -> Self::V {
        unsafe {
            let is_set = vtstq_u32(vdupq_n_u32(bits), vld1q_u32([1, 2, 4, 8].as_ptr()));
            vreinterpretq_f32_u32(vandq_u32(is_set, vdupq_n_u32(x.to_bits())))
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
            let pairs = |a, b| (vtrn1q_f32(a, b), vtrn2q_f32(a, b));
            let ((even_a, odd_a), (even_b, odd_b)) = (pairs(row(0), row(1)), pairs(row(2), row(3)));
            for (at, a, b) in [(0, even_a, even_b), (1, odd_a, odd_b)] {
                let (a, b) = (vreinterpretq_f64_f32(a), vreinterpretq_f64_f32(b));
                Self::store(to.add(at * to_stride), vreinterpretq_f32_f64(vtrn1q_f64(a, b)));
                Self::store(to.add((at + 2) * to_stride), vreinterpretq_f32_f64(vtrn2q_f64(a, b)));
            }
        }
    }
}
