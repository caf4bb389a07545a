//! An earlier result, and the readings that have become worse since.

use std::path::Path;

use espalier_core::error::{Error, Result};
use espalier_core::sys::machine::disk;
use serde::Deserialize;
use serde_json::Value;

use super::record::{KvQuality, Measured};
use crate::bench::history;

/// Largest allowed increase of a divergence over the baseline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// Relative part: another processor rounds differently.
    factor: f64,
    /// Absolute part in nats: a divergence near zero is nothing but rounding.
    nats: f64,
    /// Whether the 99th percentile is compared, in addition to the mean.
    has_p99: bool,
}

impl Tolerance {
    /// The tolerance for one chunk on real 4-bit weights. Activations are rounded to 8 bits per row, so that two
    /// correct attention implementations differ by 0.004 nats, as much as a q8_0 cache differs from f16.
    pub const OF_FEW_PREDICTIONS: Tolerance = Tolerance { factor: 1.25, nats: 0.003, has_p99: false };
}

impl Default for Tolerance {
    fn default() -> Self {
        Tolerance { factor: 1.10, nats: 2e-5, has_p99: true }
    }
}

/// Largest allowed loss, as a fraction of the needles.
const NEEDLES: f64 = 0.03;

/// The runs of an earlier measurement.
pub(super) struct Baseline {
    file: String,
    runs: Vec<KvQuality>,
}

/// The result of a comparison.
pub(super) struct Compared {
    /// Number of readings that both have.
    pub(super) readings: usize,
    /// One line for each reading that is worse.
    pub(super) worse: Vec<String>,
}

impl Baseline {
    /// Reads a history, or the output of the bench with `--json`.
    pub(super) fn read(file: &Path) -> Result<Baseline> {
        let bytes = disk::read(file)?;
        let file = file.display().to_string();
        let wrong = || {
            Error::usage(format!("`{file}` is not what `bench kv-quality` writes"))
                .hint("cargo xtask bench kv-quality --json > baseline.json")
        };
        let one = || serde_json::from_slice::<Value>(&bytes).ok().map(|run| vec![run]);
        let runs = history::read(&bytes).or_else(one).ok_or_else(wrong)?;
        let runs: std::result::Result<Vec<KvQuality>, _> = runs.iter().map(KvQuality::deserialize).collect();
        let runs = runs.map_err(|error| wrong().detail(error.to_string()))?;
        Ok(Baseline { file, runs })
    }

    /// Compares `found` with the newest run of the same model and text.
    pub(super) fn compare(&self, found: &KvQuality, tolerance: Tolerance) -> Result<Compared> {
        let is_alike = |run: &&KvQuality| {
            run.model == found.model && run.text == found.text && run.chunks == found.chunks
        };
        let run = self.runs.iter().rev().find(is_alike);
        let pairs: Vec<(&Measured, &Measured)> = run.map(|run| pairs(run, found)).unwrap_or_default();
        if pairs.is_empty() {
            return Err(Error::usage(format!(
                "`{}` has none of these caches with this model, text and number of chunks",
                self.file
            ))
            .hint("cargo xtask bench kv-quality --json > baseline.json"));
        }
        let worse = pairs.iter().flat_map(|(before, now)| worse(before, now, tolerance)).collect();
        Ok(Compared { readings: pairs.len(), worse })
    }
}

fn pairs<'a>(run: &'a KvQuality, found: &'a KvQuality) -> Vec<(&'a Measured, &'a Measured)> {
    let is_same =
        |before: &Measured, now: &Measured| before.cache == now.cache && before.context == now.context;
    let pair = |now: &'a Measured| Some((run.measured.iter().find(|before| is_same(before, now))?, now));
    found.measured.iter().filter_map(pair).collect()
}

