//! Pseudo-random numbers, the same on every machine, for generated projects and prompts.

/// xorshift generator; the state must not be 0.
pub struct Random(pub u64);

impl Random {
    /// Returns an integer from 0 to below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap_or(0) % limit.max(1)
    }
}
