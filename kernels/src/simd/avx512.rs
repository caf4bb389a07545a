//! AVX-512 F, BW, DQ and VL, which every server with AVX-512 has, and the additions of those since 2019: byte table
//! look-ups (VBMI), and fused integer dot products (VNNI).

use std::arch::x86_64::*;

use super::avx2::{halves_of_16, look_up_16};
use super::{MAX_LANES, Simd, Windows, Work};

/// AVX-512 without VBMI and VNNI, and with both.
#[derive(Clone, Copy, Debug)]
pub struct Avx512<const RECENT: bool>;

#[inline(never)]
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl")]
fn with_avx512<W: Work>(work: W) -> W::Output {
    // SAFETY: callers of a `target_feature` function ensure that the processor has these features.
    unsafe { work.run::<Avx512<false>>() }
}

#[inline(never)]
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vnni")]
fn with_avx512vbmi<W: Work>(work: W) -> W::Output {
    // SAFETY: callers of a `target_feature` function ensure that the processor has these features.
    unsafe { work.run::<Avx512<true>>() }
}

// SAFETY (of the block and of every method): per the trait's contract the processor has the instruction set and the
// pointers are valid.
unsafe impl<const RECENT: bool> Simd for Avx512<RECENT> {
    const LANES: usize = 16;
    const REGISTERS: usize = 32;
    type V = __m512;
    type Pairs = __m512i;

    #[inline(always)]
    unsafe fn run<W: Work>(work: W) -> W::Output {
        unsafe { if RECENT { with_avx512vbmi(work) } else { with_avx512(work) } }
    }

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
    unsafe fn halves_of(bytes: [u8; 16]) -> [[u8; 16]; 2] {
        unsafe { halves_of_16(bytes) }
    }

    #[inline(always)]
    unsafe fn look_up(bytes: [u8; 16], table: &[i8; 16]) -> [i8; 16] {
        unsafe { look_up_16(bytes, table) }
    }

    const LOOKS_UP_BYTES: bool = RECENT;

    #[inline(always)]
    unsafe fn quants_of_64(table: &[i8], codeword: *const u8, windows: Windows, to: *mut i8) {
        assert!(RECENT, "no instruction set without VBMI asks for it");
        unsafe {
            let spread = spread(codeword, windows);
            let at = _mm512_multishift_epi64_epi8(bytes(&SHIFTS[0][windows.step]), spread);
            let quants = match table.as_chunks::<128>().0 {
                [] => _mm512_permutexvar_epi8(at, _mm512_loadu_si512(table.as_ptr().cast())),
                [a, b] => byte_of_256([a, b], at),
                parts => {
                    // The ninth bit of each state is the highest bit of the byte that begins one bit later.
                    let is_high = _mm512_movepi8_mask(_mm512_multishift_epi64_epi8(
                        bytes(&SHIFTS[1][windows.step]),
                        spread,
                    ));
                    let low = byte_of_256([&parts[0], &parts[1]], at);
                    _mm512_mask_blend_epi8(is_high, low, byte_of_256([&parts[2], &parts[3]], at))
                }
            };
            _mm512_storeu_si512(to.cast(), quants);
        }
    }

