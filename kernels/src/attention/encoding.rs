//! Storage formats of the cache types whose rows can be read in place as floats. All instruction sets give the same
//! bits.

use super::matrix::Source;
use crate::simd::Simd;

/// The storage format of one type.
pub trait Encoding: Copy {
    /// Loads the values from `at` on, which is a multiple of `LANES`.
    ///
    /// # Safety
    ///
    /// The processor has the instruction set `S`; the row at `row` has `at + S::LANES` values.
    unsafe fn vector<S: Simd>(self, row: *const u8, at: usize) -> S::V;
}

/// Prefetch distance in rows: about as much computation as memory latency.
const AHEAD: usize = 32;
/// Bytes that one prefetch loads.
const CACHE_LINE: usize = 64;

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn prefetch(line: *const u8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a prefetch of an invalid address is ignored, and every x86-64 has the instruction.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(line.cast()) };
}

/// Does nothing: stable Rust has no prefetch intrinsic on other architectures.
#[cfg(not(target_arch = "x86_64"))]
fn prefetch(_: *const u8) {}

/// Rows as they are stored in the cache.
#[derive(Clone, Copy, Debug)]
pub struct Lines {
    /// The first row.
    pub first: *const u8,
    /// Stride between rows in bytes.
    pub stride: usize,
    /// Bytes of each row to prefetch.
    pub ahead: usize,
}

impl Lines {
    /// Returns a pointer to a row.
    ///
    /// # Safety
    ///
    /// The row exists.
    #[inline(always)]
    pub unsafe fn row(self, number: usize) -> *const u8 {
        // SAFETY: per this function's contract the row exists.
        unsafe { self.first.add(number * self.stride) }
    }

    /// Prefetches the row that will be read `AHEAD` rows after `row`.
    #[inline(always)]
    pub fn look_ahead(self, row: usize) {
        let row = self.first.wrapping_add((row + AHEAD) * self.stride);
        for at in (0..self.ahead).step_by(CACHE_LINE) {
            prefetch(row.wrapping_add(at));
        }
    }
}

/// Encoded rows.
#[derive(Clone, Copy, Debug)]
pub struct Rows<E> {
    /// Location of the rows.
    pub lines: Lines,
    /// Format of the rows.
    pub encoding: E,
}

impl<E: Encoding, S: Simd> Source<S> for Rows<E> {
    #[inline(always)]
    unsafe fn vector(self, row: usize, at: usize) -> S::V {
        // SAFETY: per this function's contract the processor has `S` and the values exist.
        unsafe { self.encoding.vector::<S>(self.lines.row(row), at) }
    }

    #[inline(always)]
    fn look_ahead(self, row: usize) {
        self.lines.look_ahead(row);
    }
}

/// `f32`.
#[derive(Clone, Copy, Debug)]
pub struct F32;
/// Half precision (IEEE 754 binary16).
#[derive(Clone, Copy, Debug)]
pub struct F16;
/// bfloat16, the upper half of an `f32`.
#[derive(Clone, Copy, Debug)]
pub struct Bf16;

impl Encoding for F32 {
    #[inline(always)]
    unsafe fn vector<S: Simd>(self, row: *const u8, at: usize) -> S::V {
        // SAFETY: per this function's contract the row has these values.
        unsafe { S::load(row.add(4 * at).cast()) }
    }
}

impl Encoding for F16 {
    #[inline(always)]
    unsafe fn vector<S: Simd>(self, row: *const u8, at: usize) -> S::V {
        // SAFETY: per this function's contract the row has these values.
        unsafe { S::load_f16(row.add(2 * at).cast()) }
    }
}

impl Encoding for Bf16 {
    #[inline(always)]
    unsafe fn vector<S: Simd>(self, row: *const u8, at: usize) -> S::V {
        // SAFETY: per this function's contract the row has these values.
        unsafe { S::load_bf16(row.add(2 * at).cast()) }
    }
}

#[cfg(test)]
mod tests {
    use crate::attention::kv_type::KvType;
    use crate::attention::testing::decoded;

    #[test]
    fn values_are_read_one_by_one() {
        assert_eq!(decoded(KvType::F32, &2.5f32.to_le_bytes(), 1), [2.5]);
        assert_eq!(decoded(KvType::F16, &[0x00, 0x3c, 0x00, 0x40].repeat(5), 10), [1.0, 2.0].repeat(5));
        assert_eq!(decoded(KvType::BF16, &[0xc0, 0x3f], 1), [1.5]);
    }
}
