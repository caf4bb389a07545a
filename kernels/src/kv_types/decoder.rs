//! From blocks to values, and products with them, at the speed of the processor.

use super::DenseType;
use crate::attention::isa::{Isa, Work};
use crate::attention::kv_type::KvType;
use crate::attention::simd::Simd;
use crate::attention::tile::Tile;

/// Values that are decoded at once: a multiple of each block.
const AT_ONCE: usize = 256;

/// Writes the values of whole blocks.
///
/// # Panics
///
/// `blocks` is no whole number of blocks, or `to` has not their values.
pub fn decode(kind: DenseType, blocks: &[u8], to: &mut [f32]) {
    Isa::chosen().run(Parts { kind, blocks, values: to.len(), take: Decode { to } });
}

/// The sum of products of blocks' values with `with`.
///
/// # Panics
///
/// `blocks` is no whole number of blocks, or `with` has not as many values.
#[must_use]
pub fn dot(kind: DenseType, blocks: &[u8], with: &[f32]) -> f32 {
    Isa::chosen().run(Parts { kind, blocks, values: with.len(), take: Dot { with, sum: 0.0 } })
}

/// What becomes of some values.
trait Take {
    type Output;

    /// # Safety
    ///
    /// The processor has the instruction set `S`.
    unsafe fn take<S: Simd>(&mut self, first: usize, values: &[f32]);

    fn end(self) -> Self::Output;
}

struct Decode<'a> {
    to: &'a mut [f32],
}

impl Take for Decode<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn take<S: Simd>(&mut self, first: usize, values: &[f32]) {
        self.to[first..][..values.len()].copy_from_slice(values);
    }

    fn end(self) {}
}

struct Dot<'a> {
    with: &'a [f32],
    sum: f32,
}

impl Take for Dot<'_> {
    type Output = f32;

    #[inline(always)]
    unsafe fn take<S: Simd>(&mut self, first: usize, values: &[f32]) {
        let with = &self.with[first..][..values.len()];
        // SAFETY: the caller's promise; blocks are a multiple of vectors.
        unsafe {
            let mut sum = S::splat(0.0);
            for at in (0..values.len()).step_by(S::LANES) {
                sum = S::mul_add(S::load(values.as_ptr().add(at)), S::load(with.as_ptr().add(at)), sum);
            }
            self.sum += S::sum(sum);
        }
    }

    fn end(self) -> f32 {
        self.sum
    }
}

struct Parts<'a, T> {
    kind: DenseType,
    blocks: &'a [u8],
    values: usize,
    take: T,
}

impl<T: Take> Work for Parts<'_, T> {
    type Output = T::Output;

    #[inline(always)]
    unsafe fn run<S: Simd>(mut self) -> T::Output {
        let (block, bytes) = (self.kind.block.values(), self.kind.bytes());
        assert!(self.blocks.len().is_multiple_of(bytes) && self.values == self.blocks.len() / bytes * block);
        let mut some = [0.0; AT_ONCE];
        for (number, blocks) in self.blocks.chunks(AT_ONCE / block * bytes).enumerate() {
            let size = blocks.len() / bytes * block;
            let kind = KvType::Dense(self.kind);
            let tile = Tile { first: blocks.as_ptr(), stride: blocks.len(), cells: 1, size, kind, ahead: 0 };
            // SAFETY: the caller's promise; there is room for the values of these blocks, which need no padding.
            unsafe {
                tile.decode::<S>(some.as_mut_ptr());
                self.take.take::<S>(number * AT_ONCE, &some[..size]);
            }
        }
        self.take.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attention::testing::{Random, encoded};
    use crate::kv_types::bits;

    #[test]
    fn rows_of_any_number_of_blocks_are_decoded_and_multiplied() {
        let mut random = Random(8);
        for kind in DenseType::ALL {
            for blocks in [1, 2, 3, 5, 9] {
                let values = blocks * kind.block.values();
                let bytes = encoded(KvType::Dense(kind), values, &mut random);
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
