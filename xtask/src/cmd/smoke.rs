//! `cargo xtask smoke`: one of the tests of a built server.

use clap::Args;
use espalier_core::context::{Context, Outcome};
use espalier_core::error::Result;
use espalier_dist::build_args::Which;
use espalier_dist::{smoke, smoke_operations, smoke_rpc};

/// Options of `smoke`.
#[derive(Clone, Debug, Default, Args)]
pub struct Options {
    /// The build.
    #[command(flatten)]
    pub which: Which,
    /// Keep the model in the packaged `ggml-rpc-server`, a second process, and compare with the server alone.
    #[arg(long)]
    pub rpc: bool,
    /// Compute every operation of the model on the flavor's accelerator, and compare with the processor.
    #[arg(long, conflicts_with = "rpc")]
    pub operations: bool,
}

/// Runs the test that was chosen.
///
/// # Errors
///
/// The variant is not built, or the test fails.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    match options {
        Options { rpc: true, which, .. } => smoke_rpc::command(context, which),
        Options { operations: true, which, .. } => smoke_operations::command(context, which),
        Options { which, .. } => smoke::command(context, which),
    }
}
