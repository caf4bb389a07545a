//! The report of a burst: text, JSON and a plot.

use serde_json::{Value, json};

use super::result::{Burst, Entry};
use crate::bench::timing::{NOT_QUIET, Times, median_of, to_json_entry};
use crate::report::bars::{Bar, Bars};

pub(super) fn title(burst: &Burst) -> String {
    let prompts = &burst.prompts;
    format!(
        "{} cold requests at once: {} tokens shared, {} of their own, {} predicted",
        prompts.requests, prompts.prefix, prompts.suffix, prompts.predict
    )
}

fn environment(burst: &Burst) -> String {
    let threads = burst.machine.threads;
    format!(
        "llama.cpp {}, qwen3 of 70 M weights, f16, -c {}, -t {threads}{}",
        burst.builds.pin,
        burst.prompts.cells(),
        burst.machine.processor.as_ref().map(|name| format!(", {name}")).unwrap_or_default()
    )
}

/// Returns a Markdown table.
pub(super) fn text(burst: &Burst) -> String {
    let warning = if burst.quiet { String::new() } else { format!("{NOT_QUIET}\n\n") };
    let head = "| what | median | min - max | x the lower bound | prompt tokens computed | answers unlike the first one's |";
    let floors: String = [&burst.floor, &burst.our_floor].map(|times| floor_row(burst, times)).concat();
    let rows: String = burst.entries.iter().map(|entry| row(burst, entry)).collect();
    format!(
        "{warning}{}\n{}\n\n{head}\n|---|--:|--:|--:|--:|--:|\n{floors}{rows}",
        title(burst),
        environment(burst)
    )
}

fn floor_row(burst: &Burst, times: &Times) -> String {
    format!(
        "| {} | {} | {:.2}x | | |\n",
        times.name,
        times.cells(),
        burst.over_floor(times).unwrap_or_default()
    )
}

fn row(burst: &Burst, entry: &Entry) -> String {
    let (differing, of) = burst.differing(entry);
    format!(
        "| {} | {} | {:.2}x | {} | {differing} of {of} |\n",
        entry.times.name,
        entry.times.cells(),
        burst.over_floor(&entry.times).unwrap_or_default(),
        computed(entry)
    )
}

fn computed(entry: &Entry) -> u64 {
    let counts = entry.computed.iter().map(|count| *count as f64).collect();
    median_of(counts).unwrap_or_default() as u64
}

pub(super) fn json(burst: &Burst) -> Value {
    let prompts = &burst.prompts;
    json!({
        "requests": prompts.requests,
        "prefix": prompts.prefix,
        "suffix": prompts.suffix,
        "predict": prompts.predict,
        "cells": prompts.cells(),
        "threads": burst.machine.threads,
        "processor": burst.machine.processor,
        "pin": burst.builds.pin,
        "trees": burst.builds.trees,
        "quiet": burst.quiet,
        "lower_bound": to_json_entry(&burst.floor),
        "our_lower_bound": to_json_entry(&burst.our_floor),
        "servers": burst.entries.iter().map(|entry| entry_json(burst, entry)).collect::<Vec<_>>(),
    })
}

fn entry_json(burst: &Burst, entry: &Entry) -> Value {
    let mut value = to_json_entry(&entry.times);
    let (differing, of) = burst.differing(entry);
    value["name"] = json!(entry.test_server.name());
    value["ratio_to_lower_bound"] = json!(burst.over_floor(&entry.times));
    value["prompt_tokens_computed"] = json!(entry.computed);
    value["answers"] = json!(of);
    value["answers_that_differ"] = json!(differing);
    value
}

pub(super) fn svg(burst: &Burst) -> String {
    let bar = |entry: &Entry| {
        let (low, high) = entry.times.extremes()?;
        let ratio = burst.over_floor(&entry.times)?;
        Some(Bar {
            label: entry.times.name.clone(),
            value: entry.times.median()?,
            low,
            high,
            note: format!("{:.2} s, {ratio:.2}x the lower bound", entry.times.median()?),
        })
    };
    let floor = burst.floor.median();
    let warning = if burst.quiet { "" } else { ", MACHINE NOT QUIET" };
    Bars {
        title: title(burst),
        subtitle: format!("{}; seconds until all requests are answered{warning}", environment(burst)),
        bars: burst.entries.iter().filter_map(bar).collect(),
        line: floor.map(|seconds| (seconds, format!("lower bound {seconds:.2} s"))),
    }
    .svg()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::burst::result::tests::example;

    #[test]
    fn the_table() {
        insta::assert_snapshot!(text(&example()), @"
        2 cold requests at once: 1600 tokens shared, 16 of their own, 8 predicted
        llama.cpp v1, qwen3 of 70 M weights, f16, -c 3584, -t 2, Some CPU

        | what | median | min - max | x the lower bound | prompt tokens computed | answers unlike the first one's |
        |---|--:|--:|--:|--:|--:|
        | lower bound | 1500.0 ms | 1000.0 - 2000.0 ms | 1.00x | | |
        | lower bound with our attention | 750.0 ms | 500.0 - 1000.0 ms | 0.50x | | |
        | stock | 6000.0 ms | 4000.0 - 8000.0 ms | 4.00x | 3232 | 0 of 4 |
        | ours -np 2 --kv-paged | 1550.0 ms | 1100.0 - 2000.0 ms | 1.05x | 1632 | 1 of 4 |
        ");
    }

    #[test]
    fn a_busy_machine_is_named_everywhere() {
        let burst = Burst { quiet: false, ..example() };
        assert!(text(&burst).starts_with(NOT_QUIET));
        assert_eq!(json(&burst)["quiet"], false);
        assert!(svg(&burst).contains("NOT QUIET"));
    }

    #[test]
    fn the_json_has_every_round() {
        let value = json(&example());
        assert_eq!(value["servers"][1]["name"], "paged");
        assert_eq!(value["servers"][1]["rounds"], json!([1.1, 2.0]));
        assert_eq!(value["servers"][1]["answers_that_differ"], 1);
        assert_eq!(value["lower_bound"]["rounds"], json!([1.0, 2.0]));
        assert_eq!(value["trees"]["stock"], "a1");
    }
}
