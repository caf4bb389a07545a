//! The rows of K or V that are read together: a tile, as the cache has it.

use super::blocks::{Blocks, MOST_OF_BLOCK};
use super::division::padded;
use super::encoding::{Encoding, Lines, Rows};
use super::kv_type::{
    Floating, InPlace, KvType, Quantized, with_blocks, with_encoding, with_encoding_in_place,
};
use super::matrix::{AT_ONCE, Each, is_finite, rows_by_columns, rows_by_rows};
use super::problem::TILE;
use super::simd::{MOST_LANES, Simd, Work};

/// Up to so many rows that see a tile of floating-point numbers it is read where it lies, anew for each few of them; for more it is
/// decoded once.
const FEW: usize = 8;
/// The same for bytes: what is turned into whole numbers for so few is turned for nothing.
const FEW_OF_BYTES: usize = AT_ONCE;

/// Rows of K or V.
#[derive(Clone, Copy, Debug)]
pub struct Tile<Kind> {
    /// Where they lie.
    pub lines: Lines,
    /// Cells: at most [`TILE`].
    pub cells: usize,
    /// Values in a row.
    pub size: usize,
    /// Their type.
    pub kind: Kind,
}

impl<Kind> Tile<Kind> {
    /// The same rows, of this type.
    pub fn of<Other>(&self, kind: Other) -> Tile<Other> {
        Tile { lines: self.lines, cells: self.cells, size: self.size, kind }
    }
}

/// Safety, of all methods: the processor has the instruction set, the rows are there, and what is written to has room.
#[allow(clippy::missing_safety_doc, reason = "it is the block's")]
impl Tile<KvType> {
    /// The tile as numbers, if so many rows that see it are to read it where it lies.
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
        // SAFETY: the caller of `Tile::decode` has made sure.
        unsafe {
            match rows.kind {
                KvType::Floating(kind) => rows.of(kind).decode::<S>(to),
                KvType::Quantized(kind) => rows.of(kind).decode::<S>(to),
            }
        }
    }
}

/// Safety, of all methods: the processor has the instruction set, the rows are there, and what is written to has room.
#[allow(clippy::missing_safety_doc, reason = "it is the block's")]
impl Tile<InPlace> {
    /// `to[i][cell] = a[i] . row of the cell`.
    #[inline(always)]
    pub unsafe fn scores<S: Simd>(&self, a: Each<*const f32>, to: Each<*mut f32>) {
        with_encoding_in_place!(self.kind, encoding => {
            let rows = Rows { lines: self.lines, encoding };
            // SAFETY: the caller's promise.
            unsafe { rows_by_rows::<S, _>(a, rows, self.cells, self.size, to) }
        });
    }

    /// `to[i] = weights[i][cell] * row of the cell`, summed up for all cells.
    #[inline(always)]
    pub unsafe fn weighted<S: Simd>(&self, weights: Each<*const f32>, to: Each<*mut f32>) {
        with_encoding_in_place!(self.kind, encoding => {
            let rows = Rows { lines: self.lines, encoding };
            // SAFETY: the caller's promise.
            unsafe { rows_by_columns::<S, _>(weights, rows, self.cells, self.size, to) }
        });
    }
}

/// Safety, of all methods: the processor has the instruction set, the rows are there, and what is written to has room.
#[allow(clippy::missing_safety_doc, reason = "it is the block's")]
impl Tile<Floating> {
    /// Writes the rows to `to`, each padded with zeros.
    #[inline(always)]
    pub unsafe fn decode<S: Simd>(&self, to: *mut f32) {
        // SAFETY: the caller's promise.
        unsafe { self.decode_some::<S>(0, self.cells, to) }
    }

