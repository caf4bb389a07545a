//! What switches our features on, and off.

use crate::sys::machine::process::Run;

/// Names the features to switch on.
pub const ENABLE: &str = "ESPALIER_ENABLE";

/// Names the features to keep off.
pub const DISABLE: &str = "ESPALIER_DISABLE";

/// A feature that claims to be identical, and is switched on all the same.
pub const FEATURE: &str = "gdn-flat-output";

/// Flash attention on the CPU by our kernel, which comes with a paged cache.
pub const ATTENTION: &str = "attention";

/// Switches a server's paged KV cache on, as `--kv-paged` does.
pub const PAGED: &str = "LLAMA_ARG_KV_PAGED";

/// The name that the variable of `--kv-paged` had before.
pub const PAGED_BEFORE: &str = "LLAMA_KV_PAGED";

/// How many layers at each end of a model keep V at q8_0 in a cache of our types.
pub const EDGE_LAYERS: &str = "ESPALIER_KV_EDGE_LAYERS";

/// How many tokens before each it reads in f16 where a cache has our types.
pub const RECENT: &str = "ESPALIER_KV_RECENT";

/// How many of a sequence's first tokens are read so.
pub const SINKS: &str = "ESPALIER_KV_SINKS";

/// Somebody's own switches would make one side into another.
pub fn without_features(run: Run) -> Run {
    [ENABLE, DISABLE, PAGED, PAGED_BEFORE, EDGE_LAYERS, RECENT, SINKS].into_iter().fold(run, Run::without_env)
}

/// The same, with this feature switched on, if any.
pub fn with_feature(run: Run, feature: Option<&str>) -> Run {
    let run = without_features(run);
    feature.into_iter().fold(run, |run, feature| run.env(ENABLE, feature))
}
