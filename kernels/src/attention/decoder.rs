//! Rows of our cache types, for ggml's type table: blocks to values, and dot products with them.

use super::encoding::Lines;
use super::kv_type::Quantized;
use super::tile::Tile;
use crate::kv_quant::{DenseType, MAX_VALUES};
use crate::simd::isa::Isa;
use crate::simd::{Simd, Work};

/// Decodes blocks.
///
/// # Panics
///
/// If `blocks` is not a whole number of blocks, or `to` does not have as many values.
pub fn decode(kind: DenseType, blocks: &[u8], to: &mut [f32]) {
    assert_eq!(kind.row_bytes(to.len()), Some(blocks.len()));
    Isa::chosen().run(Decode { kind, blocks, to });
}

/// Returns the dot product of the values of blocks with `with`.
///
/// # Panics
///
/// If `blocks` is not a whole number of blocks, or `with` does not have as many values.
#[must_use]
pub fn dot(kind: DenseType, blocks: &[u8], with: &[f32]) -> f32 {
    assert_eq!(kind.row_bytes(with.len()), Some(blocks.len()));
    Isa::chosen().run(Dot { kind, blocks, with })
}

struct Decode<'a> {
    kind: DenseType,
    blocks: &'a [u8],
    to: &'a mut [f32],
}

impl Work for Decode<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Decode { kind, blocks, to } = self;
        let lines = Lines { first: blocks.as_ptr(), stride: blocks.len(), ahead: 0 };
        let row = Tile { lines, cells: 1, size: to.len(), kind: Quantized::Dense(kind) };
        // SAFETY: `Work::run` is called with the instruction set; `to` has space for the values, which need no padding.
        unsafe { row.decode::<S>(to.as_mut_ptr()) };
    }
}

struct Dot<'a> {
    kind: DenseType,
    blocks: &'a [u8],
    with: &'a [f32],
}

impl Work for Dot<'_> {
    type Output = f32;

    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> f32 {
        let Dot { kind, blocks, with } = self;
        let mut values = [0.0; MAX_VALUES];
        let values = &mut values[..kind.block.values()];
        // SAFETY: `Work::run` is called with the instruction set; a block is a multiple of vectors.
        unsafe {
            let mut sum = S::splat(0.0);
            for (blocks, with) in blocks.chunks_exact(kind.bytes()).zip(with.chunks_exact(values.len())) {
                Decode { kind, blocks, to: &mut *values }.run::<S>();
                for at in (0..values.len()).step_by(S::LANES) {
                    sum = S::mul_add(S::load(values.as_ptr().add(at)), S::load(with.as_ptr().add(at)), sum);
                }
            }
            S::sum(sum)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attention::kv_type::KvType;
    use crate::attention::testing::{Random, encoded};
    use crate::kv_quant::bits;

    #[test]
    fn rows_of_any_number_of_blocks_are_decoded_and_multiplied() {
        let mut random = Random(8);
        for kind in DenseType::ALL {
            for blocks in [1, 2, 3, 5, 9] {
                let values = blocks * kind.block.values();
                let bytes = encoded(KvType::Quantized(Quantized::Dense(kind)), values, &mut random);
                let (mut found, mut expected) = (vec![0.0; values], vec![0.0; values]);
                decode(kind, &bytes, &mut found);
                bits::decode(kind, &bytes, &mut expected);
                assert_eq!(found, expected, "{kind:?}");
                let with: Vec<f32> = (0..values).map(|_| random.normal()).collect();
                let exact: f64 = expected.iter().zip(&with).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
                let size: f64 = expected.iter().zip(&with).map(|(a, b)| f64::from((a * b).abs())).sum();
                assert!((f64::from(dot(kind, &bytes, &with)) - exact).abs() <= 1e-6 * size, "{kind:?}");
            }
        }
    }
}
