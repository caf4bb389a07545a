//! Reproducible random numbers.

/// Marsaglia's xorshift with 64 bits.
pub struct XorShift(u64);

impl XorShift {
    /// Starts at `seed`, which must not be zero.
    pub fn new(seed: u64) -> Self {
        XorShift(seed)
    }

    /// Returns the next number from 0 to below 1.
    pub fn fraction(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}
