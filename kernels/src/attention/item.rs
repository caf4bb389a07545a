//! One work item: a block of query rows over a chunk of the cells.

use std::ffi::c_void;

use super::active_rows::{Active, Token};
use super::division::{Item, ROWS, padded};
use super::encoding::Lines;
use super::int16;
use super::kv_type::{Floating, InPlace, KvType, Quantized};
use super::matrix::{
    AT_ONCE, Each, Numbers, is_finite, rows_by_columns, rows_by_columns_but_for_zeros, scale_and_add,
};
use super::problem::{Cells, Problem, TILE, Types};
use super::scratch::{OfHead, OfTile, Scratch};
use super::softmax::{State, cap, weigh};
use super::tile::{Quants, Tile};
use crate::simd::Simd;

/// Result of an item for one of its rows.
pub struct RowResult<'a> {
    /// The token.
    pub token: usize,
    /// The head of Q.
    pub head: usize,
    /// Maximum and sum of the weights.
    pub state: State,
    /// The weighted sum of the values.
    pub sums: &'a mut [f32],
}

/// Location of a tile.
struct TileLocation<'a> {
    /// The cache, or the cells of the residual window beside it.
    cells: &'a Cells,
    /// Types of K and V.
    types: (KvType, KvType),
    /// Index of the tile among these cells.
    tile: usize,
    /// Number of cells in it.
    count: usize,
}

/// One work item of a problem.
pub struct Task<'a> {
    /// The problem.
    pub problem: &'a Problem,
    /// Types of the problem's cells.
    pub types: Types,
    /// The item.
    pub item: Item,
}

