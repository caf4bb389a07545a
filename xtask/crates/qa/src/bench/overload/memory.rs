//! PURE: a server's resident memory over time.

use serde::{Deserialize, Serialize};

use crate::report::samples::median_of;

/// Samples in chronological order: seconds since the first client started, and bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Memory {
    pub(super) samples: Vec<(u64, u64)>,
}

/// Bytes of resident memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct ResidentBytes {
    /// Median of the first minute.
    pub(super) first_minute: Option<f64>,
    /// Median of the last minute.
    pub(super) last_minute: Option<f64>,
    pub(super) peak: Option<u64>,
    /// The samples, thinned to as many as a plot can show.
    by_second: Vec<(u64, u64)>,
}

/// Length in seconds of the windows at the start and at the end that are compared; half of the run if it is short.
const WINDOW: u64 = 60;

/// Largest number of recorded samples.
const MAX_SAMPLES: usize = 60;

impl Memory {
    /// Whether this second has no sample yet.
    pub(super) fn is_due(&self, seconds: u64) -> bool {
        self.samples.last().is_none_or(|(last, _)| seconds > *last)
    }

    pub(super) fn summary(&self) -> ResidentBytes {
        let length = self.samples.last().map_or(0, |(seconds, _)| seconds + 1);
        let window = WINDOW.min(length.div_ceil(2));
        let every = self.samples.len().div_ceil(MAX_SAMPLES).max(1);
        ResidentBytes {
            first_minute: self.median(|seconds| seconds < window),
            last_minute: self.median(|seconds| seconds >= length.saturating_sub(window)),
            peak: self.samples.iter().map(|(_, bytes)| *bytes).max(),
            by_second: self.samples.iter().step_by(every).copied().collect(),
        }
    }

    fn median(&self, is_in: impl Fn(u64) -> bool) -> Option<f64> {
        let within = self.samples.iter().filter(|(seconds, _)| is_in(*seconds));
        median_of(within.map(|(_, bytes)| *bytes as f64).collect())
    }
}

impl ResidentBytes {
    /// Returns the growth from the first minute to the last; negative if memory shrank.
    pub(super) fn growth(&self) -> Option<f64> {
        Some(self.last_minute? - self.first_minute?)
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
        let bytes = growing(600).summary();
        assert_eq!(
            (bytes.first_minute, bytes.last_minute, bytes.peak),
            (Some(1029.5), Some(1569.5), Some(1599))
        );
        assert_eq!((bytes.growth(), bytes.by_second.len()), (Some(540.0), MAX_SAMPLES));
    }

    #[test]
    fn of_a_short_run_the_halves_are() {
        assert_eq!(growing(10).summary().growth(), Some(5.0));
        assert_eq!(Memory::default().summary().growth(), None);
    }

    #[test]
    fn one_sample_a_second() {
        assert!(Memory::default().is_due(0));
        assert!(growing(3).is_due(3) && !growing(3).is_due(2));
    }
}
