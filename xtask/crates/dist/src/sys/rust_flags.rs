//! Flags for rustc, from the environment.

use std::path::PathBuf;

use crate::plan::prefix_map;

/// Returns the rustc flags for a library whose bytes are the same wherever it is built.
pub fn portable_rust_flags() -> String {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let own: Vec<String> = match (variable("CARGO_ENCODED_RUSTFLAGS"), variable("RUSTFLAGS")) {
        (Some(flags), _) => flags.split('\u{1f}').map(str::to_string).collect(),
        (None, flags) => flags.unwrap_or_default().split_whitespace().map(str::to_string).collect(),
    };
    let home = || std::env::home_dir().unwrap_or_default().join(".cargo");
    prefix_map::rust_flags(&own, &variable("CARGO_HOME").map_or_else(home, PathBuf::from))
}
