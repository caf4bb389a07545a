//! A tile: the rows of K or V that are read together, as the cache stores them.

use super::blocks::{Blocks, MAX_OF_BLOCK};
use super::division::padded;
use super::encoding::{Encoding, Lines, Rows};
use super::kv_type::{
    Floating, InPlace, KvType, Quantized, with_blocks, with_encoding, with_encoding_in_place,
};
use super::matrix::{AT_ONCE, Each, is_finite, rows_by_columns, rows_by_rows};
use super::problem::TILE;
use crate::simd::{MAX_LANES, Simd, Work};

/// Up to this many rows that attend to a floating-point tile, it is read in place, again for each few of them; for more
/// rows it is decoded once.
const FEW: usize = 8;
/// The same limit for byte quants: converting them to int16 columns does not pay off for so few rows.
const FEW_OF_BYTES: usize = AT_ONCE;

/// Rows of K or V.
#[derive(Clone, Copy, Debug)]
pub struct Tile<Kind> {
    /// Location of the rows.
    pub lines: Lines,
    /// Number of cells: at most [`TILE`].
    pub cells: usize,
    /// Values in a row.
    pub size: usize,
    /// Their type.
    pub kind: Kind,
}

impl<Kind> Tile<Kind> {
    /// Returns the same rows with another type.
    pub fn of<Other>(&self, kind: Other) -> Tile<Other> {
        Tile { lines: self.lines, cells: self.cells, size: self.size, kind }
    }
}

/// Safety, of all methods: the processor has the instruction set, the rows are readable, and the output has space.
#[allow(clippy::missing_safety_doc, reason = "it is the block's")]
impl Tile<KvType> {
    /// Returns the tile as floating-point rows if this many rows should read it in place.
    pub fn in_place<S: Simd>(&self, rows: usize) -> Option<Tile<InPlace>> {
        let is_whole = self.size.is_multiple_of(S::LANES);
        match self.kind {
            KvType::Floating(kind) if rows <= FEW && is_whole => Some(self.of(InPlace::Floating(kind))),
            KvType::Quantized(Quantized::Q8_0) if rows <= FEW_OF_BYTES => Some(self.of(InPlace::Q8_0)),
            KvType::Floating(_) | KvType::Quantized(_) => None,
        }
    }

    /// Writes the rows to `to`, each padded with zeros.
    #[inline(always)]
    pub unsafe fn decode<S: Simd>(&self, to: *mut f32) {
        // SAFETY: per this block's contract.
        unsafe { S::run(Decode { rows: *self, to }) }
    }
}

struct Decode {
    rows: Tile<KvType>,
    to: *mut f32,
}

impl Work for Decode {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Decode { rows, to } = self;
        // SAFETY: per the contract of `Tile::decode`.
        unsafe {
            match rows.kind {
                KvType::Floating(kind) => rows.of(kind).decode::<S>(to),
                KvType::Quantized(kind) => rows.of(kind).decode::<S>(to),
            }
        }
    }
}

/// Safety, of all methods: the processor has the instruction set, the rows are readable, and the output has space.
#[allow(clippy::missing_safety_doc, reason = "it is the block's")]
impl Tile<InPlace> {
    /// Computes `to[i][cell] = a[i] . row of the cell`.
    #[inline(always)]
    pub unsafe fn scores<S: Simd>(&self, a: Each<*const f32>, to: Each<*mut f32>) {
        with_encoding_in_place!(self.kind, encoding => {
            let rows = Rows { lines: self.lines, encoding };
            // SAFETY: per this block's contract the processor has `S`, and rows and output are valid.
            unsafe { rows_by_rows::<S, _>(a, rows, self.cells, self.size, to) }
        });
    }

    /// Computes `to[i] = weights[i][cell] * row of the cell`, summed over all cells.
    #[inline(always)]
    pub unsafe fn weighted<S: Simd>(&self, weights: Each<*const f32>, to: Each<*mut f32>) {
        with_encoding_in_place!(self.kind, encoding => {
            let rows = Rows { lines: self.lines, encoding };
            // SAFETY: per this block's contract the processor has `S`, and rows and output are valid.
            unsafe { rows_by_columns::<S, _>(weights, rows, self.cells, self.size, to) }
        });
    }
}

