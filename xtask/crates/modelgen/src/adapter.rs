//! A random LoRA adapter for a random model: noise on top of noise, so that the output differs.

use std::io::{self, Write};

use super::header::Metadata;
use super::spec::{ModelSpec, WeightType};
use super::tensors::{Tensor, tensors_of};
use super::{check_spec, invalid_input, write_file};

/// Specification of an adapter.
#[derive(Clone, Debug, PartialEq)]
pub struct AdapterSpec {
    /// The model that it is for.
    pub model: ModelSpec,
    /// Inner dimension of each pair of matrices, from 1.
    pub rank: u64,
    /// llama.cpp adds `scale * alpha / rank` times the product of a pair to a matrix.
    pub alpha: f32,
    /// Seed of the weights; the same seed gives the same weights.
    pub seed: u64,
}

/// Writes the adapter of `spec` to `out` as GGUF version 3: a pair of f32 matrices for each matrix of the model's
/// attention.
///
/// # Errors
///
/// `InvalidInput` if the dimensions are inconsistent or the rank is 0; otherwise errors of `out`.
pub fn write_random_adapter(out: &mut dyn Write, spec: &AdapterSpec) -> io::Result<()> {
    check_spec(&spec.model)?;
    if spec.rank == 0 {
        return Err(invalid_input("the rank of an adapter is 0".to_owned()));
    }
    let tensors = pairs_of(spec);
    write_file(out, &metadata_of(spec), &tensors, spec.seed)
}

fn metadata_of(spec: &AdapterSpec) -> Metadata {
    let mut metadata = Metadata::new(spec.model.architecture.name());
    metadata.text("general.type", "adapter");
    metadata.text("adapter.type", "lora");
    metadata.float("adapter.lora.alpha", spec.alpha);
    metadata
}

fn pairs_of(spec: &AdapterSpec) -> Vec<Tensor> {
    let is_adapted = |tensor: &Tensor| tensor.name.contains(".attn_") && tensor.dims.len() == 2;
    let pair = |tensor: Tensor| {
        let (inputs, outputs) = (tensor.dims[0], tensor.dims[1]);
        [
            half(&tensor.name, "lora_a", [inputs, spec.rank]),
            half(&tensor.name, "lora_b", [spec.rank, outputs]),
        ]
    };
    tensors_of(&spec.model).into_iter().filter(is_adapted).flat_map(pair).collect()
}

/// Noise scaled to keep the magnitude of its input, like the model's own matrices.
fn half(name: &str, suffix: &str, dims: [u64; 2]) -> Tensor {
    Tensor {
        name: format!("{name}.{suffix}"),
        dims: dims.to_vec(),
        weights: WeightType::F32,
        center: 0.0,
        spread: (3.0 / dims[0] as f32).sqrt(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::architecture::Architecture;

    fn spec() -> AdapterSpec {
        let model = ModelSpec::small(Architecture::Llama, WeightType::F16);
        AdapterSpec { model, rank: 4, alpha: 4.0, seed: 1 }
    }

    #[test]
    fn each_matrix_of_attention_has_a_pair_that_fits() {
        let pairs = pairs_of(&spec());
        assert_eq!(pairs.len(), 4 * 4 * 2);
        let of =
            |name: &str| pairs.iter().find(|tensor| tensor.name == name).map(|tensor| tensor.dims.clone());
        assert_eq!(of("blk.0.attn_k.weight.lora_a"), Some(vec![256, 4]));
        assert_eq!(of("blk.0.attn_k.weight.lora_b"), Some(vec![4, 128]));
        assert_eq!(of("blk.0.attn_norm.weight.lora_a"), None);
    }

    #[test]
    fn the_file_says_that_it_is_an_adapter() {
        let mut bytes = Vec::new();
        write_random_adapter(&mut bytes, &spec()).unwrap();
        let has = |text: &str| bytes.windows(text.len()).any(|part| part == text.as_bytes());
        assert!(bytes.starts_with(b"GGUF\x03\0\0\0") && has("adapter") && has("adapter.lora.alpha"));
        assert!(!has("tokenizer.ggml.model"));
    }

    #[test]
    fn a_rank_of_0_is_refused() {
        let error = write_random_adapter(&mut Vec::new(), &AdapterSpec { rank: 0, ..spec() }).unwrap_err();
        assert!(error.to_string().contains("rank"), "{error}");
    }
}
