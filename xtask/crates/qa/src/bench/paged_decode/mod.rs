//! The paged decode bench: one sequence on a fresh server, then one and many in a pool nearly full of cached blocks.
//! Sequences share nothing, so that it measures the overhead of paging, or they share a prefix.
//!
//! Prompts are computed one after the other, then all are decoded at once; the server itself reports the tokens per
//! second of both.

mod against;
mod report;

use std::time::Duration;

use clap::Args;
use espalier_core::context::{Context, Outcome};
use espalier_core::error::{Error, Result};
use espalier_core::http::Request;
use espalier_core::sys::machine::load;
use espalier_core::sys::net::server::Server;
use espalier_modelgen::ModelSpec;
use report::{Case, PagedDecodeRun, Rates, Sample};
use serde_json::Value;

use super::Rounds;
use super::history::History;
use super::record::{Keep, Recorded};
use crate::serving::TimedServing;
use crate::serving::answer::{self, Answer};
use crate::serving::bench_fixture::{self, BenchFixture};
use crate::serving::kv_pool::Pool;
use crate::serving::prompts::{MOST_SEQUENCES, Prompts};
use crate::serving::test_server::{TestServer, chosen};

/// The requests that every server gets.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Workload {
    /// Tokens of each prompt.
    #[arg(long, value_name = "N", default_value_t = 1600)]
    pub length: usize,
    /// Tokens that all prompts begin with.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub shared: usize,
    /// Tokens to predict for each sequence.
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub predict: usize,
    /// Cells of the pool.
    #[arg(long, value_name = "N", default_value_t = 32_768)]
    pub cells: usize,
    /// Values in a head of the model's attention.
    #[arg(long, value_name = "N", default_value_t = HEAD)]
    pub head: u64,
    /// Type of K and V in the cache, or both as K/V; settings behind it as those of kv-quality.
    #[arg(long, value_name = "TYPE", default_value = CACHE)]
    pub cache: String,
    /// Leave the pool empty before.
    #[arg(long)]
    pub fresh: bool,
}

/// Options of `bench paged-decode`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Number of rounds.
    #[command(flatten)]
    pub rounds: Rounds,
    /// Number of concurrent sequences, besides one alone.
    #[arg(long, value_name = "N", default_value_t = 16)]
    pub sequences: usize,
    /// The requests.
    #[command(flatten)]
    pub workload: Workload,
    /// Measure only this server: `stock-unified`, `paged` or `paged-plain`.
    #[arg(long, value_enum, value_name = "NAME")]
    pub only: Vec<TestServer>,
    /// Number of threads, and whether to measure on a busy machine.
    #[command(flatten)]
    pub serving: TimedServing,
    /// Files to write.
    #[command(flatten)]
    pub keep: Keep,
}

/// Default head size.
pub const HEAD: u64 = 64;
/// Default cache type.
pub const CACHE: &str = "f16";

/// Fraction of the pool that is filled before the sequences start.
const FILLED: f64 = 0.9;

const HISTORY: History = History {
    bench: "paged-decode",
    identity: &[
        "trees",
        "processor",
        "threads",
        "sequences",
        "length",
        "shared",
        "predict",
        "cells",
        "head",
        "cache",
        "fresh",
    ],
};

/// Measures and prints a table.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    check(options)?;
    let test_servers = test_servers(options)?;
    let spec = ModelSpec { head_dim: options.workload.head, ..ModelSpec::plain_70_million() };
    let mut fixture = BenchFixture::prepare(context, options.serving.into(), &test_servers, &spec)?;
    let mut cases: Vec<Case> = cases(options)
        .into_iter()
        .map(|(sequences, filled)| Case::new(sequences, filled, &test_servers))
        .collect();
    let rounds = options.rounds.count();
    for round in 1..=rounds {
        fixture.before_round()?;
        context.ui.status("Measuring", format!("round {round} of {rounds}"));
        for case in &mut cases {
            let (sequences, filled) = (case.sequences, case.filled);
            for rates in &mut case.rates {
                rates.rounds.push(measure(&fixture, options, sequences, filled, rates)?);
            }
        }
    }
    let found = PagedDecodeRun {
        builds: fixture.builds.clone(),
        processor: load::processor(),
        threads: fixture.threads,
        quiet: fixture.quiet,
        workload: options.workload.clone(),
        cases,
    };
    let recorded = Recorded {
        history: HISTORY,
        pin: &found.builds.pin,
        run: report::json(&found),
        shape: shape(options),
        plot: report::svg(&found),
    };
    recorded.write(context, &options.keep)?;
    if options.keep.record {
        against::write(context, &found)?;
    }
    Ok(Outcome::ok(report::text(&found), report::json(&found)))
}

