//! How the types of a cache store their values. A new type is one more [`Encoding`] and its line in [`super::kv_type`].
//!
//! Layouts are those of GGUF (`ggml-common.h`): blocks of 32 values begin with their scale, in half precision. Each instruction
//! set gives the same bits.

use super::matrix::Source;
use super::simd::{Levels, Simd, Windows};
use crate::kv_types::bits::{SCALE_BYTES, UNIT};
use crate::kv_types::{Block, Code, DenseType};

/// How a type stores its values.
pub trait Encoding: Copy {
    /// Values that lie together, and their bytes.
    fn block(self) -> (usize, usize);

    /// The values from `at` on, which is a multiple of `LANES`.
    ///
    /// # Safety
    ///
    /// The processor has the instruction set `S`; the row at `row` has `at + S::LANES` values.
    unsafe fn vector<S: Simd>(self, row: *const u8, at: usize) -> S::V;

    /// As many vectors from `at` on, which is a multiple of `COUNT * LANES`.
    ///
    /// # Safety
    ///
    /// As [`Encoding::vector`], for each.
    #[inline(always)]
    unsafe fn vectors<S: Simd, const COUNT: usize>(self, row: *const u8, at: usize) -> [S::V; COUNT] {
        // SAFETY: the caller's promise.
        unsafe {
            let mut vectors = [S::splat(0.0); COUNT];
            for (i, vector) in vectors.iter_mut().enumerate() {
                *vector = self.vector::<S>(row, at + i * S::LANES);
            }
            vectors
        }
    }
}

/// How many rows ahead memory is asked for: what is computed in the time that it needs to answer.
const AHEAD: usize = 32;
/// Bytes that it gives at once.
const CACHE_LINE: usize = 64;

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn prefetch(line: *const u8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: an address that leads nowhere is passed over, and every x86-64 has the instruction.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(line.cast()) };
}

/// Stable Rust has no such instruction elsewhere.
#[cfg(not(target_arch = "x86_64"))]
fn prefetch(_: *const u8) {}

/// Encoded rows.
#[derive(Clone, Copy, Debug)]
pub struct Rows<E> {
    /// The first row.
    pub first: *const u8,
    /// Bytes from one row to the next.
    pub stride: usize,
    /// Bytes of each row that memory is asked for in advance.
    pub ahead: usize,
    encoding: E,
}

impl<E> Rows<E> {
    /// Rows that lie `stride` bytes apart.
    #[must_use]
    pub fn new(encoding: E, first: *const u8, stride: usize, ahead: usize) -> Rows<E> {
        Rows { first, stride, ahead, encoding }
    }
}

impl<E: Encoding, S: Simd> Source<S> for Rows<E> {
    #[inline(always)]
    unsafe fn vector(self, row: usize, at: usize) -> S::V {
        // SAFETY: the caller's promise.
        unsafe { self.encoding.vector::<S>(self.first.add(row * self.stride), at) }
    }

    #[inline(always)]
    unsafe fn vectors<const COUNT: usize>(self, row: usize, at: usize) -> [S::V; COUNT] {
        // SAFETY: the caller's promise.
        unsafe { self.encoding.vectors::<S, COUNT>(self.first.add(row * self.stride), at) }
    }

    #[inline(always)]
    fn look_ahead(self, row: usize) {
        let row = self.first.wrapping_add((row + AHEAD) * self.stride);
        for at in (0..self.ahead).step_by(CACHE_LINE) {
            prefetch(row.wrapping_add(at));
        }
    }
}

/// Single precision.
#[derive(Clone, Copy, Debug)]
pub struct F32;
/// Half precision.
#[derive(Clone, Copy, Debug)]
pub struct F16;
/// The upper half of single precision.
#[derive(Clone, Copy, Debug)]
pub struct Bf16;
/// 8 bits.
#[derive(Clone, Copy, Debug)]
pub struct Q8_0;
/// 4 bits, or 5, of which the highest lie apart; from a minimum, or from the middle.
#[derive(Clone, Copy, Debug)]
pub struct Halves<const HAS_FIFTH: bool, const HAS_LEAST: bool>;
/// 4 bits that look a value up.
#[derive(Clone, Copy, Debug)]
pub struct Iq4Nl;

