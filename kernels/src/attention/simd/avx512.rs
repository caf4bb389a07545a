//! AVX-512 F, BW, DQ and VL: what every server with AVX-512 has.

use std::arch::x86_64::*;

use super::Simd;

/// AVX-512 F.
#[derive(Clone, Copy, Debug)]
pub struct Avx512;

// SAFETY (of the block and of every method): the caller promises the instruction set and the pointers.
unsafe impl Simd for Avx512 {
    const LANES: usize = 16;
    const REGISTERS: usize = 32;
    type V = __m512;
    type Bytes = __m128i;
    type Places = __m512i;

    #[inline(always)]
    unsafe fn splat(x: f32) -> Self::V {
        unsafe { _mm512_set1_ps(x) }
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self::V {
        unsafe { _mm512_loadu_ps(from) }
    }

    #[inline(always)]
    unsafe fn load_f16(from: *const u16) -> Self::V {
        unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(from.cast())) }
    }

    #[inline(always)]
    unsafe fn load_bf16(from: *const u16) -> Self::V {
        unsafe {
            let halves = _mm512_cvtepu16_epi32(_mm256_loadu_si256(from.cast()));
            _mm512_castsi512_ps(_mm512_slli_epi32::<16>(halves))
        }
    }

    #[inline(always)]
    unsafe fn splat_f16(from: *const u16) -> Self::V {
        unsafe { _mm512_cvtph_ps(_mm256_set1_epi16(from.read_unaligned() as i16)) }
    }

    #[inline(always)]
    unsafe fn load_bytes(from: *const u8) -> Self::Bytes {
        unsafe { _mm_loadu_si128(from.cast()) }
    }

    #[inline(always)]
    unsafe fn low_halves(bytes: Self::Bytes) -> Self::Bytes {
        unsafe { _mm_and_si128(bytes, _mm_set1_epi8(15)) }
    }

    #[inline(always)]
    unsafe fn high_halves(bytes: Self::Bytes) -> Self::Bytes {
        unsafe { _mm_and_si128(_mm_srli_epi16::<4>(bytes), _mm_set1_epi8(15)) }
    }

    #[inline(always)]
    unsafe fn look_up(bytes: Self::Bytes, table: &[i8; 16]) -> Self::Bytes {
        unsafe { _mm_shuffle_epi8(_mm_loadu_si128(table.as_ptr().cast()), bytes) }
    }

    #[inline(always)]
    unsafe fn from_bytes(bytes: Self::Bytes) -> Self::V {
        unsafe { _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes)) }
    }

    #[inline(always)]
    unsafe fn windows(word: u64, step: u32, width: u32) -> Self::Places {
        unsafe {
            let low = _mm512_castsi256_si512(_mm256_set1_epi32(word as i32));
            let words = _mm512_inserti64x4::<1>(low, _mm256_set1_epi32((word >> (8 * step)) as i32));
            let places = _mm512_set_epi32(7, 6, 5, 4, 3, 2, 1, 0, 7, 6, 5, 4, 3, 2, 1, 0);
            let shifts = _mm512_mullo_epi32(places, _mm512_set1_epi32(step as i32));
            _mm512_and_si512(_mm512_srlv_epi32(words, shifts), _mm512_set1_epi32((1 << width) - 1))
        }
    }

    #[inline(always)]
    unsafe fn pick(table: &[f32], at: Self::Places) -> Self::V {
        unsafe {
            if table.len() == 16 {
                _mm512_permutexvar_ps(at, Self::load(table.as_ptr()))
            } else {
                _mm512_i32gather_ps::<4>(at, table.as_ptr())
            }
        }
    }

    #[inline(always)]
    unsafe fn where_set(bits: u32, x: f32) -> Self::V {
        unsafe { _mm512_maskz_mov_ps(bits as u16, _mm512_set1_ps(x)) }
    }

    #[inline(always)]
    unsafe fn store(to: *mut f32, v: Self::V) {
        unsafe { _mm512_storeu_ps(to, v) }
    }

    #[inline(always)]
    unsafe fn add(a: Self::V, b: Self::V) -> Self::V {
        unsafe { _mm512_add_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn sub(a: Self::V, b: Self::V) -> Self::V {
        unsafe { _mm512_sub_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn div(a: Self::V, b: Self::V) -> Self::V {
        unsafe { _mm512_div_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn mul(a: Self::V, b: Self::V) -> Self::V {
        unsafe { _mm512_mul_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn mul_add(a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        unsafe { _mm512_fmadd_ps(a, b, c) }
    }

    #[inline(always)]
    unsafe fn max(a: Self::V, b: Self::V) -> Self::V {
        unsafe { _mm512_max_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn unless_hidden(mask: Self::V, a: Self::V) -> Self::V {
        unsafe {
            let is_hidden = _mm512_cmp_ps_mask::<_CMP_EQ_OQ>(mask, _mm512_set1_ps(f32::NEG_INFINITY));
            _mm512_mask_mov_ps(a, is_hidden, mask)
        }
    }

    #[inline(always)]
    unsafe fn copy_sign(a: Self::V, b: Self::V) -> Self::V {
        unsafe {
            let sign = _mm512_set1_ps(-0.0);
            _mm512_or_ps(_mm512_andnot_ps(sign, a), _mm512_and_ps(sign, b))
        }
    }

    #[inline(always)]
    unsafe fn round(a: Self::V) -> Self::V {
        unsafe { _mm512_roundscale_ps::<{ _MM_FROUND_TO_NEAREST_INT }>(a) }
    }

    #[inline(always)]
    unsafe fn times_power_of_two(x: Self::V, n: Self::V) -> Self::V {
        unsafe { _mm512_scalef_ps(x, n) }
    }

    #[inline(always)]
    unsafe fn sums(of: [Self::V; 4]) -> [f32; 4] {
        unsafe {
            let pairs = |a, b| _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
            let (low, high) = (pairs(of[0], of[1]), pairs(of[2], of[3]));
            // a b of `low` and c d of `high`, in each quarter
            let quarters = _mm512_add_ps(
                _mm512_shuffle_ps::<0b01_00_01_00>(low, high),
                _mm512_shuffle_ps::<0b11_10_11_10>(low, high),
            );
            let upper = _mm256_castpd_ps(_mm512_extractf64x4_pd::<1>(_mm512_castps_pd(quarters)));
            let halves = _mm256_add_ps(_mm512_castps512_ps256(quarters), upper);
            let sum = _mm_add_ps(_mm256_castps256_ps128(halves), _mm256_extractf128_ps::<1>(halves));
            std::mem::transmute::<__m128, [f32; 4]>(sum)
        }
    }

    #[inline(always)]
    unsafe fn sum(a: Self::V) -> f32 {
        unsafe { _mm512_reduce_add_ps(a) }
    }

    #[inline(always)]
    unsafe fn largest(a: Self::V) -> f32 {
        unsafe { _mm512_reduce_max_ps(a) }
    }

    #[inline(always)]
    unsafe fn transpose(from: *const f32, from_stride: usize, to: *mut f32, to_stride: usize) {
        unsafe {
            let mut rows = [_mm512_setzero_ps(); 16];
            for (i, row) in rows.iter_mut().enumerate() {
                *row = Self::load(from.add(i * from_stride));
            }
            // In each quarter of `four[4 * q + c]`: column c of the quarter, of rows 4 q to 4 q + 3.
            let mut four = rows;
            for q in (0..16).step_by(4) {
                let low =
                    [_mm512_unpacklo_ps(rows[q], rows[q + 1]), _mm512_unpacklo_ps(rows[q + 2], rows[q + 3])];
                let high =
                    [_mm512_unpackhi_ps(rows[q], rows[q + 1]), _mm512_unpackhi_ps(rows[q + 2], rows[q + 3])];
                for (at, [a, b]) in [(q, low), (q + 2, high)] {
                    let (a, b) = (_mm512_castps_pd(a), _mm512_castps_pd(b));
                    four[at] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, b));
                    four[at + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, b));
                }
            }
            // Quarters 0 and 2 of both, or 1 and 3.
            for c in 0..4 {
                let even = [
                    _mm512_shuffle_f32x4::<0x88>(four[c], four[4 + c]),
                    _mm512_shuffle_f32x4::<0x88>(four[8 + c], four[12 + c]),
                ];
                let odd = [
                    _mm512_shuffle_f32x4::<0xdd>(four[c], four[4 + c]),
                    _mm512_shuffle_f32x4::<0xdd>(four[8 + c], four[12 + c]),
                ];
                for (at, [a, b]) in [(c, even), (4 + c, odd)] {
                    Self::store(to.add(at * to_stride), _mm512_shuffle_f32x4::<0x88>(a, b));
                    Self::store(to.add((at + 8) * to_stride), _mm512_shuffle_f32x4::<0xdd>(a, b));
                }
            }
        }
    }
}
