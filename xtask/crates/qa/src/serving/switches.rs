//! Environment variables that enable and disable our features, and those of our options.

use espalier_core::sys::machine::process::Run;
use espalier_names::variables::{KNOWN, Reader, Variable};

/// Names of the features to enable.
pub const ENABLE: &str = "ESPALIER_ENABLE";

/// Names of the features to disable.
pub const DISABLE: &str = "ESPALIER_DISABLE";

/// A feature with identical output, enabled in comparisons to verify that.
pub const FEATURE: &str = "gdn-flat-output";

/// Computes the states of gated delta nets in their cache.
pub const GDN_RECURRENCE: &str = "gdn-recurrence";

/// Our CPU kernel for q8_0 matrix multiplication.
pub const MUL_MAT: &str = "mul-mat";

/// Our CPU flash-attention kernel, which comes with a paged cache.
pub const ATTENTION: &str = "attention";

/// Enables a server's paged KV cache, as `--kv-paged` does.
pub const PAGED: &str = "LLAMA_ARG_KV_PAGED";

/// Sets the bound of `--kv-gather` for every backend, to check it where no backend gathers cells.
pub const GATHER_CHECK: &str = "ESPALIER_KV_GATHER_CHECK";

/// Number of layers at each end of a model whose V stays at q8_0 in a cache of our types.
pub const EDGE_LAYERS: &str = "ESPALIER_KV_EDGE_LAYERS";

/// Residual window: number of most recent tokens that are read in f16 in a cache of our types.
pub const RECENT: &str = "ESPALIER_KV_RECENT";

/// Attention sinks: number of first tokens of a sequence that are read in f16.
pub const SINKS: &str = "ESPALIER_KV_SINKS";

/// Number of sliding windows that their layers have cells for; 0: cells for all tokens.
pub const WINDOWS: &str = "ESPALIER_KV_WINDOWS";

/// Removes the user's own switches and options, which would turn one side of a comparison into the other. A comparison
/// sets its own ones afterwards.
pub fn without_features(run: Run) -> Run {
    selecting().fold(run, Run::without_env)
}

/// Returns every variable that selects a feature, or sets an option that upstream does not have. `ESPALIER_ISA` is not
/// one of them: a user sets it for all servers under test.
fn selecting() -> impl Iterator<Item = &'static str> {
    let is_of_user = |known: &&Variable| {
        let of_server = [Reader::Server, Reader::ServerOption, Reader::FrontOption, Reader::FormerOption];
        of_server.contains(&known.reader)
    };
    KNOWN.iter().filter(is_of_user).map(|known| known.name)
}

/// As [`without_features`], with this feature enabled, if any, or several, separated by commas.
pub fn with_feature(run: Run, feature: Option<&str>) -> Run {
    let run = without_features(run);
    feature.into_iter().fold(run, |run, feature| run.env(ENABLE, feature))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_under_test_gets_no_option_of_the_user() {
        let removed: Vec<&str> = selecting().collect();
        for name in [ENABLE, DISABLE, PAGED, GATHER_CHECK, EDGE_LAYERS, RECENT, SINKS] {
            assert!(removed.contains(&name), "{name}");
        }
        for known in KNOWN.iter().filter(|known| known.option().is_some()) {
            assert!(removed.contains(&known.name), "{}", known.name);
        }
        assert!(!removed.contains(&"ESPALIER_ISA"));
    }
}
