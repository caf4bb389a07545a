//! `cargo xtask completions`: prints a shell's completion script.

use serde_json::json;

use crate::context::Outcome;

/// Returns the script as an outcome.
pub fn run(script: &str) -> Outcome {
    Outcome::ok(script.trim_end(), json!({ "script": script }))
}
