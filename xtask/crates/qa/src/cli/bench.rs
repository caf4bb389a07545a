//! The flags of `cargo xtask bench`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::values::{Scenario, TestServer, each};
use crate::bench;
use crate::serving;

#[derive(Debug, Args)]
pub struct Bench {
    #[command(subcommand)]
    what: BenchWhat,
}

/// What can be measured.
#[derive(Debug, Subcommand)]
enum BenchWhat {
    /// Time applying a series: ours cold and unchanged, `git am`, one `git apply --cached`.
    Apply(Rounds),
    /// Time judging a series at each of a thousand upstream commits.
    Status(Rounds),
    /// Time rebasing a series: ours in memory, `git merge-tree` and `git commit-tree` in a loop.
    Rebase(Rebase),
    /// Time decoding several sequences: features on, stock, features off.
    Decode(Rounds),
    /// Send cold requests with one shared prefix, all at once, to stock servers and ours.
    Burst(Burst),
    /// Count how many sequences fit into a pool: one prefix shared, nothing shared, and stock.
    Capacity(Capacity),
    /// Measure tokens per second of the paged server and stock's when nothing is shared.
    PagedDecode(PagedDecode),
    /// Time the operations of the block pool, on one core.
    Kernels(Keep),
    /// Time attention alone, on one core, against the core's peak multiply-add rate and copy bandwidth.
    Attention(Keep),
    /// Measure the cost of KV cache types: divergence, perplexity, needles, bytes, speed.
    KvQuality(KvQuality),
    /// Overload the paged server with clients, some of which disconnect: answers, leaks, memory.
    Overload(Overload),
    /// Measure how fairly the paged server shares a full pool: stalls, queue bypass, the cost of queued requests.
    Fairness(Fairness),
}

