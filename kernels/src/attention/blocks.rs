//! Storage formats of quantized cache types: a block's values are `quant * scale`, or `quant * scale + min`, where
//! quants are int8. A new type is one more [`Blocks`] and its line in [`super::kv_type`].
//!
//! Layouts are those of GGUF (`ggml-common.h`): a block begins with its scale, in half precision. All instruction sets
//! give the same quants.

use super::encoding::Encoding;
use crate::kv_quant::bits::{SCALE_BYTES, UNIT};
use crate::kv_quant::{Block, Code, DenseType, MAX_VALUES};
use crate::simd::{Simd, Windows};

/// The storage format of one type.
pub trait Blocks: Copy {
    /// Additional constant factor of the scale.
    const UNIT: f32 = 1.0;
    /// Whether a block has a minimum, stored behind its scale.
    const HAS_MIN: bool = false;

    /// Returns the number of values in a block, at most [`MAX_OF_BLOCK`], and its bytes.
    fn block(self) -> (usize, usize);

    /// Offset of the quants in a block, if they are stored as bytes.
    const BYTES_AT: Option<usize> = None;

    /// Writes the quants of a block.
    ///
    /// # Safety
    ///
    /// The processor has the instruction set `S`; the block is readable, and `to` has space for its quants.
    unsafe fn quants<S: Simd>(self, block: *const u8, to: *mut i8);
}

/// Largest number of values in a block.
pub const MAX_OF_BLOCK: usize = MAX_VALUES;
/// Smallest number of values in a block, which upstream's types have.
pub const MIN_OF_BLOCK: usize = 32;

/// Bytes of a half-precision value.
const HALF: usize = 2;

/// `q8_0`: 8 bits.
#[derive(Clone, Copy, Debug)]
pub struct Q8_0;
/// `q4_0`, `q4_1` and `iq4_nl`: 4 bits that index a table of quants.
#[derive(Clone, Copy, Debug)]
pub struct Q4<const TABLE: usize, const HAS_MIN: bool>;
/// `q5_0` and `q5_1`: 5 bits, of which the highest are stored separately; relative to a minimum, or centred.
#[derive(Clone, Copy, Debug)]
pub struct Q5<const HAS_MIN: bool>;

/// A type of [`crate::kv_quant`], by the index of its code in [`Code::ALL`].
#[derive(Clone, Copy, Debug)]
pub struct Dense<const CODE: usize> {
    /// The size of its blocks.
    pub block: Block,
}

/// `turbo2`: 2 bits.
pub type Turbo2 = Dense<{ Code::Turbo2 as usize }>;
/// `turbo3`: 3 bits.
pub type Turbo3 = Dense<{ Code::Turbo3 as usize }>;
/// `turbo4`: 4 bits.
pub type Turbo4 = Dense<{ Code::Turbo4 as usize }>;
/// `tcq2`: 2 bits, trellis-coded.
pub type Tcq2 = Dense<{ Code::Tcq2 as usize }>;
/// `tcq3`: 3 bits, trellis-coded.
pub type Tcq3 = Dense<{ Code::Tcq3 as usize }>;

impl Q8_0 {
    /// Bytes of a block.
    const BYTES: usize = HALF + MIN_OF_BLOCK;
}

impl<const TABLE: usize, const HAS_MIN: bool> Q4<TABLE, HAS_MIN> {
    /// Bytes of a block.
    const BYTES: usize = head(HAS_MIN) + MIN_OF_BLOCK / 2;
}

impl<const HAS_MIN: bool> Q5<HAS_MIN> {
    /// Bytes of a block.
    const BYTES: usize = head(HAS_MIN) + 4 + MIN_OF_BLOCK / 2;
}

// The sizes of the blocks in GGUF.
const _: () = assert!(Q8_0::BYTES == 34);
const _: () = assert!(Q4::<0, false>::BYTES == 18 && Q4::<1, true>::BYTES == 20);
const _: () = assert!(Q5::<false>::BYTES == 22 && Q5::<true>::BYTES == 24);

/// The quants of `q4_0`, `q4_1` and `iq4_nl`.
const TABLES: [[i8; 16]; 3] = [
    [-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7],
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
    [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113],
];

impl Blocks for Q8_0 {
    const BYTES_AT: Option<usize> = Some(HALF);

    #[inline(always)]
    fn block(self) -> (usize, usize) {
        (MIN_OF_BLOCK, Self::BYTES)
    }

