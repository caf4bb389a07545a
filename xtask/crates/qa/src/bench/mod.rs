//! `cargo xtask bench`: ratios, measured in one run on a quiet machine.

mod apply;
mod attention;
pub mod burst;
pub mod capacity;
mod criterion;
pub mod decode;
pub mod fairness;
pub mod history;
pub mod kernels;
pub mod kv_quality;
pub mod made_history;
pub mod overload;
pub mod paged_decode;
pub mod prefixes;
pub mod rebase;
pub mod record;
pub mod results;
mod status;
pub mod streams;
mod synthetic;
pub mod timing;
pub mod turns;

use clap::{Args, Subcommand};
use espalier_core::context::{Context, Outcome};
use espalier_core::error::Result;
use espalier_core::sys::machine::owned;

use crate::serving::probe::{self, Probe};

/// The bench to run.
#[derive(Clone, Debug, Subcommand)]
pub enum Benchmark {
    /// Time applying a series: `apply` from scratch and with nothing to do, `git am`, and a single `git apply --cached`.
    Apply(Rounds),
    /// Time judging a series at each of a thousand upstream commits.
    Status(Rounds),
    /// Time rebasing a series: ours in memory, `git merge-tree` and `git commit-tree` in a loop.
    Rebase(rebase::Options),
    /// Measure decoding and prompts of gated delta nets: features on, stock, features off.
    Decode(decode::Options),
    /// Send cold requests with one shared prefix, all at once, to stock servers and ours.
    Burst(burst::Options),
    /// Send prompts that share their first tokens, one after the other and several at once: tokens computed, time.
    Prefixes(prefixes::Options),
    /// Send the conversations of several users: tokens computed in each turn, time.
    Turns(turns::Options),
    /// Count how many sequences fit into a pool: one prefix shared, nothing shared, and stock.
    Capacity(capacity::Options),
    /// Measure tokens per second of the paged server and stock's when nothing is shared.
    PagedDecode(paged_decode::Options),
    /// Time the operations of the block pool, on one core.
    Kernels(record::Keep),
    /// Time attention alone, on one core, against the core's peak multiply-add rate and copy bandwidth.
    Attention(record::Keep),
    /// Measure the cost of KV cache types: divergence, perplexity, needles, bytes, speed.
    KvQuality(kv_quality::Options),
    /// Overload the paged server with clients, some of which disconnect: answers, leaks, memory.
    Overload(overload::Options),
    /// Measure how fairly the paged server shares a full pool: stalls, queue bypass, the cost of queued requests.
    Fairness(fairness::Options),
    /// Send many streams at once to one server with and without `--mailbox`: time and wake-ups of a step, latencies.
    Streams(streams::Options),
}

/// Number of rounds.
#[derive(Clone, Copy, Debug, Args)]
pub struct Rounds {
    /// Number of rounds; in each, the programs under test run in turn.
    #[arg(long, value_name = "N", default_value_t = 7)]
    pub rounds: u32,
}

impl Rounds {
    /// Returns the number, at least 1.
    fn count(self) -> u32 {
        self.rounds.max(1)
    }
}

/// Measures and prints a table.
pub fn run(context: &Context, what: &Benchmark) -> Result<Outcome> {
    find_files(context, what)?;
    owned::claim(&context.layout)?;
    match what {
        Benchmark::Apply(rounds) => apply::run(context, rounds.count()),
        Benchmark::Status(rounds) => status::run(context, rounds.count()),
        Benchmark::Rebase(options) => rebase::run(context, options),
        Benchmark::Decode(options) => decode::run(context, options),
        Benchmark::Burst(options) => burst::run(context, options),
        Benchmark::Prefixes(options) => prefixes::run(context, options),
        Benchmark::Turns(options) => turns::run(context, options),
        Benchmark::Capacity(options) => capacity::run(context, options),
        Benchmark::PagedDecode(options) => paged_decode::run(context, options),
        Benchmark::Kernels(keep) => kernels::run(context, keep),
        Benchmark::Attention(keep) => attention::run(context, keep),
        Benchmark::KvQuality(options) => kv_quality::run(context, options),
        Benchmark::Overload(options) => overload::run(context, options),
        Benchmark::Fairness(options) => fairness::run(context, options),
        Benchmark::Streams(options) => streams::run(context, options),
    }
}

/// Checks that the project has the sources of Espalier that are compiled for the bench. The benches of servers compile
/// theirs once they know that the servers are built.
fn find_files(context: &Context, what: &Benchmark) -> Result<()> {
    match what {
        Benchmark::Kernels(_) | Benchmark::Attention(_) => {
            context.file_of_espalier("kernels/Cargo.toml").map(drop)
        }
        Benchmark::Decode(_) => probe::find(context, Probe::Logits).map(drop),
        Benchmark::KvQuality(_) => probe::find(context, Probe::Quality).map(drop),
        _ => Ok(()),
    }
}