    #[inline(always)]
    unsafe fn from_quants(from: *const i8) -> Self::V {
        unsafe { _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(from.cast()))) }
    }

    #[inline(always)]
    unsafe fn no_products() -> Self::Pairs {
        unsafe { _mm512_setzero_si512() }
    }

    #[inline(always)]
    unsafe fn load_pairs(from: *const i32) -> Self::Pairs {
        unsafe { _mm512_loadu_si512(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store_pairs(to: *mut i32, pairs: Self::Pairs) {
        unsafe { _mm512_storeu_si512(to.cast(), pairs) }
    }

    #[inline(always)]
    unsafe fn splat_pair(pair: i32) -> Self::Pairs {
        unsafe { _mm512_set1_epi32(pair) }
    }

    #[inline(always)]
    unsafe fn to_pairs(of: [Self::V; 2]) -> Self::Pairs {
        unsafe {
            // Each 128-bit lane is packed separately.
            let packed = _mm512_packs_epi32(_mm512_cvtps_epi32(of[0]), _mm512_cvtps_epi32(of[1]));
            _mm512_permutexvar_epi64(_mm512_set_epi64(7, 5, 3, 1, 6, 4, 2, 0), packed)
        }
    }

    #[inline(always)]
    unsafe fn add_products(a: Self::Pairs, b: Self::Pairs, sums: Self::Pairs) -> Self::Pairs {
        unsafe {
            if RECENT {
                _mm512_dpwssd_epi32(sums, a, b)
            } else {
                _mm512_add_epi32(sums, _mm512_madd_epi16(a, b))
            }
        }
    }

    #[inline(always)]
    unsafe fn from_sums(sums: Self::Pairs) -> Self::V {
        unsafe { _mm512_cvtepi32_ps(sums) }
    }

    #[inline(always)]
    unsafe fn pairs_of_rows(first: *const i8, second: *const i8) -> [Self::Pairs; 2] {
        unsafe {
            let (first, second) = (_mm256_loadu_si256(first.cast()), _mm256_loadu_si256(second.cast()));
            // Eight pairs of each half of a row.
            let (low, high) = (_mm256_unpacklo_epi8(first, second), _mm256_unpackhi_epi8(first, second));
            [
                _mm512_cvtepi8_epi16(_mm256_permute2x128_si256::<0x20>(low, high)),
                _mm512_cvtepi8_epi16(_mm256_permute2x128_si256::<0x31>(low, high)),
            ]
        }
    }

    #[inline(always)]
    unsafe fn columns_of_pairs(from: *const i8, from_stride: usize, to: *mut i32, to_stride: usize) {
        unsafe {
            let mut rows = [_mm512_setzero_ps(); 16];
            for (i, row) in rows.iter_mut().enumerate() {
                let quants = _mm256_loadu_si256(from.add(i * from_stride).cast());
                *row = _mm512_castsi512_ps(_mm512_cvtepi8_epi16(quants));
            }
            store_columns(rows, to.cast(), to_stride);
        }
    }

    // VNNI multiplies unsigned bytes by signed ones.
    const BYTE_OFFSET: i32 = if RECENT { 128 } else { 0 };

    #[inline(always)]
    unsafe fn columns_of_bytes(rows: &[*const i8; MAX_LANES], to: *mut i32) {
        unsafe {
            let flip = _mm512_set1_epi8(Self::BYTE_OFFSET as i8);
            for (i, column) in columns_of_32_bytes(rows).into_iter().enumerate() {
                let column = if RECENT { _mm512_xor_si512(column, flip) } else { column };
                Self::store_pairs(to.add(i * Self::LANES), column);
            }
        }
    }

    #[inline(always)]
    unsafe fn add_byte_products(weights: Self::Pairs, x: Self::Pairs, sums: Self::Pairs) -> Self::Pairs {
        unsafe {
            if RECENT {
                return _mm512_dpbusd_epi32(sums, weights, x);
            }
            // As in AVX2: the signs of the weights move to the other factor.
            let is_negative = _mm512_movepi8_mask(weights);
            let signed = _mm512_mask_sub_epi8(x, is_negative, _mm512_setzero_si512(), x);
            let products = _mm512_maddubs_epi16(_mm512_abs_epi8(weights), signed);
            _mm512_add_epi32(sums, _mm512_madd_epi16(products, _mm512_set1_epi16(1)))
        }
    }

    #[inline(always)]
    unsafe fn prefetch(at: *const u8) {
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
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
    unsafe fn min(a: Self::V, b: Self::V) -> Self::V {
        unsafe { _mm512_min_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn repeat<const BITS: usize>(from: *const f32) -> Self::V {
        unsafe {
            // Each 128-bit lane has all the values that its indexes name.
            if BITS == 2 {
                let four = _mm512_broadcast_f32x4(_mm_loadu_ps(from));
                let places = _mm512_set_epi32(3, 3, 3, 3, 2, 2, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0);
                _mm512_permutevar_ps(four, places)
            } else {
                let two = _mm512_castpd_ps(_mm512_set1_pd(from.cast::<f64>().read_unaligned()));
                let places = _mm512_set_epi32(1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0);
                _mm512_permutevar_ps(two, places)
            }
        }
    }

    #[inline(always)]
    unsafe fn with_last_bits<const BITS: usize>(a: Self::V, bits: u32) -> Self::V {
        unsafe {
            let rest = _mm512_set1_epi32(-1 << BITS);
            let bits = _mm512_set1_epi32(bits as i32);
            // a & rest | bits
            _mm512_castsi512_ps(_mm512_ternarylogic_epi32::<0xea>(_mm512_castps_si512(a), rest, bits))
        }
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
            // a b of `low` and c d of `high`, in each 128-bit lane
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
    unsafe fn largests(of: [Self::V; 4]) -> [f32; 4] {
        unsafe {
            let pairs = |a, b| _mm512_max_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
            let (low, high) = (pairs(of[0], of[1]), pairs(of[2], of[3]));
            let quarters = _mm512_max_ps(
                _mm512_shuffle_ps::<0b01_00_01_00>(low, high),
                _mm512_shuffle_ps::<0b11_10_11_10>(low, high),
            );
            let upper = _mm256_castpd_ps(_mm512_extractf64x4_pd::<1>(_mm512_castps_pd(quarters)));
            let halves = _mm256_max_ps(_mm512_castps512_ps256(quarters), upper);
            let largest = _mm_max_ps(_mm256_castps256_ps128(halves), _mm256_extractf128_ps::<1>(halves));
            std::mem::transmute::<__m128, [f32; 4]>(largest)
        }
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
            store_columns(rows, to, to_stride);
        }
    }
}

/// Writes the columns of sixteen rows; the stride is in floats.
///
/// # Safety
///
/// The processor has the instruction set, and `to` has space for the columns.
#[inline(always)]
unsafe fn store_columns(rows: [__m512; 16], to: *mut f32, to_stride: usize) {
    // SAFETY: per this function's contract the processor has the instruction set and `to` has space.
    unsafe {
        // In each 128-bit lane of `four[4 * q + c]`: column c of the lane, of rows 4 q to 4 q + 3.
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
        // 128-bit lanes 0 and 2 of both, or 1 and 3.
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
                _mm512_storeu_ps(to.add(at * to_stride), _mm512_shuffle_f32x4::<0x88>(a, b));
                _mm512_storeu_ps(to.add((at + 8) * to_stride), _mm512_shuffle_f32x4::<0xdd>(a, b));
            }
        }
    }
}

/// Bit offsets at which eight consecutive states begin, and the same one bit later; by their step.
static SHIFTS: [[[u8; 64]; 5]; 2] = {
    let mut shifts = [[[0; 64]; 5]; 2];
    let mut at = 0;
    while at < 2 * 5 * 64 {
        let (later, step, place) = (at / 320, at / 64 % 5, at % 64);
        shifts[later][step][place] = (place % 8 * step + later) as u8;
        at += 1;
    }
    shifts
};

/// Byte indexes into a codeword, eight for each eight values, from the first value's on; by their step.
static SPREAD: [[u8; 64]; 5] = {
    let mut spread = [[0; 64]; 5];
    let mut at = 0;
    while at < 5 * 64 {
        let (step, place) = (at / 64, at % 64);
        spread[step][place] = (place / 8 * step + place % 8) as u8;
        at += 1;
    }
    spread
};

/// # Safety
///
/// The processor has the instruction set.
#[inline(always)]
unsafe fn bytes(from: &[u8; 64]) -> __m512i {
    // SAFETY: per this function's contract the processor has the instruction set, and the load is 64 bytes.
    unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }
}

/// Gathers the bytes of a codeword that hold the states, eight for each eight of them. The index wraps around at its
/// end.
///
/// # Safety
///
/// The processor has the instruction set and VBMI; the codeword is readable.
#[inline(always)]
unsafe fn spread(codeword: *const u8, windows: Windows) -> __m512i {
    let Windows { bytes: length, first, step } = windows;
    // SAFETY: per this function's contract the processor has VBMI and the codeword is readable; no byte past it is
    // read.
    unsafe {
        let whole = _mm512_maskz_loadu_epi8(u64::MAX >> (64 - length), codeword.cast());
        let at = _mm512_add_epi8(bytes(&SPREAD[step]), _mm512_set1_epi8(first as i8));
        let length = _mm512_set1_epi8(length as i8);
        // Sufficient for 64 bytes: higher bits of an index are ignored.
        let again = _mm512_cmpge_epu8_mask(at, length);
        _mm512_permutexvar_epi8(_mm512_mask_sub_epi8(at, again, at, length), whole)
    }
}

/// Looks indexes up in a table of 256 bytes.
///
/// # Safety
///
/// The processor has the instruction set and VBMI.
#[inline(always)]
unsafe fn byte_of_256(parts: [&[i8; 128]; 2], at: __m512i) -> __m512i {
    // SAFETY: per this function's contract the processor has VBMI, and a part is two vectors.
    unsafe {
        let is_upper = _mm512_movepi8_mask(at);
        _mm512_mask_blend_epi8(is_upper, byte_of_128(parts[0], at), byte_of_128(parts[1], at))
    }
}

/// Looks indexes up in a table of 128 bytes; their highest bit is ignored.
///
/// # Safety
///
/// As [`byte_of_256`].
#[inline(always)]
unsafe fn byte_of_128(part: &[i8; 128], at: __m512i) -> __m512i {
    // SAFETY: per this function's contract the processor has VBMI, and the table is two vectors.
    unsafe {
        let first = part.as_ptr().cast::<__m512i>();
        _mm512_permutex2var_epi8(_mm512_loadu_si512(first), at, _mm512_loadu_si512(first.add(1)))
    }
}

/// Returns the eight columns of 16 rows of 32 bytes, in groups of four bytes.
///
/// # Safety
///
/// The processor has the instruction set, and each row has 32 bytes.
#[inline(always)]
unsafe fn columns_of_32_bytes(rows: &[*const i8; MAX_LANES]) -> [__m512i; 8] {
    // SAFETY: per this function's contract the processor has the instruction set, and the rows have 32 bytes.
    unsafe {
        // A vector has two rows, eight apart. Groups of four vectors are transposed within 128-bit lanes.
        let pair = |i: usize| {
            let low = _mm512_castsi256_si512(_mm256_loadu_si256(rows[i].cast()));
            _mm512_inserti64x4::<1>(low, _mm256_loadu_si256(rows[i + 8].cast()))
        };
        let upper = transpose_lanes([pair(0), pair(1), pair(2), pair(3)]);
        let lower = transpose_lanes([pair(4), pair(5), pair(6), pair(7)]);
        let first = _mm512_set_epi64(13, 12, 5, 4, 9, 8, 1, 0);
        let second = _mm512_set_epi64(15, 14, 7, 6, 11, 10, 3, 2);
        std::array::from_fn(|i| {
            let lanes = if i < 4 { first } else { second };
            _mm512_permutex2var_epi64(upper[i % 4], lanes, lower[i % 4])
        })
    }
}

/// Transposes four rows of four int32 in each 128-bit lane.
///
/// # Safety
///
/// The processor has the instruction set.
#[inline(always)]
unsafe fn transpose_lanes([a, b, c, d]: [__m512i; 4]) -> [__m512i; 4] {
    // SAFETY: per this function's contract the processor has the instruction set.
    unsafe {
        let (ab, cd) = (_mm512_unpacklo_epi32(a, b), _mm512_unpacklo_epi32(c, d));
        let (ab_high, cd_high) = (_mm512_unpackhi_epi32(a, b), _mm512_unpackhi_epi32(c, d));
        [
            _mm512_unpacklo_epi64(ab, cd),
            _mm512_unpackhi_epi64(ab, cd),
            _mm512_unpacklo_epi64(ab_high, cd_high),
            _mm512_unpackhi_epi64(ab_high, cd_high),
        ]
    }
}