/// Returns the cases: the number of sequences, and whether the pool is filled before.
fn cases(options: &Options) -> Vec<(usize, bool)> {
    match (options.workload.fresh, options.sequences) {
        (true, 1) => vec![(1, false)],
        (true, many) => vec![(1, false), (many, false)],
        (false, many) => vec![(1, false), (1, true), (many, true)],
    }
}

/// Returns the plot's name; default values are not part of it.
fn shape(options: &Options) -> String {
    let Workload { length, shared, head, cache, fresh, .. } = &options.workload;
    let fresh = if *fresh { "-fresh" } else { "" };
    let shared = if *shared == 0 { String::new() } else { format!("-{shared}-shared") };
    let head = if *head == HEAD { String::new() } else { format!("-head-{head}") };
    let cache = if cache == CACHE { String::new() } else { format!("-{}", cache.replace('/', "-")) };
    format!("paged-decode-{}x{length}{shared}{head}{cache}{fresh}", options.sequences)
}

fn check(options: &Options) -> Result<()> {
    let Workload { length, shared, predict, cells, .. } = options.workload;
    let needed = options.sequences.saturating_mul(length.saturating_add(predict));
    let wrong = if !(1..MOST_SEQUENCES).contains(&options.sequences) {
        format!("`--sequences` takes a number from 1 to {}", MOST_SEQUENCES - 1)
    } else if length == 0 || predict < 2 {
        "`--length` wants a number from 1, `--predict` one from 2".to_string()
    } else if shared >= length {
        format!("`--shared` wants fewer than the {length} tokens of a prompt")
    } else if needed > cells {
        format!("the sequences need {needed} cells, and `--cells` gives {cells}")
    } else {
        return Ok(());
    };
    Err(Error::usage(wrong).hint("cargo xtask bench paged-decode --help"))
}

fn test_servers(options: &Options) -> Result<Vec<TestServer>> {
    let those = [TestServer::StockUnified, TestServer::Paged, TestServer::PagedPlain];
    let found: Vec<TestServer> =
        chosen(&options.only).into_iter().filter(|one| those.contains(one)).collect();
    if found.is_empty() {
        return Err(Error::usage("no server under test is left: this bench compares stock-unified and ours")
            .hint("cargo xtask bench paged-decode --only stock-unified --only paged"));
    }
    Ok(found)
}

fn measure(
    fixture: &BenchFixture<'_>,
    options: &Options,
    sequences: usize,
    filled: bool,
    rates: &Rates,
) -> Result<Sample> {
    let Workload { predict, cells, cache, .. } = &options.workload;
    let types = bench_fixture::cache_types(cache)?;
    let mut switches: Vec<&str> = types.iter().map(String::as_str).chain(["--flash-attn", "on"]).collect();
    if rates.test_server == TestServer::StockUnified {
        // Otherwise it removes the prompts from the idle slots, and recomputes them while it answers.
        switches.push("--no-cache-idle-slots");
    }
    let server = fixture.server_with(rates.test_server, options.sequences, *cells, &switches)?;
    if filled {
        for family in 0..fillers(options) {
            let filler = Prompts { requests: 1, ..prompts(options, 1, FIRST_FILLER + family as u64) };
            ask_one_by_one(&server, filler)?;
        }
    }
    let before = pool_of(&server)?;
    let computed = ask_one_by_one(&server, prompts(options, sequences, 0))?;
    let wanted = Prompts { predict: *predict, ..prompts(options, sequences, 0) };
    let answers = answer::parse_all(&server.post_at_once("/completion", &wanted.bodies_by_slot())?.answers)?;
    Ok(sample(&computed, &answers, before))
}

/// First family of filler prompts, distinct from the measured ones.
const FIRST_FILLER: u64 = 1;

fn fillers(options: &Options) -> usize {
    let cells = options.workload.cells as f64 * FILLED;
    (cells / options.workload.length as f64).ceil() as usize
}

/// Returns prompts that are answered with one token.
fn prompts(options: &Options, requests: usize, family: u64) -> Prompts {
    let Workload { length, shared, .. } = options.workload;
    Prompts { requests, prefix: shared, suffix: length - shared, predict: 1, family }
}