    /// Writes the rows to the columns of `to`, whose rows have [`TILE`] numbers. `some` has room for a few rows. What is in the
    /// columns after the last cell means nothing.
    #[inline(always)]
    pub unsafe fn decode_to_columns<S: Simd>(&self, some: *mut f32, to: *mut f32) {
        let stride = padded(self.size as u32);
        for first in (0..self.cells).step_by(S::LANES) {
            // SAFETY: the caller's promise.
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
                // SAFETY: the caller's promise.
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
/// As the methods of [`Tile`].
#[inline(always)]
unsafe fn decode_row<S: Simd, E: Encoding>(
    encoding: E,
    row: *const u8,
    (size, of_value): (usize, usize),
    to: *mut f32,
) {
    let whole = size / S::LANES * S::LANES;
    // SAFETY: the caller's promise.
    unsafe {
        for at in (0..whole).step_by(S::LANES) {
            S::store(to.add(at), encoding.vector::<S>(row, at));
        }
        if whole < size {
            let mut rest = [0u8; MOST_LANES * size_of::<f32>()];
            let bytes = (size - whole) * of_value;
            row.add(whole * of_value).copy_to_nonoverlapping(rest.as_mut_ptr(), bytes);
            S::store(to.add(whole), encoding.vector::<S>(rest.as_ptr(), 0));
        }
        for at in (size.next_multiple_of(S::LANES)..padded(size as u32)).step_by(S::LANES) {
            S::store(to.add(at), S::splat(0.0));
        }
    }
}

/// The whole numbers of a tile: `level * scale + least` is a value.
#[derive(Clone, Copy, Debug)]
pub struct Levels {
    /// Those of the first cell's first block.
    first: *const i8,
    /// From one cell's to the next.
    of_cell: usize,
    /// From one block's to the next.
    of_block: usize,
    /// Blocks of a row.
    pub blocks: usize,
    /// Values of a block: a multiple of `2 * LANES`.
    pub values: usize,
    /// By block, then by cell: [`TILE`] numbers each, zero after the last cell.
    pub scales: *mut f32,
    /// The same; null where blocks have none.
    pub least: *mut f32,
}

impl Levels {
    /// Values of a row.
    #[inline(always)]
    pub fn size(self) -> usize {
        self.blocks * self.values
    }

    /// Those of a cell from the value `at` on, as many as are in its block.
    ///
    /// # Safety
    ///
    /// They are there.
    #[inline(always)]
    pub unsafe fn at(self, cell: usize, at: usize) -> *const i8 {
        let inside = at / self.values * self.of_block + at % self.values;
        // SAFETY: the caller's promise.
        unsafe { self.first.add(cell * self.of_cell + inside) }
    }

    /// From one cell's to the next.
    #[inline(always)]
    pub fn stride(self) -> usize {
        self.of_cell
    }

    /// Takes zero for scales and least values that are not finite, and says which cells have them.
    ///
    /// # Safety
    ///
    /// They are there.
    pub unsafe fn without_infinite(self) -> [bool; TILE] {
        let mut has = [false; TILE];
        for numbers in [self.scales, self.least].into_iter().filter(|numbers| !numbers.is_null()) {
            // SAFETY: the caller's promise.
            let numbers = unsafe { std::slice::from_raw_parts_mut(numbers, self.blocks * TILE) };
            for (at, number) in numbers.iter_mut().enumerate().filter(|(_, number)| !number.is_finite()) {
                *number = 0.0;
                has[at % TILE] = true;
            }
        }
        has
    }

    /// The largest of each cell's scales, without their signs.
    ///
    /// # Safety
    ///
    /// The processor has the instruction set `S`, and they are there.
    #[inline(always)]
    pub unsafe fn largest_scales<S: Simd>(self) -> [f32; TILE] {
        let mut largest = [0.0; TILE];
        for at in (0..self.blocks * TILE).step_by(S::LANES) {
            // SAFETY: the caller's promise.
            unsafe {
                let to = largest.as_mut_ptr().add(at % TILE);
                S::store(to, S::max(S::magnitude(S::load(self.scales.add(at))), S::load(to)));
            }
        }
        largest
    }

    /// Whether all scales and least values are finite.
    ///
    /// # Safety
    ///
    /// The processor has the instruction set `S`, and they are there.
    #[inline(always)]
    pub unsafe fn are_finite<S: Simd>(self) -> bool {
        let count = self.blocks * TILE;
        // SAFETY: the caller's promise.
        unsafe {
            is_finite::<S>(self.scales, count) && (self.least.is_null() || is_finite::<S>(self.least, count))
        }
    }
}

/// Where the whole numbers of a tile go.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// For the levels of [`TILE`] rows.
    pub levels: *mut i8,
    /// For a number for each block of [`TILE`] rows.
    pub scales: *mut f32,
    /// The same.
    pub least: *mut f32,
    /// The same in half precision.
    pub halves: *mut u16,
}

/// Safety, of all methods: the processor has the instruction set, the rows are there, and what is written to has room.
#[allow(clippy::missing_safety_doc, reason = "it is the block's")]
impl Tile<Quantized> {
    /// Reads levels, scales and least values. Levels that are bytes of the cache stay where they are.
    #[inline(always)]
    pub unsafe fn read<S: Simd>(&self, room: Room) -> Levels {
        // SAFETY: per this block's contract.
        unsafe { S::run(Read { rows: *self, room }) }
    }

    #[inline(always)]
    unsafe fn read_blocks<S: Simd, B: Blocks>(&self, blocks: B, room: Room) -> Levels {
        let ((values, bytes), count) = (blocks.block(), self.size / blocks.block().0);
        // Of a tile with fewer cells more are read than there are.
        let in_place = if self.cells == TILE { B::BYTES_AT } else { None };
        // SAFETY: the caller's promise.
        unsafe {
            for cell in 0..self.cells {
                self.lines.look_ahead(cell);
                for at in 0..count {
                    let block = self.lines.row(cell).add(at * bytes);
                    room.halves.add(at * TILE + cell).write(block.cast::<u16>().read_unaligned());
                    if in_place.is_none() {
                        blocks.levels::<S>(block, room.levels.add(cell * self.size + at * values));
                    }
                }
            }
            self.numbers::<S>(count, B::UNIT, room.halves, room.scales);
            if B::HAS_LEAST {
                for (cell, at) in (0..self.cells).flat_map(|cell| (0..count).map(move |at| (cell, at))) {
                    let least = self.lines.row(cell).add(at * bytes + size_of::<u16>());
                    room.halves.add(at * TILE + cell).write(least.cast::<u16>().read_unaligned());
                }
                self.numbers::<S>(count, 1.0, room.halves, room.least);
            }
            let (first, of_cell, of_block) = match in_place {
                Some(at) => (self.lines.first.add(at).cast(), self.lines.stride, bytes),
                None => (room.levels.cast_const(), self.size, values),
            };
            let least = if B::HAS_LEAST { room.least } else { std::ptr::null_mut() };
            Levels { first, of_cell, of_block, blocks: count, values, scales: room.scales, least }
        }
    }

    /// A number for each block and cell out of half precision, times `unit`.
    #[inline(always)]
    unsafe fn numbers<S: Simd>(&self, blocks: usize, unit: f32, halves: *mut u16, to: *mut f32) {
        // SAFETY: the caller's promise.
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

    /// Writes the rows to `to`. They need no padding.
    #[inline(always)]
    pub unsafe fn decode<S: Simd>(&self, to: *mut f32) {
        with_blocks!(self.kind, blocks => {
            let (values, bytes) = blocks.block();
            for cell in 0..self.cells {
                for at in 0..self.size / values {
                    // SAFETY: the caller's promise.
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
    room: Room,
}

impl Work for Read {
    type Output = Levels;

    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> Levels {
        with_blocks!(self.rows.kind, blocks => {
            // SAFETY: the caller of `Tile::read` has made sure.
            unsafe { self.rows.read_blocks::<S, _>(blocks, self.room) }
        })
    }
}

/// # Safety
///
/// As the methods of [`Tile`].
#[inline(always)]
unsafe fn decode_block<S: Simd, B: Blocks>(blocks: B, block: *const u8, to: *mut f32) {
    let mut levels = [0; MOST_OF_BLOCK];
    // SAFETY: the caller's promise; a block is a multiple of vectors.
    unsafe {
        blocks.levels::<S>(block, levels.as_mut_ptr());
        // As exact as each alone: the unit is a power of two.
        let scale = S::mul(S::splat_f16(block.cast()), S::splat(B::UNIT));
        for at in (0..blocks.block().0).step_by(S::LANES) {
            let mut value = S::mul(S::from_levels(levels.as_ptr().add(at)), scale);
            if B::HAS_LEAST {
                value = S::add(value, S::splat_f16(block.add(size_of::<u16>()).cast()));
            }
            S::store(to.add(at), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attention::isa::Isa;
    use crate::attention::simd::Work;
    use crate::attention::testing::{Random, decoded, encoded};

    /// The values of one row, read where it lies; none, if its type is not read so.
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
            // SAFETY: each row has a weight and room.
            unsafe {
                tile.weighted::<S>([[1.0].as_ptr(); AT_ONCE], to.each_mut().map(|row| row.as_mut_ptr()))
            };
            Some(to[AT_ONCE - 1].clone())
        }
    }

    #[test]
    fn where_a_row_lies_it_has_the_bits_that_decoding_gives() {
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
