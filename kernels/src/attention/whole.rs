//! Products of whole numbers, for caches whose types are such: a tile's levels as they are, and the rows that read it rounded to
//! 16 bits. Two numbers that lie side by side, a pair, are multiplied with two others and added up in one step.
//!
//! A row of Q loses at most half of 1/32767 of its largest number so, where upstream rounds it to 8 bits. Sums are exact within
//! a block of the cache: at most 128 products of 8 and 16 bits, or those of a tile's cells.

use super::matrix::{AT_ONCE, Each};
use super::problem::TILE;
use super::simd::Simd;
use super::tile::Levels;

/// Pairs of a tile's cells.
const PAIRS: usize = TILE / 2;
/// The largest whole number that a row is rounded to.
const LARGEST: f32 = i16::MAX as f32;
/// Where no number is larger, all become zeros: their factor would be no number.
const SMALLEST: f32 = 1e-30;

/// A row of numbers that were rounded.
#[derive(Clone, Copy, Debug)]
pub struct Rounded {
    /// Pairs.
    pub pairs: *const i32,
    /// What they are multiplied with.
    pub scale: f32,
}

/// Rounds `length` numbers, a multiple of `2 * LANES`, and gives what they are to be multiplied with. If one of them is infinite,
/// that is no number.
///
/// # Safety
///
/// The processor has the instruction set `S`; the numbers are there, and room for half as many pairs.
#[inline(always)]
pub unsafe fn round<S: Simd>(numbers: *const f32, length: usize, pairs: *mut i32) -> f32 {
    // SAFETY: the caller's promise.
    unsafe {
        let mut largest = S::splat(0.0);
        for at in (0..length).step_by(S::LANES) {
            largest = S::max(magnitude::<S>(S::load(numbers.add(at))), largest);
        }
        round_by::<S>(S::largest(largest), numbers, length, pairs)
    }
}

/// What numbers are without their sign.
///
/// # Safety
///
/// The processor has the instruction set `S`.
#[inline(always)]
unsafe fn magnitude<S: Simd>(numbers: S::V) -> S::V {
    // SAFETY: the caller's promise.
    unsafe { S::copy_sign(numbers, S::splat(1.0)) }
}

/// The same, where the size of the `largest` is known.
///
/// # Safety
///
/// As [`round`].
#[inline(always)]
unsafe fn round_by<S: Simd>(largest: f32, numbers: *const f32, length: usize, pairs: *mut i32) -> f32 {
    // SAFETY: the caller's promise.
    unsafe {
        let factor = S::splat(if largest > SMALLEST { LARGEST / largest } else { 0.0 });
        for at in (0..length).step_by(2 * S::LANES) {
            let of = [S::load(numbers.add(at)), S::load(numbers.add(at + S::LANES))];
            S::store_pairs(pairs.add(at / 2), S::to_pairs([S::mul(of[0], factor), S::mul(of[1], factor)]));
        }
        if largest.is_finite() { largest / LARGEST } else { f32::NAN }
    }
}

/// Writes the pairs of a tile's rows to columns: [`TILE`] for each two values.
///
/// # Safety
///
/// The processor has the instruction set `S`; levels are there, for `cells` rounded up to a multiple of `LANES`, and room.
#[inline(always)]
pub unsafe fn to_columns<S: Simd>(levels: Levels, cells: usize, to: *mut i32) {
    for first in (0..cells).step_by(S::LANES) {
        for at in (0..levels.size()).step_by(2 * S::LANES) {
            // SAFETY: the caller's promise.
            unsafe {
                let to = to.add(at / 2 * TILE + first);
                S::columns_of_pairs(levels.at(first, at), levels.stride(), to, TILE);
            }
        }
    }
}

/// Writes the pairs of two cells each, by value.
///
/// # Safety
///
/// The processor has the instruction set `S`; levels are there, for `cells` rounded up to an even number, and room.
#[inline(always)]
pub unsafe fn to_pairs_of_cells<S: Simd>(levels: Levels, cells: usize, to: *mut i32) {
    let size = levels.size();
    for at in (0..size).step_by(2 * S::LANES) {
        for cell in (0..cells).step_by(2) {
            // SAFETY: the caller's promise.
            unsafe {
                let [low, high] = S::pairs_of_rows(levels.at(cell, at), levels.at(cell + 1, at));
                let to = to.add(cell / 2 * size + at);
                S::store_pairs(to, low);
                S::store_pairs(to.add(S::LANES), high);
            }
        }
    }
}