    #[inline(always)]
    unsafe fn quants<S: Simd>(self, block: *const u8, to: *mut i8) {
        // SAFETY: per this function's contract the block is readable and `to` has space for its quants.
        unsafe { block.add(HALF).cast::<i8>().copy_to_nonoverlapping(to, MIN_OF_BLOCK) };
    }
}

impl Encoding for Q8_0 {
    #[inline(always)]
    unsafe fn vector<S: Simd>(self, row: *const u8, at: usize) -> S::V {
        let (values, bytes) = self.block();
        // SAFETY: per this function's contract the block is readable and `to` has space; a block is a multiple of
        // vectors.
        unsafe {
            let block = row.add(at / values * bytes);
            let quants = S::from_quants(block.add(HALF + at % values).cast());
            S::mul(quants, S::splat_f16(block.cast()))
        }
    }
}

impl<const TABLE: usize, const HAS_MIN: bool> Blocks for Q4<TABLE, HAS_MIN> {
    const HAS_MIN: bool = HAS_MIN;

    #[inline(always)]
    fn block(self) -> (usize, usize) {
        (MIN_OF_BLOCK, Self::BYTES)
    }

    #[inline(always)]
    unsafe fn quants<S: Simd>(self, block: *const u8, to: *mut i8) {
        // SAFETY: per this function's contract the processor has `S`, the block is readable and `to` has space.
        unsafe {
            let bytes = block.add(head(HAS_MIN)).cast::<[u8; 16]>().read();
            let [low, high] = S::halves_of(bytes);
            let quants = [S::look_up(low, &TABLES[TABLE]), S::look_up(high, &TABLES[TABLE])];
            to.cast::<[[i8; 16]; 2]>().write(quants);
        }
    }
}

/// Returns the bytes of the scale, and of the minimum behind it.
const fn head(has_min: bool) -> usize {
    HALF + HALF * has_min as usize
}

impl<const HAS_MIN: bool> Blocks for Q5<HAS_MIN> {
    const HAS_MIN: bool = HAS_MIN;

    #[inline(always)]
    fn block(self) -> (usize, usize) {
        (MIN_OF_BLOCK, Self::BYTES)
    }

    #[inline(always)]
    unsafe fn quants<S: Simd>(self, block: *const u8, to: *mut i8) {
        // SAFETY: per this function's contract the block is readable and `to` has space for its quants.
        unsafe {
            let high_bits = block.add(head(HAS_MIN)).cast::<[u8; 4]>().read();
            let lower = block.add(head(HAS_MIN) + 4).cast::<[[u8; 8]; 2]>().read().map(u64::from_le_bytes);
            let lower = [lower[0], lower[1], lower[0] >> 4, lower[1] >> 4];
            for (at, (lower, high_bits)) in lower.into_iter().zip(high_bits).enumerate() {
                let numbers = lower & (ONES * 15) | bits_of(high_bits) << 4;
                // Subtracts sixteen from each byte: the highest bits absorb the borrow.
                let quants = if HAS_MIN { numbers } else { ((numbers | ONES << 7) - ONES * 16) ^ ONES << 7 };
                to.add(8 * at).cast::<[u8; 8]>().write(quants.to_le_bytes());
            }
        }
    }
}

/// Eight bytes of 1.
const ONES: u64 = u64::from_le_bytes([1; 8]);

/// Expands each bit to a byte, the lowest first.
#[inline(always)]
fn bits_of(byte: u8) -> u64 {
    const EACH: u64 = u64::from_le_bytes([1, 2, 4, 8, 16, 32, 64, 128]);
    let one_each = (u64::from(byte) * ONES) & EACH;
    // Where a byte is not 0, adding 127 to its lower bits, or its own highest bit, sets its highest bit.
    let is_set = ((one_each & !(ONES << 7)) + ONES * 127) | one_each;
    is_set >> 7 & ONES
}

/// Repeats the quants to fill a table for [`Simd::quants_of_64`].
const fn again<const BYTES: usize>(code: Code) -> [i8; BYTES] {
    let mut bytes = [0; BYTES];
    let mut at = 0;
    while at < BYTES {
        bytes[at] = code.levels()[at % code.levels().len()];
        at += 1;
    }
    bytes
}

/// Builds a table of the quants of `COUNT` consecutive states, indexed by the bits of them all.
const fn several<const COUNT: usize, const ENTRIES: usize>(code: Code) -> [[i8; COUNT]; ENTRIES] {
    let mut table = [[0; COUNT]; ENTRIES];
    let mut at = 0;
    while at < ENTRIES * COUNT {
        let (bits, place) = (at / COUNT, at % COUNT);
        table[bits][place] = code.levels()[bits >> (place * code.bits()) & (code.levels().len() - 1)];
        at += 1;
    }
    table
}

