//! Int8 x int16 dot products for quantized caches: a tile's quants stay int8, and the query rows that read it are
//! quantized to int16. Two adjacent values form a pair; one step multiplies a pair with another and accumulates both
//! products.
//!
//! The quantization error of a row of Q is at most half of 1/32767 of its largest magnitude, where upstream quantizes
//! it to int8. Sums are exact within a block of the cache: at most 128 int8 x int16 products, or those of a tile's
//! cells.

use std::ops::Range;

use super::matrix::{AT_ONCE, Each};
use super::problem::TILE;
use super::tile::Quants;
use crate::simd::Simd;

/// Number of pairs of cells in a tile.
const PAIRS: usize = TILE / 2;
/// Largest integer that a row is quantized to.
const LARGEST: f32 = i16::MAX as f32;
/// Rows whose maximum magnitude is below this quantize to zero; the reciprocal scale would overflow.
const SMALLEST: f32 = 1e-30;

/// A row quantized to int16.
#[derive(Clone, Copy, Debug)]
pub struct Rounded {
    /// Pairs.
    pub pairs: *const i32,
    /// Scale: the factor that turns the integers back into the row's values.
    pub scale: f32,
}

/// Quantizes `length` values, a multiple of `2 * LANES`, to int16 and returns the scale. It is NaN if a value is
/// infinite.
///
/// # Safety
///
/// The processor has the instruction set `S`; `numbers` has `length` values, and `pairs` space for half as many pairs.
#[inline(always)]
pub unsafe fn round<S: Simd>(numbers: *const f32, length: usize, pairs: *mut i32) -> f32 {
    // SAFETY: per this function's contract the processor has `S` and the pointers are valid for `length`.
    unsafe {
        let mut largest = S::splat(0.0);
        for at in (0..length).step_by(S::LANES) {
            largest = S::max(S::magnitude(S::load(numbers.add(at))), largest);
        }
        let largest = S::largest(largest);
        let factor = S::splat(factor(largest));
        for at in (0..length).step_by(2 * S::LANES) {
            let of = [S::load(numbers.add(at)), S::load(numbers.add(at + S::LANES))];
            S::store_pairs(pairs.add(at / 2), S::to_pairs([S::mul(of[0], factor), S::mul(of[1], factor)]));
        }
        unit(largest)
    }
}

/// Returns the factor applied before rounding, from the largest magnitude.
fn factor(largest: f32) -> f32 {
    if largest > SMALLEST { LARGEST / largest } else { 0.0 }
}

/// Returns the scale of the integers, from the largest magnitude.
fn unit(largest: f32) -> f32 {
    if largest.is_finite() { largest / LARGEST } else { f32::NAN }
}

/// Transposes the pairs of a tile's rows into columns of [`TILE`] pairs, one column for each two values.
///
/// # Safety
///
/// The processor has the instruction set `S`; `quants` has `cells` rows, rounded up to a multiple of `LANES`, and `to`
/// has space for them.
#[inline(always)]
pub unsafe fn to_columns<S: Simd>(quants: Quants, cells: usize, to: *mut i32) {
    for first in (0..cells).step_by(S::LANES) {
        for at in (0..quants.size()).step_by(2 * S::LANES) {
            // SAFETY: per this function's contract the processor has `S` and both pointers are valid.
            unsafe {
                let to = to.add(at / 2 * TILE + first);
                S::columns_of_pairs(quants.at(first, at), quants.stride(), to, TILE);
            }
        }
    }
}

/// Writes, value by value, the pairs of each two consecutive cells.
///
/// # Safety
///
/// The processor has the instruction set `S`; `quants` has `cells` rows, rounded up to an even number, and `to` has
/// space for them.
#[inline(always)]
pub unsafe fn to_pairs_of_cells<S: Simd>(quants: Quants, cells: usize, to: *mut i32) {
    let size = quants.size();
    for at in (0..size).step_by(2 * S::LANES) {
        for cell in (0..cells).step_by(2) {
            // SAFETY: per this function's contract the processor has `S` and both pointers are valid.
            unsafe {
                let [low, high] = S::pairs_of_rows(quants.at(cell, at), quants.at(cell + 1, at));
                let to = to.add(cell / 2 * size + at);
                S::store_pairs(to, low);
                S::store_pairs(to.add(S::LANES), high);
            }
        }
    }
}

