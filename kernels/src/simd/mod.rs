//! Operations on vectors of `f32`, for each instruction set. The kernels are written once, over [`Simd`].
//!
//! Every method is inlined into a function that was compiled for the instruction set: see [`crate::simd::isa`].

#[cfg(target_arch = "x86_64")]
pub mod avx2;
#[cfg(target_arch = "x86_64")]
pub mod avx512;
pub mod exp;
pub mod half;
pub mod isa;
#[cfg(target_arch = "aarch64")]
pub mod neon;
pub mod portable;

/// A function that is compiled for each instruction set.
pub trait Work {
    /// Return type.
    type Output;

    /// Runs it.
    ///
    /// # Safety
    ///
    /// The processor has the instruction set `S`.
    unsafe fn run<S: Simd>(self) -> Self::Output;
}

/// Vectors of [`Simd::LANES`] floats.
///
/// # Safety
///
/// The methods are called on a processor that has the instruction set. Pointers point to as many values as the method
/// reads or writes; they need no alignment.
#[allow(clippy::missing_safety_doc, reason = "it is the trait's, for each method")]
pub unsafe trait Simd: Copy {
    /// Number of floats in a vector: a power of two, at most [`MAX_LANES`].
    const LANES: usize;
    /// Number of vector registers.
    const REGISTERS: usize;
    /// The vector type.
    type V: Copy;
    /// `LANES` groups of 32 bits: pairs of int16, groups of four bytes, or int32 sums.
    type Pairs: Copy;

