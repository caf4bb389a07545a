//! The memory of one thread, taken apart. Rows are padded to whole vectors.

use super::division::{Division, padded};
use super::matrix::AT_ONCE;
use super::problem::{Problem, TILE};
use super::simd::MOST_LANES;
use super::softmax::State;

/// Memory of one thread.
pub struct Scratch<'a> {
    heads: &'a mut [f32],
    sizes: Sizes,
    /// What one tile needs.
    pub tile: OfTile<'a>,
}

/// What is kept for each row that reads one head of K and V.
pub struct OfHead<'a> {
    /// Rows of Q, times the scale; the one after the last is zero.
    pub q: &'a mut [f32],
    /// What rows have summed up; what is in the one after the last means nothing.
    pub sums: &'a mut [f32],
    /// What the mask of each row is multiplied by.
    pub slopes: &'a mut [f32],
    maxima: &'a mut [f32],
    totals: &'a mut [f32],
}

/// What is needed while a tile is read, by one head of K and V after the other.
pub struct OfTile<'a> {
    /// The mask of each token of the block.
    pub mask: &'a mut [f32],
    /// A tile of K, by columns.
    pub k: &'a mut [f32],
    /// Some rows of K.
    pub some_k: &'a mut [f32],
    /// A tile of V.
    pub v: &'a mut [f32],
    /// Scores, then weights, of the rows that see the tile.
    pub scores: &'a mut [f32],
    /// By their place among the rows that see the tile: what their sums so far are to be multiplied with.
    pub factors: &'a mut [f32],
    /// What a few rows get of the tile.
    pub more: &'a mut [f32],
}

#[derive(Clone, Copy)]
struct Sizes {
    heads: usize,
    rows: usize,
    key: usize,
    value: usize,
}

impl Sizes {
    fn new(problem: &Problem, division: &Division) -> Sizes {
        let (key, value) = (padded(problem.key_size), padded(problem.value_size));
        Sizes { heads: division.heads_at_once, rows: division.block_rows(), key, value }
    }

    fn of_head(self) -> [usize; 5] {
        [(self.rows + 1) * self.key, (self.rows + 1) * self.value, self.rows, self.rows, self.rows]
    }

    fn of_tile(self) -> [usize; 7] {
        let rows = self.rows.next_multiple_of(AT_ONCE);
        let keys = [self.key * TILE, MOST_LANES * self.key];
        [self.rows * TILE, keys[0], keys[1], TILE * self.value, rows * TILE, rows, AT_ONCE * self.value]
    }
}

fn split<const PARTS: usize>(mut memory: &mut [f32], lengths: [usize; PARTS]) -> [&mut [f32]; PARTS] {
    lengths.map(|length| memory.split_off_mut(..length).expect("the memory is as long as all parts"))
}

impl<'a> Scratch<'a> {
    /// How many numbers it takes.
    #[must_use]
    pub fn length(problem: &Problem, division: &Division) -> usize {
        let sizes = Sizes::new(problem, division);
        sizes.heads * sizes.of_head().iter().sum::<usize>() + sizes.of_tile().iter().sum::<usize>()
    }

    /// Takes [`Scratch::length`] numbers apart.
    ///
    /// # Panics
    ///
    /// There are fewer.
    #[must_use]
    pub fn new(problem: &Problem, division: &Division, memory: &'a mut [f32]) -> Scratch<'a> {
        let sizes = Sizes::new(problem, division);
        let (heads, rest) = memory.split_at_mut(sizes.heads * sizes.of_head().iter().sum::<usize>());
        // The padding of a row stays zero.
        heads.fill(0.0);
        let [mask, k, some_k, v, scores, factors, more] = split(rest, sizes.of_tile());
        Scratch { heads, sizes, tile: OfTile { mask, k, some_k, v, scores, factors, more } }
    }

    /// The part of the head with this number among those of an item, and what a tile needs.
    pub fn of_head(&mut self, number: usize) -> (OfHead<'_>, &mut OfTile<'a>) {
        let lengths = self.sizes.of_head();
        let length: usize = lengths.iter().sum();
        let [q, sums, slopes, maxima, totals] = split(&mut self.heads[number * length..][..length], lengths);
        (OfHead { q, sums, slopes, maxima, totals }, &mut self.tile)
    }
}

impl OfHead<'_> {
    /// Maximum and sum of a row's weights so far.
    #[must_use]
    pub fn state(&self, row: usize) -> State {
        State { maximum: self.maxima[row], sum: self.totals[row] }
    }

    /// Sets them.
    pub fn set_state(&mut self, row: usize, state: State) {
        (self.maxima[row], self.totals[row]) = (state.maximum, state.sum);
    }
}

impl OfTile<'_> {
    /// The scores of a row, by its place among those that see the tile.
    pub fn scores_of(&mut self, at: usize) -> &mut [f32; TILE] {
        &mut self.scores.as_chunks_mut::<TILE>().0[at]
    }
}
