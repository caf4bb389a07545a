//! The weights: noise of the right magnitude, written block by block.

use std::io::{self, Write};

use super::header::padding_after;
use super::spec::WeightType;
use super::tensors::Tensor;

/// Minimum number of bytes of one write.
const PART: usize = 64 << 10;

pub(super) fn write_tensor_data(out: &mut dyn Write, tensor: &Tensor, seed: u64) -> io::Result<()> {
    let mut noise = Noise::new(seed, &tensor.name);
    let (block, _) = tensor.weights.block();
    let mut bytes = Vec::with_capacity(2 * PART);
    for _ in 0..tensor.elements() / block {
        encode_block(&mut bytes, tensor, &mut noise);
        if bytes.len() >= PART {
            out.write_all(&bytes)?;
            bytes.clear();
        }
    }
    out.write_all(&bytes)?;
    out.write_all(&vec![0; padding_after(tensor.bytes()) as usize])
}

fn encode_block(bytes: &mut Vec<u8>, tensor: &Tensor, noise: &mut Noise) {
    match tensor.weights {
        WeightType::F32 => bytes.extend(value_of(tensor, noise).to_le_bytes()),
        WeightType::F16 => bytes.extend(f16_bits(value_of(tensor, noise)).to_le_bytes()),
        WeightType::Q8_0 => encode_quantized::<32>(bytes, tensor.spread / 127.0, noise, centered_byte),
        WeightType::Q4_0 => encode_quantized::<16>(bytes, tensor.spread / 7.0, noise, centered_nibbles),
    }
}

fn value_of(tensor: &Tensor, noise: &mut Noise) -> f32 {
    tensor.center + tensor.spread * (2.0 * noise.unit() - 1.0)
}

/// Appends a scale near `scale`, then random quants.
fn encode_quantized<const QUANT_BYTES: usize>(
    bytes: &mut Vec<u8>,
    scale: f32,
    noise: &mut Noise,
    centered: fn(u8) -> u8,
) {
    let scale = scale * (0.75 + 0.5 * noise.unit());
    bytes.extend(f16_bits(scale).to_le_bytes());
    for _ in 0..QUANT_BYTES / 8 {
        bytes.extend(noise.next().to_le_bytes().map(centered));
    }
}

/// Maps the signed byte -128 to 0: it has no positive counterpart, and a nonzero mean adds up over a row until it
/// dominates the noise.
fn centered_byte(byte: u8) -> u8 {
    if byte == 0x80 { 0 } else { byte }
}

/// Two nibbles that encode -8..=7; as in [`centered_byte`], the lowest value is mapped to 0.
fn centered_nibbles(byte: u8) -> u8 {
    let centered = |nibble: u8| if nibble == 0 { 8 } else { nibble };
    centered(byte & 0x0f) | centered(byte >> 4) << 4
}

/// The bits of the nearest IEEE half-precision number, ties to even.
fn f16_bits(value: f32) -> u16 {
    let sign = ((value.to_bits() >> 16) & 0x8000) as u16;
    let magnitude = value.abs();
    if magnitude < 2f32.powi(-14) {
        // Subnormal halves are multiples of 2^-24. Rounding up may give the smallest normal.
        return sign | (magnitude * 2f32.powi(24)).round_ties_even() as u16;
    }
    if magnitude >= 65520.0 {
        return sign | 0x7c00;
    }
    let bits = magnitude.to_bits();
    let rounded = bits + 0x0fff + ((bits >> 13) & 1);
    sign | ((rounded - (112 << 23)) >> 13) as u16
}

/// SplitMix64, seeded by the model's seed and the tensor's name, so that a tensor's weights do
/// not depend on which tensors come before it.
struct Noise {
    state: u64,
}

impl Noise {
    fn new(seed: u64, name: &str) -> Noise {
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        Noise { state: hash ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Uniform in [0, 1).
    fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1u64 << 24) as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_rounded_to_the_nearest_even() {
        let cases = [
            (0.0, 0x0000),
            (1.0, 0x3c00),
            (-2.0, 0xc000),
            (65504.0, 0x7bff),
            (1.0e6, 0x7c00),
            (2f32.powi(-14), 0x0400),
            (2f32.powi(-24), 0x0001),
            (2f32.powi(-26), 0x0000),
            (1.0 + 2f32.powi(-11), 0x3c00),
            (1.0 + 3.0 * 2f32.powi(-11), 0x3c02),
        ];
        for (value, bits) in cases {
            assert_eq!(f16_bits(value), bits, "{value}");
        }
    }

    #[test]
    fn quants_have_no_value_without_its_opposite() {
        assert_eq!([0x7f, 0x80, 0x81].map(centered_byte), [0x7f, 0x00, 0x81]);
        assert_eq!([0x00, 0x0f, 0xf0, 0x18].map(centered_nibbles), [0x88, 0x8f, 0xf8, 0x18]);
    }
}