    /// Runs `work` as a separate function that is compiled for this instruction set. Work that is called at several
    /// places is compiled once, and its caller stays small enough to be compiled in reasonable time.
    unsafe fn run<W: Work>(work: W) -> W::Output;
    /// Broadcasts a float to all lanes.
    unsafe fn splat(x: f32) -> Self::V;
    /// Loads `LANES` floats.
    unsafe fn load(from: *const f32) -> Self::V;
    /// Loads and converts `LANES` half-precision floats.
    unsafe fn load_f16(from: *const u16) -> Self::V;
    /// Loads and converts `LANES` bfloat16 values, the upper halves of floats.
    unsafe fn load_bf16(from: *const u16) -> Self::V;
    /// Broadcasts one half-precision float to all lanes.
    unsafe fn splat_f16(from: *const u16) -> Self::V;
    /// Returns the low nibbles of the bytes, and the high nibbles.
    unsafe fn halves_of(bytes: [u8; 16]) -> [[u8; 16]; 2];
    /// Looks each byte, which is less than 16, up in the table.
    unsafe fn look_up(bytes: [u8; 16], table: &[i8; 16]) -> [i8; 16];
    /// Whether [`Simd::quants_of_64`] is implemented.
    const LOOKS_UP_BYTES: bool = false;
    /// Looks up 64 trellis states of a tail-biting codeword and writes their quants.
    unsafe fn quants_of_64(_table: &[i8], _codeword: *const u8, _windows: Windows, _to: *mut i8) {
        unreachable!("LOOKS_UP_BYTES is false")
    }
    /// Converts `LANES` quants to floats.
    unsafe fn from_quants(from: *const i8) -> Self::V;
    /// Returns a zero accumulator.
    unsafe fn no_products() -> Self::Pairs;
    /// Loads `LANES` pairs.
    unsafe fn load_pairs(from: *const i32) -> Self::Pairs;
    /// Stores `LANES` pairs.
    unsafe fn store_pairs(to: *mut i32, pairs: Self::Pairs);
    /// Broadcasts a pair to all lanes.
    unsafe fn splat_pair(pair: i32) -> Self::Pairs;
    /// Rounds floats to int16: each vector gives half of the pairs.
    unsafe fn to_pairs(of: [Self::V; 2]) -> Self::Pairs;
    /// Computes `sums + a[0] * b[0] + a[1] * b[1]` in int32 for each pair.
    unsafe fn add_products(a: Self::Pairs, b: Self::Pairs, sums: Self::Pairs) -> Self::Pairs;
    /// Converts int32 sums to floats.
    unsafe fn from_sums(sums: Self::Pairs) -> Self::V;
    /// Interleaves two rows of `2 * LANES` quants: each pair has a value of the first row and the one below it of the
    /// second.
    unsafe fn pairs_of_rows(first: *const i8, second: *const i8) -> [Self::Pairs; 2];
    /// Writes column `i` of the adjacent pairs in `LANES` rows of `2 * LANES` quants to `to[i * to_stride..]`.
    unsafe fn columns_of_pairs(from: *const i8, from_stride: usize, to: *mut i32, to_stride: usize);
    /// Offset that [`Simd::columns_of_bytes`] adds to each weight, where [`Simd::add_byte_products`] needs unsigned ones.
    /// Callers subtract it times the sum of `x`.
    const BYTE_OFFSET: i32 = 0;
    /// Writes column `i` of `LANES` rows, of eight columns of four bytes each, to `to[i * LANES..]`.
    #[inline(always)]
    unsafe fn columns_of_bytes(rows: &[*const i8; MAX_LANES], to: *mut i32) {
        for (lane, row) in rows[..Self::LANES].iter().enumerate() {
            for column in 0..8 {
                // SAFETY: per the trait's contract each row has 32 bytes, and `to` has space for all columns.
                unsafe {
                    to.add(column * Self::LANES + lane).write(row.cast::<i32>().add(column).read_unaligned())
                };
            }
        }
    }
    /// Computes `sums + w[0] * x[0] + ... + w[3] * x[3]` in int32 for each group of four bytes. The weights come from
    /// [`Simd::columns_of_bytes`]. The sum is exact if no byte of `x` is -128.
    unsafe fn add_byte_products(weights: Self::Pairs, x: Self::Pairs, sums: Self::Pairs) -> Self::Pairs;
    /// Fetches a cache line, if the instruction set can; the address need not be readable.
    #[inline(always)]
    unsafe fn prefetch(_at: *const u8) {}
    /// Stores `LANES` floats.
    unsafe fn store(to: *mut f32, v: Self::V);
    /// Computes `a + b`.
    unsafe fn add(a: Self::V, b: Self::V) -> Self::V;
    /// Computes `a - b`.
    unsafe fn sub(a: Self::V, b: Self::V) -> Self::V;
    /// Computes `a / b`.
    unsafe fn div(a: Self::V, b: Self::V) -> Self::V;
    /// Computes `a * b`.
    unsafe fn mul(a: Self::V, b: Self::V) -> Self::V;
    /// Computes `a * b + c`, rounded once (fused) where the instruction set supports it.
    unsafe fn mul_add(a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// Lane-wise maximum; NaN where `b` is NaN.
    unsafe fn max(a: Self::V, b: Self::V) -> Self::V;
    /// Lane-wise minimum; NaN where `b` is NaN.
    unsafe fn min(a: Self::V, b: Self::V) -> Self::V;
    /// Repeats each of some floats `2^BITS` times, in order; `BITS` is 2 or 3.
    unsafe fn repeat<const BITS: usize>(from: *const f32) -> Self::V;
    /// Replaces the lowest `BITS` bits of each lane of `a`.
    unsafe fn with_last_bits<const BITS: usize>(a: Self::V, bits: u32) -> Self::V;
    /// Selects `mask` where it is minus infinity, `a` elsewhere.
    unsafe fn unless_hidden(mask: Self::V, a: Self::V) -> Self::V;
    /// Returns the magnitudes of `a` with the signs of `b`.
    unsafe fn copy_sign(a: Self::V, b: Self::V) -> Self::V;
    /// Returns the magnitudes of `a`.
    #[inline(always)]
    unsafe fn magnitude(a: Self::V) -> Self::V {
        // SAFETY: per the trait's contract the processor has the instruction set.
        unsafe { Self::copy_sign(a, Self::splat(1.0)) }
    }
    /// Rounds to the nearest integer.
    unsafe fn round(a: Self::V) -> Self::V;
    /// Computes `x * 2^n` for integers `n` in -252..=0.
    unsafe fn times_power_of_two(x: Self::V, n: Self::V) -> Self::V;
    /// Returns the horizontal sum of each vector.
    unsafe fn sums(of: [Self::V; 4]) -> [f32; 4];
    /// Returns the horizontal sum.
    unsafe fn sum(a: Self::V) -> f32;
    /// Returns the horizontal maximum of each vector.
    #[inline(always)]
    unsafe fn largests(of: [Self::V; 4]) -> [f32; 4] {
        // SAFETY: per the trait's contract the processor has the instruction set.
        unsafe { [Self::largest(of[0]), Self::largest(of[1]), Self::largest(of[2]), Self::largest(of[3])] }
    }
    /// Returns the horizontal maximum.
    unsafe fn largest(a: Self::V) -> f32;
    /// Transposes: `to[i][j] = from[j][i]` for `LANES` rows of `LANES` floats; strides are in floats.
    unsafe fn transpose(from: *const f32, from_stride: usize, to: *mut f32, to_stride: usize);
}

/// The positions of 64 trellis states in a tail-biting codeword.
#[derive(Clone, Copy, Debug)]
pub struct Windows {
    /// Bytes of the codeword, at most 64.
    pub bytes: usize,
    /// Byte at which the first state begins.
    pub first: usize,
    /// Bits from one state to the next: 2, 3 or 4. The width of a state follows from the length of the table, up to 9
    /// bits.
    pub step: usize,
}

/// Largest number of lanes of any instruction set: rows are padded to a multiple of it.
pub const MAX_LANES: usize = 16;
