//! Writes small random models, and LoRA adapters, vision encoders and draft models for them, in GGUF, for the gate and
//! the smoke test.
//!
//! The weights are noise of a sensible magnitude with a fixed seed: a model whose output is meaningless, generated in
//! milliseconds, with the tensor names, shapes and types of the real architecture. The same [`ModelSpec`] always gives
//! the same bytes. Only a few blocks are held in memory, so that a model of many gigabytes only takes time.
//!
//! Quantized types are written directly, as random blocks: no quantizer is needed.
//!
//! Pure: `std` only, and the only effect is writing to the [`Write`] that is passed in. It is a separate crate because
//! it is compiled with optimisation in every profile: tests write models by the hundred.

#![deny(clippy::print_stdout, clippy::print_stderr, reason = "a closed pipe makes them panic: use ui")]

mod adapter;
mod architecture;
mod data;
mod draft;
mod header;
mod metadata;
mod spec;
mod tensors;
mod vision;

use std::io::{self, Write};

pub use adapter::{AdapterSpec, write_random_adapter};
pub use architecture::Architecture;
use data::write_tensor_data;
pub use draft::{DraftKind, DraftSpec, write_random_draft};
use header::{Metadata, encode_header};
use metadata::metadata_of;
pub use spec::{
    DeltaNet, Experts, LatentAttention, ModelSpec, SMALLEST_VOCAB, ShortConv, SlidingWindow, StateSpace,
    WeightType,
};
use tensors::{Tensor, tensors_of};
pub use vision::{Projector, VisionSpec, write_random_vision};

/// Writes the model of `spec` to `out` as GGUF version 3.
///
/// # Errors
///
/// `InvalidInput`, with the name of the tensor or the field, if the dimensions are inconsistent; otherwise errors of
/// `out`.
pub fn write_random_model(out: &mut dyn Write, spec: &ModelSpec) -> io::Result<()> {
    check_spec(spec)?;
    write_file(out, &metadata_of(spec), &tensors_of(spec), spec.seed)
}

fn write_file(out: &mut dyn Write, metadata: &Metadata, tensors: &[Tensor], seed: u64) -> io::Result<()> {
    tensors.iter().try_for_each(check_tensor)?;
    out.write_all(&encode_header(metadata, tensors))?;
    tensors.iter().try_for_each(|tensor| write_tensor_data(out, tensor, seed))?;
    out.flush()
}

fn check_spec(spec: &ModelSpec) -> io::Result<()> {
    let conditions =
        [&attention_conditions(spec)[..], &expert_conditions(spec), &recurrent_conditions(spec)].concat();
    match conditions.iter().find(|(holds, _)| !holds) {
        Some((_, problem)) => Err(invalid_input((*problem).to_owned())),
        None => Ok(()),
    }
}

