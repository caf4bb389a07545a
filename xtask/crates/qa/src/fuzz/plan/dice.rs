//! Deterministic pseudorandom numbers, the same on every machine for the same seed.

use espalier_core::random::Random;

/// A pseudorandom number generator.
pub struct Dice(Random);

impl Dice {
    /// Creates the generator of `seed`; each `stream` of a seed gives a different sequence.
    pub fn new(seed: u64, stream: u64) -> Dice {
        let mixed = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
            ^ stream.wrapping_add(1).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mut random = Random((mixed ^ (mixed >> 31)) | 1);
        // Skip the first outputs, which are similar for neighbouring seeds.
        for _ in 0..8 {
            random.below(2);
        }
        Dice(random)
    }

    /// Returns a number from 0 to below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0.below(limit)
    }

    /// Returns a number from `least` to `most`, inclusive.
    pub fn between(&mut self, least: usize, most: usize) -> usize {
        least + self.below(most.saturating_sub(least) + 1)
    }

    /// Returns true with a probability of `percent` percent.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// Returns one element of `from`, which must not be empty.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}
