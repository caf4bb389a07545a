//! Types of a KV cache below four bits and a half: `turbo2`, `turbo3`, `turbo4`, and `tcq2`, `tcq3`, which are trellis-coded.
//!
//! All are one code with other numbers. A block has 64 or 128 values: its scale in half precision, then a circle of
//! [`Code::bits`] bits a value, the lowest first. Value `t` is `scale * levels[w] / 32`, where `w` are the [`Code::window`]
//! bits of the circle that begin at bit `t * bits`. Where windows are as wide as a value's own bits, that is a table
//! of levels (Lloyd and Max); where they are wider, each bit takes part in several values, and the encoder looks for the
//! best circle of all: trellis coding (<https://arxiv.org/abs/2406.11235>, the bit-shift trellis).
//!
//! Values are taken to be normal, which upstream's rotation of quantized caches makes them. [`levels`] are computed for
//! N(0, 1) by `kernels/examples/codebooks.rs`, from no model's data.
//!
//! * [`levels`]: the tables.
//! * [`encoder`]: a block's scale and circle, out of [`nearest`] levels or the best [`path`]; [`bits`]: how they lie in memory.
//! * [`decoder`]: rows of blocks back to values.
//!
//! Encoders write the same bytes on each instruction set.

pub mod bits;
pub mod decoder;
pub mod encoder;
pub mod levels;
pub mod nearest;
pub mod path;

use sha2::{Digest, Sha256};

/// How bits stand for values.
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
    /// All of them, in the order of their numbers.
    pub const ALL: [Code; 5] = [Code::Turbo2, Code::Turbo3, Code::Turbo4, Code::Tcq2, Code::Tcq3];

    /// As `--cache-type-k` calls it.
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

    /// Bits that a value adds to the circle.
    #[must_use]
    pub const fn bits(self) -> usize {
        match self {
            Code::Turbo2 | Code::Tcq2 => 2,
            Code::Turbo3 | Code::Tcq3 => 3,
            Code::Turbo4 => 4,
        }
    }

    /// Bits that a value is read from.
    #[must_use]
    pub const fn window(self) -> usize {
        match self {
            Code::Turbo2 | Code::Turbo3 | Code::Turbo4 => self.bits(),
            Code::Tcq2 => 8,
            Code::Tcq3 => 9,
        }
    }

    /// What each window stands for.
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

    /// The levels as numbers; after the last come zeros.
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

    /// How many levels lie in a standard deviation.
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

    /// Tells this code from others of the same name: another table, or another way to read it.
    #[must_use]
    pub fn fingerprint(self) -> u64 {
        let mut digest = Sha256::new();
        digest.update(format!("{} {} {} circle, f16 scale / 32\n", self.name(), self.bits(), self.window()));
        digest.update(self.levels().iter().map(|level| *level as u8).collect::<Vec<u8>>());
        u64::from_le_bytes(digest.finalize()[..8].try_into().expect("a digest has 32 bytes"))
    }
}

/// How many values have a scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Block {
    /// 128, which takes an eighth of a bit for each.
    Of128,
    /// 64, for heads that are no multiple of 128.
    Of64,
}

impl Block {
    /// Both, the sparing one first.
    pub const ALL: [Block; 2] = [Block::Of128, Block::Of64];

    /// The number of values.
    #[must_use]
    pub const fn values(self) -> usize {
        match self {
            Block::Of128 => 128,
            Block::Of64 => 64,
        }
    }
}

/// The most values of a block.
pub const MOST_VALUES: usize = Block::Of128.values();

/// A code in blocks of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DenseType {
    /// The code.
    pub code: Code,
    /// The size of its blocks.
    pub block: Block,
}

/// The number of the first of them in `enum ggml_type`. Upstream counts up from 0, and forks go on from there.
pub const FIRST_NUMBER: i32 = 200;

impl DenseType {
    /// All of them, in the order of their numbers.
    pub const ALL: [DenseType; 10] = {
        let mut all = [DenseType { code: Code::Turbo2, block: Block::Of128 }; 10];
        let mut at = 0;
        while at < all.len() {
            all[at] = DenseType { code: Code::ALL[at / 2], block: Block::ALL[at % 2] };
            at += 1;
        }
        all
    };

    /// The number in `enum ggml_type`.
    #[must_use]
    pub fn number(self) -> i32 {
        FIRST_NUMBER + 2 * self.code as i32 + self.block as i32
    }

    /// The type with this number.
    #[must_use]
    pub fn from_number(number: i32) -> Option<DenseType> {
        Self::ALL.into_iter().find(|kind| kind.number() == number)
    }

    /// Bytes of a block.
    #[must_use]
    pub const fn bytes(self) -> usize {
        2 + self.block.values() * self.code.bits() / 8
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
    fn a_table_has_a_level_for_each_window() {
        for code in Code::ALL {
            assert_eq!(code.levels().len(), 1 << code.window(), "{code:?}");
        }
    }

    #[test]
    fn codes_are_these_and_no_others() {
        // Saved states carry these: another table is another type.
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