impl Task<'_> {
    /// Computes the item and passes each row's result to `take`.
    ///
    /// # Safety
    ///
    /// The processor has the instruction set `S`, and the problem's pointers are valid for its sizes and strides.
    #[inline(always)]
    pub unsafe fn run<S: Simd>(&self, scratch: &mut Scratch<'_>, mut take: impl FnMut(RowResult<'_>)) {
        // SAFETY: per this function's contract the processor has `S` and the problem's pointers are valid.
        unsafe {
            for number in 0..self.item.kv_heads {
                self.begin::<S>(number, &mut scratch.of_head(number).0);
            }
            for tile in self.item.tile..self.item.tile_end {
                self.take_tile::<S>(&self.place(tile), scratch);
            }
        }
        let value = padded(self.problem.value_size);
        for number in 0..self.item.kv_heads {
            let (of_head, _) = scratch.of_head(number);
            for row in 0..self.item.rows {
                let (token, head, state) = (self.token(row), self.head(number, row), of_head.state(row));
                let sums = &mut of_head.sums[row * value..][..self.problem.value_size as usize];
                take(RowResult { token, head, state, sums });
            }
        }
    }

    /// Locates a tile; tiles of the residual window come after those of the cache.
    fn place(&self, tile: usize) -> TileLocation<'_> {
        let [cache, residual] = &self.problem.cells;
        let (cells, types, tile) = match tile.checked_sub(cache.tile_count()) {
            None => (cache, self.types[0], tile),
            Some(tile) => (residual, self.types[1], tile),
        };
        TileLocation { cells, types, tile, count: (cells.count as usize - tile * TILE).min(TILE) }
    }

    fn token(&self, row: usize) -> usize {
        (self.item.row + row) / self.problem.group()
    }

    /// Returns the head of Q of a row, where `number` is the index of its KV head in the item.
    fn head(&self, number: usize, row: usize) -> usize {
        let group = self.problem.group();
        (self.item.kv_head + number) * group + (self.item.row + row) % group
    }

    /// # Safety
    ///
    /// As [`Task::run`].
    #[inline(always)]
    unsafe fn begin<S: Simd>(&self, number: usize, of_head: &mut OfHead<'_>) {
        let problem = self.problem;
        let (key, size) = (padded(problem.key_size), problem.key_size as usize);
        let scale = if problem.softcap == 0.0 { problem.scale } else { problem.scale / problem.softcap };
        for row in 0..self.item.rows {
            let (token, head) = (self.token(row), self.head(number, row));
            // SAFETY: per this function's contract the processor has `S` and the problem's pointers are valid.
            let from = unsafe {
                let at = offset(token, problem.q_token) + offset(head, problem.q_head);
                let at = at + offset(self.item.stream, problem.q_stream);
                std::slice::from_raw_parts(problem.q.byte_add(at).cast::<f32>(), size)
            };
            for (to, from) in of_head.q[row * key..].iter_mut().zip(from) {
                *to = from * scale;
            }
            of_head.slopes[row] = problem.slope(head);
            of_head.set_state(row, State::EMPTY);
        }
        of_head.q[self.item.rows * key..].fill(0.0);
        if self.types.iter().any(|(key, _)| matches!(key, KvType::Quantized(_))) {
            // SAFETY: per this function's contract the processor has `S` and the problem's pointers are valid.
            unsafe { self.round_rows::<S>(size, of_head) };
        }
        of_head.sums.fill(0.0);
    }

    /// Quantizes Q to int16, and the row of zeros after the last. Rows of a quantized K have no padding.
    ///
    /// # Safety
    ///
    /// As [`Task::run`].
    #[inline(always)]
    unsafe fn round_rows<S: Simd>(&self, size: usize, of_head: &mut OfHead<'_>) {
        let pairs = of_head.q_pairs.as_mut_ptr().cast::<i32>();
        for (row, scale) in of_head.q_scales.iter_mut().enumerate().take(self.item.rows + 1) {
            let q = of_head.q[row * size..].as_ptr();
            // SAFETY: per this function's contract the processor has `S`; the rows lie in `of_head`.
            unsafe {
                let rounded = int16::round::<S>(q, size, pairs.add(row * size / 2));
                *scale = if is_finite::<S>(q, size) { rounded } else { f32::NAN };
            }
        }
    }

    /// # Safety
    ///
    /// As [`Task::run`].
    #[inline(always)]
    unsafe fn take_tile<S: Simd>(&self, place: &TileLocation<'_>, scratch: &mut Scratch<'_>) {
        // SAFETY: per this function's contract the processor has `S` and the problem's pointers are valid.
        unsafe {
            let active = self.active::<S>(place, scratch.tile.mask);
            if active.count == 0 {
                return;
            }
            // The KV heads of a cell are adjacent in memory, and sequential access is fastest.
            for number in 0..self.item.kv_heads {
                let (mut of_head, of_tile) = scratch.of_head(number);
                score::<S>(&self.keys(number, place), &active, &of_head, of_tile);
                self.weigh::<S>(place, &active, &mut of_head, of_tile);
                let values = self.values(number, place);
                // Upstream computes exactly with F32 keys, and so does this kernel.
                let is_exact = place.types.0 == KvType::F32;
                add_values::<S>(&values, is_exact, &active, &mut of_head, of_tile);
            }
        }
    }

    /// Finds the rows that attend to the tile, and reads their tokens' masks.
    ///
    /// # Safety
    ///
    /// As [`Task::run`].
    #[inline(always)]
    unsafe fn active<S: Simd>(&self, place: &TileLocation<'_>, masks: &mut [f32]) -> Active {
        let (cells, stream) = (place.cells, self.item.stream);
        let tokens = self.token(0)..self.token(self.item.rows - 1) + 1;
        let mut sees = [false; ROWS];
        for (at, mask) in masks.as_chunks_mut::<TILE>().0.iter_mut().take(tokens.len()).enumerate() {
            let token = Token { cells, stream, token: tokens.start + at };
            // SAFETY: per this function's contract the processor has `S` and the problem's pointers are valid.
            sees[at] = unsafe { token.sees::<S>(place.tile, place.count, mask) };
        }
        let group = self.problem.group();
        Active::new(self.item.rows, (group, self.item.row % group), &sees[..tokens.len()])
    }

    /// Turns scores into softmax weights.
    ///
    /// # Safety
    ///
    /// As [`Task::run`].
    #[inline(always)]
    unsafe fn weigh<S: Simd>(
        &self,
        place: &TileLocation<'_>,
        active: &Active,
        of_head: &mut OfHead<'_>,
        of_tile: &mut OfTile<'_>,
    ) {
        let (masks, scores) = (of_tile.mask.as_chunks::<TILE>().0, of_tile.scores.as_mut_ptr());
        for (first, rows) in active.blocks() {
            let count = AT_ONCE.min(active.count - first);
            let mut states = [State::EMPTY; AT_ONCE];
            // SAFETY: per this function's contract the processor has `S`; the scores have space for all rows of a
            // block.
            unsafe {
                let scores = rows_from(scores.add(first * TILE), TILE);
                for i in 0..count {
                    states[i] = of_head.state(rows[i]);
                    let mask = &masks[active.token(first + i)];
                    self.adjust::<S>(place, of_head.slopes[rows[i]], mask, scores[i]);
                }
                let factors = weigh::<S>(scores, &mut states);
                for i in 0..count {
                    of_head.set_state(rows[i], states[i]);
                    of_tile.factors[first + i] = factors[i];
                }
                let factors = of_tile.factors[first..].iter_mut();
                for (scores, factor) in scores.into_iter().zip(factors).skip(count) {
                    scores.write_bytes(0, TILE);
                    *factor = 0.0;
                }
            }
        }
    }

    /// Applies softcap and mask.
    ///
    /// # Safety
    ///
    /// As [`Task::run`].
    #[inline(always)]
    unsafe fn adjust<S: Simd>(
        &self,
        place: &TileLocation<'_>,
        slope: f32,
        mask: &[f32; TILE],
        scores: *mut f32,
    ) {
        let problem = self.problem;
        let has_mask = !place.cells.mask.is_null() || place.count < TILE;
        for at in (0..TILE).step_by(S::LANES) {
            // SAFETY: per this function's contract the processor has `S`; `scores` and `mask` have `TILE` values.
            unsafe {
                let to = scores.add(at);
                if problem.softcap != 0.0 {
                    S::store(to, cap::<S>(S::load(to), problem.softcap));
                }
                if has_mask {
                    let mask = S::load(mask.as_ptr().add(at));
                    // Masked cells must not contribute, even if they hold NaN or Inf.
                    S::store(to, S::unless_hidden(mask, S::mul_add(S::splat(slope), mask, S::load(to))));
                }
            }
        }
    }

    fn keys(&self, number: usize, place: &TileLocation<'_>) -> Tile<KvType> {
        let cells = place.cells;
        let strides = [cells.k_cell, cells.k_head, cells.k_stream];
        self.tile(cells.k, strides, place.types.0, self.problem.key_size, (number, place))
    }

    fn values(&self, number: usize, place: &TileLocation<'_>) -> Tile<KvType> {
        let cells = place.cells;
        let strides = [cells.v_cell, cells.v_head, cells.v_stream];
        self.tile(cells.v, strides, place.types.1, self.problem.value_size, (number, place))
    }

    fn tile(
        &self,
        all: *const c_void,
        strides: [u64; 3],
        kind: KvType,
        size: u32,
        (number, place): (usize, &TileLocation<'_>),
    ) -> Tile<KvType> {
        let [stride, of_head, _] = strides.map(|bytes| bytes as usize);
        let (first, size) = (self.first(all, strides, number, place.tile), size as usize);
        // Sequential access is fastest: the first head prefetches the cell's rows of all heads.
        let of_cell = self.item.kv_heads * of_head;
        let ahead = match of_cell <= stride {
            true if number == 0 => of_cell,
            true => 0,
            false => kind.row_bytes(size).unwrap_or(0),
        };
        Tile { lines: Lines { first, stride, ahead }, cells: place.count, size, kind }
    }

    /// Returns the address of a tile's first cell.
    fn first(
        &self,
        all: *const c_void,
        [of_cell, of_head, of_stream]: [u64; 3],
        number: usize,
        tile: usize,
    ) -> *const u8 {
        let stream = self.item.stream / (self.problem.streams / self.problem.kv_streams) as usize;
        let at = offset(stream, of_stream) + offset(self.item.kv_head + number, of_head);
        all.wrapping_byte_add(at + offset(tile * TILE, of_cell)).cast()
    }
}

