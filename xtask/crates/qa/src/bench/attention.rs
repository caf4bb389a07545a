//! The attention bench: the operation alone, on one core, relative to that core's peak.

use espalier_core::context::{Context, Outcome};
use espalier_core::error::{Error, Result};
use espalier_core::sys::machine::load;
use serde_json::{Value, json};

use super::criterion::{self, Measured};
use super::history::History;
use super::record::{Keep, Recorded};
use crate::report::bars::{Bar, Bars};

const HISTORY: History = History { bench: "attention", identity: &["processor"] };

/// Benchmark of FMA throughput on registers, as kernels/benches/attention.rs names it.
const PEAK: &str = "machine/products in registers";
/// Benchmark of a copy that exceeds the caches.
const COPY: &str = "machine/copy";

/// Peak throughput of the core.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Limits {
    /// Billions of multiplications and additions per second.
    gflops: f64,
    /// Billions of bytes copied per second: each is read and written.
    gigabytes: f64,
}

/// One attention problem with its measurements.
#[derive(Clone, Debug, PartialEq)]
struct Problem {
    name: String,
    microseconds: f64,
    low: f64,
    high: f64,
    gflops: f64,
    gigabytes: f64,
}

/// Measures and prints a table.
pub fn run(context: &Context, keep: &Keep) -> Result<Outcome> {
    load::refuse_busy()?;
    context.ui.status("Measuring", "attention of some shapes and types, a few minutes");
    let measured = criterion::run(context, "attention")?;
    let limits = Limits { gflops: of(&measured, PEAK)?.gflops, gigabytes: of(&measured, COPY)?.gigabytes };
    let is_limit = |one: &&Measured| [PEAK, COPY].contains(&one.name.as_str());
    let mut problems: Vec<Problem> = measured.iter().filter(|one| !is_limit(one)).map(Problem::new).collect();
    problems.sort_by_key(|problem| numbers_and_letters(&problem.name));
    let pins = context.pins()?;
    let pin = &pins.pin_of(pins.variant(None)?).revision.to_string();
    let recorded = Recorded {
        history: HISTORY,
        pin,
        run: to_json(&problems, limits, load::processor()),
        shape: "attention".to_string(),
        plot: plot(&problems, limits, load::processor()),
    };
    let (text, run) = (table(&problems, limits), recorded.run.clone());
    recorded.write(context, keep)?;
    Ok(Outcome::ok(text, run))
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
            microseconds: median / 1e3,
            low: low / 1e3,
            high: high / 1e3,
            // An element is one multiplication and one addition.
            gflops: 2.0 * elements / median,
            gigabytes: bytes / median,
        }
    }

    /// Returns the limiting resource, and the fraction of its limit that is reached.
    fn nearest(&self, limits: Limits) -> (f64, &'static str) {
        let (products, copy) = (self.gflops / limits.gflops, self.gigabytes / limits.gigabytes);
        if products >= copy { (products, "products") } else { (copy, "copy") }
    }
}

fn table(problems: &[Problem], limits: Limits) -> String {
    let row = |one: &Problem| {
        let (products, copy) = (one.gflops / limits.gflops, one.gigabytes / limits.gigabytes);
        format!(
            "| {} | {:.1} us | {:.1} | {:.0} % | {:.2} | {:.0} % |\n",
            one.name,
            one.microseconds,
            one.gflops,
            100.0 * products,
            one.gigabytes,
            100.0 * copy
        )
    };
    let rows: String = problems.iter().map(row).collect();
    format!(
        "Attention, one core. Products in registers: {:.1} GFLOP/s; copy: {:.1} GB/s\n\n\
         | what | median | GFLOP/s | of products | GB/s of K and V | of copy |\n|---|--:|--:|--:|--:|--:|\n{rows}",
        limits.gflops, limits.gigabytes
    )
}

fn to_json(problems: &[Problem], limits: Limits, processor: Option<String>) -> Value {
    let one = |problem: &Problem| {
        json!({ "name": problem.name, "median_us": problem.microseconds, "low_us": problem.low,
                "high_us": problem.high, "gflops": problem.gflops, "gigabytes": problem.gigabytes })
    };
    json!({
        "processor": processor,
        "peak_gflops": limits.gflops,
        "copy_gigabytes": limits.gigabytes,
        "problems": problems.iter().map(one).collect::<Vec<_>>(),
    })
}

fn plot(problems: &[Problem], limits: Limits, processor: Option<String>) -> String {
    let bar = |one: &Problem| {
        let (share, limit) = one.nearest(limits);
        let percent = 100.0 * share;
        Bar {
            label: one.name.clone(),
            value: percent,
            low: percent * one.microseconds / one.high,
            high: percent * one.microseconds / one.low,
            note: format!("{percent:.0} % of {limit}, {:.1} us", one.microseconds),
        }
    };
    Bars {
        title: "Attention: how much of the nearer limit is reached, percent".to_string(),
        subtitle: format!(
            "one core of {}: {:.1} GFLOP/s of products, {:.1} GB/s of copy",
            processor.as_deref().unwrap_or("this machine"),
            limits.gflops,
            limits.gigabytes
        ),
        bars: problems.iter().map(bar).collect(),
        line: None,
    }
    .svg()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(name: &str, elements: f64, bytes: f64) -> Measured {
        Measured { name: name.to_string(), elements, bytes, median: 1000.0, low: 900.0, high: 1100.0 }
    }

    #[test]
    fn a_problem_is_held_against_both_limits() {
        let problem = Problem::new(&measured("head 64, F16/decode", 25_000.0, 5_000.0));
        let limits = Limits { gflops: 100.0, gigabytes: 20.0 };
        assert_eq!(problem.nearest(limits), (0.5, "products"));
        insta::assert_snapshot!(table(&[problem], limits), @"
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
    fn without_its_limits_nothing_is_said() {
        let error = of(&[measured("head 64, F16/decode", 1.0, 1.0)], PEAK).unwrap_err();
        assert!(error.to_string().contains("machine/products in registers"), "{error}");
    }
}
