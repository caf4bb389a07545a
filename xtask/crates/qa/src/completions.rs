//! `cargo xtask completions`: prints a shell's completion script.

use espalier_core::context::Outcome;
use serde_json::json;

/// Returns the script as an outcome.
pub fn run(script: &str) -> Outcome {
    Outcome::ok(script.trim_end(), json!({ "script": script }))
}
