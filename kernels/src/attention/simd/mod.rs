//! What a vector of `f32` can do, on each instruction set. The kernels are written once, over [`Simd`].
//!
//! Every method is inlined into a function that was compiled for the instruction set: see [`crate::attention::isa`].

#[cfg(target_arch = "x86_64")]
pub mod avx2;
#[cfg(target_arch = "x86_64")]
pub mod avx512;
#[cfg(target_arch = "aarch64")]
pub mod neon;
pub mod portable;

/// Work that is compiled for each instruction set.
pub trait Work {
    /// Its result.
    type Output;

    /// Does it.
    ///
    /// # Safety
    ///
    /// The processor has the instruction set `S`.
    unsafe fn run<S: Simd>(self) -> Self::Output;
}

/// Vectors of [`Simd::LANES`] numbers.
///
/// # Safety
///
/// The methods are called on a processor that has the instruction set. Pointers lead to as many values as the method
/// takes; they need no alignment.
#[allow(clippy::missing_safety_doc, reason = "it is the trait's, for each method")]
pub unsafe trait Simd: Copy {
    /// How many numbers a vector has: a power of two, at most [`MOST_LANES`].
    const LANES: usize;
    /// How many vectors there are registers for.
    const REGISTERS: usize;
    /// The vector.
    type V: Copy;
    /// `LANES` pairs of whole numbers of 16 bits, or as many whole numbers of 32 bits.
    type Pairs: Copy;

    /// Runs `work` as a function of its own that is compiled for this instruction set. Work that is called at several places is
    /// compiled once, and the function that calls it stays small enough to be compiled in reasonable time.
    unsafe fn run<W: Work>(work: W) -> W::Output;
    /// The same number everywhere.
    unsafe fn splat(x: f32) -> Self::V;
    /// `LANES` numbers.
    unsafe fn load(from: *const f32) -> Self::V;
    /// `LANES` numbers in half precision.
    unsafe fn load_f16(from: *const u16) -> Self::V;
    /// The upper halves of `LANES` numbers.
    unsafe fn load_bf16(from: *const u16) -> Self::V;
    /// The same number everywhere, out of half precision.
    unsafe fn splat_f16(from: *const u16) -> Self::V;
    /// The lower halves of bytes, and their upper halves.
    unsafe fn halves_of(bytes: [u8; 16]) -> [[u8; 16]; 2];
    /// What the table has for each byte, which is less than 16.
    unsafe fn look_up(bytes: [u8; 16], table: &[i8; 16]) -> [i8; 16];
    /// Whether [`Simd::levels_of_64`] is there.
    const LOOKS_UP_BYTES: bool = false;
    /// Writes what the table has for 64 windows of a circle.
    unsafe fn levels_of_64(_table: &[i8], _circle: *const u8, _windows: Windows, _to: *mut i8) {
        unreachable!("LOOKS_UP_BYTES is false")
    }
    /// `LANES` levels as numbers.
    unsafe fn from_levels(from: *const i8) -> Self::V;
    /// No products yet.
    unsafe fn no_products() -> Self::Pairs;
    /// `LANES` pairs.
    unsafe fn load_pairs(from: *const i32) -> Self::Pairs;
    /// `LANES` pairs.
    unsafe fn store_pairs(to: *mut i32, pairs: Self::Pairs);
    /// The same pair everywhere.
    unsafe fn splat_pair(pair: i32) -> Self::Pairs;
    /// Numbers, rounded: each vector has half of the pairs.
    unsafe fn to_pairs(of: [Self::V; 2]) -> Self::Pairs;
    /// `sums + a[0] * b[0] + a[1] * b[1]`, in 32 bits, for each pair.
    unsafe fn add_products(a: Self::Pairs, b: Self::Pairs, sums: Self::Pairs) -> Self::Pairs;
    /// Whole numbers of 32 bits as numbers.
    unsafe fn from_sums(sums: Self::Pairs) -> Self::V;
    /// Pairs of two rows of `2 * LANES` levels: one of the first, and the one of the second below it.
    unsafe fn pairs_of_rows(first: *const i8, second: *const i8) -> [Self::Pairs; 2];
    /// Column `i` of the pairs that lie side by side in `LANES` rows of `2 * LANES` levels goes to `to[i * to_stride..]`.
    unsafe fn columns_of_pairs(from: *const i8, from_stride: usize, to: *mut i32, to_stride: usize);
    /// `LANES` numbers.
    unsafe fn store(to: *mut f32, v: Self::V);
    /// `a + b`.
    unsafe fn add(a: Self::V, b: Self::V) -> Self::V;
    /// `a - b`.
    unsafe fn sub(a: Self::V, b: Self::V) -> Self::V;
    /// `a / b`.
    unsafe fn div(a: Self::V, b: Self::V) -> Self::V;
    /// `a * b`.
    unsafe fn mul(a: Self::V, b: Self::V) -> Self::V;
    /// `a * b + c`, rounded once where the instruction set has it.
    unsafe fn mul_add(a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// The larger ones; where `b` is no number, no number.
    unsafe fn max(a: Self::V, b: Self::V) -> Self::V;
    /// The smaller ones; where `b` is no number, no number.
    unsafe fn min(a: Self::V, b: Self::V) -> Self::V;
    /// Each of some numbers `2^BITS` times, one after the other; `BITS` is 2 or 3.
    unsafe fn repeat<const BITS: usize>(from: *const f32) -> Self::V;
    /// `a` with these as its last `BITS` bits.
    unsafe fn with_last_bits<const BITS: usize>(a: Self::V, bits: u32) -> Self::V;
    /// `mask` where it is minus infinity, `a` elsewhere.
    unsafe fn unless_hidden(mask: Self::V, a: Self::V) -> Self::V;
    /// The sizes of `a` with the signs of `b`.
    unsafe fn copy_sign(a: Self::V, b: Self::V) -> Self::V;
    /// The sizes of `a`, without signs.
    #[inline(always)]
    unsafe fn magnitude(a: Self::V) -> Self::V {
        // SAFETY: the caller's promise.
        unsafe { Self::copy_sign(a, Self::splat(1.0)) }
    }
    /// To the nearest whole number.
    unsafe fn round(a: Self::V) -> Self::V;
    /// `x * 2^n` for whole `n` in -252..=0.
    unsafe fn times_power_of_two(x: Self::V, n: Self::V) -> Self::V;
    /// The sum of each.
    unsafe fn sums(of: [Self::V; 4]) -> [f32; 4];
    /// The sum.
    unsafe fn sum(a: Self::V) -> f32;
    /// The largest of each.
    #[inline(always)]
    unsafe fn largests(of: [Self::V; 4]) -> [f32; 4] {
        // SAFETY: the caller's promise.
        unsafe { [Self::largest(of[0]), Self::largest(of[1]), Self::largest(of[2]), Self::largest(of[3])] }
    }
    /// The largest.
    unsafe fn largest(a: Self::V) -> f32;
    /// `to[i][j] = from[j][i]` for `LANES` rows of `LANES` numbers; strides are in numbers.
    unsafe fn transpose(from: *const f32, from_stride: usize, to: *mut f32, to_stride: usize);
}

/// 64 windows of a circle of bits.
#[derive(Clone, Copy, Debug)]
pub struct Windows {
    /// Bytes of the circle, at most 64.
    pub circle: usize,
    /// The byte where the first window begins.
    pub first: usize,
    /// Bits from one window to the next: 2, 3 or 4. They are as wide as the table is long, up to 9 bits.
    pub step: usize,
}

/// The most lanes that a vector has: rows are padded to a multiple of it.
pub const MOST_LANES: usize = 16;
