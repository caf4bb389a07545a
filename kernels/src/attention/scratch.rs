//! The scratch memory of one thread, split into buffers. Rows are padded to whole vectors.

use super::blocks::MIN_OF_BLOCK;
use super::division::{Division, padded};
use super::int16::{Rounded, Weights};
use super::kv_type::KvType;
use super::matrix::{AT_ONCE, Each};
use super::problem::{Problem, TILE};
use super::softmax::State;
use super::tile::QuantBuffers;
use crate::simd::MAX_LANES;

/// Scratch memory of one thread.
pub struct Scratch<'a> {
    heads: &'a mut [f32],
    sizes: Sizes,
    /// Buffers for one tile.
    pub tile: OfTile<'a>,
}

/// Buffers for the rows that share one KV head.
pub struct OfHead<'a> {
    /// Rows of Q, times the scale; the one after the last is zero.
    pub q: &'a mut [f32],
    /// The same rows, quantized to int16 pairs.
    pub q_pairs: &'a mut [f32],
    /// Scales of the quantized rows.
    pub q_scales: &'a mut [f32],
    /// Output accumulators of the rows; the one after the last is unspecified.
    pub sums: &'a mut [f32],
    /// Factor of each row's mask (ALiBi slope).
    pub slopes: &'a mut [f32],
    maxima: &'a mut [f32],
    totals: &'a mut [f32],
}

