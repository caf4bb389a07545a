//! The LoRA adapter of the gate and the fuzzer.

use espalier_modelgen::{AdapterSpec, Architecture, ModelSpec, WeightType};

/// Returns the adapter with which the servers are started.
pub fn spec() -> AdapterSpec {
    let model = ModelSpec::small(Architecture::Llama, WeightType::F16);
    AdapterSpec { model, rank: 4, alpha: 4.0, seed: 1 }
}
