//! Division of the work, independent of the number of threads: so the result does not depend on it either.

use super::problem::Problem;
use crate::simd::MAX_LANES;

/// Number of rows of Q that are computed together. A row is a token and one of the heads that share a KV head. Each
/// block reads the cells again: with 16k cells and heads of 128, blocks of 64 rows took 1.14 times as long (Zen 5).
pub const ROWS: usize = 128;

/// Target number of items, so that many threads have work.
const ITEMS: usize = 64;
/// Largest number of chunks that the cells of an item are divided into.
const MAX_CHUNKS: usize = 32;
/// Smallest number of tiles in a chunk.
const MIN_TILES: usize = 2;
/// Largest number of rows in an item, over all its KV heads: their accumulators should stay in the CPU's cache.
const MAX_ROWS: usize = 512;

/// A work item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// The stream of Q.
    pub stream: usize,
    /// The first KV head.
    pub kv_head: usize,
    /// Number of KV heads.
    pub kv_heads: usize,
    /// The first row of the block, for each of these heads.
    pub row: usize,
    /// Number of rows in the block, for each of these heads.
    pub rows: usize,
    /// Index of the chunk of cells.
    pub chunk: usize,
    /// The first tile of the chunk.
    pub tile: usize,
    /// The tile after the last one.
    pub tile_end: usize,
}

/// All items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Division {
    streams: usize,
    kv_heads: usize,
    /// Number of KV heads in an item: as many as possible if there is one block of rows.
    pub heads_at_once: usize,
    rows: usize,
    blocks: usize,
    tiles: usize,
    /// Number of chunks that the cells are divided into; with one there is nothing to merge.
    pub chunks: usize,
}

impl Division {
    /// Divides `problem`.
    #[must_use]
    pub fn new(problem: &Problem) -> Division {
        let (streams, kv_heads) = (problem.streams as usize, problem.kv_heads as usize);
        let rows = problem.tokens as usize * problem.group();
        let blocks = rows.div_ceil(ROWS);
        let tiles = problem.tile_count();
        let fits = |heads: &usize| kv_heads.is_multiple_of(*heads) && heads * rows <= MAX_ROWS;
        let heads_at_once = if blocks > 1 { 1 } else { (1..=kv_heads).rev().find(fits).unwrap_or(1) };
        let chunks = (ITEMS / (streams * (kv_heads / heads_at_once) * blocks)).clamp(1, MAX_CHUNKS);
        let chunks = chunks.min(tiles.div_ceil(MIN_TILES)).max(1);
        Division { streams, kv_heads, heads_at_once, rows, blocks, tiles, chunks }
    }

    /// Returns the number of items.
    #[must_use]
    pub fn items(&self) -> usize {
        self.streams * self.head_groups() * self.blocks * self.chunks
    }

    fn head_groups(&self) -> usize {
        self.kv_heads / self.heads_at_once
    }

    /// Returns the number of rows in a block; the last one may have fewer.
    #[must_use]
    pub fn block_rows(&self) -> usize {
        self.rows.min(ROWS)
    }

    /// Returns the item with this index. Items of the same KV head, which read the same cells, are consecutive.
    #[must_use]
    pub fn item(&self, number: usize) -> Item {
        let (number, chunk) = (number / self.chunks, number % self.chunks);
        let (number, block) = (number / self.blocks, number % self.blocks);
        let (stream, group) = (number / self.head_groups(), number % self.head_groups());
        let row = block * ROWS;
        let boundary = |chunk: usize| chunk * self.tiles / self.chunks;
        Item {
            stream,
            kv_head: group * self.heads_at_once,
            kv_heads: self.heads_at_once,
            row,
            rows: ROWS.min(self.rows - row),
            chunk,
            tile: boundary(chunk),
            tile_end: boundary(chunk + 1),
        }
    }
}

/// Rounds `size` up, so that rows end with whole vectors.
#[must_use]
pub fn padded(size: u32) -> usize {
    (size as usize).next_multiple_of(MAX_LANES)
}

/// Returns the number of floats in a partial result of one row and one chunk: maximum, sum, and the row.
#[must_use]
pub fn partial_length(problem: &Problem) -> usize {
    2 + problem.value_size as usize
}

/// Returns the number of rows of the output.
#[must_use]
pub fn out_rows(problem: &Problem) -> usize {
    [problem.streams, problem.tokens, problem.heads].into_iter().map(|one| one as usize).product()
}

/// Returns the number of floats in the partial results of all rows.
#[must_use]
pub fn partials(problem: &Problem, division: &Division) -> usize {
    if division.chunks == 1 { 0 } else { out_rows(problem) * division.chunks * partial_length(problem) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attention::problem::TILE;
    use crate::attention::testing::problem_of;

    fn division(tokens: u32, heads: u32, kv_heads: u32, cells: u32) -> Division {
        Division::new(&Problem { tokens, heads, kv_heads, ..problem_of(cells) })
    }

    #[test]
    fn every_row_and_every_tile_is_in_one_item() {
        for (tokens, heads, kv_heads, cells) in
            [(1, 8, 2, 1500), (16, 8, 2, 32_768), (512, 8, 2, 512), (3, 5, 1, 1), (1, 128, 1, 64 * 9)]
        {
            let division = division(tokens, heads, kv_heads, cells);
            let mut seen = std::collections::BTreeSet::new();
            for item in (0..division.items()).map(|number| division.item(number)) {
                let heads = item.kv_head..item.kv_head + item.kv_heads;
                let rows = item.row..item.row + item.rows;
                for (head, row) in heads.flat_map(|head| rows.clone().map(move |row| (head, row))) {
                    for tile in item.tile..item.tile_end {
                        assert!(seen.insert((item.stream, head, row, tile)), "{item:?}");
                    }
                }
            }
            let rows = (tokens * heads / kv_heads * kv_heads) as usize;
            assert_eq!(seen.len(), rows * (cells as usize).div_ceil(TILE), "{division:?}");
        }
    }

    #[test]
    fn cells_are_divided_where_rows_are_few() {
        assert_eq!(division(1, 8, 2, 32_768).chunks, 32);
        assert_eq!(division(1, 8, 2, 600).chunks, 5, "not into parts of less than two tiles");
        assert_eq!(division(1024, 8, 2, 32_768).chunks, 1);
        assert_eq!(division(1, 8, 2, 0).items(), 1, "no cell is a result too: that of the sinks");
    }

    #[test]
    fn heads_that_lie_side_by_side_are_read_together_where_rows_are_few() {
        assert_eq!(division(1, 32, 8, 4096).heads_at_once, 8);
        assert_eq!(division(16, 32, 8, 4096).heads_at_once, 8);
        assert_eq!(division(60, 32, 32, 4096).heads_at_once, 8, "their sums would not stay in the cache");
        assert_eq!(division(33, 32, 8, 4096).heads_at_once, 1, "more than a block of rows");
        assert_eq!(division(1, 128, 1, 4096).heads_at_once, 1);
    }
}