/// What becomes of a result besides the table.
#[derive(Debug, Args)]
struct Keep {
    /// Write the result and its plot to `docs/measurements/`.
    #[arg(long)]
    record: bool,
    /// Write the plot to this file (SVG).
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct Rounds {
    /// Number of rounds; in each, the programs under test run in turn.
    #[arg(long, value_name = "N", default_value_t = 7)]
    rounds: u32,
}

#[derive(Debug, Args)]
struct Rebase {
    #[command(flatten)]
    rounds: Rounds,
    /// Number of patches in the series.
    #[arg(long, value_name = "N", default_value_t = 120, value_parser = clap::value_parser!(u16).range(1..=9999))]
    patches: u16,
}

/// What the benches of the server have in common.
#[derive(Debug, Args)]
struct Serving {
    /// Threads of each server; default: the idle cores.
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Measure even on a busy machine; the report says so.
    #[arg(long, conflicts_with = "record")]
    busy_anyway: bool,
}

#[derive(Debug, Args)]
struct Burst {
    #[command(flatten)]
    rounds: Rounds,
    /// Number of requests, and of slots of each server.
    #[arg(long, value_name = "N", default_value_t = 16)]
    requests: usize,
    /// Tokens of the shared prefix.
    #[arg(long, value_name = "N", default_value_t = 1600)]
    prefix: usize,
    /// Tokens of each prompt after the shared prefix.
    #[arg(long, value_name = "N", default_value_t = 16)]
    suffix: usize,
    /// Tokens to predict for each request.
    #[arg(long, value_name = "N", default_value_t = 8)]
    predict: usize,
    /// Measure only this server; repeatable; answers are compared with the first one's.
    #[arg(long, value_enum, value_name = "NAME")]
    only: Vec<TestServer>,
    #[command(flatten)]
    serving: Serving,
    #[command(flatten)]
    keep: Keep,
}

#[derive(Debug, Args)]
struct Capacity {
    /// Cells of the pool.
    #[arg(long, value_name = "N", default_value_t = 32_768)]
    cells: usize,
    /// Type of K and V in our cache, or both as K/V; settings behind it as those of kv-quality.
    #[arg(long, value_name = "TYPE", default_value = bench::paged_decode::CACHE)]
    cache: String,
    /// Threads of each server; default: the idle cores.
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    #[command(flatten)]
    keep: Keep,
}

#[derive(Debug, Args)]
struct PagedDecode {
    #[command(flatten)]
    rounds: Rounds,
    /// Number of concurrent sequences, besides one alone.
    #[arg(long, value_name = "N", default_value_t = 16)]
    sequences: usize,
    /// Tokens of each prompt.
    #[arg(long, value_name = "N", default_value_t = 1600)]
    length: usize,
    /// Tokens that all prompts begin with.
    #[arg(long, value_name = "N", default_value_t = 0)]
    shared: usize,
    /// Tokens to predict for each sequence.
    #[arg(long, value_name = "N", default_value_t = 64)]
    predict: usize,
    /// Cells of the pool.
    #[arg(long, value_name = "N", default_value_t = 32_768)]
    cells: usize,
    /// Values in a head of the model's attention.
    #[arg(long, value_name = "N", default_value_t = bench::paged_decode::HEAD)]
    head: u64,
    /// Type of K and V in the cache, or both as K/V; settings behind it as those of kv-quality.
    #[arg(long, value_name = "TYPE", default_value = bench::paged_decode::CACHE)]
    cache: String,
    /// Leave the pool empty before.
    #[arg(long)]
    fresh: bool,
    /// Measure only this server: `stock-unified`, `paged` or `paged-plain`.
    #[arg(long, value_enum, value_name = "NAME")]
    only: Vec<TestServer>,
    #[command(flatten)]
    serving: Serving,
    #[command(flatten)]
    keep: Keep,
}

#[derive(Debug, Args)]
struct KvQuality {
    /// Model: a GGUF file, or a name of `ci/models.toml`; default: the one trained for this.
    #[arg(long, short, value_name = "FILE")]
    model: Option<PathBuf>,
    /// Text to decode (UTF-8); default: a text about this project.
    #[arg(long, value_name = "FILE")]
    text: Option<PathBuf>,
    /// Caches to compare with f16, as K/V; then +N for N layers at each end whose V stays at q8_0, ~N and ^N for N recent
    /// and N first tokens that are read in f16.
    #[arg(long = "cache", value_name = "K/V", value_delimiter = ',')]
    caches: Vec<bench::kv_quality::Cache>,
    /// Tokens of context; repeatable.
    #[arg(long = "context", value_name = "N", value_delimiter = ',', default_values_t = [512, 2048], value_parser = clap::value_parser!(u32).range(256..=1_048_576))]
    contexts: Vec<u32>,
    /// Chunks of text at each context.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    chunks: u32,
    /// Threads; default: all cores.
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Take only the readings that `cargo xtask test` compares.
    #[arg(long, conflicts_with_all = ["model", "text", "caches", "contexts", "chunks"])]
    quick: bool,
    /// Take only the readings on real weights that `cargo xtask test` compares.
    #[arg(long, conflicts_with_all = ["model", "text", "caches", "contexts", "chunks", "quick"])]
    weights: bool,
    /// Fail where a cache is worse than in this result, a history or what `--json` printed.
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    #[command(flatten)]
    keep: Keep,
}

impl From<KvQuality> for bench::kv_quality::Options {
    fn from(bench: KvQuality) -> Self {
        let KvQuality { model, text, caches, contexts, chunks, threads, quick, weights, baseline, keep } =
            bench;
        let keep = keep.into();
        if quick || weights {
            let readings = if quick { Self::quick() } else { Self::on_weights() };
            return Self { threads, baseline, keep, ..readings };
        }
        let contexts = contexts.into_iter().map(|context| context as usize).collect();
        let chunks = chunks as usize;
        let base = bench::kv_quality::Base::WithEach;
        Self { model, text, caches, contexts, chunks, threads, baseline, base, keep, ..Self::quick() }
    }
}

impl From<Keep> for bench::record::Keep {
    fn from(Keep { record, plot }: Keep) -> Self {
        Self { record, plot }
    }
}

#[derive(Debug, Args)]
struct Overload {
    /// Duration in minutes.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    minutes: u32,
    /// Number of clients; each sends its next request as soon as the last one ended.
    #[arg(long, value_name = "N", default_value_t = 24)]
    clients: usize,
    /// Seed of what each client asks, and when it disconnects.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Threads of the server; default: the idle cores.
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Write the result to `docs/measurements/`.
    #[arg(long)]
    record: bool,
}

impl From<Overload> for bench::overload::Options {
    fn from(Overload { minutes, clients, seed, threads, record }: Overload) -> Self {
        use serving::{Serving, WhenBusy};
        let serving = Serving { threads, when_busy: WhenBusy::Ignore };
        Self { minutes, clients, seed, serving, record }
    }
}

#[derive(Debug, Args)]
struct Fairness {
    /// Duration of a workload in seconds; one that has not shown everything by then is extended.
    #[arg(long, value_name = "N", default_value_t = 45, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
    /// Also measure this server binary, as `before`; each workload runs on both in turn.
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
    /// Run only this workload; repeatable.
    #[arg(long, value_enum, value_name = "WORKLOAD")]
    only: Vec<Scenario>,
    #[command(flatten)]
    serving: Serving,
    /// Write the result to `docs/measurements/`.
    #[arg(long)]
    record: bool,
}

impl From<Fairness> for bench::fairness::Options {
    fn from(Fairness { seconds, program, only, serving, record }: Fairness) -> Self {
        Self { seconds, program, only: each(only), serving: serving.into(), record }
    }
}

impl From<Serving> for serving::Serving {
    fn from(Serving { threads, busy_anyway }: Serving) -> Self {
        use serving::WhenBusy;
        Self { threads, when_busy: if busy_anyway { WhenBusy::Say } else { WhenBusy::Refuse } }
    }
}

impl From<Capacity> for bench::capacity::Options {
    fn from(Capacity { cells, cache, threads, keep }: Capacity) -> Self {
        use serving::{Serving, WhenBusy};
        Self { cells, cache, serving: Serving { threads, when_busy: WhenBusy::Ignore }, keep: keep.into() }
    }
}

impl From<PagedDecode> for bench::paged_decode::Options {
    fn from(bench: PagedDecode) -> Self {
        let PagedDecode { sequences, length, shared, predict, cells, head, cache, fresh, only, .. } = bench;
        let (serving, keep) = (bench.serving.into(), bench.keep.into());
        let (rounds, only) = (bench.rounds.rounds, each(only));
        let workload = bench::paged_decode::Workload { length, shared, predict, cells, head, cache, fresh };
        Self { rounds, sequences, workload, only, serving, keep }
    }
}

impl From<Burst> for bench::burst::Options {
    fn from(burst: Burst) -> Self {
        let Burst { requests, prefix, suffix, predict, .. } = burst;
        Self {
            rounds: burst.rounds.rounds,
            prompts: serving::prompts::Prompts { requests, prefix, suffix, predict, family: 0 },
            only: each(burst.only),
            serving: burst.serving.into(),
            keep: burst.keep.into(),
        }
    }
}

impl From<Bench> for bench::What {
    fn from(Bench { what }: Bench) -> Self {
        match what {
            BenchWhat::Apply(Rounds { rounds }) => Self::Apply(rounds),
            BenchWhat::Status(Rounds { rounds }) => Self::Status(rounds),
            BenchWhat::Rebase(Rebase { rounds: Rounds { rounds }, patches }) => {
                Self::Rebase { rounds, patches: patches.into() }
            }
            BenchWhat::Decode(Rounds { rounds }) => Self::Decode(rounds),
            BenchWhat::Burst(burst) => Self::Burst(burst.into()),
            BenchWhat::Capacity(capacity) => Self::Capacity(capacity.into()),
            BenchWhat::PagedDecode(bench) => Self::PagedDecode(bench.into()),
            BenchWhat::Kernels(keep) => Self::Kernels(keep.into()),
            BenchWhat::Attention(keep) => Self::Attention(keep.into()),
            BenchWhat::KvQuality(bench) => Self::KvQuality(bench.into()),
            BenchWhat::Overload(bench) => Self::Overload(bench.into()),
            BenchWhat::Fairness(bench) => Self::Fairness(bench.into()),
        }
    }
}