/// A code of [`crate::kv_types`], by its place in [`Code::ALL`].
#[derive(Clone, Copy, Debug)]
pub struct Coded<const CODE: usize> {
    /// The size of its blocks.
    pub block: Block,
}

/// Values in a block of the quantized types.
const QUANTIZED: usize = 32;

/// The values of `iq4_nl`.
const IQ4_NL: [i8; 16] = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];

impl Encoding for F32 {
    #[inline(always)]
    fn block(self) -> (usize, usize) {
        (1, 4)
    }

    #[inline(always)]
    unsafe fn vector<S: Simd>(self, row: *const u8, at: usize) -> S::V {
        // SAFETY: the caller's promise.
        unsafe { S::load(row.add(4 * at).cast()) }
    }
}

impl Encoding for F16 {
    #[inline(always)]
    fn block(self) -> (usize, usize) {
        (1, 2)
    }

    #[inline(always)]
    unsafe fn vector<S: Simd>(self, row: *const u8, at: usize) -> S::V {
        // SAFETY: the caller's promise.
        unsafe { S::load_f16(row.add(2 * at).cast()) }
    }
}

impl Encoding for Bf16 {
    #[inline(always)]
    fn block(self) -> (usize, usize) {
        (1, 2)
    }

    #[inline(always)]
    unsafe fn vector<S: Simd>(self, row: *const u8, at: usize) -> S::V {
        // SAFETY: the caller's promise.
        unsafe { S::load_bf16(row.add(2 * at).cast()) }
    }
}

impl Encoding for Q8_0 {
    #[inline(always)]
    fn block(self) -> (usize, usize) {
        (QUANTIZED, 34)
    }

    #[inline(always)]
    unsafe fn vector<S: Simd>(self, row: *const u8, at: usize) -> S::V {
        // SAFETY: the caller's promise.
        unsafe {
            let (block, inside) = block_of(self, row, at);
            let q = S::from_bytes(S::load_bytes(block.add(2 + inside)));
            S::mul(q, S::splat_f16(block.cast()))
        }
    }
}

impl<const HAS_FIFTH: bool, const HAS_LEAST: bool> Halves<HAS_FIFTH, HAS_LEAST> {
    /// Where the fifth bits begin, after the scale and the least value.
    const FIFTH: usize = 2 + 2 * HAS_LEAST as usize;
    /// Where the halves of bytes begin.
    const LOWER: usize = Self::FIFTH + 4 * HAS_FIFTH as usize;
    /// What stands for 0, where there is no least value.
    const MIDDLE: f32 = if HAS_FIFTH { 16.0 } else { 8.0 };
}

impl<const HAS_FIFTH: bool, const HAS_LEAST: bool> Encoding for Halves<HAS_FIFTH, HAS_LEAST> {
    #[inline(always)]
    fn block(self) -> (usize, usize) {
        (QUANTIZED, Self::LOWER + QUANTIZED / 2)
    }

    #[inline(always)]
    unsafe fn vector<S: Simd>(self, row: *const u8, at: usize) -> S::V {
        // SAFETY: the caller's promise.
        unsafe {
            let (block, inside) = block_of(self, row, at);
            let mut q = S::from_bytes(halves::<S>(block.add(Self::LOWER), inside));
            if HAS_FIFTH {
                let bits = u32::from_le(block.add(Self::FIFTH).cast::<u32>().read_unaligned());
                q = S::add(q, S::where_set(bits >> inside, 16.0));
            }
            let scale = S::splat_f16(block.cast());
            if HAS_LEAST {
                S::add(S::mul(q, scale), S::splat_f16(block.add(2).cast()))
            } else {
                S::mul(S::sub(q, S::splat(Self::MIDDLE)), scale)
            }
        }
    }
}

impl Encoding for Iq4Nl {
    #[inline(always)]
    fn block(self) -> (usize, usize) {
        (QUANTIZED, 18)
    }

    #[inline(always)]
    unsafe fn vector<S: Simd>(self, row: *const u8, at: usize) -> S::V {
        // SAFETY: the caller's promise.
        unsafe {
            let (block, inside) = block_of(self, row, at);
            let q = S::from_bytes(S::look_up(halves::<S>(block.add(2), inside), &IQ4_NL));
            S::mul(q, S::splat_f16(block.cast()))
        }
    }
}

