//! The types of a KV cache, by their ids in GGUF and in ggml.

use crate::kv_quant::DenseType;

/// A type that K or V of a cache can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KvType {
    /// One floating-point number per value.
    Floating(Floating),
    /// Blocks of quants with a scale.
    Quantized(Quantized),
}

/// A type whose values are floating-point numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Floating {
    /// Single precision.
    F32,
    /// Half precision.
    F16,
    /// The upper half of single precision.
    Bf16,
}

/// A quantized type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantized {
    /// 4 bits, with an offset of -8.
    Q4_0,
    /// 4 bits, with a minimum.
    Q4_1,
    /// 5 bits, with an offset of -16.
    Q5_0,
    /// 5 bits, with a minimum.
    Q5_1,
    /// 8 bits.
    Q8_0,
    /// 4 bits that index a table.
    Iq4Nl,
    /// Our types below 4.5 bits.
    Dense(DenseType),
}

/// A type whose rows can be read in place, without decoding a tile first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InPlace {
    /// Floating-point numbers.
    Floating(Floating),
    /// int8 quants, which only need their scale.
    Q8_0,
}

macro_rules! with_one {
    ($one:expr, $name:ident => $body:expr) => {{
        let $name = $one;
        $body
    }};
}
pub(crate) use with_one;

/// Evaluates `$body` with `$encoding`, the type's [`Encoding`](super::encoding::Encoding).
macro_rules! with_encoding {
    ($kind:expr, $encoding:ident => $body:expr) => {{
        use $crate::attention::encoding;
        use $crate::attention::kv_type::Floating;
        match $kind {
            Floating::F32 => $crate::attention::kv_type::with_one!(encoding::F32, $encoding => $body),
            Floating::F16 => $crate::attention::kv_type::with_one!(encoding::F16, $encoding => $body),
            Floating::Bf16 => $crate::attention::kv_type::with_one!(encoding::Bf16, $encoding => $body),
        }
    }};
}
pub(crate) use with_encoding;

/// Like [`with_encoding`], for an [`InPlace`].
macro_rules! with_encoding_in_place {
    ($kind:expr, $encoding:ident => $body:expr) => {{
        use $crate::attention::kv_type::InPlace;
        match $kind {
            InPlace::Floating(kind) => $crate::attention::kv_type::with_encoding!(kind, $encoding => $body),
            InPlace::Q8_0 => $crate::attention::kv_type::with_one!($crate::attention::blocks::Q8_0, $encoding => $body),
        }
    }};
}
pub(crate) use with_encoding_in_place;

/// Evaluates `$body` with `$blocks`, the type's [`Blocks`](super::blocks::Blocks).
macro_rules! with_blocks {
    ($kind:expr, $blocks:ident => $body:expr) => {{
        use $crate::attention::blocks;
        use $crate::attention::kv_type::Quantized;
        use $crate::kv_quant::{Code, DenseType};
        match $kind {
            Quantized::Q4_0 => $crate::attention::kv_type::with_one!(blocks::Q4::<0, false>, $blocks => $body),
            Quantized::Q4_1 => $crate::attention::kv_type::with_one!(blocks::Q4::<1, true>, $blocks => $body),
            Quantized::Q5_0 => $crate::attention::kv_type::with_one!(blocks::Q5::<false>, $blocks => $body),
            Quantized::Q5_1 => $crate::attention::kv_type::with_one!(blocks::Q5::<true>, $blocks => $body),
            Quantized::Q8_0 => $crate::attention::kv_type::with_one!(blocks::Q8_0, $blocks => $body),
            Quantized::Iq4Nl => $crate::attention::kv_type::with_one!(blocks::Q4::<2, false>, $blocks => $body),
            Quantized::Dense(DenseType { code, block }) => match code {
                Code::Turbo2 => $crate::attention::kv_type::with_one!(blocks::Turbo2 { block }, $blocks => $body),
                Code::Turbo3 => $crate::attention::kv_type::with_one!(blocks::Turbo3 { block }, $blocks => $body),
                Code::Turbo4 => $crate::attention::kv_type::with_one!(blocks::Turbo4 { block }, $blocks => $body),
                Code::Tcq2 => $crate::attention::kv_type::with_one!(blocks::Tcq2 { block }, $blocks => $body),
                Code::Tcq3 => $crate::attention::kv_type::with_one!(blocks::Tcq3 { block }, $blocks => $body),
            },
        }
    }};
}
pub(crate) use with_blocks;

