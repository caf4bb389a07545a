//! Environment variables that enable and disable our features.

use espalier_core::sys::machine::process::Run;

/// Names of the features to enable.
pub const ENABLE: &str = "ESPALIER_ENABLE";

/// Names of the features to disable.
pub const DISABLE: &str = "ESPALIER_DISABLE";

/// A feature with identical output, enabled in comparisons to verify that.
pub const FEATURE: &str = "gdn-flat-output";

/// Computes the states of gated delta nets in their cache.
pub const GDN_RECURRENCE: &str = "gdn-recurrence";

/// Our CPU flash-attention kernel, which comes with a paged cache.
pub const ATTENTION: &str = "attention";

/// Enables a server's paged KV cache, as `--kv-paged` does.
pub const PAGED: &str = "LLAMA_ARG_KV_PAGED";

/// Former name of the variable of `--kv-paged`.
pub const PAGED_BEFORE: &str = "LLAMA_KV_PAGED";

/// Number of layers at each end of a model whose V stays at q8_0 in a cache of our types.
pub const EDGE_LAYERS: &str = "ESPALIER_KV_EDGE_LAYERS";

/// Residual window: number of most recent tokens that are read in f16 in a cache of our types.
pub const RECENT: &str = "ESPALIER_KV_RECENT";

/// Attention sinks: number of first tokens of a sequence that are read in f16.
pub const SINKS: &str = "ESPALIER_KV_SINKS";

/// Removes the user's own switches, which would turn one side of a comparison into the other.
pub fn without_features(run: Run) -> Run {
    [ENABLE, DISABLE, PAGED, PAGED_BEFORE, EDGE_LAYERS, RECENT, SINKS].into_iter().fold(run, Run::without_env)
}

/// As [`without_features`], with this feature enabled, if any.
pub fn with_feature(run: Run, feature: Option<&str>) -> Run {
    let run = without_features(run);
    feature.into_iter().fold(run, |run, feature| run.env(ENABLE, feature))
}
