//! PURE: a server's resident memory over time.

use crate::bench::timing::median_of;

/// Samples in chronological order: seconds since the first client started, and bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Memory {
    pub(super) samples: Vec<(u64, u64)>,
}

/// Length in seconds of the windows at the start and at the end that are compared; half of the run if it is short.
const WINDOW: u64 = 60;

impl Memory {
    /// Whether this second has no sample yet.
    pub(super) fn is_due(&self, seconds: u64) -> bool {
        self.samples.last().is_none_or(|(last, _)| seconds > *last)
    }

    /// Returns the median of the first minute, in bytes.
    pub(super) fn first(&self) -> Option<f64> {
        let window = self.window();
        self.median(|seconds| seconds < window)
    }

    /// Returns the median of the last minute, in bytes.
    pub(super) fn last(&self) -> Option<f64> {
        let from = self.length().saturating_sub(self.window());
        self.median(|seconds| seconds >= from)
    }

    /// Returns the maximum, in bytes.
    pub(super) fn peak(&self) -> Option<u64> {
        self.samples.iter().map(|(_, bytes)| *bytes).max()
    }

    /// Returns the growth from the first minute to the last, in bytes; negative if memory shrank.
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
