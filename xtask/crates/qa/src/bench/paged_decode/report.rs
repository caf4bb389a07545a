//! The report of the paged decode bench: tokens per second as text, JSON and a plot.

use serde_json::{Value, json};

use super::Workload;
use crate::bench::timing::{NOT_QUIET, median_of, median_ratio};
use crate::report::bars::{Bar, Bars};
use crate::serving::bench_fixture::Builds;
use crate::serving::test_server::TestServer;

#[derive(Clone, Debug)]
pub(super) struct PagedDecodeRun {
    pub(super) builds: Builds,
    pub(super) processor: Option<String>,
    pub(super) threads: usize,
    pub(super) quiet: bool,
    pub(super) workload: Workload,
    pub(super) cases: Vec<Case>,
}

/// One number of concurrent sequences, and the rounds of every server.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) sequences: usize,
    /// Whether the pool was filled before.
    pub(super) filled: bool,
    pub(super) rates: Vec<Rates>,
}

#[derive(Clone, Debug)]
pub(super) struct Rates {
    pub(super) test_server: TestServer,
    pub(super) rounds: Vec<Sample>,
}

#[derive(Clone, Debug)]
pub(super) struct Sample {
    /// Prompt tokens per second, computed one prompt after the other.
    pub(super) prompt_rate: f64,
    /// Tokens per second of all sequences together.
    pub(super) rate: f64,
    /// Prompt tokens computed while the rate was measured; unless nearly none, the rate does not measure decoding.
    pub(super) computed: u64,
    /// Fraction of the pool that was cached before the sequences started; `None` for stock, which has no pool.
    pub(super) filled: Option<f64>,
}

impl Case {
    pub(super) fn new(sequences: usize, filled: bool, test_servers: &[TestServer]) -> Case {
        let rates = |test_server: &TestServer| Rates { test_server: *test_server, rounds: Vec::new() };
        Case { sequences, filled, rates: test_servers.iter().map(rates).collect() }
    }

    fn title(&self, found: &PagedDecodeRun) -> String {
        let pool = if self.filled { "pool filled by earlier requests" } else { "nothing in the pool" };
        let s = if self.sequences == 1 { "" } else { "s" };
        let Workload { length, predict, .. } = &found.workload;
        format!(
            "{} sequence{s} of {length} tokens{}, {predict} predicted, {pool}: {}",
            self.sequences,
            found.shared(),
            found.conditions()
        )
    }
}

impl PagedDecodeRun {
    /// Describes the shared prefix of the prompts.
    fn shared(&self) -> String {
        match self.workload.shared {
            0 => String::new(),
            shared => format!(" ({shared} of them shared)"),
        }
    }

    /// Describes what is common to all servers under test.
    fn conditions(&self) -> String {
        let Workload { cells, head, cache, .. } = &self.workload;
        format!(
            "llama.cpp {}, qwen3 of 70 M weights, heads of {head}, f16, cache {cache}, -c {cells}, -t {}",
            self.builds.pin, self.threads
        )
    }
}

impl Rates {
    fn all(&self) -> Vec<f64> {
        self.rounds.iter().map(|sample| sample.rate).collect()
    }

    fn all_of_prompts(&self) -> Vec<f64> {
        self.rounds.iter().map(|sample| sample.prompt_rate).collect()
    }

    /// Returns the lowest and the highest rate.
    fn extremes(&self) -> (f64, f64) {
        let all = self.all();
        (all.iter().copied().fold(f64::INFINITY, f64::min), all.iter().copied().fold(0.0, f64::max))
    }

    /// Returns the median of the rounds' ratios: above 1 means that this server decodes more tokens per second.
    fn ratio_to(&self, other: &Rates) -> Option<f64> {
        median_ratio(&self.all(), &other.all())
    }

    /// Returns the same ratio for prompts.
    fn prompt_ratio_to(&self, other: &Rates) -> Option<f64> {
        median_ratio(&self.all_of_prompts(), &other.all_of_prompts())
    }

    fn computed(&self) -> u64 {
        self.rounds.iter().map(|sample| sample.computed).max().unwrap_or_default()
    }

    fn filled(&self) -> Option<f64> {
        median_of(self.rounds.iter().filter_map(|sample| sample.filled).collect())
    }
}

pub(super) fn text(found: &PagedDecodeRun) -> String {
    let warning = if found.quiet { String::new() } else { format!("{NOT_QUIET}\n\n") };
    let tables: Vec<String> = found.cases.iter().map(|case| table(found, case)).collect();
    format!("{warning}{}", tables.join("\n"))
}

fn table(found: &PagedDecodeRun, case: &Case) -> String {
    let head = "| what | tokens/s, median | min - max | of the first one | prompt tokens/s, median | of the first one | prompt tokens computed meanwhile | pool filled |";
    let first = case.rates.first();
    let rows: String = case.rates.iter().map(|rates| row(rates, first.unwrap_or(rates), found)).collect();
    format!("{}\n\n{head}\n|---|--:|--:|--:|--:|--:|--:|--:|\n{rows}", case.title(found))
}