fn worse(before: &Measured, now: &Measured, tolerance: Tolerance) -> Vec<String> {
    let place = format!("{} at {} tokens", now.cache, now.context);
    let mut lines = Vec::new();
    let mean = ("mean KLD", before.divergence.mean, now.divergence.mean);
    let p99 = ("99 % of KLD", before.divergence.p99, now.divergence.p99);
    for (name, before, now) in std::iter::once(mean).chain(tolerance.has_p99.then_some(p99)) {
        let is_as_good = now <= before * tolerance.factor + tolerance.nats;
        if !is_as_good {
            lines.push(format!("{place}: {name} {now:.5}, was {before:.5}"));
        }
    }
    let lost = before.asked.needles.saturating_sub(now.asked.needles);
    if lost as f64 > NEEDLES * now.needles as f64 {
        lines.push(format!("{place}: {} needles, were {}", now.asked.needles, before.asked.needles));
    }
    if now.asked.bytes > before.asked.bytes {
        lines.push(format!("{place}: {} bytes a token, were {}", now.asked.bytes, before.asked.bytes));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::record::tests;
    use super::super::record::tests::measured;
    use super::*;

    fn found(measured: Vec<Measured>) -> KvQuality {
        tests::found(measured).result
    }

    fn baseline() -> Baseline {
        let run = found(vec![measured("q8_0/turbo4"), measured("q8_0/tcq2")]);
        Baseline { file: "baseline.json".to_string(), runs: vec![run] }
    }

    fn worse_with(change: impl Fn(&mut Measured)) -> Vec<String> {
        let mut now = measured("q8_0/turbo4");
        change(&mut now);
        baseline().compare(&found(vec![now]), Tolerance::default()).unwrap().worse
    }

    #[test]
    fn few_predictions_have_a_mean_and_no_last_hundredth() {
        let worse = |change: fn(&mut Measured)| {
            let mut now = measured("q8_0/turbo4");
            change(&mut now);
            baseline().compare(&found(vec![now]), Tolerance::OF_FEW_PREDICTIONS).unwrap().worse
        };
        assert!(worse(|now| now.divergence.p99 *= 3.0).is_empty());
        assert!(worse(|now| now.divergence.mean *= 1.5).is_empty());
        assert_eq!(worse(|now| now.divergence.mean *= 1.6).len(), 1);
        assert_eq!(worse(|now| now.divergence.mean = f64::NAN).len(), 1);
        assert_eq!(worse(|now| now.asked.bytes += 1).len(), 1);
    }

    #[test]
    fn the_same_is_not_worse() {
        let compared =
            baseline().compare(&found(vec![measured("q8_0/turbo4")]), Tolerance::default()).unwrap();
        assert_eq!((compared.readings, compared.worse.len()), (1, 0));
        assert!(worse_with(|now| now.divergence.mean *= 1.09).is_empty());
        assert!(worse_with(|now| now.asked.needles -= 1).is_empty());
        // Speeds were measured on another machine, so they are not compared.
        assert!(worse_with(|now| now.asked.decode_rate /= 3.0).is_empty());
    }

    #[test]
    fn everything_that_counts_can_be_worse() {
        let lines = worse_with(|now| now.divergence.mean = 0.012);
        assert_eq!(lines, ["q8_0/turbo4 at 512 tokens: mean KLD 0.01200, was 0.01000"]);
        assert_eq!(worse_with(|now| now.divergence.p99 = f64::NAN).len(), 1);
        assert_eq!(
            worse_with(|now| now.asked.needles -= 2),
            ["q8_0/turbo4 at 512 tokens: 45 needles, were 47"]
        );
        assert_eq!(worse_with(|now| now.asked.bytes += 1).len(), 1);
    }

    #[test]
    fn a_baseline_of_something_else_is_refused() {
        let mut other = found(vec![measured("q8_0/turbo4")]);
        other.model = "another".to_string();
        let error = baseline().compare(&other, Tolerance::default()).err().unwrap();
        assert!(error.what.contains("`baseline.json` has none of these caches"), "{error}");
        assert!(baseline().compare(&found(vec![measured("f16/f16")]), Tolerance::default()).is_err());
    }
}
