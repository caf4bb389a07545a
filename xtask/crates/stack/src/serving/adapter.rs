//! The LoRA adapter of the gate and the fuzzer.

use crate::modelgen::{AdapterSpec, Architecture, ModelSpec, WeightType};

/// The adapter that the servers are to be started with.
pub fn spec() -> AdapterSpec {
    let model = ModelSpec::small(Architecture::Llama, WeightType::F16);
    AdapterSpec { model, rank: 4, alpha: 4.0, seed: 1 }
}
