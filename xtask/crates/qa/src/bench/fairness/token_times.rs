//! PURE: inter-token latency of a stream, alone and beside waiting requests.

use serde::Serialize;
use serde_json::{Value, json};

use super::record::{Measured, Row};
use crate::report::samples::{median_of, percentile};

/// Largest allowed ratio of the inter-token latency beside waiting requests to that alone.
const LIMIT: f64 = 1.05;

/// The inter-token latencies of the same tokens of the same stream in seconds, beside waiting requests and alone: the
/// longer a sequence, the slower its tokens.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pair {
    pub(super) waiting: usize,
    pub(super) beside: Vec<f64>,
    pub(super) alone: Vec<f64>,
}

/// The medians of a [`Pair`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct Medians {
    waiting: usize,
    seconds_alone: f64,
    seconds_beside: f64,
    ratio: f64,
}

impl Pair {
    fn medians(&self) -> Medians {
        let median = |latencies: &[f64]| median_of(latencies.to_vec()).unwrap_or_default();
        let (seconds_alone, seconds_beside) = (median(&self.alone), median(&self.beside));
        Medians {
            waiting: self.waiting,
            seconds_alone,
            seconds_beside,
            ratio: seconds_beside / seconds_alone,
        }
    }
}

/// All streams of a model.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct OfModel {
    pub(super) model: &'static str,
    pub(super) pairs: Vec<Pair>,
}

impl OfModel {
    /// Returns the distinct numbers of waiting requests, in ascending order.
    fn counts(&self) -> std::collections::BTreeSet<usize> {
        self.pairs.iter().map(|one| one.waiting).collect()
    }

    fn beside(&self, waiting: usize) -> impl Iterator<Item = &Pair> {
        self.pairs.iter().filter(move |one| one.waiting == waiting)
    }

    /// Returns the overhead of waiting requests: the median of the ratios over the rounds; 1 means none.
    fn ratio(&self, waiting: usize) -> f64 {
        median_of(self.beside(waiting).map(|pair| pair.medians().ratio).collect()).unwrap_or_default()
    }

    fn rows(&self) -> Vec<Row> {
        let mut rows = self.two_rows("none waiting", self.pairs.iter().map(|one| &one.alone));
        for waiting in self.counts() {
            let words = format!("{waiting} waiting");
            rows.extend(self.two_rows(&words, self.beside(waiting).map(|one| &one.beside)));
            let ratio = self.ratio(waiting);
            let what = format!("{}, {words}: of a token's time with none", self.model);
            rows.push(Row { what, value: None, shown: format!("{ratio:.2}x") });
        }
        rows
    }

    fn two_rows<'a>(&self, words: &str, parts: impl Iterator<Item = &'a Vec<f64>>) -> Vec<Row> {
        let gaps: Vec<f64> = parts.flatten().copied().collect();
        let row = |name: &str, seconds: f64| {
            let what = format!("{}, {words}: time of a token, {name}", self.model);
            Row { what, value: Some(seconds), shown: format!("{:.2} ms", seconds * 1e3) }
        };
        let (middle, high) = (median_of(gaps.clone()), percentile(gaps, 95));
        vec![row("median", middle.unwrap_or_default()), row("95th of 100", high.unwrap_or_default())]
    }

    fn json(&self) -> Value {
        json!({ "model": self.model, "rounds": self.pairs.iter().map(Pair::medians).collect::<Vec<_>>() })
    }

    fn failures(&self) -> Vec<String> {
        let slow = self.counts().into_iter().filter(|waiting| self.ratio(*waiting) > LIMIT);
        let words = |waiting| {
            format!(
                "{}: with {waiting} queued requests a token takes {:.2} times as long; the limit is {LIMIT}",
                self.model,
                self.ratio(waiting)
            )
        };
        slow.map(words).collect()
    }
}

/// Returns the rows of every model.
pub(super) fn measured(models: &[OfModel]) -> Measured {
    Measured {
        rows: models.iter().flat_map(OfModel::rows).collect(),
        json: models.iter().map(OfModel::json).collect(),
        failures: models.iter().flat_map(OfModel::failures).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten tokens that take `milliseconds` each.
    fn part(milliseconds: f64) -> Vec<f64> {
        vec![milliseconds / 1e3; 10]
    }

    fn example() -> OfModel {
        let pair = |waiting, beside| Pair { waiting, beside: part(beside), alone: part(10.0) };
        OfModel { model: "tiny", pairs: vec![pair(8, 10.0), pair(32, 20.0), pair(32, 30.0)] }
    }

    #[test]
    fn the_ratio_is_that_of_the_round_in_the_middle() {
        let found = example();
        assert!((found.ratio(8) - 1.0).abs() < 1e-9 && (found.ratio(32) - 2.5).abs() < 1e-9);
        assert_eq!(
            measured(&[found]).failures,
            ["tiny: with 32 queued requests a token takes 2.50 times as long; the limit is 1.05"]
        );
    }

    #[test]
    fn rows_for_each_number_that_waits() {
        let shown: Vec<String> = example().rows().into_iter().map(|row| row.shown).collect();
        let expected =
            ["10.00 ms", "10.00 ms", "10.00 ms", "10.00 ms", "1.00x", "25.00 ms", "30.00 ms", "2.50x"];
        assert_eq!(shown, expected);
    }
}