/// Safety, of all methods: the processor has the instruction set, the rows are readable, and the output has space.
#[allow(clippy::missing_safety_doc, reason = "it is the block's")]
impl Tile<Floating> {
    /// Writes the rows to `to`, each padded with zeros.
    #[inline(always)]
    pub unsafe fn decode<S: Simd>(&self, to: *mut f32) {
        // SAFETY: per this block's contract the processor has `S`, and rows and output are valid.
        unsafe { self.decode_some::<S>(0, self.cells, to) }
    }

    /// Decodes the rows into the columns of `to`, whose rows have [`TILE`] values. `some` has space for a few rows. The
    /// columns after the last cell are unspecified.
    #[inline(always)]
    pub unsafe fn decode_to_columns<S: Simd>(&self, some: *mut f32, to: *mut f32) {
        let stride = padded(self.size as u32);
        for first in (0..self.cells).step_by(S::LANES) {
            // SAFETY: per this block's contract the processor has `S`, and rows and output are valid.
            unsafe {
                self.decode_some::<S>(first, S::LANES.min(self.cells - first), some);
                for at in (0..stride).step_by(S::LANES) {
                    S::transpose(some.add(at), stride, to.add(at * TILE + first), TILE);
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn decode_some<S: Simd>(&self, first: usize, cells: usize, to: *mut f32) {
        with_encoding!(self.kind, encoding => {
            for cell in 0..cells {
                // SAFETY: per this block's contract the processor has `S`, and rows and output are valid.
                unsafe {
                    let row = self.lines.row(first + cell);
                    let to = to.add(cell * padded(self.size as u32));
                    decode_row::<S, _>(encoding, row, (self.size, self.kind.bytes()), to);
                }
            }
        });
    }
}

/// # Safety
///
/// As for the methods of [`Tile`].
#[inline(always)]
unsafe fn decode_row<S: Simd, E: Encoding>(
    encoding: E,
    row: *const u8,
    (size, of_value): (usize, usize),
    to: *mut f32,
) {
    let whole = size / S::LANES * S::LANES;
    // SAFETY: as for the methods of `Tile`, per this function's contract.
    unsafe {
        for at in (0..whole).step_by(S::LANES) {
            S::store(to.add(at), encoding.vector::<S>(row, at));
        }
        if whole < size {
            let mut rest = [0u8; MAX_LANES * size_of::<f32>()];
            let bytes = (size - whole) * of_value;
            row.add(whole * of_value).copy_to_nonoverlapping(rest.as_mut_ptr(), bytes);
            S::store(to.add(whole), encoding.vector::<S>(rest.as_ptr(), 0));
        }
        for at in (size.next_multiple_of(S::LANES)..padded(size as u32)).step_by(S::LANES) {
            S::store(to.add(at), S::splat(0.0));
        }
    }
}

/// Quants of a tile: a value is `quant * scale + min`.
#[derive(Clone, Copy, Debug)]
pub struct Quants {
    /// Quants of the first cell's first block.
    first: *const i8,
    /// Stride between cells.
    of_cell: usize,
    /// Stride between blocks.
    of_block: usize,
    /// Number of blocks in a row.
    pub blocks: usize,
    /// Number of values in a block: a multiple of `2 * LANES`.
    pub values: usize,
    /// Scales by block, then by cell: [`TILE`] values each, zero after the last cell.
    pub scales: *mut f32,
    /// Block minimums in the same order; null for types without them.
    pub mins: *mut f32,
}

impl Quants {
    /// Returns the number of values in a row.
    #[inline(always)]
    pub fn size(self) -> usize {
        self.blocks * self.values
    }

    /// Returns a cell's quants from the value `at` on, as many as are left in its block.
    ///
    /// # Safety
    ///
    /// The cell and the value exist.
    #[inline(always)]
    pub unsafe fn at(self, cell: usize, at: usize) -> *const i8 {
        let inside = at / self.values * self.of_block + at % self.values;
        // SAFETY: per this function's contract the cell and the value exist.
        unsafe { self.first.add(cell * self.of_cell + inside) }
    }

    /// Returns the stride between cells.
    #[inline(always)]
    pub fn stride(self) -> usize {
        self.of_cell
    }

    /// Replaces scales and minimums that are not finite by zero, and returns which cells had them.
    ///
    /// # Safety
    ///
    /// The scales, and the minimums unless null, are readable and writable.
    pub unsafe fn without_infinite(self) -> [bool; TILE] {
        let mut has = [false; TILE];
        for numbers in [self.scales, self.mins].into_iter().filter(|numbers| !numbers.is_null()) {
            // SAFETY: per this function's contract there are `blocks * TILE` values.
            let numbers = unsafe { std::slice::from_raw_parts_mut(numbers, self.blocks * TILE) };
            for (at, number) in numbers.iter_mut().enumerate().filter(|(_, number)| !number.is_finite()) {
                *number = 0.0;
                has[at % TILE] = true;
            }
        }
        has
    }

    /// Returns the largest magnitude of each cell's scales.
    ///
    /// # Safety
    ///
    /// The processor has the instruction set `S`, and the scales are readable.
    #[inline(always)]
    pub unsafe fn largest_scales<S: Simd>(self) -> [f32; TILE] {
        let mut largest = [0.0; TILE];
        for at in (0..self.blocks * TILE).step_by(S::LANES) {
            // SAFETY: per this function's contract the processor has `S` and the scales are readable.
            unsafe {
                let to = largest.as_mut_ptr().add(at % TILE);
                S::store(to, S::max(S::magnitude(S::load(self.scales.add(at))), S::load(to)));
            }
        }
        largest
    }

    /// Returns whether all scales and minimums are finite.
    ///
    /// # Safety
    ///
    /// The processor has the instruction set `S`, and the scales and minimums are readable.
    #[inline(always)]
    pub unsafe fn are_finite<S: Simd>(self) -> bool {
        let count = self.blocks * TILE;
        // SAFETY: per this function's contract the processor has `S` and the values are readable.
        unsafe {
            is_finite::<S>(self.scales, count) && (self.mins.is_null() || is_finite::<S>(self.mins, count))
        }
    }
}

/// Output buffers for the quants of a tile.
#[derive(Clone, Copy, Debug)]
pub struct QuantBuffers {
    /// Space for the quants of [`TILE`] rows.
    pub quants: *mut i8,
    /// Space for one scale for each block of [`TILE`] rows.
    pub scales: *mut f32,
    /// Space for as many minimums.
    pub mins: *mut f32,
    /// Space for as many values in half precision.
    pub halves: *mut u16,
}

/// Safety, of all methods: the processor has the instruction set, the rows are readable, and the output has space.
#[allow(clippy::missing_safety_doc, reason = "it is the block's")]
impl Tile<Quantized> {
    /// Reads quants, scales and minimums. Quants that are stored as bytes stay in the cache.
    #[inline(always)]
    pub unsafe fn read<S: Simd>(&self, buffers: QuantBuffers) -> Quants {
        // SAFETY: per this block's contract.
        unsafe { S::run(Read { rows: *self, buffers }) }
    }

    #[inline(always)]
    unsafe fn read_blocks<S: Simd, B: Blocks>(&self, blocks: B, buffers: QuantBuffers) -> Quants {
        let ((values, bytes), count) = (blocks.block(), self.size / blocks.block().0);
        // Cells are read in groups, so a partial tile must be copied: in-place reads would go past its last cell.
        let in_place = if self.cells == TILE { B::BYTES_AT } else { None };
        // SAFETY: per this block's contract the processor has `S`, and rows and output are valid.
        unsafe {
            for cell in 0..self.cells {
                self.lines.look_ahead(cell);
                for at in 0..count {
                    let block = self.lines.row(cell).add(at * bytes);
                    buffers.halves.add(at * TILE + cell).write(block.cast::<u16>().read_unaligned());
                    if in_place.is_none() {
                        blocks.quants::<S>(block, buffers.quants.add(cell * self.size + at * values));
                    }
                }
            }
            self.numbers::<S>(count, B::UNIT, buffers.halves, buffers.scales);
            if B::HAS_MIN {
                for (cell, at) in (0..self.cells).flat_map(|cell| (0..count).map(move |at| (cell, at))) {
                    let min = self.lines.row(cell).add(at * bytes + size_of::<u16>());
                    buffers.halves.add(at * TILE + cell).write(min.cast::<u16>().read_unaligned());
                }
                self.numbers::<S>(count, 1.0, buffers.halves, buffers.mins);
            }
            let (first, of_cell, of_block) = match in_place {
                Some(at) => (self.lines.first.add(at).cast(), self.lines.stride, bytes),
                None => (buffers.quants.cast_const(), self.size, values),
            };
            let mins = if B::HAS_MIN { buffers.mins } else { std::ptr::null_mut() };
            Quants { first, of_cell, of_block, blocks: count, values, scales: buffers.scales, mins }
        }
    }

    /// Converts one half-precision value for each block and cell to f32, times `unit`.
    #[inline(always)]
    unsafe fn numbers<S: Simd>(&self, blocks: usize, unit: f32, halves: *mut u16, to: *mut f32) {
        // SAFETY: per this block's contract the processor has `S`, and the buffers have a tile's space.
        unsafe {
            if self.cells < TILE {
                for row in (0..blocks).map(|at| halves.add(at * TILE)) {
                    row.add(self.cells).write_bytes(0, TILE - self.cells);
                }
            }
            for at in (0..blocks * TILE).step_by(S::LANES) {
                S::store(to.add(at), S::mul(S::load_f16(halves.add(at)), S::splat(unit)));
            }
        }
    }

    /// Decodes the rows into `to`, without padding.
    #[inline(always)]
    pub unsafe fn decode<S: Simd>(&self, to: *mut f32) {
        with_blocks!(self.kind, blocks => {
            let (values, bytes) = blocks.block();
            for cell in 0..self.cells {
                for at in 0..self.size / values {
                    // SAFETY: per this block's contract the processor has `S`, and rows and output are valid.
                    unsafe {
                        let block = self.lines.row(cell).add(at * bytes);
                        decode_block::<S, _>(blocks, block, to.add(cell * self.size + at * values));
                    }
                }
            }
        });
    }
}

struct Read {
    rows: Tile<Quantized>,
    buffers: QuantBuffers,
}

impl Work for Read {
    type Output = Quants;

    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> Quants {
        with_blocks!(self.rows.kind, blocks => {
            // SAFETY: the caller of `Tile::read` has made sure.
            unsafe { self.rows.read_blocks::<S, _>(blocks, self.buffers) }
        })
    }
}

/// # Safety
///
/// As for the methods of [`Tile`].
#[inline(always)]
unsafe fn decode_block<S: Simd, B: Blocks>(blocks: B, block: *const u8, to: *mut f32) {
    let mut quants = [0; MAX_OF_BLOCK];
    // SAFETY: as for the methods of `Tile`, per this function's contract; a block is a multiple of vectors.
    unsafe {
        blocks.quants::<S>(block, quants.as_mut_ptr());
        // As exact as multiplying separately: the unit is a power of two.
        let scale = S::mul(S::splat_f16(block.cast()), S::splat(B::UNIT));
        for at in (0..blocks.block().0).step_by(S::LANES) {
            let mut value = S::mul(S::from_quants(quants.as_ptr().add(at)), scale);
            if B::HAS_MIN {
                value = S::add(value, S::splat_f16(block.add(size_of::<u16>()).cast()));
            }
            S::store(to.add(at), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attention::testing::{Random, decoded, encoded};
    use crate::simd::Work;
    use crate::simd::isa::Isa;

    /// Values of one row, read in place; empty if its type is not read that way.
    struct ReadInPlace<'a>(KvType, &'a [u8]);

    impl Work for ReadInPlace<'_> {
        type Output = Option<Vec<f32>>;

        #[inline(always)]
        unsafe fn run<S: Simd>(self) -> Option<Vec<f32>> {
            let ReadInPlace(kind, bytes) = self;
            let size = bytes.len() / kind.block().1 * kind.block().0;
            let lines = Lines { first: bytes.as_ptr(), stride: bytes.len(), ahead: 0 };
            let tile = Tile { lines, cells: 1, size, kind }.in_place::<S>(1)?;
            let mut to = [const { Vec::new() }; AT_ONCE].map(|_: Vec<f32>| vec![f32::NAN; size]);
            // SAFETY: each row has a weight and space for its result.
            unsafe {
                tile.weighted::<S>([[1.0].as_ptr(); AT_ONCE], to.each_mut().map(|row| row.as_mut_ptr()))
            };
            Some(to[AT_ONCE - 1].clone())
        }
    }

    #[test]
    fn rows_in_place_have_the_bits_of_decoded_rows() {
        let mut random = Random(5);
        for kind in [KvType::F32, KvType::F16, KvType::BF16, KvType::Q8_0] {
            let bytes = encoded(kind, 96, &mut random);
            let expected = decoded(kind, &bytes, 96);
            for isa in Isa::here() {
                assert_eq!(isa.run(ReadInPlace(kind, &bytes)).as_ref(), Some(&expected), "{isa:?} {kind:?}");
            }
        }
        let bytes = encoded(KvType::Q4_0, 96, &mut random);
        assert_eq!(Isa::chosen().run(ReadInPlace(KvType::Q4_0, &bytes)), None);
    }
}
