//! `cargo xtask completions`: prints a shell's completion script.

use clap::Args;
use clap_complete::Shell;
use espalier_core::context::Outcome;
use serde_json::json;

/// Options of `completions`.
#[derive(Clone, Copy, Debug, Args)]
pub struct Options {
    /// Shell to generate for.
    #[arg(value_enum, value_name = "SHELL")]
    pub shell: Shell,
}

/// Returns the script as an outcome.
pub fn run(script: &str) -> Outcome {
    Outcome::ok(script.trim_end(), json!({ "script": script }))
}