impl Floating {
    /// Returns the bytes of a value.
    #[must_use]
    pub fn bytes(self) -> usize {
        match self {
            Floating::F32 => size_of::<f32>(),
            Floating::F16 | Floating::Bf16 => size_of::<u16>(),
        }
    }
}

impl KvType {
    /// Single precision.
    pub const F32: KvType = KvType::Floating(Floating::F32);
    /// Half precision.
    pub const F16: KvType = KvType::Floating(Floating::F16);
    /// The upper half of single precision.
    pub const BF16: KvType = KvType::Floating(Floating::Bf16);
    /// 4 bits.
    pub const Q4_0: KvType = KvType::Quantized(Quantized::Q4_0);
    /// 8 bits.
    pub const Q8_0: KvType = KvType::Quantized(Quantized::Q8_0);

    /// All upstream types.
    const UPSTREAM: [KvType; 9] = [
        KvType::F32,
        KvType::F16,
        KvType::BF16,
        KvType::Q4_0,
        KvType::Quantized(Quantized::Q4_1),
        KvType::Quantized(Quantized::Q5_0),
        KvType::Quantized(Quantized::Q5_1),
        KvType::Q8_0,
        KvType::Quantized(Quantized::Iq4Nl),
    ];

    /// Returns all types.
    pub fn all() -> impl Iterator<Item = KvType> {
        let dense = DenseType::ALL.map(|dense| KvType::Quantized(Quantized::Dense(dense)));
        Self::UPSTREAM.into_iter().chain(dense)
    }

    /// Returns the id in `enum ggml_type`. Upstream's are part of the GGUF format, so they cannot change.
    #[must_use]
    pub fn number(self) -> i32 {
        match self {
            KvType::Floating(Floating::F32) => 0,
            KvType::Floating(Floating::F16) => 1,
            KvType::Floating(Floating::Bf16) => 30,
            KvType::Quantized(Quantized::Q4_0) => 2,
            KvType::Quantized(Quantized::Q4_1) => 3,
            KvType::Quantized(Quantized::Q5_0) => 6,
            KvType::Quantized(Quantized::Q5_1) => 7,
            KvType::Quantized(Quantized::Q8_0) => 8,
            KvType::Quantized(Quantized::Iq4Nl) => 20,
            KvType::Quantized(Quantized::Dense(dense)) => dense.number(),
        }
    }

    /// Returns the type with this id, if a cache can have it.
    #[must_use]
    pub fn from_number(number: i32) -> Option<KvType> {
        Self::all().find(|one| one.number() == number)
    }

    /// Returns the number of values in a block, and its bytes.
    #[must_use]
    pub fn block(self) -> (usize, usize) {
        match self {
            KvType::Floating(kind) => (1, kind.bytes()),
            KvType::Quantized(kind) => with_blocks!(kind, one => blocks::Blocks::block(one)),
        }
    }

    /// Returns the bytes of a row; `None` if `values` is not a multiple of the block size.
    #[must_use]
    pub fn row_bytes(self, values: usize) -> Option<usize> {
        let (block, bytes) = self.block();
        values.is_multiple_of(block).then(|| values / block * bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_lead_back_to_the_type() {
        for kind in KvType::all() {
            assert_eq!(KvType::from_number(kind.number()), Some(kind));
        }
        assert_eq!(KvType::from_number(12), None);
        assert_eq!(KvType::Q8_0.row_bytes(80), None);
        assert_eq!(KvType::Q8_0.row_bytes(96), Some(102));
    }
}
