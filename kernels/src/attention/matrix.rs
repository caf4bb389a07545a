//! Products of small matrices, [`AT_ONCE`] rows at a time.

use std::ops::Range;

use crate::simd::Simd;

/// Number of rows that are computed at once.
pub const AT_ONCE: usize = 4;

/// One value for each of these rows.
pub type Each<T> = [T; AT_ONCE];

/// A matrix that is read vector by vector.
pub trait Source<S: Simd>: Copy {
    /// Loads the values of `row` from `at` on, which is a multiple of `LANES`.
    ///
    /// # Safety
    ///
    /// The processor has the instruction set `S`, and the matrix has those values.
    unsafe fn vector(self, row: usize, at: usize) -> S::V;

    /// Prefetches the data that will be read some rows after `row`.
    #[inline(always)]
    fn look_ahead(self, _row: usize) {}
}

/// Rows of floats.
#[derive(Clone, Copy, Debug)]
pub struct Numbers {
    /// The first row.
    pub first: *const f32,
    /// Stride between rows, in floats.
    pub stride: usize,
}

impl<S: Simd> Source<S> for Numbers {
    #[inline(always)]
    unsafe fn vector(self, row: usize, at: usize) -> S::V {
        // SAFETY: per this function's contract the processor has `S` and the values exist.
        unsafe { S::load(self.first.add(row * self.stride + at)) }
    }
}

/// Computes `c[i][j] = a[i] . b[j]` for the `b_rows` rows of `b`, of `length` floats each.
///
/// # Safety
///
/// The processor has the instruction set `S`. `length` is a multiple of `S::LANES`; each of `a` has as many floats.
/// Each of `c` has space for `b_rows` floats, rounded up to an even number.
#[inline(always)]
pub unsafe fn rows_by_rows<S: Simd, B: Source<S>>(
    a: Each<*const f32>,
    b: B,
    b_rows: usize,
    length: usize,
    c: Each<*mut f32>,
) {
    for j in (0..b_rows).step_by(2) {
        // If the number of rows is odd, the last one is computed twice.
        let second = (j + 1).min(b_rows - 1);
        // SAFETY: per this function's contract the processor has `S` and all rows have `length` floats.
        unsafe {
            // No `map` here: its closure would not be compiled for the instruction set.
            b.look_ahead(j);
            b.look_ahead(second);
            let mut sums = [[S::splat(0.0); AT_ONCE]; 2];
            let wide = length / width::<S>() * width::<S>();
            for at in (0..wide).step_by(width::<S>()) {
                if S::REGISTERS < 32 {
                    add_products::<S, B, 2>(a, b, [j, second], at, &mut sums);
                } else {
                    add_products::<S, B, 4>(a, b, [j, second], at, &mut sums);
                }
            }
            for at in (wide..length).step_by(S::LANES) {
                add_products::<S, B, 1>(a, b, [j, second], at, &mut sums);
            }
            let sums = [S::sums(sums[0]), S::sums(sums[1])];
            for i in 0..AT_ONCE {
                c[i].add(j).write(sums[0][i]);
                c[i].add(j + 1).write(sums[1][i]);
            }
        }
    }
}

/// Number of floats of a row that are read at once: with the vectors that hold them, the accumulators fit the
/// registers.
const fn width<S: Simd>() -> usize {
    if S::REGISTERS < 32 { 2 * S::LANES } else { 4 * S::LANES }
}

/// Accumulates the products of `COUNT` vectors from `at` on.
///
/// # Safety
///
/// As [`rows_by_rows`].
#[inline(always)]
unsafe fn add_products<S: Simd, B: Source<S>, const COUNT: usize>(
    a: Each<*const f32>,
    b: B,
    rows: [usize; 2],
    at: usize,
    sums: &mut [[S::V; AT_ONCE]; 2],
) {
    // SAFETY: per this function's contract the processor has `S` and all rows have these vectors.
    unsafe {
        for j in 0..COUNT {
            let from = at + j * S::LANES;
            let (first, second) = (b.vector(rows[0], from), b.vector(rows[1], from));
            for i in 0..AT_ONCE {
                let a = S::load(a[i].add(at + j * S::LANES));
                sums[0][i] = S::mul_add(a, first, sums[0][i]);
                sums[1][i] = S::mul_add(a, second, sums[1][i]);
            }
        }
    }
}

/// Computes `c[i] = a[i] b`, where `b` has `b_rows` rows of `columns` floats.
///
/// # Safety
///
/// The processor has the instruction set `S`. `columns` is a multiple of `S::LANES`; each of `a` has `b_rows` floats,
/// at least one; each of `c` has space for `columns`.
#[inline(always)]
pub unsafe fn rows_by_columns<S: Simd, B: Source<S>>(
    a: Each<*const f32>,
    b: B,
    b_rows: usize,
    columns: usize,
    c: Each<*mut f32>,
) {
    let wide = columns / width::<S>() * width::<S>();
    // SAFETY: per this function's contract the processor has `S` and all rows have these lengths.
    unsafe {
        for at in (0..wide).step_by(width::<S>()) {
            if S::REGISTERS < 32 {
                some_columns::<S, B, 2, false>(a, b, b_rows, at, c);
            } else {
                some_columns::<S, B, 4, false>(a, b, b_rows, at, c);
            }
        }
        for at in (wide..columns).step_by(S::LANES) {
            some_columns::<S, B, 1, false>(a, b, b_rows, at, c);
        }
    }
}

