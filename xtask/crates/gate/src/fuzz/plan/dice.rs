//! Chance, the same on every machine for the same seed.

use crate::plan::random::Random;

/// Numbers that look random.
pub struct Dice(Random);

impl Dice {
    /// Those of `seed`; each `stream` of a seed gives others.
    pub fn new(seed: u64, stream: u64) -> Dice {
        let mixed = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
            ^ stream.wrapping_add(1).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mut random = Random((mixed ^ (mixed >> 31)) | 1);
        // Neighbouring seeds begin alike.
        for _ in 0..8 {
            random.below(2);
        }
        Dice(random)
    }

    /// From 0 to below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0.below(limit)
    }

    /// From `least` to `most`, both of which come.
    pub fn between(&mut self, least: usize, most: usize) -> usize {
        least + self.below(most.saturating_sub(least) + 1)
    }

    /// Yes in so many of a hundred.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of them; there must be one.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}