/// `to[i][cell] = q[i] . row of the cell`, for all [`TILE`] cells, out of columns.
///
/// # Safety
///
/// The processor has the instruction set `S`; each of `q` has a row's pairs, and each of `to` room for the cells.
#[inline(always)]
pub unsafe fn scores<S: Simd>(q: Each<Rounded>, columns: *const i32, levels: Levels, to: Each<*mut f32>) {
    let pairs = levels.values / 2;
    // SAFETY: the caller's promise; the tile is a multiple of either width.
    unsafe {
        for block in 0..levels.blocks {
            let rows = q.map(|row| Rounded { pairs: row.pairs.add(block * pairs), ..row });
            if S::REGISTERS < 32 {
                add_scores::<S, 2>(rows, columns, levels, block, to);
            } else {
                add_scores::<S, 4>(rows, columns, levels, block, to);
            }
        }
    }
}

/// # Safety
///
/// As [`scores`], for one block of all.
#[inline(always)]
unsafe fn add_scores<S: Simd, const WIDTH: usize>(
    q: Each<Rounded>,
    columns: *const i32,
    levels: Levels,
    block: usize,
    to: Each<*mut f32>,
) {
    let (pairs, has_least) = (levels.values / 2, !levels.least.is_null());
    // SAFETY: the caller's promise.
    unsafe {
        let columns = columns.add(block * pairs * TILE);
        let (scales, least) = (levels.scales.add(block * TILE), levels.least.wrapping_add(block * TILE));
        let of_least = q.map(|row| if has_least { sum_of_pairs(row.pairs, pairs) * row.scale } else { 0.0 });
        for at in (0..TILE).step_by(WIDTH * S::LANES) {
            let sums = products::<S, WIDTH>(q.map(|row| row.pairs), columns.add(at), TILE, pairs);
            for (j, cell) in (at..at + WIDTH * S::LANES).step_by(S::LANES).enumerate() {
                let scale = S::load(scales.add(cell));
                for i in 0..AT_ONCE {
                    let before = if block == 0 { S::splat(0.0) } else { S::load(to[i].add(cell)) };
                    let product = S::mul(S::from_sums(sums[i][j]), S::splat(q[i].scale));
                    let mut score = S::mul_add(product, scale, before);
                    if has_least {
                        score = S::mul_add(S::splat(of_least[i]), S::load(least.add(cell)), score);
                    }
                    S::store(to[i].add(cell), score);
                }
            }
        }
    }
}

/// # Safety
///
/// They are there.
unsafe fn sum_of_pairs(pairs: *const i32, count: usize) -> f32 {
    // SAFETY: the caller's promise; a pair is two numbers.
    let numbers = unsafe { std::slice::from_raw_parts(pairs.cast::<i16>(), 2 * count) };
    numbers.iter().map(|number| i32::from(*number)).sum::<i32>() as f32
}

/// The weights of a row's cells, by block of V: each times its cell's scale, rounded.
#[derive(Clone, Copy, Debug)]
pub struct Weights {
    /// By block, the pairs of a tile's cells.
    pub pairs: *mut i32,
    /// By block.
    pub scales: *mut f32,
    /// By block: what the least values add to each of its values.
    pub least: *mut f32,
}

