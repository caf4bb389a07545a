//! KV cache types below 4.5 bits: `turbo2`, `turbo3`, `turbo4`, and the trellis-coded `tcq2`, `tcq3`.
//!
//! All are one code with other parameters. A block has 64 or 128 values: its scale in half precision, then a
//! tail-biting codeword of [`Code::bits`] bits per value, the lowest first. Value `t` is `scale * levels[w] / 32`,
//! where the state `w` is the [`Code::window`] bits of the codeword that begin at bit `t * bits`, cyclically. If a
//! state is as wide as a value's own bits, that is a table of sigma levels (Lloyd-Max); if it is wider, each bit takes
//! part in several values, and the encoder searches for the best codeword: trellis coding
//! (<https://arxiv.org/abs/2406.11235>, the bit-shift trellis).
//!
//! Values are assumed to be normally distributed, which upstream's rotation of quantized caches achieves. The
//! [`levels`] are computed for N(0, 1) by `kernels/examples/codebooks.rs`, without calibration data.
//!
//! * [`levels`]: the tables of sigma levels.
//! * [`encoder`]: a block's scale and codeword, from [`nearest`] levels or the best [`path`].
//! * [`bits`]: the memory layout of both.
//!
//! [`crate::attention`] reads the blocks: [`crate::attention::decoder`] is the counterpart of [`encoder`].
//!
//! Encoders write the same bytes on all instruction sets.

pub mod bits;
pub mod encoder;
pub mod levels;
pub mod nearest;
pub mod path;

use sha2::{Digest, Sha256};

/// A mapping of bits to values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// 4 levels.
    Turbo2,
    /// 8 levels.
    Turbo3,
    /// 16 levels.
    Turbo4,
    /// 2 bits a value, 256 levels.
    Tcq2,
    /// 3 bits a value, 512 levels.
    Tcq3,
}

impl Code {
    /// All codes, in the order of their type ids.
    pub const ALL: [Code; 5] = [Code::Turbo2, Code::Turbo3, Code::Turbo4, Code::Tcq2, Code::Tcq3];

    /// Returns the name used by `--cache-type-k`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Code::Turbo2 => "turbo2",
            Code::Turbo3 => "turbo3",
            Code::Turbo4 => "turbo4",
            Code::Tcq2 => "tcq2",
            Code::Tcq3 => "tcq3",
        }
    }

    /// Returns the number of bits that a value adds to the codeword.
    #[must_use]
    pub const fn bits(self) -> usize {
        match self {
            Code::Turbo2 | Code::Tcq2 => 2,
            Code::Turbo3 | Code::Tcq3 => 3,
            Code::Turbo4 => 4,
        }
    }

    /// Returns the width of a state: the number of bits that a value is decoded from.
    #[must_use]
    pub const fn window(self) -> usize {
        match self {
            Code::Turbo2 | Code::Turbo3 | Code::Turbo4 => self.bits(),
            Code::Tcq2 => 8,
            Code::Tcq3 => 9,
        }
    }

    /// Returns the sigma level of each state.
    #[must_use]
    pub const fn levels(self) -> &'static [i8] {
        match self {
            Code::Turbo2 => &levels::TURBO2,
            Code::Turbo3 => &levels::TURBO3,
            Code::Turbo4 => &levels::TURBO4,
            Code::Tcq2 => &levels::TCQ2,
            Code::Tcq3 => &levels::TCQ3,
        }
    }

    /// Returns the levels as floats, followed by zeros.
    #[must_use]
    pub const fn numbers<const COUNT: usize>(self) -> [f32; COUNT] {
        let mut numbers = [0.0; COUNT];
        let mut at = 0;
        while at < self.levels().len() {
            numbers[at] = self.levels()[at] as f32;
            at += 1;
        }
        numbers
    }

    /// Returns the number of level units in one standard deviation.
    #[must_use]
    pub const fn spread(self) -> f32 {
        match self {
            Code::Turbo2 => levels::TURBO2_SPREAD,
            Code::Turbo3 => levels::TURBO3_SPREAD,
            Code::Turbo4 => levels::TURBO4_SPREAD,
            Code::Tcq2 => levels::TCQ2_SPREAD,
            Code::Tcq3 => levels::TCQ3_SPREAD,
        }
    }

    /// Returns a hash of everything that decides how blocks are read, to tell apart versions of a code with the same
    /// name.
    #[must_use]
    pub fn fingerprint(self) -> u64 {
        let mut digest = Sha256::new();
        digest.update(format!("{} {} {} circle, f16 scale / 32\n", self.name(), self.bits(), self.window()));
        digest.update(self.levels().iter().map(|level| *level as u8).collect::<Vec<u8>>());
        u64::from_le_bytes(digest.finalize()[..8].try_into().expect("a digest has 32 bytes"))
    }
}