/// Like [`rows_by_columns`], bit for bit, except that a zero in `a` contributes zero even if `b` holds an infinity or
/// NaN.
///
/// # Safety
///
/// As [`rows_by_columns`].
#[inline(always)]
pub unsafe fn rows_by_columns_but_for_zeros<S: Simd, B: Source<S>>(
    a: Each<*const f32>,
    b: B,
    b_rows: usize,
    columns: usize,
    c: Each<*mut f32>,
) {
    for at in (0..columns).step_by(S::LANES) {
        // SAFETY: per this function's contract the processor has `S` and all rows have these lengths.
        unsafe { some_columns::<S, B, 1, true>(a, b, b_rows, at, c) };
    }
}

/// # Safety
///
/// As [`rows_by_columns`], for `WIDTH` vectors from `at` on.
#[inline(always)]
unsafe fn some_columns<S: Simd, B: Source<S>, const WIDTH: usize, const BUT_FOR_ZEROS: bool>(
    a: Each<*const f32>,
    b: B,
    b_rows: usize,
    at: usize,
    c: Each<*mut f32>,
) {
    for first in (0..b_rows).step_by(CHAIN) {
        let rows = first..b_rows.min(first + CHAIN);
        // SAFETY: per this function's contract the processor has `S` and all rows have these vectors.
        unsafe {
            let sums = sums_of_rows::<S, B, WIDTH, BUT_FOR_ZEROS>(a, b, rows, at);
            for (sums, c) in sums.into_iter().zip(c) {
                for (j, mut sum) in sums.into_iter().enumerate() {
                    let to = c.add(at + j * S::LANES);
                    if first > 0 {
                        sum = S::add(S::load(to), sum);
                    }
                    S::store(to, sum);
                }
            }
        }
    }
}

/// Number of products that are accumulated one after the other. A longer row is summed in parts, which reduces the
/// rounding error: upstream's products use as many partial sums as its registers hold.
const CHAIN: usize = 128;

/// Computes the part of [`some_columns`] that covers some rows of `b`.
///
/// # Safety
///
/// As [`some_columns`].
#[inline(always)]
unsafe fn sums_of_rows<S: Simd, B: Source<S>, const WIDTH: usize, const BUT_FOR_ZEROS: bool>(
    a: Each<*const f32>,
    b: B,
    rows: Range<usize>,
    at: usize,
) -> Each<[S::V; WIDTH]> {
    // SAFETY: per this function's contract the processor has `S` and all rows have these vectors.
    unsafe {
        let mut sums = [[S::splat(0.0); WIDTH]; AT_ONCE];
        for row in rows {
            if at == 0 {
                b.look_ahead(row);
            }
            let mut b_row = [S::splat(0.0); WIDTH];
            for (j, vector) in b_row.iter_mut().enumerate() {
                *vector = b.vector(row, at + j * S::LANES);
            }
            for (sums, a) in sums.iter_mut().zip(a) {
                let a = *a.add(row);
                if BUT_FOR_ZEROS && a == 0.0 {
                    continue;
                }
                for (sum, vector) in sums.iter_mut().zip(b_row) {
                    *sum = S::mul_add(S::splat(a), vector, *sum);
                }
            }
        }
        sums
    }
}

/// Returns whether `length` floats, a multiple of `S::LANES`, are all finite.
///
/// # Safety
///
/// The processor has the instruction set `S`, and the floats are readable.
#[inline(always)]
pub unsafe fn is_finite<S: Simd>(numbers: *const f32, length: usize) -> bool {
    // SAFETY: per this function's contract the processor has `S` and there are `length` floats.
    unsafe {
        let mut zero = S::splat(0.0);
        for at in (0..length).step_by(S::LANES) {
            zero = S::mul_add(S::load(numbers.add(at)), S::splat(0.0), zero);
        }
        S::sum(zero) == 0.0
    }
}

/// Computes `sums = factor * sums + more` for `length` floats, a multiple of `S::LANES`.
///
/// # Safety
///
/// The processor has the instruction set `S`, and both pointers are valid for `length` floats.
#[inline(always)]
pub unsafe fn scale_and_add<S: Simd>(sums: *mut f32, factor: f32, more: *const f32, length: usize) {
    for at in (0..length).step_by(S::LANES) {
        // SAFETY: per this function's contract the processor has `S` and both pointers have `length` floats.
        unsafe {
            let sum = S::mul_add(S::load(sums.add(at)), S::splat(factor), S::load(more.add(at)));
            S::store(sums.add(at), sum);
        }
    }
}