/// Computes the scores of the rows that attend to a tile.
///
/// # Safety
///
/// The processor has the instruction set `S`, and the tile is readable.
#[inline(always)]
unsafe fn score<S: Simd>(
    keys: &Tile<KvType>,
    active: &Active,
    of_head: &OfHead<'_>,
    of_tile: &mut OfTile<'_>,
) {
    // SAFETY: per this function's contract the processor has `S` and the tile is readable.
    unsafe {
        match (keys.in_place::<S>(active.count), keys.kind) {
            (Some(keys), _) => score_in_place::<S>(&keys, active, of_head, of_tile),
            (None, KvType::Floating(kind)) => score_floating::<S>(&keys.of(kind), active, of_head, of_tile),
            (None, KvType::Quantized(kind)) => score_quantized::<S>(&keys.of(kind), active, of_head, of_tile),
        }
    }
}

/// # Safety
///
/// As [`score`].
#[inline(always)]
unsafe fn score_in_place<S: Simd>(
    keys: &Tile<InPlace>,
    active: &Active,
    of_head: &OfHead<'_>,
    of_tile: &mut OfTile<'_>,
) {
    let scores = of_tile.scores.as_mut_ptr();
    for (at, rows) in active.blocks() {
        // SAFETY: per this function's contract the processor has `S` and the tile is readable.
        unsafe {
            keys.scores::<S>(of_head.rows_of_q(rows, keys.size), rows_from(scores.add(at * TILE), TILE))
        };
    }
}