impl<const CODE: usize> Dense<CODE> {
    const CODE: Code = Code::ALL[CODE];

    /// Returns the bits of the codeword from the value `inside` on, the lowest first: enough for sixteen states.
    ///
    /// # Safety
    ///
    /// The codeword is readable, and has that value.
    #[inline(always)]
    unsafe fn word(self, codeword: *const u8, inside: usize) -> u64 {
        const WORD: usize = size_of::<u64>();
        let code = Self::CODE;
        let bytes = self.block.values() * code.bits() / 8;
        let first = inside * code.bits() / 8;
        // No byte past the codeword is read.
        let from = first.min(bytes - WORD);
        // SAFETY: per this function's contract the codeword is readable; `from` leaves a whole word before its end.
        let word = unsafe { u64::from_le(codeword.add(from).cast::<u64>().read_unaligned()) };
        let mut word = word >> (8 * (first - from));
        if code.window() > code.bits() && bytes - first < WORD {
            // SAFETY: as above.
            word |= u64::from(unsafe { *codeword }) << (8 * (bytes - first));
        }
        word
    }

    /// Writes sixteen quants, `COUNT` with each look-up.
    ///
    /// # Safety
    ///
    /// As [`Blocks::quants`].
    #[inline(always)]
    unsafe fn look_up<const COUNT: usize>(self, table: &[[i8; COUNT]], word: u64, to: *mut i8) {
        for at in (0..16).step_by(COUNT) {
            let bits = (word >> (at * Self::CODE.bits())) as usize & (table.len() - 1);
            // SAFETY: per this function's contract `to` has space for sixteen quants.
            unsafe { to.add(at).cast::<[i8; COUNT]>().write(table[bits]) };
        }
    }

    /// Writes sixteen quants.
    ///
    /// # Safety
    ///
    /// As [`Blocks::quants`].
    #[inline(always)]
    unsafe fn sixteen<S: Simd>(self, codeword: *const u8, inside: usize, to: *mut i8) {
        // Two or four quants at once: the tables are a small part of the L1 cache.
        static TURBO2: [[i8; 4]; 256] = several(Code::Turbo2);
        static TCQ2: [[i8; 2]; 1024] = several(Code::Tcq2);
        static TCQ3: [[i8; 2]; 4096] = several(Code::Tcq3);
        let bits = Self::CODE.bits();
        // SAFETY: per this function's contract the processor has `S`, the codeword is readable and `to` has space.
        unsafe {
            let word = self.word(codeword, inside);
            match Self::CODE {
                Code::Turbo2 => self.look_up(&TURBO2, word, to),
                Code::Turbo3 | Code::Turbo4 => {
                    let windows = [spread(word, bits), spread(word >> (8 * bits), bits)];
                    let windows = std::mem::transmute::<[[u8; 8]; 2], [u8; 16]>(windows);
                    let table = table(Self::CODE).first_chunk().expect("it has 64 quants");
                    to.cast::<[i8; 16]>().write(S::look_up(windows, table));
                }
                Code::Tcq2 => self.look_up(&TCQ2, word, to),
                Code::Tcq3 => self.look_up(&TCQ3, word, to),
            }
        }
    }
}

/// Distributes the lowest `8 * bits` bits of a word over eight bytes, `bits` to each.
#[inline(always)]
fn spread(word: u64, bits: usize) -> [u8; 8] {
    let mut spread = word & ((1 << (8 * bits)) - 1);
    for (count, ones) in [(4, ONES & 0x0000_0001_0000_0001), (2, ONES & 0x0001_0001_0001_0001), (1, ONES)] {
        spread = (spread | spread << (count * (8 - bits))) & (ones * ((1 << (count * bits)) - 1));
    }
    spread.to_le_bytes()
}

/// Returns the quants of a code for [`Simd::quants_of_64`]; tables of fewer than 64 are repeated.
#[inline(always)]
fn table(code: Code) -> &'static [i8] {
    static TURBO2: [i8; 64] = again(Code::Turbo2);
    static TURBO3: [i8; 64] = again(Code::Turbo3);
    static TURBO4: [i8; 64] = again(Code::Turbo4);
    match code {
        Code::Turbo2 => &TURBO2,
        Code::Turbo3 => &TURBO3,
        Code::Turbo4 => &TURBO4,
        Code::Tcq2 | Code::Tcq3 => code.levels(),
    }
}

