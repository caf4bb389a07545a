//! What switches our features on, and off.

use crate::sys::machine::process::Run;

/// Names the features to switch on.
pub const ENABLE: &str = "ESPALIER_ENABLE";

/// A feature that claims to be identical, and is switched on all the same.
pub const FEATURE: &str = "gdn-flat-output";

/// Switches a server's paged KV cache on, as `--kv-paged` does.
pub const PAGED: &str = "LLAMA_KV_PAGED";

/// Somebody's own switches would make one side into another.
pub fn without_features(run: Run) -> Run {
    run.without_env(ENABLE).without_env(PAGED)
}