/// The number of values that share a scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Block {
    /// 128, which costs an eighth of a bit per value.
    Of128,
    /// 64, for head sizes that are not a multiple of 128.
    Of64,
}

impl Block {
    /// Both, the more compact one first.
    pub const ALL: [Block; 2] = [Block::Of128, Block::Of64];

    /// Returns the number of values.
    #[must_use]
    pub const fn values(self) -> usize {
        match self {
            Block::Of128 => 128,
            Block::Of64 => 64,
        }
    }
}

/// Largest number of values in a block.
pub const MAX_VALUES: usize = Block::Of128.values();

/// A code in blocks of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DenseType {
    /// The code.
    pub code: Code,
    /// The size of its blocks.
    pub block: Block,
}

/// The first of these ids in `enum ggml_type`. Upstream counts up from 0, and forks continue from there.
pub const FIRST_NUMBER: i32 = 200;

impl DenseType {
    /// All types, in the order of their ids.
    pub const ALL: [DenseType; 10] = {
        let mut all = [DenseType { code: Code::Turbo2, block: Block::Of128 }; 10];
        let mut at = 0;
        while at < all.len() {
            all[at] = DenseType { code: Code::ALL[at / 2], block: Block::ALL[at % 2] };
            at += 1;
        }
        all
    };

    /// Returns the id in `enum ggml_type`.
    #[must_use]
    pub fn number(self) -> i32 {
        FIRST_NUMBER + 2 * self.code as i32 + self.block as i32
    }

    /// Returns the type with this id.
    #[must_use]
    pub fn from_number(number: i32) -> Option<DenseType> {
        Self::ALL.into_iter().find(|kind| kind.number() == number)
    }

    /// Returns the bytes of a block.
    #[must_use]
    pub const fn bytes(self) -> usize {
        2 + self.block.values() * self.code.bits() / 8
    }

    /// Returns the bytes of the blocks of `values` values; `None` if these are not whole blocks.
    #[must_use]
    pub fn row_bytes(self, values: usize) -> Option<usize> {
        let block = self.block.values();
        values.is_multiple_of(block).then(|| values / block * self.bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_lead_back_to_the_type() {
        for (at, kind) in (FIRST_NUMBER..).zip(DenseType::ALL) {
            assert_eq!((kind.number(), DenseType::from_number(at)), (at, Some(kind)));
        }
        for number in [-1, 0, FIRST_NUMBER - 1, FIRST_NUMBER + 10, i32::MAX, i32::MIN] {
            assert_eq!(DenseType::from_number(number), None);
        }
    }

    #[test]
    fn blocks_have_these_bytes() {
        let bytes: Vec<usize> = DenseType::ALL.iter().map(|kind| kind.bytes()).collect();
        assert_eq!(bytes, [34, 18, 50, 26, 66, 34, 34, 18, 50, 26]);
    }

    #[test]
    fn rows_are_whole_blocks() {
        for kind in DenseType::ALL {
            let (values, bytes) = (kind.block.values(), kind.bytes());
            assert_eq!(
                [0, values, 3 * values].map(|row| kind.row_bytes(row)),
                [0, bytes, 3 * bytes].map(Some)
            );
            assert_eq!([1, values - 1, values + 1].map(|row| kind.row_bytes(row)), [None; 3]);
        }
    }

    #[test]
    fn a_table_has_a_level_for_each_window() {
        for code in Code::ALL {
            assert_eq!(code.levels().len(), 1 << code.window(), "{code:?}");
        }
    }

    #[test]
    fn codes_are_these_and_no_others() {
        // Saved states carry these: a changed table is a different type.
        let fingerprints = Code::ALL.map(|code| format!("{} {:016x}", code.name(), code.fingerprint()));
        let expected = [
            "turbo2 3743809dc25eed0b",
            "turbo3 0e601e01fbca3376",
            "turbo4 deb767c871f5c424",
            "tcq2 2172310f95770505",
            "tcq3 f78c70d8f355aabf",
        ];
        assert_eq!(fingerprints, expected);
    }
}