/// Levels as whole numbers; after the last come zeros.
const fn words<const LEVELS: usize>(code: Code) -> [i16; LEVELS] {
    let mut words = [0; LEVELS];
    let mut at = 0;
    while at < code.levels().len() {
        words[at] = code.levels()[at] as i16;
        at += 1;
    }
    words
}

/// Levels again and again.
const fn bytes<const BYTES: usize>(code: Code) -> [i8; BYTES] {
    let mut bytes = [0; BYTES];
    let mut at = 0;
    while at < BYTES {
        bytes[at] = code.levels()[at % code.levels().len()];
        at += 1;
    }
    bytes
}

/// The levels of a code, as [`Simd::pick`] takes them.
#[inline(always)]
fn levels(code: Code) -> Levels {
    macro_rules! levels {
        ($code:expr, $count:literal, $bytes:literal) => {{
            static NUMBERS: [f32; $count] = $code.numbers(UNIT);
            static WORDS: [i16; $count] = words($code);
            static BYTES: [i8; $bytes] = bytes($code);
            Levels { numbers: &NUMBERS, words: &WORDS, bytes: &BYTES }
        }};
    }
    match code {
        Code::Turbo2 => levels!(Code::Turbo2, 16, 64),
        Code::Turbo3 => levels!(Code::Turbo3, 16, 64),
        Code::Turbo4 => levels!(Code::Turbo4, 16, 64),
        Code::Tcq2 => levels!(Code::Tcq2, 256, 256),
        Code::Tcq3 => levels!(Code::Tcq3, 512, 512),
    }
}

impl<const CODE: usize> Coded<CODE> {
    const CODE: Code = Code::ALL[CODE];

    /// The bits of the circle from the value `inside` on, the lowest first: as many as sixteen windows take.
    ///
    /// # Safety
    ///
    /// The circle is there, and has that value.
    #[inline(always)]
    unsafe fn word(self, circle: *const u8, inside: usize) -> u64 {
        const WORD: usize = size_of::<u64>();
        let code = Self::CODE;
        let bytes = self.block.values() * code.bits() / 8;
        let first = inside * code.bits() / 8;
        // No byte after the circle is read.
        let from = first.min(bytes - WORD);
        // SAFETY: the caller's promise.
        let word = unsafe { u64::from_le(circle.add(from).cast::<u64>().read_unaligned()) };
        let mut word = word >> (8 * (first - from));
        if code.window() > code.bits() && bytes - first < WORD {
            // SAFETY: as above.
            word |= u64::from(unsafe { *circle }) << (8 * (bytes - first));
        }
        word >> (inside * code.bits() % 8)
    }
}

impl<const CODE: usize> Encoding for Coded<CODE> {
    #[inline(always)]
    fn block(self) -> (usize, usize) {
        (self.block.values(), DenseType { code: Self::CODE, block: self.block }.bytes())
    }

    #[inline(always)]
    unsafe fn vector<S: Simd>(self, row: *const u8, at: usize) -> S::V {
        let code = Self::CODE;
        // SAFETY: the caller's promise.
        unsafe {
            let (block, inside) = block_of(self, row, at);
            let word = self.word(block.add(SCALE_BYTES), inside);
            let windows = S::windows(word, code.bits() as u32, code.window() as u32);
            S::mul(S::pick(&levels(code), windows), S::splat_f16(block.cast()))
        }
    }

    #[inline(always)]
    unsafe fn vectors<S: Simd, const COUNT: usize>(self, row: *const u8, at: usize) -> [S::V; COUNT] {
        let code = Self::CODE;
        // SAFETY: the caller's promise; a block is a multiple of 64 values.
        unsafe {
            let mut vectors = [S::splat(0.0); COUNT];
            if S::LOOKS_UP_BYTES && COUNT * S::LANES == AT_ONCE {
                let (block, inside) = block_of(self, row, at);
                let circle = self.block.values() * code.bits() / 8;
                let windows = Windows { circle, first: inside * code.bits() / 8, step: code.bits() };
                let levels = S::levels_of_64(&levels(code), block.add(SCALE_BYTES), windows);
                // As exact as each alone: the unit is a power of two.
                let scale = S::mul(S::splat_f16(block.cast()), S::splat(UNIT));
                for (vector, levels) in vectors.iter_mut().zip(levels) {
                    *vector = S::mul(levels, scale);
                }
            } else {
                for (i, vector) in vectors.iter_mut().enumerate() {
                    *vector = self.vector::<S>(row, at + i * S::LANES);
                }
            }
            vectors
        }
    }
}

