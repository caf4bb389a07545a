//! `cargo xtask bench`: ratios, measured in one run on a quiet machine.

mod apply;
mod decode;
mod made_history;
mod rebase;
mod status;
mod synthetic;
pub mod timing;

use super::{Context, Outcome};
use crate::error::Result;

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum What {
    /// Applying a series: ours cold and unchanged, `git am`, one `git apply --cached`.
    Apply,
    /// Judging a series at each of a thousand upstream commits.
    Status,
    /// Moving a series: ours in memory, `git merge-tree` and `git commit-tree` in a loop.
    Rebase,
    /// Decoding several sequences: features on, stock, features off.
    Decode,
}

/// Options of `bench`.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// What to measure.
    pub what: What,
    /// How often each contestant runs; they run in turn.
    pub rounds: u32,
}

/// Measures and prints a table.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    match options.what {
        What::Apply => apply::run(context, options.rounds.max(1)),
        What::Status => status::run(context, options.rounds.max(1)),
        What::Rebase => rebase::run(context, options.rounds.max(1)),
        What::Decode => decode::run(context, options.rounds.max(1)),
    }
}
