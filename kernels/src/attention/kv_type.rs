//! The types of a KV cache, by their numbers in GGUF and in ggml.

use crate::kv_types::DenseType;

/// A type that K or V of a cache can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KvType {
    /// Single precision.
    F32,
    /// Half precision.
    F16,
    /// The upper half of single precision.
    Bf16,
    /// 4 bits, from -8.
    Q4_0,
    /// 4 bits, from a minimum.
    Q4_1,
    /// 5 bits, from -16.
    Q5_0,
    /// 5 bits, from a minimum.
    Q5_1,
    /// 8 bits.
    Q8_0,
    /// 4 bits that look a value up.
    Iq4Nl,
    /// Below four bits and a half, and ours.
    Dense(DenseType),
}

/// `$body` with `$encoding`, the type's [`Encoding`](super::encoding::Encoding).
macro_rules! with_encoding {
    ($kind:expr, $encoding:ident => $body:expr) => {{
        use $crate::attention::encoding;
        use $crate::attention::kv_type::KvType;
        use $crate::kv_types::{Code, DenseType};
        match $kind {
            KvType::F32 => with_encoding!(is encoding::F32, $encoding => $body),
            KvType::F16 => with_encoding!(is encoding::F16, $encoding => $body),
            KvType::Bf16 => with_encoding!(is encoding::Bf16, $encoding => $body),
            KvType::Q4_0 => with_encoding!(is encoding::Halves::<false, false>, $encoding => $body),
            KvType::Q4_1 => with_encoding!(is encoding::Halves::<false, true>, $encoding => $body),
            KvType::Q5_0 => with_encoding!(is encoding::Halves::<true, false>, $encoding => $body),
            KvType::Q5_1 => with_encoding!(is encoding::Halves::<true, true>, $encoding => $body),
            KvType::Q8_0 => with_encoding!(is encoding::Q8_0, $encoding => $body),
            KvType::Iq4Nl => with_encoding!(is encoding::Iq4Nl, $encoding => $body),
            KvType::Dense(DenseType { code, block }) => match code {
                Code::Turbo2 => with_encoding!(is encoding::Coded::<0> { block }, $encoding => $body),
                Code::Turbo3 => with_encoding!(is encoding::Coded::<1> { block }, $encoding => $body),
                Code::Turbo4 => with_encoding!(is encoding::Coded::<2> { block }, $encoding => $body),
                Code::Tcq2 => with_encoding!(is encoding::Coded::<3> { block }, $encoding => $body),
                Code::Tcq3 => with_encoding!(is encoding::Coded::<4> { block }, $encoding => $body),
            },
        }
    }};
    (is $one:expr, $encoding:ident => $body:expr) => {{
        let $encoding = $one;
        $body
    }};
}
pub(crate) use with_encoding;

impl KvType {
    /// All that upstream has.
    const UPSTREAM: [KvType; 9] = [
        KvType::F32,
        KvType::F16,
        KvType::Bf16,
        KvType::Q4_0,
        KvType::Q4_1,
        KvType::Q5_0,
        KvType::Q5_1,
        KvType::Q8_0,
        KvType::Iq4Nl,
    ];

    /// All of them.
    pub fn all() -> impl Iterator<Item = KvType> {
        Self::UPSTREAM.into_iter().chain(DenseType::ALL.map(KvType::Dense))
    }

    /// The number in `enum ggml_type`. Upstream's are part of the GGUF format, so they cannot change.
    #[must_use]
    pub fn number(self) -> i32 {
        match self {
            KvType::F32 => 0,
            KvType::F16 => 1,
            KvType::Q4_0 => 2,
            KvType::Q4_1 => 3,
            KvType::Q5_0 => 6,
            KvType::Q5_1 => 7,
            KvType::Q8_0 => 8,
            KvType::Iq4Nl => 20,
            KvType::Bf16 => 30,
            KvType::Dense(dense) => dense.number(),
        }
    }

    /// The type with this number, if a cache can have it.
    #[must_use]
    pub fn from_number(number: i32) -> Option<KvType> {
        Self::all().find(|one| one.number() == number)
    }

    /// The values that lie together, and their bytes.
    #[must_use]
    pub fn block(self) -> (usize, usize) {
        with_encoding!(self, one => encoding::Encoding::block(one))
    }

    /// The bytes of a row; none, when it has no whole number of blocks.
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