/// # Safety
///
/// As [`score`].
#[inline(always)]
unsafe fn score_floating<S: Simd>(
    keys: &Tile<Floating>,
    active: &Active,
    of_head: &OfHead<'_>,
    of_tile: &mut OfTile<'_>,
) {
    let (k, scores) = (of_tile.k.as_mut_ptr(), of_tile.scores.as_mut_ptr());
    // SAFETY: per this function's contract the processor has `S` and the tile is readable.
    unsafe {
        keys.decode_to_columns::<S>(of_tile.some_k.as_mut_ptr(), k);
        for (at, rows) in active.blocks() {
            let (q, to) = (of_head.rows_of_q(rows, keys.size), rows_from(scores.add(at * TILE), TILE));
            rows_by_columns::<S, _>(q, Numbers { first: k, stride: TILE }, keys.size, TILE, to);
        }
    }
}

/// # Safety
///
/// As [`score`].
#[inline(always)]
unsafe fn score_quantized<S: Simd>(
    keys: &Tile<Quantized>,
    active: &Active,
    of_head: &OfHead<'_>,
    of_tile: &mut OfTile<'_>,
) {
    let (buffers, columns) = (of_tile.buffers(), of_tile.k.as_mut_ptr().cast());
    let scores = of_tile.scores.as_mut_ptr();
    // SAFETY: per this function's contract the processor has `S` and the tile is readable.
    unsafe {
        let quants = keys.read::<S>(buffers);
        int16::to_columns::<S>(quants, keys.cells, columns);
        for (at, rows) in active.blocks() {
            let q = rows.map(|row| of_head.rounded(row, keys.size));
            int16::scores::<S>(q, columns, quants, rows_from(scores.add(at * TILE), TILE));
        }
    }
}

/// Adds a tile's weighted values to the sums of the rows that attend to it.
///
/// # Safety
///
/// The processor has the instruction set `S`, and the tile is readable.
#[inline(always)]
unsafe fn add_values<S: Simd>(
    values: &Tile<KvType>,
    is_exact: bool,
    active: &Active,
    of_head: &mut OfHead<'_>,
    of_tile: &mut OfTile<'_>,
) {
    // SAFETY: per this function's contract the processor has `S` and the tile is readable.
    unsafe {
        match (values.in_place::<S>(active.count), values.kind) {
            (None, KvType::Quantized(kind)) if !is_exact => {
                let quants = values.of(kind).read::<S>(of_tile.buffers());
                add_whole::<S>(values, quants, active, of_head, of_tile);
            }
            (in_place, _) => add_numbers::<S>((values, in_place), active, of_head, of_tile),
        }
    }
}

/// # Safety
///
/// As [`add_values`]; `quants` are the quants of the tile.
#[inline(always)]
unsafe fn add_whole<S: Simd>(
    values: &Tile<KvType>,
    quants: Quants,
    active: &Active,
    of_head: &mut OfHead<'_>,
    of_tile: &mut OfTile<'_>,
) {
    let (pairs, mut weights, size) = (of_tile.v.as_mut_ptr().cast(), of_tile.weights(), values.size);
    // SAFETY: per this function's contract the processor has `S` and the tile is readable.
    unsafe {
        let infinite = if quants.are_finite::<S>() { None } else { Some(quants.without_infinite()) };
        if infinite.is_some() {
            values.decode::<S>(of_tile.k.as_mut_ptr());
        }
        let largest_scales = quants.largest_scales::<S>();
        int16::to_pairs_of_cells::<S>(quants, values.cells, pairs);
        for (at, rows) in active.blocks() {
            let (mut in_numbers, mut of_rows) = ([false; AT_ONCE], [NOTHING.as_ptr(); AT_ONCE]);
            for i in 0..AT_ONCE {
                let of_row = &of_tile.scores.as_chunks::<TILE>().0[at + i];
                in_numbers[i] = infinite.is_some_and(|cells| sees_any(of_row, &cells));
                if !in_numbers[i] {
                    of_rows[i] = of_row.as_ptr();
                }
            }
            int16::round_weights::<S>(of_rows, &largest_scales, quants, &mut weights);
            let factors = std::array::from_fn(|i| of_tile.factors[at + i]);
            let first = of_head.sums.as_mut_ptr();
            let sums = rows.map(|row| first.wrapping_add(row * size));
            int16::add_weighted::<S>(weights, pairs, quants, values.cells, (factors, sums));
            if in_numbers.contains(&true) {
                add_infinite::<S>(values, (at, in_numbers), of_tile, sums);
            }
        }
    }
}

