//! Images of noise.

use base64::Engine;
use espalier_core::random::Random;

/// Returns an image of noise in base64, as requests contain it.
pub fn encoded_image(seed: u64) -> String {
    base64::engine::general_purpose::STANDARD.encode(bitmap(seed))
}

/// Width and height of the images, in pixels.
const SIDE: u32 = 40;

/// Returns an image of noise as a Windows bitmap with 24 bits per pixel.
fn bitmap(seed: u64) -> Vec<u8> {
    const HEADERS: u32 = 14 + 40;
    let pixels = 3 * SIDE * SIDE;
    let mut bytes = b"BM".to_vec();
    for number in [HEADERS + pixels, 0, HEADERS, 40, SIDE, SIDE, 24 << 16 | 1, 0, pixels, 0, 0, 0, 0] {
        bytes.extend(number.to_le_bytes());
    }
    let mut random = Random(seed);
    bytes.extend((0..pixels).map(|_| random.below(256) as u8));
    bytes
}