/// Values that are looked up at once.
const AT_ONCE: usize = 64;

/// The block that the value `at` is in, and where in it.
///
/// # Safety
///
/// The row has that value.
#[inline(always)]
unsafe fn block_of<E: Encoding>(encoding: E, row: *const u8, at: usize) -> (*const u8, usize) {
    let (block, bytes) = encoding.block();
    // SAFETY: the caller's promise.
    (unsafe { row.add(at / block * bytes) }, at % block)
}

/// Numbers of 4 bits: the lower halves of 16 bytes, then their upper halves.
///
/// # Safety
///
/// The processor has the instruction set `S`; there are 16 bytes, and `inside + S::LANES` is at most 32.
#[inline(always)]
unsafe fn halves<S: Simd>(bytes: *const u8, inside: usize) -> S::Bytes {
    // SAFETY: the caller's promise.
    unsafe {
        let bytes = S::load_bytes(bytes.add(inside % 16));
        if inside < 16 { S::low_halves(bytes) } else { S::high_halves(bytes) }
    }
}

#[cfg(test)]
mod tests {
    use crate::attention::isa::Isa;
    use crate::attention::kv_type::KvType;
    use crate::attention::testing::{Random, decoded, decoded_on, encoded};
    use crate::kv_types::{DenseType, bits};

    /// 1.0 in half precision.
    const ONE: [u8; 2] = [0x00, 0x3c];
    /// 2.0 in half precision.
    const TWO: [u8; 2] = [0x00, 0x40];

    #[test]
    fn low_halves_come_first() {
        let bytes: Vec<u8> = (0..16).map(|at| at << 4 | (15 - at)).collect();
        let row = decoded(KvType::Q4_0, &[&TWO[..], &bytes].concat(), 32);
        assert_eq!((row[0], row[15], row[16], row[31]), (14.0, -16.0, -16.0, 14.0));
        let row = decoded(KvType::Q4_1, &[&TWO[..], &ONE, &bytes].concat(), 32);
        assert_eq!((row[0], row[15], row[16], row[31]), (31.0, 1.0, 1.0, 31.0));
        let row = decoded(KvType::Iq4Nl, &[&ONE[..], &bytes].concat(), 32);
        assert_eq!((row[0], row[15], row[16], row[31]), (113.0, -127.0, -127.0, 113.0));
    }

    #[test]
    fn the_fifth_bits_lie_apart() {
        let bits = (1u32 << 0 | 1 << 31).to_le_bytes();
        let row = decoded(KvType::Q5_0, &[&ONE[..], &bits, &[0; 16]].concat(), 32);
        assert_eq!((row[0], row[1], row[30], row[31]), (0.0, -16.0, -16.0, 0.0));
        let row = decoded(KvType::Q5_1, &[&ONE[..], &TWO, &bits, &[0x10; 16]].concat(), 32);
        assert_eq!((row[0], row[1], row[30], row[31]), (18.0, 2.0, 3.0, 19.0));
    }

    #[test]
    fn plain_types_are_read_value_by_value() {
        assert_eq!(decoded(KvType::F32, &2.5f32.to_le_bytes(), 1), [2.5]);
        assert_eq!(decoded(KvType::F16, &[ONE, TWO].concat().repeat(5), 10), [1.0, 2.0].repeat(5));
        assert_eq!(decoded(KvType::Bf16, &[0xc0, 0x3f], 1), [1.5]);
        let row = decoded(KvType::Q8_0, &[&TWO[..], &[0x80; 31], &[127]].concat(), 32);
        assert_eq!((row[0], row[31]), (-256.0, 254.0));
    }

    #[test]
    fn dense_types_are_read_as_the_oracle_reads_them() {
        let mut random = Random(4);
        for dense in DenseType::ALL {
            let kind = KvType::Dense(dense);
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
