//! Times of several programs under test that run in turn, and their ratios.

use std::time::Duration;

use serde_json::{Value, json};

/// The times of one program, one per round.
#[derive(Clone, Debug)]
pub struct Times {
    /// Name of the program.
    pub name: String,
    /// Wall-clock times in the order of the rounds.
    pub rounds: Vec<Duration>,
}

impl Times {
    /// Creates an empty list.
    pub fn new(name: &str) -> Times {
        Times { name: name.to_string(), rounds: Vec::new() }
    }

    /// Returns the median in seconds; `None` before the first round.
    pub fn median(&self) -> Option<f64> {
        median_of(self.seconds())
    }

    /// Returns the median of the round-by-round ratios of `other` to this one: above 1 means this one is faster.
    pub fn speedup_over(&self, other: &Times) -> Option<f64> {
        median_ratio(&other.seconds(), &self.seconds())
    }

    /// Returns the seconds in the order of the rounds.
    fn seconds(&self) -> Vec<f64> {
        self.rounds.iter().map(Duration::as_secs_f64).collect()
    }

    /// Returns the shortest and the longest time, in seconds.
    pub fn extremes(&self) -> Option<(f64, f64)> {
        let seconds = self.rounds.iter().map(Duration::as_secs_f64);
        Some((seconds.clone().reduce(f64::min)?, seconds.reduce(f64::max)?))
    }

    /// Formats two cells of a table: the median, and the extremes.
    pub fn cells(&self) -> String {
        match (self.median(), self.extremes()) {
            (Some(median), Some((low, high))) => {
                format!("{:.1} ms | {:.1} - {:.1} ms", median * 1e3, low * 1e3, high * 1e3)
            }
            _ => "- | -".to_string(),
        }
    }
}

/// Returns the middle value, or the mean of the two in the middle.
pub fn median_of(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len().checked_sub(1)? / 2;
    match values.len() % 2 {
        1 => values.get(middle).copied(),
        _ => Some((values.get(middle)? + values.get(middle + 1)?) / 2.0),
    }
}

/// Returns the median of the round-by-round ratios of `of` to `to`.
pub fn median_ratio(of: &[f64], to: &[f64]) -> Option<f64> {
    median_of(of.iter().zip(to).map(|(of, to)| of / to).collect())
}

/// Returns a Markdown table of all programs; the last column compares each with the first.
pub fn table(title: &str, all: &[Times]) -> String {
    let mut text =
        format!("{title}\n\n| what | median | min - max | the first one is faster by |\n|---|--:|--:|--:|\n");
    for times in all {
        if times.rounds.is_empty() {
            continue;
        }
        let ratio = all.first().and_then(|first| first.speedup_over(times)).unwrap_or(1.0);
        text += &format!("| {} | {} | {ratio:.2}x |\n", times.name, times.cells());
    }
    text
}

/// Returns the same as JSON.
pub fn to_json(title: &str, all: &[Times]) -> Value {
    json!({ "title": title, "programs": all.iter().map(to_json_entry).collect::<Vec<_>>() })
}

/// Returns the times of one program as JSON.
pub fn to_json_entry(times: &Times) -> Value {
    json!({ "title": times.name, "median_seconds": times.median(), "rounds": times.seconds() })
}

/// Heading of a report whose figures are not meaningful as measurements.
pub const NOT_QUIET: &str =
    "THE MACHINE WAS NOT QUIET: these figures show that the bench works and nothing else.";

#[cfg(test)]
mod tests {
    use super::*;

    fn times(name: &str, milliseconds: &[u64]) -> Times {
        let rounds = milliseconds.iter().map(|ms| Duration::from_millis(*ms)).collect();
        Times { name: name.to_string(), rounds }
    }

    #[test]
    fn ratios_are_taken_round_by_round() {
        let (mine, theirs) = (times("a", &[10, 20, 10]), times("b", &[30, 60, 90]));
        assert_eq!(mine.median(), Some(0.010));
        assert!((mine.speedup_over(&theirs).unwrap() - 3.0).abs() < 1e-9);
        assert!(table("t", &[mine, theirs]).contains("| b | 60.0 ms | 30.0 - 90.0 ms | 3.00x |"));
        assert_eq!(times("c", &[]).median(), None);
    }
}
