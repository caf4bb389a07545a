//! `cargo xtask bench`: ratios, measured in one run on a quiet machine.

mod apply;
mod attention;
pub mod burst;
pub mod capacity;
mod criterion;
mod decode;
pub mod fairness;
pub mod history;
pub mod kernels;
pub mod kv_quality;
mod made_history;
pub mod overload;
pub mod paged_decode;
mod rebase;
pub mod record;
mod status;
mod synthetic;
pub mod timing;

use espalier_core::context::{Context, Outcome};
use espalier_core::error::Result;
use espalier_core::sys::machine::ours;

use crate::serving::probe::{self, Probe};

/// The bench to run; the integer is the number of rounds, in which the programs under test run in turn.
#[derive(Clone, Debug)]
pub enum What {
    /// Applying a series: our `apply` cold and unchanged, `git am`, one `git apply --cached`.
    Apply(u32),
    /// Judging a series at each of a thousand upstream commits.
    Status(u32),
    /// Moving a series: our rebase in memory, `git merge-tree` and `git commit-tree` in a loop.
    Rebase {
        /// Number of rounds.
        rounds: u32,
        /// Number of patches in the series.
        patches: usize,
    },
    /// Decoding several sequences: features on, stock, features off.
    Decode(u32),
    /// Requests with one shared prefix, sent at once to servers.
    Burst(burst::Options),
    /// Number of sequences that fit into a pool.
    Capacity(capacity::Options),
    /// Tokens per second where nothing is shared.
    PagedDecode(paged_decode::Options),
    /// Operations of the block pool.
    Kernels(record::Keep),
    /// Attention on one core.
    Attention(record::Keep),
    /// Quality loss of a model with each type of the KV cache.
    KvQuality(kv_quality::Options),
    /// More clients than a paged server has capacity for, for minutes.
    Overload(overload::Options),
    /// Scheduling of a paged server with a full pool.
    Fairness(fairness::Options),
}

/// Measures and prints a table.
pub fn run(context: &Context, what: &What) -> Result<Outcome> {
    find_files(context, what)?;
    ours::claim(&context.layout)?;
    match what {
        What::Apply(rounds) => apply::run(context, (*rounds).max(1)),
        What::Status(rounds) => status::run(context, (*rounds).max(1)),
        What::Rebase { rounds, patches } => rebase::run(context, (*rounds).max(1), *patches),
        What::Decode(rounds) => decode::run(context, (*rounds).max(1)),
        What::Burst(options) => burst::run(context, options),
        What::Capacity(options) => capacity::run(context, options),
        What::PagedDecode(options) => paged_decode::run(context, options),
        What::Kernels(keep) => kernels::run(context, keep),
        What::Attention(keep) => attention::run(context, keep),
        What::KvQuality(options) => kv_quality::run(context, options),
        What::Overload(options) => overload::run(context, options),
        What::Fairness(options) => fairness::run(context, options),
    }
}

/// Checks that the project has the sources of Espalier that are compiled for the bench. The benches of servers compile
/// theirs once they know that the servers are built.
fn find_files(context: &Context, what: &What) -> Result<()> {
    match what {
        What::Kernels(_) | What::Attention(_) => context.file_of_espalier("kernels/Cargo.toml").map(drop),
        What::Decode(_) => probe::find(context, Probe::Logits).map(drop),
        What::KvQuality(_) => probe::find(context, Probe::Quality).map(drop),
        _ => Ok(()),
    }
}