impl Weights {
    /// Rounds the weights of a row. What a cell of no weight has does not matter, as long as it is finite.
    ///
    /// # Safety
    ///
    /// The processor has the instruction set `S`; scales are there, and room.
    #[inline(always)]
    pub unsafe fn round<S: Simd>(self, weights: &[f32; TILE], levels: Levels) {
        let (mut scaled, weights) = ([0.0; TILE], weights.as_ptr());
        // SAFETY: the caller's promise.
        unsafe {
            for block in 0..levels.blocks {
                let scales = levels.scales.add(block * TILE);
                let mut largest = S::splat(0.0);
                for at in (0..TILE).step_by(S::LANES) {
                    let weight = S::mul(S::load(weights.add(at)), S::load(scales.add(at)));
                    largest = S::max(magnitude::<S>(weight), largest);
                    S::store(scaled.as_mut_ptr().add(at), weight);
                }
                let pairs = self.pairs.add(block * PAIRS);
                let scale = round_by::<S>(S::largest(largest), scaled.as_ptr(), TILE, pairs);
                self.scales.add(block).write(scale);
                let mut sum = S::splat(0.0);
                if !levels.least.is_null() {
                    let least = levels.least.add(block * TILE);
                    for at in (0..TILE).step_by(S::LANES) {
                        sum = S::mul_add(S::load(weights.add(at)), S::load(least.add(at)), sum);
                    }
                }
                self.least.add(block).write(S::sum(sum));
            }
        }
    }
}

/// `to[i] = factors[i] * to[i] + (weights[i][cell] * row of the cell)`, summed up for all cells, out of pairs of cells.
///
/// # Safety
///
/// The processor has the instruction set `S`; `pairs` has those of `cells`, rounded up to an even number, and each of `to` a row.
#[inline(always)]
pub unsafe fn add_weighted<S: Simd>(
    weights: Each<Weights>,
    pairs: *const i32,
    levels: Levels,
    cells: usize,
    (factors, to): (Each<f32>, Each<*mut f32>),
) {
    // SAFETY: the caller's promise.
    unsafe {
        if S::REGISTERS < 32 || !levels.values.is_multiple_of(4 * S::LANES) {
            add_some_weighted::<S, 2>(weights, pairs, levels, cells, (factors, to));
        } else {
            add_some_weighted::<S, 4>(weights, pairs, levels, cells, (factors, to));
        }
    }
}

/// # Safety
///
/// As [`add_weighted`]; a block is a multiple of `WIDTH` vectors.
#[inline(always)]
unsafe fn add_some_weighted<S: Simd, const WIDTH: usize>(
    weights: Each<Weights>,
    pairs: *const i32,
    levels: Levels,
    cells: usize,
    (factors, to): (Each<f32>, Each<*mut f32>),
) {
    // SAFETY: the caller's promise.
    unsafe {
        for at in (0..levels.size()).step_by(WIDTH * S::LANES) {
            let block = at / levels.values;
            let rows = weights.map(|row| row.pairs.add(block * PAIRS).cast_const());
            let sums = products::<S, WIDTH>(rows, pairs.add(at), levels.size(), cells.div_ceil(2));
            for i in 0..AT_ONCE {
                let scale = S::splat(*weights[i].scales.add(block));
                let least = S::splat(*weights[i].least.add(block));
                for (j, sum) in sums[i].into_iter().enumerate() {
                    let to = to[i].add(at + j * S::LANES);
                    let more = S::mul_add(S::from_sums(sum), scale, least);
                    S::store(to, S::mul_add(S::load(to), S::splat(factors[i]), more));
                }
            }
        }
    }
}

/// `a[i] b`, where `b` has `count` rows of pairs: `WIDTH` vectors of sums for each.
///
/// # Safety
///
/// The processor has the instruction set `S`; each of `a` has `count` pairs, and each row of `b` as many vectors.
#[inline(always)]
unsafe fn products<S: Simd, const WIDTH: usize>(
    a: Each<*const i32>,
    b: *const i32,
    b_stride: usize,
    count: usize,
) -> Each<[S::Pairs; WIDTH]> {
    // SAFETY: the caller's promise.
    unsafe {
        let mut sums = [[S::no_products(); WIDTH]; AT_ONCE];
        for row in 0..count {
            let mut vectors = [S::no_products(); WIDTH];
            for (j, vector) in vectors.iter_mut().enumerate() {
                *vector = S::load_pairs(b.add(row * b_stride + j * S::LANES));
            }
            for (sums, a) in sums.iter_mut().zip(a) {
                let pair = S::splat_pair(*a.add(row));
                for (sum, vector) in sums.iter_mut().zip(vectors) {
                    *sum = S::add_products(pair, vector, *sum);
                }
            }
        }
        sums
    }
}
