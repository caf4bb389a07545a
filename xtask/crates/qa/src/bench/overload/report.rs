//! The report of an overload: text, JSON, and the violations.

use serde_json::{Value, json};

use super::Options;
use super::memory::Memory;
use crate::serving::bench_fixture::Builds;
use crate::serving::kv_pool::{Hits, Pool};
use crate::serving::overload::tally::Tally;
use crate::serving::rounding::Rounding;

/// One complete run of the bench.
#[derive(Clone, Debug)]
pub(super) struct Overload {
    pub(super) builds: Builds,
    pub(super) processor: Option<String>,
    pub(super) threads: usize,
    pub(super) options: Options,
    pub(super) slots: usize,
    pub(super) cells: usize,
    /// Tolerance for a less likely token, in natural logarithms.
    pub(super) tolerance: f64,
    pub(super) tally: Tally,
    /// Agreement of stock with its own answers, with other sequences in the batch.
    pub(super) stock: Rounding,
    /// Number of preemptions.
    pub(super) preempted: usize,
    /// State of the pool after all clients have left.
    pub(super) pool: Pool,
    pub(super) hits: Hits,
    pub(super) memory: Memory,
}

/// Allowed growth of the server's memory from the first minute to the last, in bytes. A server answers thousands of
/// requests per minute: a leak of a few kilobytes per request exceeds this.
const MOST_GROWTH: f64 = 32.0 * MEBIBYTE;

const MEBIBYTE: f64 = 1024.0 * 1024.0;

impl Overload {
    /// Returns one line for every violation.
    pub(super) fn failures(&self) -> Vec<String> {
        let tally = &self.tally;
        let held = self.pool.blocks_used;
        let growth = self.memory.growth();
        let unknown = "the server's memory was not measured: whether it grows is unknown".to_string();
        let conditions = [
            (tally.wrong > 0, format!("{} answers differ from stock's", tally.wrong)),
            (tally.errors > 0, format!("{} requests were not answered", tally.errors)),
            (tally.same == 0, "no answer was found the same".to_string()),
            (self.preempted == 0, "no request was preempted: it was no overload".to_string()),
            (held > 0, format!("{held} blocks are still in use after all clients left")),
            (growth.is_none(), unknown),
        ];
        let found = conditions.into_iter().filter(|(is_so, _)| *is_so).map(|(_, words)| words);
        let grown = growth.filter(|growth| *growth > MOST_GROWTH);
        let grown = grown.map(|growth| format!("the server has grown by {:.1} MiB", growth / MEBIBYTE));
        found.chain(grown).chain(self.too_many_ties()).chain(tally.words.iter().cloned()).collect()
    }

    /// Applies the gate's rule for ties within tolerance.
    fn too_many_ties(&self) -> Option<String> {
        let count = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let Tally { same, ties, .. } = self.tally;
        Rounding { same: count(same), others: count(ties) }.is_too_much(self.stock)
    }
}

/// Returns a Markdown table, and the violations.
pub(super) fn text(overload: &Overload) -> String {
    let rows: String = rows(overload).iter().map(|(what, count)| format!("| {what} | {count} |\n")).collect();
    let failures: String =
        overload.failures().iter().map(|failure| format!("\nnot good: {failure}")).collect();
    format!("{}\n\n| what | |\n|---|--:|\n{rows}{failures}", title(overload))
}

fn title(overload: &Overload) -> String {
    let Overload { options, slots, cells, threads, builds, tolerance, .. } = overload;
    format!(
        "{} clients for {} min, seed {}: -np {slots} --kv-paged -c {cells}, -t {threads}, llama.cpp {}\n\
         a tie within tolerance is a token less likely by at most {tolerance:.3}; memory may grow by {:.0} MiB",
        options.clients,
        options.minutes,
        options.seed,
        builds.pin,
        MOST_GROWTH / MEBIBYTE
    )
}

