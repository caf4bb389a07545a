//! Memory layout of a block: its scale, then its codeword.

use super::{Code, DenseType};
use crate::simd::half;

/// Constant factor of the levels besides the scale: it keeps the scale near the values' own magnitude, where half
/// precision has its full number of digits.
pub const UNIT: f32 = 1.0 / 32.0;

/// Bytes of the scale.
pub const SCALE_BYTES: usize = 2;

/// Writes the scale and the codeword, which consists of the lowest bits of each state.
///
/// # Panics
///
/// If the lengths are not those of a block.
pub fn write(code: Code, scale: f32, windows: &[u16], to: &mut [u8]) {
    let (head, codeword) = to.split_at_mut(SCALE_BYTES);
    head.copy_from_slice(&half::from_f32(scale).to_le_bytes());
    let bits = code.bits();
    assert_eq!(codeword.len() * 8, windows.len() * bits);
    // Eight values fill as many bytes as a value has bits.
    for (windows, bytes) in windows.chunks_exact(8).zip(codeword.chunks_exact_mut(bits)) {
        let mut word = 0u32;
        for (at, window) in windows.iter().enumerate() {
            word |= (u32::from(*window) & ((1 << bits) - 1)) << (at * bits);
        }
        bytes.copy_from_slice(&word.to_le_bytes()[..bits]);
    }
}

/// Returns the scale of a block.
#[must_use]
pub fn scale(block: &[u8]) -> f32 {
    half::to_f32(u16::from_le_bytes([block[0], block[1]]))
}

/// Returns the state of a value: the reference for all decoders.
#[must_use]
pub fn window(code: Code, block: &[u8], value: usize) -> usize {
    let codeword = &block[SCALE_BYTES..];
    let bit = |at: usize| usize::from(codeword[at / 8 % codeword.len()] >> (at % 8) & 1);
    (0..code.window()).map(|at| bit(value * code.bits() + at) << at).sum()
}

/// Decodes blocks: the reference for all decoders.
pub fn decode(kind: DenseType, blocks: &[u8], to: &mut [f32]) {
    for (block, to) in blocks.chunks_exact(kind.bytes()).zip(to.chunks_exact_mut(kind.block.values())) {
        let scale = scale(block);
        for (value, to) in to.iter_mut().enumerate() {
            *to = f32::from(kind.code.levels()[window(kind.code, block, value)]) * UNIT * scale;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_read_as_they_were_written() {
        for kind in DenseType::ALL {
            let code = kind.code;
            let mask = (1 << code.bits()) - 1;
            let own: Vec<u16> = (0..kind.block.values()).map(|at| (at * 7 + at / 5) as u16 & mask).collect();
            let mut block = vec![0; kind.bytes()];
            write(code, 1.0, &own, &mut block);
            assert_eq!(block[..2], [0, 0x3c]);
            for at in 0..kind.block.values() {
                let expected: usize = (0..code.window().div_ceil(code.bits()))
                    .map(|next| usize::from(own[(at + next) % kind.block.values()]) << (next * code.bits()))
                    .sum();
                assert_eq!(window(code, &block, at), expected & ((1 << code.window()) - 1), "{kind:?} {at}");
            }
        }
    }
}