fn ask_one_by_one(server: &Server, prompts: Prompts) -> Result<Vec<Answer>> {
    let ask = |body: &Value| {
        let (status, answer) = server.json(&Request::post("/completion", body), LIMIT)?;
        answer::parse(status, &answer)
    };
    prompts.bodies_by_slot().iter().map(ask).collect()
}

/// Stock needs minutes for tens of thousands of tokens.
const LIMIT: Duration = Duration::from_secs(1800);

fn pool_of(server: &Server) -> Result<Option<Pool>> {
    Pool::if_paged(&server.get("/props")?.1)
}

fn sample(prompts: &[Answer], answers: &[Answer], before: Option<Pool>) -> Sample {
    Sample {
        prompt_rate: answer::prompt_rate(prompts),
        rate: answers.iter().map(|answer| answer.decode_rate).sum(),
        computed: answer::computed(answers),
        filled: before.map(|pool| pool.filled()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload() -> Workload {
        let cache = CACHE.to_string();
        Workload { length: 1600, shared: 0, predict: 64, cells: 32_768, head: HEAD, cache, fresh: false }
    }

    fn options() -> Options {
        Options {
            rounds: Rounds { rounds: 1 },
            sequences: 16,
            workload: workload(),
            only: Vec::new(),
            serving: TimedServing::default(),
            keep: Keep::default(),
        }
    }

    #[test]
    fn nine_tenths_of_the_pool_are_filled() {
        let options = options();
        let cells = fillers(&options) * options.workload.length;
        assert!((29_492..=options.workload.cells).contains(&cells), "{cells}");
    }

    #[test]
    fn prompts_have_no_common_beginning() {
        let all = prompts(&options(), 16, 0);
        let filler = prompts(&options(), 1, FIRST_FILLER);
        assert_eq!(all.prompt(3).len(), 1600);
        assert_ne!(all.prompt(3)[0], all.prompt(4)[0]);
        // Fillers differ from the second token on, so they share less than a block and the rest is private.
        assert_ne!(all.prompt(0)[1], filler.prompt(0)[1]);
    }

    #[test]
    fn prompts_that_share_begin_alike() {
        let workload = Workload { shared: 1500, ..workload() };
        let all = prompts(&Options { workload, ..options() }, 16, 0);
        assert_eq!((all.prompt(3).len(), &all.prompt(3)[..1500]), (1600, &all.prompt(4)[..1500]));
        assert_ne!(all.prompt(3)[1500], all.prompt(4)[1500]);
    }

    #[test]
    fn a_plot_is_named_after_what_is_not_as_it_comes() {
        assert_eq!(shape(&options()), "paged-decode-16x1600");
        let workload = Workload { shared: 1440, head: 128, cache: "q8_0".to_string(), ..workload() };
        let shape = shape(&Options { workload, ..options() });
        assert_eq!(shape, "paged-decode-16x1600-1440-shared-head-128-q8_0");
    }

    #[test]
    fn a_fresh_pool_is_not_filled() {
        assert_eq!(cases(&options()), [(1, false), (1, true), (16, true)]);
        let fresh = Options { workload: Workload { fresh: true, ..workload() }, ..options() };
        assert_eq!(cases(&fresh), [(1, false), (16, false)]);
        assert_eq!(cases(&Options { sequences: 1, ..fresh.clone() }), [(1, false)]);
        assert_eq!(shape(&fresh), "paged-decode-16x1600-fresh");
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert!(check(&options()).is_ok());
        let with = |workload| Options { workload, ..options() };
        let error = check(&with(Workload { cells: 1024, ..workload() })).unwrap_err();
        assert!(error.what.contains("need 26624 cells"), "{error}");
        let error = check(&with(Workload { shared: 1600, ..workload() })).unwrap_err();
        assert!(error.what.contains("fewer than the 1600 tokens"), "{error}");
        assert!(check(&Options { sequences: 256, ..options() }).is_err());
    }

    #[test]
    fn some_can_take_part() {
        let all_servers = [TestServer::StockUnified, TestServer::Paged, TestServer::PagedPlain];
        assert_eq!(test_servers(&options()).unwrap(), all_servers);
        assert!(test_servers(&Options { only: vec![TestServer::Stock], ..options() }).is_err());
    }
}