fn rows(overload: &Overload) -> [(&'static str, String); 13] {
    let Overload { tally, pool, hits, memory, .. } = overload;
    [
        ("answers that are stock's", tally.same.to_string()),
        ("left stock's at a tie within tolerance", tally.ties.to_string()),
        ("stock left its own", overload.stock.to_string()),
        ("wrong", tally.wrong.to_string()),
        ("errors", tally.errors.to_string()),
        ("clients that went away", tally.left.to_string()),
        ("preemptions", overload.preempted.to_string()),
        ("blocks evicted", pool.evicted_blocks.to_string()),
        ("prompt tokens found / asked for", format!("{} / {}", hits.hit_tokens, hits.queried_tokens)),
        ("blocks in use at the end", pool.blocks_used.to_string()),
        ("resident memory, first minute", mebibytes(memory.first())),
        ("resident memory, last minute", mebibytes(memory.last())),
        ("resident memory, peak", mebibytes(memory.peak().map(|bytes| bytes as f64))),
    ]
}

fn mebibytes(bytes: Option<f64>) -> String {
    bytes.map_or_else(|| "-".to_string(), |bytes| format!("{:.1} MiB", bytes / MEBIBYTE))
}

pub(super) fn json(overload: &Overload) -> Value {
    let Overload { pool, hits, options, .. } = overload;
    json!({
        "pin": overload.builds.pin,
        "trees": overload.builds.trees,
        "processor": overload.processor,
        "threads": overload.threads,
        "minutes": options.minutes,
        "clients": options.clients,
        "seed": options.seed,
        "slots": overload.slots,
        "cells": overload.cells,
        "tolerance": overload.tolerance,
        "answers": answers_json(&overload.tally),
        "stock_left_its_own": overload.stock.others,
        "stock_answers": overload.stock.same + overload.stock.others,
        "preempted": overload.preempted,
        "evicted_blocks": pool.evicted_blocks,
        "queried_tokens": hits.queried_tokens,
        "hit_tokens": hits.hit_tokens,
        "blocks_used_at_the_end": pool.blocks_used,
        "resident_bytes": memory_json(&overload.memory),
        "failures": overload.failures(),
    })
}

fn answers_json(tally: &Tally) -> Value {
    json!({
        "same": tally.same,
        "ties_within_tolerance": tally.ties,
        "wrong": tally.wrong,
        "errors": tally.errors,
        "disconnected": tally.left,
    })
}

/// Returns pairs of seconds and bytes, thinned to as many as a plot can show.
fn memory_json(memory: &Memory) -> Value {
    let every = memory.samples.len().div_ceil(60).max(1);
    let thinned: Vec<&(u64, u64)> = memory.samples.iter().step_by(every).collect();
    json!({
        "first_minute": memory.first(),
        "last_minute": memory.last(),
        "peak": memory.peak(),
        "by_second": thinned,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serving::kv_pool;

    fn example() -> Overload {
        Overload {
            builds: Builds { pin: "v1".to_string(), ..Builds::default() },
            processor: None,
            threads: 2,
            options: Options { minutes: 2, clients: 24, seed: 1, threads: None, record: false },
            slots: 8,
            cells: 1024,
            tolerance: 0.05,
            tally: Tally { same: 900, ties: 5, left: 300, ..Tally::default() },
            stock: Rounding { same: 36, others: 4 },
            preempted: 40,
            pool: Pool { evicted_blocks: 70, ..Pool::parse(&kv_pool::example()).unwrap() },
            hits: Hits { queried_tokens: 5000, hit_tokens: 2000 },
            memory: Memory { samples: (0..120).map(|at| (at, (100 + at / 60) << 20)).collect() },
        }
    }

    #[test]
    fn the_table() {
        insta::assert_snapshot!(text(&example()), @"
        24 clients for 2 min, seed 1: -np 8 --kv-paged -c 1024, -t 2, llama.cpp v1
        a tie within tolerance is a token less likely by at most 0.050; memory may grow by 32 MiB

        | what | |
        |---|--:|
        | answers that are stock's | 900 |
        | left stock's at a tie within tolerance | 5 |
        | stock left its own | 4 of 40 |
        | wrong | 0 |
        | errors | 0 |
        | clients that went away | 300 |
        | preemptions | 40 |
        | blocks evicted | 70 |
        | prompt tokens found / asked for | 2000 / 5000 |
        | blocks in use at the end | 0 |
        | resident memory, first minute | 100.0 MiB |
        | resident memory, last minute | 101.0 MiB |
        | resident memory, peak | 101.0 MiB |
        ");
    }

    #[test]
    fn everything_that_must_not_be_is_said() {
        let with = |change: fn(&mut Overload)| {
            let mut overload = example();
            change(&mut overload);
            overload.failures().join("; ")
        };
        assert_eq!(with(|_| ()), "");
        assert_eq!(with(|one| one.tally.wrong = 1), "1 answers differ from stock's");
        assert_eq!(with(|one| one.tally.error("x".to_string())), "1 requests were not answered; x");
        assert_eq!(with(|one| one.tally = Tally::default()), "no answer was found the same");
        assert!(with(|one| one.preempted = 0).contains("no overload"));
        assert_eq!(with(|one| one.pool.blocks_used = 3), "3 blocks are still in use after all clients left");
        let grown = with(|one| one.memory.samples.iter_mut().for_each(|(at, bytes)| *bytes += *at << 20));
        assert_eq!(grown, "the server has grown by 61.0 MiB");
        let unmeasured = with(|one| one.memory.samples.clear());
        assert_eq!(unmeasured, "the server's memory was not measured: whether it grows is unknown");
        assert_eq!(with(|one| one.tally.ties = 150), "", "stock leaves a tenth of its own");
        let tied = with(|one| one.tally.ties = 200);
        assert!(
            tied.starts_with("18.2 % of the answers differ from stock's at a tie within tolerance"),
            "{tied}"
        );
    }

    #[test]
    fn the_json_has_at_most_sixty_samples() {
        let value = json(&example());
        assert_eq!(value["resident_bytes"]["by_second"].as_array().unwrap().len(), 60);
        assert_eq!(value["answers"]["same"], 900);
        assert_eq!(value["failures"], json!([]));
    }
}