impl<const CODE: usize> Blocks for Dense<CODE> {
    const UNIT: f32 = UNIT;

    #[inline(always)]
    fn block(self) -> (usize, usize) {
        (self.block.values(), DenseType { code: Self::CODE, block: self.block }.bytes())
    }

    #[inline(always)]
    unsafe fn quants<S: Simd>(self, block: *const u8, to: *mut i8) {
        let (code, values) = (Self::CODE, self.block.values());
        // SAFETY: per this function's contract the block is readable and `to` has space; it is a multiple of 64 values.
        unsafe {
            let codeword = block.add(SCALE_BYTES);
            if S::LOOKS_UP_BYTES {
                for first in (0..values).step_by(64) {
                    let bytes = values * code.bits() / 8;
                    let windows = Windows { bytes, first: first * code.bits() / 8, step: code.bits() };
                    S::quants_of_64(table(code), codeword, windows, to.add(first));
                }
            } else {
                for first in (0..values).step_by(16) {
                    self.sixteen::<S>(codeword, first, to.add(first));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::attention::kv_type::{KvType, Quantized};
    use crate::attention::testing::{Random, decoded, decoded_on, encoded};
    use crate::kv_quant::{DenseType, bits};
    use crate::simd::isa::Isa;

    /// 1.0 in half precision.
    const ONE: [u8; 2] = [0x00, 0x3c];
    /// 2.0 in half precision.
    const TWO: [u8; 2] = [0x00, 0x40];

    #[test]
    fn low_halves_come_first() {
        let bytes: Vec<u8> = (0..16).map(|at| at << 4 | (15 - at)).collect();
        let row = decoded(KvType::Q4_0, &[&TWO[..], &bytes].concat(), 32);
        assert_eq!((row[0], row[15], row[16], row[31]), (14.0, -16.0, -16.0, 14.0));
        let row = decoded(KvType::Quantized(Quantized::Q4_1), &[&TWO[..], &ONE, &bytes].concat(), 32);
        assert_eq!((row[0], row[15], row[16], row[31]), (31.0, 1.0, 1.0, 31.0));
        let row = decoded(KvType::Quantized(Quantized::Iq4Nl), &[&ONE[..], &bytes].concat(), 32);
        assert_eq!((row[0], row[15], row[16], row[31]), (113.0, -127.0, -127.0, 113.0));
    }

    #[test]
    fn the_fifth_bits_lie_apart() {
        let bits = (1u32 << 0 | 1 << 31).to_le_bytes();
        let row = decoded(KvType::Quantized(Quantized::Q5_0), &[&ONE[..], &bits, &[0; 16]].concat(), 32);
        assert_eq!((row[0], row[1], row[30], row[31]), (0.0, -16.0, -16.0, 0.0));
        let row =
            decoded(KvType::Quantized(Quantized::Q5_1), &[&ONE[..], &TWO, &bits, &[0x10; 16]].concat(), 32);
        assert_eq!((row[0], row[1], row[30], row[31]), (18.0, 2.0, 3.0, 19.0));
    }

    #[test]
    fn bytes_have_a_sign() {
        let row = decoded(KvType::Q8_0, &[&TWO[..], &[0x80; 31], &[127]].concat(), 32);
        assert_eq!((row[0], row[31]), (-256.0, 254.0));
    }

    #[test]
    fn dense_types_are_read_as_the_oracle_reads_them() {
        let mut random = Random(4);
        for dense in DenseType::ALL {
            let kind = KvType::Quantized(Quantized::Dense(dense));
            let bytes = encoded(kind, 3000 * 128, &mut random);
            let mut expected = vec![0.0; 3000 * 128];
            bits::decode(dense, &bytes, &mut expected);
            for isa in Isa::here() {
                assert!(decoded_on(isa, kind, &bytes, 128) == expected, "{isa:?} {kind:?}");
            }
        }
    }

    #[test]
    fn every_instruction_set_reads_the_same_bits() {
        let mut random = Random(3);
        for kind in KvType::all() {
            let sizes = [32, 40, 64, 72, 80, 96, 128, 192].into_iter();
            for size in &sizes.filter(|size| kind.row_bytes(*size).is_some()).collect::<Vec<usize>>() {
                let bytes = encoded(kind, 70 * size, &mut random);
                let expected = decoded(kind, &bytes, *size);
                for isa in Isa::here() {
                    assert_eq!(decoded_on(isa, kind, &bytes, *size), expected, "{isa:?} {kind:?} {size}");
                }
            }
        }
    }
}