/// Computes `to[i][cell] = q[i] . row of the cell` for all [`TILE`] cells, from columns.
///
/// # Safety
///
/// The processor has the instruction set `S`; each of `q` has a row's pairs, and each of `to` space for [`TILE`]
/// scores.
#[inline(always)]
pub unsafe fn scores<S: Simd>(q: Each<Rounded>, columns: *const i32, quants: Quants, to: Each<*mut f32>) {
    let pairs = quants.values / 2;
    // SAFETY: per this function's contract the pointers are valid; the tile is a multiple of either width.
    unsafe {
        for block in 0..quants.blocks {
            let rows = q.map(|row| Rounded { pairs: row.pairs.add(block * pairs), ..row });
            if S::REGISTERS < 32 {
                add_scores::<S, 2>(rows, columns, quants, block, to);
            } else {
                add_scores::<S, 4>(rows, columns, quants, block, to);
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
    quants: Quants,
    block: usize,
    to: Each<*mut f32>,
) {
    let (pairs, has_min) = (quants.values / 2, !quants.mins.is_null());
    // SAFETY: per this function's contract the processor has `S` and the pointers are valid.
    unsafe {
        let columns = columns.add(block * pairs * TILE);
        let (scales, mins) = (quants.scales.add(block * TILE), quants.mins.wrapping_add(block * TILE));
        let of_min = q.map(|row| if has_min { sum_of_pairs(row.pairs, pairs) } else { 0.0 });
        for at in (0..TILE).step_by(WIDTH * S::LANES) {
            let sums = products::<S, WIDTH, 1>(q.map(|row| [row.pairs]), columns.add(at), TILE, pairs);
            for (j, cell) in (at..at + WIDTH * S::LANES).step_by(S::LANES).enumerate() {
                let scale = S::load(scales.add(cell));
                for i in 0..AT_ONCE {
                    let before = if block == 0 { S::splat(0.0) } else { S::load(to[i].add(cell)) };
                    let mut score = S::mul_add(S::from_sums(sums[i][j]), scale, before);
                    if has_min {
                        score = S::mul_add(S::splat(of_min[i]), S::load(mins.add(cell)), score);
                    }
                    if block == quants.blocks - 1 {
                        score = S::mul(score, S::splat(q[i].scale));
                    }
                    S::store(to[i].add(cell), score);
                }
            }
        }
    }
}

/// # Safety
///
/// `pairs` points to `count` pairs.
unsafe fn sum_of_pairs(pairs: *const i32, count: usize) -> f32 {
    // SAFETY: per this function's contract there are `count` pairs; a pair is two int16 values.
    let numbers = unsafe { std::slice::from_raw_parts(pairs.cast::<i16>(), 2 * count) };
    numbers.iter().map(|number| i32::from(*number)).sum::<i32>() as f32
}

/// Softmax weights of a row, by block of V: each multiplied by its cell's scale, then quantized to int16.
#[derive(Clone, Copy, Debug)]
pub struct Weights {
    /// By block: the pairs of a tile's cells.
    pub pairs: *mut i32,
    /// Scale of the quantized weights.
    pub scale: f32,
    /// By block: the contribution of the blocks' minimums to each value.
    pub mins: *mut f32,
}

/// Quantizes the weights of a few rows. Each row is quantized independently; within a tile its weights share one scale
/// across the blocks of V: `largest_scales` has the largest scale of each cell. So a block of V with far smaller values
/// than another is quantized more coarsely; with values 250 times smaller, as coarsely as upstream quantizes Q. The
/// content of a cell with weight zero does not matter, as long as it is finite.
///
/// # Safety
///
/// The processor has the instruction set `S`; each row has [`TILE`] weights, the scales are readable, and the output
/// has space.
#[inline(always)]
pub unsafe fn round_weights<S: Simd>(
    weights: Each<*const f32>,
    largest_scales: &[f32; TILE],
    quants: Quants,
    to: &mut Each<Weights>,
) {
    // SAFETY: per this function's contract the processor has `S` and the pointers are valid.
    unsafe {
        let mut largest = [S::splat(0.0); AT_ONCE];
        for (largest, weights) in largest.iter_mut().zip(weights) {
            for at in (0..TILE).step_by(S::LANES) {
                let scale = S::load(largest_scales.as_ptr().add(at));
                *largest = S::max(S::mul(S::load(weights.add(at)), scale), *largest);
            }
        }
        let largest = S::largests(largest);
        for (i, to) in to.iter_mut().enumerate() {
            let factor = S::splat(factor(largest[i]));
            to.scale = unit(largest[i]);
            for block in 0..quants.blocks {
                let (scales, pairs) = (quants.scales.add(block * TILE), to.pairs.add(block * PAIRS));
                round_products::<S>(weights[i], factor, scales, pairs);
                let mins = quants.mins.wrapping_add(block * TILE);
                let sum = if quants.mins.is_null() { 0.0 } else { sum_of_products::<S>(weights[i], mins) };
                to.mins.add(block).write(sum);
            }
        }
    }
}

/// Rounds the products of a tile's weights, a factor and its scales to int16.
///
/// # Safety
///
/// The processor has the instruction set `S`; `weights` and `scales` have [`TILE`] values, and `pairs` has space for
/// half as many pairs.
#[inline(always)]
unsafe fn round_products<S: Simd>(weights: *const f32, factor: S::V, scales: *const f32, pairs: *mut i32) {
    for at in (0..TILE).step_by(2 * S::LANES) {
        // SAFETY: per this function's contract the processor has `S` and the pointers are valid for a tile.
        unsafe {
            let (weights, scales) = (weights.add(at), scales.add(at));
            let first = S::mul(S::mul(S::load(weights), factor), S::load(scales));
            let second =
                S::mul(S::mul(S::load(weights.add(S::LANES)), factor), S::load(scales.add(S::LANES)));
            S::store_pairs(pairs.add(at / 2), S::to_pairs([first, second]));
        }
    }
}

/// Returns the dot product of two vectors of [`TILE`] values.
///
/// # Safety
///
/// The processor has the instruction set `S`; `a` and `b` have [`TILE`] values.
#[inline(always)]
unsafe fn sum_of_products<S: Simd>(a: *const f32, b: *const f32) -> f32 {
    // SAFETY: per this function's contract the processor has `S` and both vectors have `TILE` values.
    unsafe {
        let mut sum = S::splat(0.0);
        for at in (0..TILE).step_by(S::LANES) {
            sum = S::mul_add(S::load(a.add(at)), S::load(b.add(at)), sum);
        }
        S::sum(sum)
    }
}

/// Computes `to[i] = factors[i] * to[i] + (weights[i][cell] * row of the cell)`, summed over all cells, from pairs of
/// cells.
///
/// # Safety
///
/// The processor has the instruction set `S`; `pairs` has those of `cells`, rounded up to an even number, and each of
/// `to` has space for a row.
#[inline(always)]
pub unsafe fn add_weighted<S: Simd>(
    weights: Each<Weights>,
    pairs: *const i32,
    quants: Quants,
    cells: usize,
    (factors, to): (Each<f32>, Each<*mut f32>),
) {
    let sums = Sums { weights, pairs, quants, cells, factors, to };
    let of_block = quants.values / S::LANES;
    // SAFETY: per this function's contract the processor has `S` and the pointers are valid.
    unsafe {
        if S::REGISTERS < 32 {
            sums.add::<S, 2, 1>(0..quants.size());
        } else if of_block.is_multiple_of(4) {
            sums.add::<S, 4, 1>(0..quants.size());
        } else {
            // Fewer accumulators would make the additions depend on each other's latency.
            let even = quants.blocks / 2 * 2 * quants.values;
            sums.add::<S, 4, 2>(0..even);
            sums.add::<S, 2, 1>(even..quants.size());
        }
    }
}

/// Arguments of [`add_weighted`].
struct Sums {
    weights: Each<Weights>,
    pairs: *const i32,
    quants: Quants,
    cells: usize,
    factors: Each<f32>,
    to: Each<*mut f32>,
}

impl Sums {
    /// Accumulates a range of values, `WIDTH` vectors at once, which lie in `PARTS` blocks.
    ///
    /// # Safety
    ///
    /// As [`add_weighted`].
    #[inline(always)]
    unsafe fn add<S: Simd, const WIDTH: usize, const PARTS: usize>(&self, values: Range<usize>) {
        let quants = self.quants;
        for at in values.step_by(WIDTH * S::LANES) {
            let first = at / quants.values;
            // SAFETY: as for `add_weighted`, per this function's contract.
            unsafe {
                let mut rows = [[std::ptr::null(); PARTS]; AT_ONCE];
                for (rows, weights) in rows.iter_mut().zip(&self.weights) {
                    for (part, row) in rows.iter_mut().enumerate() {
                        *row = weights.pairs.add((first + part) * PAIRS).cast_const();
                    }
                }
                let count = self.cells.div_ceil(2);
                let sums = products::<S, WIDTH, PARTS>(rows, self.pairs.add(at), quants.size(), count);
                for (i, sums) in sums.into_iter().enumerate() {
                    let scale = S::splat(self.weights[i].scale);
                    for (j, sum) in sums.into_iter().enumerate() {
                        let min = S::splat(*self.weights[i].mins.add(first + j * PARTS / WIDTH));
                        let to = self.to[i].add(at + j * S::LANES);
                        let more = S::mul_add(S::from_sums(sum), scale, min);
                        S::store(to, S::mul_add(S::load(to), S::splat(self.factors[i]), more));
                    }
                }
            }
        }
    }
}

/// Computes `a[i] b`, where `b` has `count` rows of pairs: `WIDTH` vectors of sums for each `i`. The vectors lie in
/// `PARTS` parts, each of which has its own rows of `a`.
///
/// # Safety
///
/// The processor has the instruction set `S`; each of `a` has `count` pairs, and each row of `b` as many vectors.
#[inline(always)]
unsafe fn products<S: Simd, const WIDTH: usize, const PARTS: usize>(
    a: Each<[*const i32; PARTS]>,
    b: *const i32,
    b_stride: usize,
    count: usize,
) -> Each<[S::Pairs; WIDTH]> {
    // SAFETY: per this function's contract the processor has `S` and the rows are that long.
    unsafe {
        let mut sums = [[S::no_products(); WIDTH]; AT_ONCE];
        for row in 0..count {
            let mut vectors = [S::no_products(); WIDTH];
            for (j, vector) in vectors.iter_mut().enumerate() {
                *vector = S::load_pairs(b.add(row * b_stride + j * S::LANES));
            }
            for (sums, a) in sums.iter_mut().zip(a) {
                for (part, a) in a.into_iter().enumerate() {
                    let pair = S::splat_pair(*a.add(row));
                    for j in part * WIDTH / PARTS..(part + 1) * WIDTH / PARTS {
                        sums[j] = S::add_products(pair, vectors[j], sums[j]);
                    }
                }
            }
        }
        sums
    }
}