/// Weights of a row that contributes nothing.
static NOTHING: [f32; TILE] = [0.0; TILE];

/// Returns whether any of the marked cells has a nonzero weight.
fn sees_any(weights: &[f32; TILE], cells: &[bool; TILE]) -> bool {
    weights.iter().zip(cells).any(|(weight, is_one)| *is_one && *weight != 0.0)
}

/// Adds the tile in f32 to a few rows that attend to an infinity in it. The tile was decoded into the buffer of K.
///
/// # Safety
///
/// As [`add_values`].
#[inline(always)]
unsafe fn add_infinite<S: Simd>(
    values: &Tile<KvType>,
    (at, is_meant): (usize, Each<bool>),
    of_tile: &mut OfTile<'_>,
    sums: Each<*mut f32>,
) {
    let decoded = Numbers { first: of_tile.k.as_ptr(), stride: values.size };
    let more = rows_from(of_tile.more.as_mut_ptr(), values.size);
    let weights = std::array::from_fn(|i| of_tile.scores[(at + i) * TILE..][..TILE].as_ptr());
    // SAFETY: per this function's contract the processor has `S` and the tile is readable.
    unsafe {
        rows_by_columns_but_for_zeros::<S, _>(weights, decoded, values.cells, values.size, more);
        for i in (0..AT_ONCE).filter(|i| is_meant[*i]) {
            scale_and_add::<S>(sums[i], 1.0, more[i], values.size);
        }
    }
}

/// # Safety
///
/// As [`add_values`].
#[inline(always)]
unsafe fn add_numbers<S: Simd>(
    (values, in_place): (&Tile<KvType>, Option<Tile<InPlace>>),
    active: &Active,
    of_head: &mut OfHead<'_>,
    of_tile: &mut OfTile<'_>,
) {
    let stride = padded(values.size as u32);
    // The padding of rows that are read in place is not written.
    of_tile.more.fill(0.0);
    let (v, weights) = (of_tile.v.as_mut_ptr(), of_tile.scores.as_ptr());
    let (decoded, more) = (Numbers { first: v, stride }, rows_from(of_tile.more.as_mut_ptr(), stride));
    // SAFETY: per this function's contract the processor has `S` and the tile is readable.
    unsafe {
        if in_place.is_none() {
            values.decode::<S>(v);
        }
        for (at, rows) in active.blocks() {
            let weights = std::array::from_fn(|i| weights.add((at + i) * TILE));
            match &in_place {
                Some(values) => values.weighted::<S>(weights, more),
                None => rows_by_columns::<S, _>(weights, decoded, values.cells, stride, more),
            }
            // An infinity or NaN in a masked cell must not change a row by a single bit.
            if !is_finite::<S>(more[0], AT_ONCE * stride) {
                values.decode::<S>(v);
                rows_by_columns_but_for_zeros::<S, _>(weights, decoded, values.cells, stride, more);
            }
            for (i, row) in rows.into_iter().enumerate() {
                let sums = of_head.sums[row * stride..][..stride].as_mut_ptr();
                scale_and_add::<S>(sums, of_tile.factors[at + i], more[i], stride);
            }
        }
    }
}

/// Returns pointers to the first [`AT_ONCE`] rows of a matrix.
fn rows_from(first: *mut f32, stride: usize) -> Each<*mut f32> {
    std::array::from_fn(|i| first.wrapping_add(i * stride))
}

fn offset(number: usize, stride: u64) -> usize {
    number * stride as usize
}
