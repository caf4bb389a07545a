//! `cargo xtask completions`: print a shell's completions.

use serde_json::json;

use crate::context::Outcome;

/// Gives the script.
pub fn run(script: &str) -> Outcome {
    Outcome::ok(script.trim_end(), json!({ "script": script }))
}