/// Buffers used while a tile is read, by one KV head after the other.
pub struct OfTile<'a> {
    /// The mask of each token of the block.
    pub mask: &'a mut [f32],
    /// A tile of K, by columns: floats, or int16 pairs.
    pub k: &'a mut [f32],
    /// Some rows of K.
    pub some_k: &'a mut [f32],
    /// A tile of V: floats, or int16 pairs.
    pub v: &'a mut [f32],
    /// Scores, then softmax weights, of the rows that attend to the tile.
    pub scores: &'a mut [f32],
    /// Factors to rescale the accumulators, by index among the rows that attend to the tile.
    pub factors: &'a mut [f32],
    /// Contributions of the tile to a few rows.
    pub more: &'a mut [f32],
    quants: &'a mut [f32],
    numbers: [&'a mut [f32]; 2],
    halves: &'a mut [f32],
    weights: [&'a mut [f32]; 2],
    blocks: usize,
}

#[derive(Clone, Copy)]
struct Sizes {
    heads: usize,
    rows: usize,
    key: usize,
    value: usize,
    /// The longest row that may be quantized.
    whole: usize,
}

impl Sizes {
    fn new(problem: &Problem, division: &Division) -> Sizes {
        let (key, value) = (padded(problem.key_size), padded(problem.value_size));
        let is_whole = |kind: KvType| matches!(kind, KvType::Quantized(_));
        let any =
            problem.types().is_some_and(|types| types.iter().any(|(k, v)| is_whole(*k) || is_whole(*v)));
        let whole = if any { key.max(value).next_multiple_of(MIN_OF_BLOCK) } else { 0 };
        Sizes { heads: division.heads_at_once, rows: division.block_rows(), key, value, whole }
    }

    fn of_head(self) -> [usize; 7] {
        let (rows, pairs) = (self.rows + 1, self.whole / 2);
        [rows * self.key, rows * pairs, rows, rows * self.value, self.rows, self.rows, self.rows]
    }

    fn of_tile(self) -> [usize; 13] {
        let rows = self.rows.next_multiple_of(AT_ONCE);
        // V is decoded into the buffer of K if it is not quantized.
        let keys = [self.key.max(self.value) * TILE, MAX_LANES * self.key];
        let quants = TILE * self.whole / size_of::<f32>();
        let (blocks, numbers) = (self.blocks(), self.blocks() * TILE);
        let of_rows = [AT_ONCE * numbers / 2, AT_ONCE * blocks];
        [
            self.rows * TILE,
            keys[0],
            keys[1],
            TILE * self.value,
            rows * TILE,
            rows,
            AT_ONCE * self.value,
            quants,
            numbers,
            numbers,
            numbers / 2,
            of_rows[0],
            of_rows[1],
        ]
    }

    /// Returns the maximum number of blocks in a row.
    fn blocks(self) -> usize {
        self.whole / MIN_OF_BLOCK
    }
}

fn split<const PARTS: usize>(mut memory: &mut [f32], lengths: [usize; PARTS]) -> [&mut [f32]; PARTS] {
    lengths.map(|length| memory.split_off_mut(..length).expect("the memory is as long as all parts"))
}

impl<'a> Scratch<'a> {
    /// Returns the number of floats it needs.
    #[must_use]
    pub fn length(problem: &Problem, division: &Division) -> usize {
        let sizes = Sizes::new(problem, division);
        sizes.heads * sizes.of_head().iter().sum::<usize>() + sizes.of_tile().iter().sum::<usize>()
    }

    /// Splits [`Scratch::length`] floats into buffers.
    ///
    /// # Panics
    ///
    /// If `memory` is shorter.
    #[must_use]
    pub fn new(problem: &Problem, division: &Division, memory: &'a mut [f32]) -> Scratch<'a> {
        let sizes = Sizes::new(problem, division);
        let (heads, rest) = memory.split_at_mut(sizes.heads * sizes.of_head().iter().sum::<usize>());
        // The padding of a row stays zero.
        heads.fill(0.0);
        let [mask, k, some_k, v, scores, factors, more, rest @ ..] = split(rest, sizes.of_tile());
        let [quants, scales, mins, halves, pairs, sums] = rest;
        let (numbers, weights, blocks) = ([scales, mins], [pairs, sums], sizes.blocks());
        let tile =
            OfTile { mask, k, some_k, v, scores, factors, more, quants, numbers, halves, weights, blocks };
        Scratch { heads, sizes, tile }
    }

    /// Returns the buffers of the KV head `number` of an item, and those of a tile.
    pub fn of_head(&mut self, number: usize) -> (OfHead<'_>, &mut OfTile<'a>) {
        let lengths = self.sizes.of_head();
        let length: usize = lengths.iter().sum();
        let [q, q_pairs, q_scales, sums, slopes, maxima, totals] =
            split(&mut self.heads[number * length..][..length], lengths);
        (OfHead { q, q_pairs, q_scales, sums, slopes, maxima, totals }, &mut self.tile)
    }
}

impl OfHead<'_> {
    /// Returns maximum and sum of a row's weights so far.
    #[must_use]
    pub fn state(&self, row: usize) -> State {
        State { maximum: self.maxima[row], sum: self.totals[row] }
    }

    /// Returns pointers to rows of Q, of `size` floats and their padding.
    #[must_use]
    pub fn rows_of_q(&self, rows: Each<usize>, size: usize) -> Each<*const f32> {
        let stride = padded(size as u32);
        rows.map(|row| self.q[row * stride..][..stride].as_ptr())
    }

    /// Returns a row of Q as int16 values, of which there are `size`.
    #[must_use]
    pub fn rounded(&self, row: usize, size: usize) -> Rounded {
        let pairs = self.q_pairs[row * size / 2..][..size / 2].as_ptr().cast();
        Rounded { pairs, scale: self.q_scales[row] }
    }

    /// Sets maximum and sum of a row's weights.
    pub fn set_state(&mut self, row: usize, state: State) {
        (self.maxima[row], self.totals[row]) = (state.maximum, state.sum);
    }
}

impl OfTile<'_> {
    /// Returns the buffers for the quants of a tile.
    pub fn buffers(&mut self) -> QuantBuffers {
        let [scales, mins] = &mut self.numbers;
        QuantBuffers {
            quants: self.quants.as_mut_ptr().cast(),
            scales: scales.as_mut_ptr(),
            mins: mins.as_mut_ptr(),
            halves: self.halves.as_mut_ptr().cast(),
        }
    }

    /// Returns the buffers for the quantized weights of a few rows.
    pub fn weights(&mut self) -> Each<Weights> {
        let [pairs, mins] = self.weights.each_mut().map(|part| part.as_mut_ptr());
        let blocks = self.blocks;
        std::array::from_fn(|i| Weights {
            pairs: pairs.wrapping_add(i * blocks * TILE / 2).cast(),
            scale: 0.0,
            mins: mins.wrapping_add(i * blocks),
        })
    }
}
