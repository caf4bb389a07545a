//! AVX2 with FMA and F16C: every x86-64 server since 2013.

use std::arch::x86_64::*;

use super::{MAX_LANES, Simd, Work};

/// AVX2, FMA and F16C.
#[derive(Clone, Copy, Debug)]
pub struct Avx2;

#[inline(never)]
#[target_feature(enable = "avx2,fma,f16c")]
fn with_avx2<W: Work>(work: W) -> W::Output {
    // SAFETY: callers of a `target_feature` function ensure that the processor has these features.
    unsafe { work.run::<Avx2>() }
}

// SAFETY (of the block and of every method): per the trait's contract the processor has the instruction set and the
// pointers are valid.
unsafe impl Simd for Avx2 {
    const LANES: usize = 8;
    const REGISTERS: usize = 16;
    type V = __m256;
    type Pairs = __m256i;

    #[inline(always)]
    unsafe fn run<W: Work>(work: W) -> W::Output {
        unsafe { with_avx2(work) }
    }

    #[inline(always)]
    unsafe fn splat(x: f32) -> Self::V {
        unsafe { _mm256_set1_ps(x) }
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self::V {
        unsafe { _mm256_loadu_ps(from) }
    }

    #[inline(always)]
    unsafe fn load_f16(from: *const u16) -> Self::V {
        unsafe { _mm256_cvtph_ps(_mm_loadu_si128(from.cast())) }
    }

    #[inline(always)]
    unsafe fn load_bf16(from: *const u16) -> Self::V {
        unsafe {
            let halves = _mm256_cvtepu16_epi32(_mm_loadu_si128(from.cast()));
            _mm256_castsi256_ps(_mm256_slli_epi32::<16>(halves))
        }
    }

    #[inline(always)]
    unsafe fn splat_f16(from: *const u16) -> Self::V {
        unsafe { _mm256_cvtph_ps(_mm_set1_epi16(from.read_unaligned() as i16)) }
    }

    #[inline(always)]
    unsafe fn halves_of(bytes: [u8; 16]) -> [[u8; 16]; 2] {
        unsafe { halves_of_16(bytes) }
    }

    #[inline(always)]
    unsafe fn look_up(bytes: [u8; 16], table: &[i8; 16]) -> [i8; 16] {
        unsafe { look_up_16(bytes, table) }
    }

    #[inline(always)]
    unsafe fn from_quants(from: *const i8) -> Self::V {
        unsafe { _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(from.cast()))) }
    }

    #[inline(always)]
    unsafe fn no_products() -> Self::Pairs {
        unsafe { _mm256_setzero_si256() }
    }

    #[inline(always)]
    unsafe fn load_pairs(from: *const i32) -> Self::Pairs {
        unsafe { _mm256_loadu_si256(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store_pairs(to: *mut i32, pairs: Self::Pairs) {
        unsafe { _mm256_storeu_si256(to.cast(), pairs) }
    }

    #[inline(always)]
    unsafe fn splat_pair(pair: i32) -> Self::Pairs {
        unsafe { _mm256_set1_epi32(pair) }
    }

    #[inline(always)]
    unsafe fn to_pairs(of: [Self::V; 2]) -> Self::Pairs {
        unsafe {
            // Each 128-bit lane is packed separately.
            let packed = _mm256_packs_epi32(_mm256_cvtps_epi32(of[0]), _mm256_cvtps_epi32(of[1]));
            _mm256_permute4x64_epi64::<0b11_01_10_00>(packed)
        }
    }

    #[inline(always)]
    unsafe fn add_products(a: Self::Pairs, b: Self::Pairs, sums: Self::Pairs) -> Self::Pairs {
        unsafe { _mm256_add_epi32(sums, _mm256_madd_epi16(a, b)) }
    }

    #[inline(always)]
    unsafe fn from_sums(sums: Self::Pairs) -> Self::V {
        unsafe { _mm256_cvtepi32_ps(sums) }
    }

    #[inline(always)]
    unsafe fn pairs_of_rows(first: *const i8, second: *const i8) -> [Self::Pairs; 2] {
        unsafe {
            let (first, second) = (_mm_loadu_si128(first.cast()), _mm_loadu_si128(second.cast()));
            [
                _mm256_cvtepi8_epi16(_mm_unpacklo_epi8(first, second)),
                _mm256_cvtepi8_epi16(_mm_unpackhi_epi8(first, second)),
            ]
        }
    }

    #[inline(always)]
    unsafe fn columns_of_pairs(from: *const i8, from_stride: usize, to: *mut i32, to_stride: usize) {
        unsafe {
            let mut rows = [_mm256_setzero_ps(); 8];
            for (i, row) in rows.iter_mut().enumerate() {
                let quants = _mm_loadu_si128(from.add(i * from_stride).cast());
                *row = _mm256_castsi256_ps(_mm256_cvtepi8_epi16(quants));
            }
            store_columns(rows, to.cast(), to_stride);
        }
    }

    #[inline(always)]
    unsafe fn columns_of_bytes(rows: &[*const i8; MAX_LANES], to: *mut i32) {
        unsafe {
            let row = |lane: usize| _mm256_castsi256_ps(_mm256_loadu_si256(rows[lane].cast()));
            store_columns(std::array::from_fn(row), to.cast(), Self::LANES);
        }
    }

    #[inline(always)]
    unsafe fn add_byte_products(weights: Self::Pairs, x: Self::Pairs, sums: Self::Pairs) -> Self::Pairs {
        unsafe {
            // One factor has to be unsigned: the signs of the weights move to the other one.
            let products = _mm256_maddubs_epi16(_mm256_abs_epi8(weights), _mm256_sign_epi8(x, weights));
            _mm256_add_epi32(sums, _mm256_madd_epi16(products, _mm256_set1_epi16(1)))
        }
    }

    #[inline(always)]
    unsafe fn prefetch(at: *const u8) {
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
    }

    #[inline(always)]
    unsafe fn store(to: *mut f32, v: Self::V) {
        unsafe { _mm256_storeu_ps(to, v) }
    }

    #[inline(always)]
    unsafe fn add(a: Self::V, b: Self::V) -> Self::V {
        unsafe { _mm256_add_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn sub(a: Self::V, b: Self::V) -> Self::V {
        unsafe { _mm256_sub_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn div(a: Self::V, b: Self::V) -> Self::V {
        unsafe { _mm256_div_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn mul(a: Self::V, b: Self::V) -> Self::V {
        unsafe { _mm256_mul_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn mul_add(a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        unsafe { _mm256_fmadd_ps(a, b, c) }
    }

    #[inline(always)]
    unsafe fn max(a: Self::V, b: Self::V) -> Self::V {
        unsafe { _mm256_max_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn min(a: Self::V, b: Self::V) -> Self::V {
        unsafe { _mm256_min_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn repeat<const BITS: usize>(from: *const f32) -> Self::V {
        unsafe {
            if BITS == 2 {
                _mm256_insertf128_ps::<1>(_mm256_broadcast_ss(&*from), _mm_broadcast_ss(&*from.add(1)))
            } else {
                _mm256_broadcast_ss(&*from)
            }
        }
    }

    #[inline(always)]
    unsafe fn with_last_bits<const BITS: usize>(a: Self::V, bits: u32) -> Self::V {
        unsafe {
            let rest = _mm256_castsi256_ps(_mm256_set1_epi32(-1 << BITS));
            let bits = _mm256_castsi256_ps(_mm256_set1_epi32(bits as i32));
            _mm256_or_ps(_mm256_and_ps(a, rest), bits)
        }
    }

    #[inline(always)]
    unsafe fn unless_hidden(mask: Self::V, a: Self::V) -> Self::V {
        unsafe {
            let is_hidden = _mm256_cmp_ps::<_CMP_EQ_OQ>(mask, _mm256_set1_ps(f32::NEG_INFINITY));
            _mm256_blendv_ps(a, mask, is_hidden)
        }
    }

    #[inline(always)]
    unsafe fn copy_sign(a: Self::V, b: Self::V) -> Self::V {
        unsafe {
            let sign = _mm256_set1_ps(-0.0);
            _mm256_or_ps(_mm256_andnot_ps(sign, a), _mm256_and_ps(sign, b))
        }
    }

    #[inline(always)]
    unsafe fn round(a: Self::V) -> Self::V {
        unsafe { _mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(a) }
    }

    #[inline(always)]
    unsafe fn times_power_of_two(x: Self::V, n: Self::V) -> Self::V {
        unsafe {
            let n = _mm256_cvtps_epi32(n);
            let first = _mm256_srai_epi32::<1>(n);
            let rest = _mm256_sub_epi32(n, first);
            let bias = _mm256_set1_epi32(127);
            let power = |n| _mm256_castsi256_ps(_mm256_slli_epi32::<23>(_mm256_add_epi32(n, bias)));
            _mm256_mul_ps(_mm256_mul_ps(x, power(first)), power(rest))
        }
    }

    #[inline(always)]
    unsafe fn sums(of: [Self::V; 4]) -> [f32; 4] {
        unsafe {
            let pairs = _mm256_hadd_ps(_mm256_hadd_ps(of[0], of[1]), _mm256_hadd_ps(of[2], of[3]));
            let sum = _mm_add_ps(_mm256_castps256_ps128(pairs), _mm256_extractf128_ps::<1>(pairs));
            std::mem::transmute::<__m128, [f32; 4]>(sum)
        }
    }

    #[inline(always)]
    unsafe fn sum(a: Self::V) -> f32 {
        unsafe {
            let a = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps::<1>(a));
            let a = _mm_add_ps(a, _mm_movehl_ps(a, a));
            _mm_cvtss_f32(_mm_add_ss(a, _mm_shuffle_ps::<1>(a, a)))
        }
    }

    #[inline(always)]
    unsafe fn largests(of: [Self::V; 4]) -> [f32; 4] {
        unsafe {
            let pairs = |a, b| _mm256_max_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
            let (low, high) = (pairs(of[0], of[1]), pairs(of[2], of[3]));
            // a b of `low` and c d of `high`, in each 128-bit lane
            let halves = _mm256_max_ps(
                _mm256_shuffle_ps::<0b01_00_01_00>(low, high),
                _mm256_shuffle_ps::<0b11_10_11_10>(low, high),
            );
            let largest = _mm_max_ps(_mm256_castps256_ps128(halves), _mm256_extractf128_ps::<1>(halves));
            std::mem::transmute::<__m128, [f32; 4]>(largest)
        }
    }

    #[inline(always)]
    unsafe fn largest(a: Self::V) -> f32 {
        unsafe {
            let a = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps::<1>(a));
            let a = _mm_max_ps(a, _mm_movehl_ps(a, a));
            _mm_cvtss_f32(_mm_max_ss(a, _mm_shuffle_ps::<1>(a, a)))
        }
    }

    #[inline(always)]
    unsafe fn transpose(from: *const f32, from_stride: usize, to: *mut f32, to_stride: usize) {
        unsafe {
            let mut rows = [_mm256_setzero_ps(); 8];
            for (i, row) in rows.iter_mut().enumerate() {
                *row = Self::load(from.add(i * from_stride));
            }
            store_columns(rows, to, to_stride);
        }
    }
}

/// Returns the low nibbles of the bytes, and the high nibbles.
///
/// # Safety
///
/// The processor has the instruction set.
#[inline(always)]
pub unsafe fn halves_of_16(bytes: [u8; 16]) -> [[u8; 16]; 2] {
    // SAFETY: per this function's contract the processor has the instruction set; all are 16 bytes of plain data.
    unsafe {
        let (bytes, lower) = (_mm_loadu_si128(bytes.as_ptr().cast()), _mm_set1_epi8(15));
        let halves = [_mm_and_si128(bytes, lower), _mm_and_si128(_mm_srli_epi16::<4>(bytes), lower)];
        std::mem::transmute::<[__m128i; 2], [[u8; 16]; 2]>(halves)
    }
}

/// Looks each byte, which is less than 16, up in the table.
///
/// # Safety
///
/// The processor has the instruction set.
#[inline(always)]
pub unsafe fn look_up_16(bytes: [u8; 16], table: &[i8; 16]) -> [i8; 16] {
    // SAFETY: per this function's contract the processor has the instruction set; both are 16 bytes of plain data.
    unsafe {
        let (table, bytes) = (_mm_loadu_si128(table.as_ptr().cast()), _mm_loadu_si128(bytes.as_ptr().cast()));
        std::mem::transmute::<__m128i, [i8; 16]>(_mm_shuffle_epi8(table, bytes))
    }
}

/// Writes the columns of eight rows; the stride is in floats.
///
/// # Safety
///
/// The processor has the instruction set, and `to` has space for the columns.
#[inline(always)]
unsafe fn store_columns(rows: [__m256; 8], to: *mut f32, to_stride: usize) {
    // SAFETY: per this function's contract the processor has the instruction set and `to` has space.
    unsafe {
        // In each 128-bit lane of `four[4 * q + c]`: column c of the lane, of rows 4 q to 4 q + 3.
        let mut four = rows;
        for q in [0, 4] {
            let low =
                [_mm256_unpacklo_ps(rows[q], rows[q + 1]), _mm256_unpacklo_ps(rows[q + 2], rows[q + 3])];
            let high =
                [_mm256_unpackhi_ps(rows[q], rows[q + 1]), _mm256_unpackhi_ps(rows[q + 2], rows[q + 3])];
            for (at, [a, b]) in [(q, low), (q + 2, high)] {
                let (a, b) = (_mm256_castps_pd(a), _mm256_castps_pd(b));
                four[at] = _mm256_castpd_ps(_mm256_unpacklo_pd(a, b));
                four[at + 1] = _mm256_castpd_ps(_mm256_unpackhi_pd(a, b));
            }
        }
        for c in 0..4 {
            let (a, b) = (four[c], four[4 + c]);
            _mm256_storeu_ps(to.add(c * to_stride), _mm256_permute2f128_ps::<0x20>(a, b));
            _mm256_storeu_ps(to.add((4 + c) * to_stride), _mm256_permute2f128_ps::<0x31>(a, b));
        }
    }
}
