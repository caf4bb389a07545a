//! PURE: a server's resident memory over time.

use crate::bench::timing::median_of;

/// Samples in the order in which they were taken: seconds since the first client came, and bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Memory {
    pub(super) samples: Vec<(u64, u64)>,
}

/// A window at the beginning and one at the end are compared, in seconds; of a short run each is half.
const WINDOW: u64 = 60;

impl Memory {
    /// Whether this second has no sample yet.
    pub(super) fn is_due(&self, seconds: u64) -> bool {
        self.samples.last().is_none_or(|(last, _)| seconds > *last)
    }

    /// The median of the first minute, in bytes.
    pub(super) fn first(&self) -> Option<f64> {
        let window = self.window();
        self.median(|seconds| seconds < window)
    }

    /// The median of the last minute, in bytes.
    pub(super) fn last(&self) -> Option<f64> {
        let from = self.length().saturating_sub(self.window());
        self.median(|seconds| seconds >= from)
    }

    /// The most, in bytes.
    pub(super) fn peak(&self) -> Option<u64> {
        self.samples.iter().map(|(_, bytes)| *bytes).max()
    }

    /// How much more the last minute has than the first, in bytes; negative when it has less.
    pub(super) fn growth(&self) -> Option<f64> {
        Some(self.last()? - self.first()?)
    }

    fn length(&self) -> u64 {
        self.samples.last().map_or(0, |(seconds, _)| seconds + 1)
    }

    fn window(&self) -> u64 {
        WINDOW.min(self.length().div_ceil(2))
    }

    fn median(&self, is_in: impl Fn(u64) -> bool) -> Option<f64> {
        let within = self.samples.iter().filter(|(seconds, _)| is_in(*seconds));
        median_of(within.map(|(_, bytes)| *bytes as f64).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn growing(seconds: u64) -> Memory {
        Memory { samples: (0..seconds).map(|at| (at, 1000 + at)).collect() }
    }

    #[test]
    fn the_first_and_the_last_minute_are_compared() {
        let memory = growing(600);
        assert_eq!((memory.first(), memory.last(), memory.peak()), (Some(1029.5), Some(1569.5), Some(1599)));
        assert_eq!(memory.growth(), Some(540.0));
    }

    #[test]
    fn of_a_short_run_the_halves_are() {
        assert_eq!(growing(10).growth(), Some(5.0));
        assert_eq!(Memory::default().growth(), None);
    }

    #[test]
    fn one_sample_a_second() {
        assert!(Memory::default().is_due(0));
        assert!(growing(3).is_due(3) && !growing(3).is_due(2));
    }
}
