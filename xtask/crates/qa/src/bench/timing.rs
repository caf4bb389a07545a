//! Times of several programs under test that run in turn, and their ratios.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::report::samples::Samples;
use crate::report::table::Table;

/// The times of one program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// Title of the program.
    pub title: String,
    /// `None` before the first round.
    pub median_seconds: Option<f64>,
    /// Wall-clock times in seconds.
    pub rounds: Samples,
}

impl Times {
    /// Creates an empty list.
    pub fn new(title: &str) -> Times {
        Times { title: title.to_string(), ..Times::default() }
    }

    /// Adds the time of a round.
    pub fn push(&mut self, time: Duration) {
        self.rounds.0.push(time.as_secs_f64());
        self.median_seconds = self.rounds.median();
    }

    /// Returns the median of the round-by-round ratios of `other` to this one: above 1 means this one is faster.
    pub fn speedup_over(&self, other: &Times) -> Option<f64> {
        other.rounds.ratio_to(&self.rounds)
    }

    /// Formats three cells of a table: the title, the median, and the extremes.
    pub fn cells(&self) -> String {
        let title = &self.title;
        match (self.median_seconds, self.rounds.extremes()) {
            (Some(median), Some((low, high))) => {
                format!("{title} | {:.1} ms | {:.1} - {:.1} ms", median * 1e3, low * 1e3, high * 1e3)
            }
            _ => format!("{title} | - | -"),
        }
    }
}

/// Returns a Markdown table of all programs; the last column compares each with the first.
pub fn table(title: &str, all: &[Times]) -> String {
    let row = |times: &Times| {
        let ratio = all.first().and_then(|first| first.speedup_over(times)).unwrap_or(1.0);
        format!("{} | {ratio:.2}x", times.cells())
    };
    let measured = all.iter().filter(|times| times.median_seconds.is_some());
    let head = "what | median | min - max | the first one is faster by";
    format!("{title}\n\n{}", Table::new(head, measured.map(row)))
}

/// Returns the same as JSON.
pub fn to_json(title: &str, all: &[Times]) -> Value {
    json!({ "title": title, "programs": all })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_is_compared_with_the_first() {
        let mut all = ["a", "b", "c"].map(Times::new);
        for (mine, theirs) in [(10, 30), (20, 60), (10, 90)] {
            all[0].push(Duration::from_millis(mine));
            all[1].push(Duration::from_millis(theirs));
        }
        assert_eq!(all[0].median_seconds, Some(0.010));
        let text = table("t", &all);
        assert!(text.ends_with("| b | 60.0 ms | 30.0 - 90.0 ms | 3.00x |\n"), "{text}");
    }
}