fn row(rates: &Rates, first: &Rates, found: &PagedDecodeRun) -> String {
    let slots = found.cases.iter().map(|case| case.sequences).max().unwrap_or(1);
    let (low, high) = rates.extremes();
    format!(
        "| {} | {:.1} | {low:.1} - {high:.1} | {:.2}x | {:.0} | {:.2}x | {} | {} |\n",
        rates.test_server.title(slots),
        median_of(rates.all()).unwrap_or_default(),
        rates.ratio_to(first).unwrap_or_default(),
        median_of(rates.all_of_prompts()).unwrap_or_default(),
        rates.prompt_ratio_to(first).unwrap_or_default(),
        rates.computed(),
        rates.filled().map_or("-".to_string(), |share| format!("{:.0} %", share * 100.0))
    )
}

pub(super) fn json(found: &PagedDecodeRun) -> Value {
    let case = |case: &Case| {
        let rates: Vec<Value> = case.rates.iter().map(|rates| rates_json(rates, case)).collect();
        json!({ "sequences": case.sequences, "filled": case.filled, "servers": rates })
    };
    json!({
        "pin": found.builds.pin,
        "trees": found.builds.trees,
        "processor": found.processor,
        "threads": found.threads,
        "quiet": found.quiet,
        "sequences": found.cases.iter().map(|case| case.sequences).max(),
        "length": found.workload.length,
        "shared": found.workload.shared,
        "predict": found.workload.predict,
        "cells": found.workload.cells,
        "head": found.workload.head,
        "cache": found.workload.cache,
        "fresh": found.workload.fresh,
        "cases": found.cases.iter().map(case).collect::<Vec<_>>(),
    })
}

fn rates_json(rates: &Rates, case: &Case) -> Value {
    json!({
        "name": rates.test_server.name(),
        "median_rate": median_of(rates.all()),
        "rates": rates.all(),
        "ratio_to_first": case.rates.first().and_then(|first| rates.ratio_to(first)),
        "prompt_rates": rates.all_of_prompts(),
        "prompt_ratio_to_first": case.rates.first().and_then(|first| rates.prompt_ratio_to(first)),
        "prompt_tokens_computed": rates.computed(),
        "pool_filled": rates.filled(),
    })
}

/// Draws the tokens per second as bars.
pub(super) fn svg(found: &PagedDecodeRun) -> String {
    let warning = if found.quiet { "" } else { ", MACHINE NOT QUIET" };
    Bars {
        title: format!("Tokens a second, prompts of {} tokens{}", found.workload.length, found.shared()),
        subtitle: format!(
            "{}{}{warning}",
            found.conditions(),
            found.processor.as_ref().map(|name| format!(", {name}")).unwrap_or_default()
        ),
        bars: found.cases.iter().flat_map(bars).collect(),
        line: None,
    }
    .svg()
}

fn bars(case: &Case) -> Vec<Bar> {
    let bar = |rates: &Rates| {
        let (low, high) = rates.extremes();
        let value = median_of(rates.all())?;
        let ratio = rates.ratio_to(case.rates.first()?)?;
        let pool = if case.filled { ", pool filled" } else { "" };
        let label = format!("{}: {}{pool}", case.sequences, rates.test_server.name());
        Some(Bar { label, value, low, high, note: format!("{value:.1} tokens/s, {ratio:.2}x") })
    };
    case.rates.iter().filter_map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::paged_decode::{CACHE, HEAD};

    fn example() -> PagedDecodeRun {
        let mut case = Case::new(16, true, &[TestServer::StockUnified, TestServer::Paged]);
        for (rates, (rate, filled)) in case.rates.iter_mut().zip([(100.0, None), (98.0, Some(0.9))]) {
            rates.rounds = [1.0, 1.5]
                .map(|more| Sample { prompt_rate: rate * 20.0, rate: rate * more, computed: 16, filled })
                .to_vec();
        }
        PagedDecodeRun {
            builds: Builds { pin: "v1".to_string(), ..Builds::default() },
            processor: Some("Some CPU".to_string()),
            threads: 2,
            quiet: true,
            workload: Workload {
                length: 1600,
                shared: 0,
                predict: 64,
                cells: 32_768,
                head: HEAD,
                cache: CACHE.to_string(),
                fresh: false,
            },
            cases: vec![case],
        }
    }

    #[test]
    fn the_table() {
        insta::assert_snapshot!(text(&example()), @"
        16 sequences of 1600 tokens, 64 predicted, pool filled by earlier requests: llama.cpp v1, qwen3 of 70 M weights, heads of 64, f16, cache f16, -c 32768, -t 2

        | what | tokens/s, median | min - max | of the first one | prompt tokens/s, median | of the first one | prompt tokens computed meanwhile | pool filled |
        |---|--:|--:|--:|--:|--:|--:|--:|
        | stock -np 16 --kv-unified | 125.0 | 100.0 - 150.0 | 1.00x | 2000 | 1.00x | 16 | - |
        | ours -np 16 --kv-paged | 122.5 | 98.0 - 147.0 | 0.98x | 1960 | 0.98x | 16 | 90 % |
        ");
    }

    #[test]
    fn the_plot_has_a_bar_for_each() {
        let plot = svg(&example());
        assert!(plot.contains("16: paged, pool filled") && plot.contains("122.5 tokens/s, 0.98x"), "{plot}");
    }

    #[test]
    fn the_json_has_every_round() {
        let value = json(&example());
        assert_eq!(value["cases"][0]["servers"][1]["rates"], json!([98.0, 147.0]));
        assert!(text(&PagedDecodeRun { quiet: false, ..example() }).starts_with(NOT_QUIET));
    }
}