/// A condition on the dimensions, and the problem if it does not hold.
type Condition = (bool, &'static str);

fn attention_conditions(spec: &ModelSpec) -> [Condition; 6] {
    let may_have_nextn = u64::from(spec.architecture == Architecture::Qwen35);
    [
        (spec.n_vocab >= SMALLEST_VOCAB, "n_vocab has no room for the byte tokens"),
        (
            spec.n_head_kv > 0 && spec.n_head.is_multiple_of(spec.n_head_kv),
            "n_head_kv does not divide n_head",
        ),
        (spec.rope_dims() >= 6 && spec.rope_dims().is_multiple_of(2), "head_dim is too small or odd"),
        (
            !spec.architecture.has_heads_as_wide_as_embeddings()
                || spec.head_dim * spec.n_head == spec.n_embd,
            "head_dim times n_head is not n_embd",
        ),
        (
            spec.sliding_window.tokens > 0 && spec.sliding_window.full_attention_interval > 0,
            "the sliding window or its full_attention_interval is 0",
        ),
        (spec.n_layer_nextn <= may_have_nextn, "this architecture has not as many nextn blocks"),
    ]
}

fn expert_conditions(spec: &ModelSpec) -> [Condition; 2] {
    let Experts { count, used, n_ff, n_ff_shared } = spec.experts;
    [
        (used <= count, "more experts are used than there are"),
        (
            spec.architecture != Architecture::DeepSeek2 || n_ff_shared.is_multiple_of(n_ff),
            "the shared expert is not as large as several others",
        ),
    ]
}

fn recurrent_conditions(spec: &ModelSpec) -> [Condition; 4] {
    let ModelSpec { delta_net, short_conv, state_space, .. } = spec;
    let intervals = [
        delta_net.full_attention_interval,
        short_conv.full_attention_interval,
        state_space.full_attention_interval,
    ];
    let heads = state_space.time_step_rank;
    [
        (
            delta_net.n_key_heads > 0 && delta_net.n_value_heads.is_multiple_of(delta_net.n_key_heads),
            "n_key_heads does not divide n_value_heads",
        ),
        (!intervals.contains(&0), "full_attention_interval is 0"),
        (short_conv.kernel > 1, "a short convolution of one token has no state"),
        (
            spec.inner_size().is_multiple_of(heads) && heads.is_multiple_of(state_space.n_groups),
            "the heads of the state-space layers or their groups do not divide",
        ),
    ]
}

fn check_tensor(tensor: &Tensor) -> io::Result<()> {
    let (block, _) = tensor.weights.block();
    if tensor.elements() > 0 && tensor.dims[0].is_multiple_of(block) {
        return Ok(());
    }
    let (name, dims, kind) = (&tensor.name, &tensor.dims, tensor.weights.name());
    Err(invalid_input(format!("`{name}` {dims:?} cannot be {kind}: rows are blocks of {block}")))
}

fn invalid_input(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

#[cfg(test)]
mod tests {
    use super::header::padding_after;
    use super::*;

    fn written(spec: &ModelSpec) -> Vec<u8> {
        let mut bytes = Vec::new();
        write_random_model(&mut bytes, spec).expect("writing to memory succeeds");
        bytes
    }

    /// A small model of every architecture, and the variants with a window or a nextn block.
    fn small_models(weights: WeightType) -> Vec<ModelSpec> {
        let plain = Architecture::ALL.map(|architecture| ModelSpec::small(architecture, weights));
        let variants = [ModelSpec::small_windowed_hybrid(weights), ModelSpec::small_with_nextn(weights)];
        plain.into_iter().chain(variants).collect()
    }

    #[test]
    fn every_architecture_and_type_has_the_announced_size() {
        for spec in WeightType::ALL.into_iter().flat_map(small_models) {
            let tensors = tensors_of(&spec);
            let data: u64 = tensors.iter().map(|t| t.bytes() + padding_after(t.bytes())).sum();
            let header = encode_header(&metadata_of(&spec), &tensors).len() as u64;
            assert_eq!(written(&spec).len() as u64, header + data, "{spec:?}");
        }
    }

    #[test]
    fn the_same_spec_gives_the_same_bytes_and_another_seed_others() {
        for spec in small_models(WeightType::Q8_0) {
            assert_eq!(written(&spec), written(&spec), "{spec:?}");
            assert_ne!(written(&spec), written(&ModelSpec { seed: 2, ..spec.clone() }), "{spec:?}");
        }
    }

    #[test]
    fn no_tensor_is_written_twice() {
        for spec in small_models(WeightType::Q8_0) {
            let mut names: Vec<String> = tensors_of(&spec).into_iter().map(|tensor| tensor.name).collect();
            names.sort();
            let twice = names.windows(2).find(|pair| pair[0] == pair[1]);
            assert_eq!(twice, None, "{spec:?}");
        }
    }

    #[test]
    fn a_file_starts_as_gguf_3_with_its_tensor_count() {
        let spec = ModelSpec::small(Architecture::Llama, WeightType::F16);
        let bytes = written(&spec);
        assert_eq!(bytes[..8], *b"GGUF\x03\0\0\0");
        assert_eq!(bytes[8..16], (tensors_of(&spec).len() as u64).to_le_bytes());
    }

    #[test]
    fn a_row_that_is_not_a_multiple_of_the_block_is_refused_by_name() {
        let spec = ModelSpec { n_ff: 500, ..ModelSpec::small(Architecture::Llama, WeightType::Q4_0) };
        let error = write_random_model(&mut Vec::new(), &spec).expect_err("500 is not a multiple of 32");
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        assert!(error.to_string().contains("`blk.0.ffn_down.weight` [500, 256] cannot be q4_0"), "{error}");
    }

    #[test]
    fn dimensions_that_do_not_fit_are_refused() {
        let spec = ModelSpec { n_vocab: 100, ..ModelSpec::small(Architecture::Llama, WeightType::F32) };
        let error = write_random_model(&mut Vec::new(), &spec).expect_err("100 tokens are too few");
        assert!(error.to_string().contains("n_vocab"), "{error}");
    }

    #[test]
    fn one_nextn_block_is_written_for_qwen35_alone() {
        let with = |architecture, n_layer_nextn| ModelSpec {
            n_layer_nextn,
            ..ModelSpec::small(architecture, WeightType::F16)
        };
        assert!(write_random_model(&mut Vec::new(), &with(Architecture::Qwen35, 1)).is_ok());
        for spec in [with(Architecture::Qwen35, 2), with(Architecture::Qwen3Next, 1)] {
            let error = write_random_model(&mut Vec::new(), &spec).expect_err("llama.cpp would not load it");
            assert!(error.to_string().contains("nextn"), "{error}");
        }
    }

    fn names_of(spec: &ModelSpec) -> Vec<String> {
        tensors_of(spec)
            .into_iter()
            .map(|tensor| tensor.name)
            .filter(|name| name.starts_with("blk.0."))
            .collect()
    }

    #[test]
    fn each_family_has_its_norms() {
        let has = |architecture, name: &str| {
            names_of(&ModelSpec::small(architecture, WeightType::F16))
                .contains(&format!("blk.0.{name}.weight"))
        };
        assert!(!has(Architecture::Llama, "attn_q_norm"));
        assert!(has(Architecture::Qwen3, "attn_q_norm") && has(Architecture::Qwen3, "ffn_norm"));
        assert!(!has(Architecture::Qwen3, "post_ffw_norm"));
        for norm in ["attn_k_norm", "ffn_norm", "post_attention_norm", "post_ffw_norm"] {
            assert!(has(Architecture::Gemma3, norm), "{norm}");
        }
    }

    #[test]
    fn a_model_with_all_experts_differs_in_their_number_only() {
        let spec = ModelSpec::small(Architecture::Qwen3Next, WeightType::Q8_0);
        let (chosen, all) = (written(&spec), written(&spec.with_all_experts()));
        assert_eq!(chosen.len(), all.len());
        let differences: Vec<(u8, u8)> =
            chosen.into_iter().zip(all).filter(|(chosen, all)| chosen != all).collect();
        assert_eq!(differences, [(2, 4)]);
    }

    #[test]
    fn only_the_gemma_says_that_it_has_a_window() {
        let says = |architecture| {
            let bytes = written(&ModelSpec::small(architecture, WeightType::Q4_0));
            let key = b".attention.sliding_window";
            bytes.windows(key.len()).any(|part| part == key)
        };
        assert!(says(Architecture::Gemma3));
        assert!(!says(Architecture::Qwen3) && !says(Architecture::Llama));
    }

    #[test]
    fn the_models_of_the_benches_have_70_million_weights() {
        for spec in
            [ModelSpec::plain_70_million(), ModelSpec::window_70_million(), ModelSpec::hybrid_70_million()]
        {
            let weights: u64 = tensors_of(&spec).iter().map(Tensor::elements).sum();
            let name = spec.architecture.name();
            assert!((68_000_000..72_000_000).contains(&weights), "{name}: {weights}");
            assert!(
                check_spec(&spec).is_ok() && tensors_of(&spec).iter().all(|one| check_tensor(one).is_ok())
            );
            assert_eq!((spec.n_vocab, spec.n_context), (32_000, 32_768), "{name}");
        }
    }

    #[test]
    fn one_layer_in_four_is_attention() {
        let spec = ModelSpec { n_layer: 8, ..ModelSpec::small(Architecture::Qwen35, WeightType::F16) };
        let attention: Vec<u64> = (0..8).filter(|layer| spec.is_attention_layer(*layer)).collect();
        assert_eq!(attention, [3, 7]);
    }
}
