//! The attention bench: the operation alone, on one core, relative to that core's peak.

use espalier_core::context::{Context, Outcome};
use espalier_core::error::{Error, Result};
use espalier_core::sys::machine::load;
use serde::Serialize;

use super::criterion::{self, Measured};
use super::history::History;
use super::record::{BenchResult, Head, Keep, Plot, Record};
use crate::report::bars::{Bar, Bars};
use crate::report::table::Table;

/// Benchmark of FMA throughput on registers, as kernels/benches/attention.rs names it.
const PEAK: &str = "machine/products in registers";
/// Benchmark of a copy that exceeds the caches.
const COPY: &str = "machine/copy";

/// Peak throughput of the core, and the problems.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Attention {
    /// Billions of multiplications and additions per second.
    peak_gflops: f64,
    /// Billions of bytes copied per second: each is read and written.
    copy_gigabytes: f64,
    problems: Vec<Problem>,
}

/// One attention problem with its measurements.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Problem {
    name: String,
    median_us: f64,
    low_us: f64,
    high_us: f64,
    gflops: f64,
    gigabytes: f64,
}

/// Measures and prints a table.
pub fn run(context: &Context, keep: &Keep) -> Result<Outcome> {
    load::refuse_busy()?;
    context.ui.status("Measuring", "attention of some shapes and types, a few minutes");
    let result = Attention::of(&criterion::run(context, "attention")?)?;
    Record { head: Head::at_pin(context)?, result }.finish(context, keep)
}

/// Returns a sort key for natural order: 8k before 32k.
fn numbers_and_letters(name: &str) -> Vec<(u64, String)> {
    let is_letter = |letter: char| !letter.is_ascii_digit();
    let part = |part: &str| {
        let digits = part.trim_end_matches(is_letter);
        (digits.parse().unwrap_or(0), part[digits.len()..].to_string())
    };
    name.split_inclusive(is_letter).map(part).collect()
}

fn of(measured: &[Measured], name: &str) -> Result<Problem> {
    let found = measured.iter().find(|one| one.name == name);
    found.map(Problem::new).ok_or_else(|| Error::no(format!("criterion says nothing of `{name}`")))
}

impl Problem {
    fn new(measured: &Measured) -> Problem {
        let Measured { name, elements, bytes, median, low, high } = measured;
        Problem {
            name: name.replace('/', ": "),
            median_us: median / 1e3,
            low_us: low / 1e3,
            high_us: high / 1e3,
            // An element is one multiplication and one addition.
            gflops: 2.0 * elements / median,
            gigabytes: bytes / median,
        }
    }
}

impl Attention {
    fn of(measured: &[Measured]) -> Result<Attention> {
        let is_limit = |one: &&Measured| [PEAK, COPY].contains(&one.name.as_str());
        let mut problems: Vec<Problem> =
            measured.iter().filter(|one| !is_limit(one)).map(Problem::new).collect();
        problems.sort_by_key(|problem| numbers_and_letters(&problem.name));
        let (peak_gflops, copy_gigabytes) = (of(measured, PEAK)?.gflops, of(measured, COPY)?.gigabytes);
        Ok(Attention { peak_gflops, copy_gigabytes, problems })
    }

    /// Returns the fractions of both limits that a problem reaches.
    fn fractions(&self, problem: &Problem) -> (f64, f64) {
        (problem.gflops / self.peak_gflops, problem.gigabytes / self.copy_gigabytes)
    }

    /// Returns the limiting resource, and the fraction of its limit that is reached.
    fn nearest(&self, problem: &Problem) -> (f64, &'static str) {
        let (products, copy) = self.fractions(problem);
        if products >= copy { (products, "products") } else { (copy, "copy") }
    }

    fn row(&self, problem: &Problem) -> String {
        let Problem { name, median_us, gflops, gigabytes, .. } = problem;
        let (products, copy) = self.fractions(problem);
        let (products, copy) = (100.0 * products, 100.0 * copy);
        format!("{name} | {median_us:.1} us | {gflops:.1} | {products:.0} % | {gigabytes:.2} | {copy:.0} %")
    }

    fn bar(&self, problem: &Problem) -> Bar {
        let (share, limit) = self.nearest(problem);
        let percent = 100.0 * share;
        Bar {
            label: problem.name.clone(),
            value: percent,
            low: percent * problem.median_us / problem.high_us,
            high: percent * problem.median_us / problem.low_us,
            note: format!("{percent:.0} % of {limit}, {:.1} us", problem.median_us),
            is_reference: false,
        }
    }
}

impl BenchResult for Attention {
    const HISTORY: History = History { bench: "attention", identity: "processor" };

    fn tables(&self, _head: &Head) -> String {
        let rows = self.problems.iter().map(|problem| self.row(problem));
        let head = "what | median | GFLOP/s | of products | GB/s of K and V | of copy";
        format!(
            "Attention, one core. Products in registers: {:.1} GFLOP/s; copy: {:.1} GB/s\n\n{}",
            self.peak_gflops,
            self.copy_gigabytes,
            Table::new(head, rows)
        )
    }

    fn plot(&self, head: &Head) -> Option<Plot> {
        let bars = Bars {
            title: "Attention: how much of the nearer limit is reached, percent".to_string(),
            subtitle: format!(
                "one core of {}: {:.1} GFLOP/s of products, {:.1} GB/s of copy",
                head.machine(),
                self.peak_gflops,
                self.copy_gigabytes
            ),
            bars: self.problems.iter().map(|problem| self.bar(problem)).collect(),
            line: None,
        };
        Some(Plot { name: "attention".to_string(), svg: bars.svg() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(name: &str, elements: f64, bytes: f64) -> Measured {
        Measured { name: name.to_string(), elements, bytes, median: 1000.0, low: 900.0, high: 1100.0 }
    }

    #[test]
    fn a_problem_is_held_against_both_limits() {
        let all = [
            measured("head 64, F16/decode", 25_000.0, 5_000.0),
            measured(PEAK, 50_000.0, 0.0),
            measured(COPY, 1.0, 20_000.0),
        ];
        let found = Attention::of(&all).unwrap();
        assert_eq!(found.nearest(&found.problems[0]), (0.5, "products"));
        insta::assert_snapshot!(found.tables(&Head::default()), @"
        Attention, one core. Products in registers: 100.0 GFLOP/s; copy: 20.0 GB/s

        | what | median | GFLOP/s | of products | GB/s of K and V | of copy |
        |---|--:|--:|--:|--:|--:|
        | head 64, F16: decode | 1.0 us | 50.0 | 50 % | 5.00 | 25 % |
        ");
    }

    #[test]
    fn eight_thousand_is_less_than_thirty_two() {
        let mut names =
            ["head 128: 1", "head 64: 1, 32k", "head 64: 1, 8k", "head 64: 1, 1.5k", "head 64: 16"];
        names.sort_by_key(|name| numbers_and_letters(name));
        assert_eq!(
            names,
            ["head 64: 1, 1.5k", "head 64: 1, 8k", "head 64: 1, 32k", "head 64: 16", "head 128: 1"]
        );
    }

    #[test]
    fn without_limits_nothing_is_reported() {
        let error = of(&[measured("head 64, F16/decode", 1.0, 1.0)], PEAK).unwrap_err();
        assert!(error.to_string().contains("machine/products in registers"), "{error}");
    }
}
