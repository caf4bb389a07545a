//! A random draft model that reads the hidden states of the model that it drafts for.

use std::io::{self, Write};

use super::architecture::Architecture;
use super::header::Metadata;
use super::metadata::{push_attention_dimensions, push_general, push_tokenizer};
use super::spec::ModelSpec;
use super::tensors::{Tensor, draft};
use super::{check_spec, invalid_input, write_file};

/// The kinds of draft models with hidden states of another model as their input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DraftKind {
    /// EAGLE-3: one layer of attention over an embedding and the state before it (`--spec-type draft-eagle3`).
    Eagle3,
    /// DFlash: attention over a block of masked tokens, drafted at once, whose KV cache is filled from hidden states
    /// (`--spec-type draft-dflash`).
    DFlash,
}

impl DraftKind {
    /// Every kind this module writes.
    pub const ALL: [DraftKind; 2] = [DraftKind::Eagle3, DraftKind::DFlash];

    /// The value of `general.architecture`.
    pub fn name(self) -> &'static str {
        match self {
            DraftKind::Eagle3 => "eagle3",
            DraftKind::DFlash => "dflash",
        }
    }

    fn n_layer(self) -> u64 {
        match self {
            DraftKind::Eagle3 => 1,
            DraftKind::DFlash => 2,
        }
    }
}

/// Specification of a draft model. With random weights hardly a draft is accepted, but what is drafted can be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DraftSpec {
    /// The kind of the draft model.
    pub kind: DraftKind,
    /// The model it drafts for. The draft model has its sizes, heads, vocabulary and type of weights, and uses its
    /// embeddings. Of the architectures with attention, `Gemma3`, `GraniteHybrid`, `Jamba`, `DeepSeek2` and `Qwen2Vl`
    /// have no hidden states to read in llama.cpp.
    pub target: ModelSpec,
    /// Seed of the weights; the same seed gives the same weights.
    pub seed: u64,
}

impl DraftSpec {
    /// Layers of the target whose inputs the draft model reads, in order.
    fn target_layers(&self) -> Vec<u64> {
        let last = self.target.n_layer - 1;
        match self.kind {
            // The loader takes exactly three.
            DraftKind::Eagle3 => vec![1, self.target.n_layer / 2, last],
            DraftKind::DFlash => vec![1, last],
        }
    }
}

/// Writes the draft model of `spec` to `out` as GGUF version 3, for llama.cpp's `--model-draft`.
///
/// # Errors
///
/// `InvalidInput` if the dimensions of the target are inconsistent, or it has no attention or fewer than two layers;
/// otherwise errors of `out`.
pub fn write_random_draft(out: &mut dyn Write, spec: &DraftSpec) -> io::Result<()> {
    check_spec(&spec.target)?;
    if spec.target.n_layer < 2 || !spec.target.architecture.has_attention() {
        return Err(invalid_input("a draft model needs a target with two layers and attention".to_owned()));
    }
    write_file(out, &metadata_of(spec), &tensors_of(spec), spec.seed)
}

fn tensors_of(spec: &DraftSpec) -> Vec<Tensor> {
    let features = spec.target_layers().len() as u64;
    match spec.kind {
        DraftKind::Eagle3 => draft::eagle3_tensors(&spec.target, features),
        DraftKind::DFlash => draft::dflash_tensors(&spec.target, features, spec.kind.n_layer()),
    }
}

fn metadata_of(spec: &DraftSpec) -> Metadata {
    // Plain attention with the heads of the target, whatever those compute there.
    let shape = ModelSpec { architecture: Architecture::Llama, ..spec.target.clone() };
    let mut metadata = Metadata::new(spec.kind.name());
    push_general(&mut metadata, spec.kind.name(), shape.weights);
    metadata.dimension("vocab_size", shape.n_vocab);
    metadata.dimension("context_length", shape.n_context);
    metadata.dimension("embedding_length", shape.n_embd);
    metadata.dimension("block_count", spec.kind.n_layer());
    push_attention_dimensions(&mut metadata, &shape);
    metadata.float(&metadata.own_key("attention.layer_norm_rms_epsilon"), 1e-6);
    let layers: Vec<i32> = spec.target_layers().iter().map(|layer| *layer as i32).collect();
    metadata.integers(&metadata.own_key("target_layers"), &layers);
    match spec.kind {
        DraftKind::Eagle3 => metadata.dimension("target_hidden_size", shape.n_embd),
        DraftKind::DFlash => push_dflash(&mut metadata, &spec.target),
    }
    push_tokenizer(&mut metadata, shape.n_vocab);
    metadata
}

/// Tokens of a block, of which the first is the last one that is known.
const BLOCK: u64 = 8;

/// For a target with sections of rotary positions, only those of time are used. The mask is the last token.
fn push_dflash(metadata: &mut Metadata, target: &ModelSpec) {
    metadata.dimension("block_size", BLOCK);
    if target.architecture.has_rope_sections() {
        let sections = [(target.head_dim / 2) as i32, 0, 0, 0];
        metadata.integers(&metadata.own_key("rope.dimension_sections"), &sections);
    }
    metadata.number("tokenizer.ggml.mask_token_id", target.n_vocab - 1);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::WeightType;

    fn spec(kind: DraftKind, architecture: Architecture) -> DraftSpec {
        DraftSpec { kind, target: ModelSpec::small(architecture, WeightType::Q8_0), seed: 1 }
    }

    fn written(spec: &DraftSpec) -> Vec<u8> {
        let mut bytes = Vec::new();
        write_random_draft(&mut bytes, spec).expect("writing to memory succeeds");
        bytes
    }

    fn listed(spec: &DraftSpec) -> Vec<(String, Vec<u64>)> {
        tensors_of(spec).into_iter().map(|tensor| (tensor.name, tensor.dims)).collect()
    }

    #[test]
    fn the_same_spec_gives_the_same_bytes_and_another_seed_others() {
        for kind in DraftKind::ALL {
            let spec = spec(kind, Architecture::Qwen35);
            assert_eq!(written(&spec), written(&spec), "{kind:?}");
            assert_ne!(written(&spec), written(&DraftSpec { seed: 2, ..spec.clone() }), "{kind:?}");
        }
    }

    #[test]
    fn eagle3_reads_three_layers_and_an_embedding_beside_the_state() {
        let spec = spec(DraftKind::Eagle3, Architecture::Qwen35);
        let expected: [(&str, &[u64]); 13] = [
            ("fc.weight", &[3 * 256, 256]),
            ("output_norm.weight", &[256]),
            ("output.weight", &[256, 320]),
            ("blk.0.attn_norm.weight", &[256]),
            ("blk.0.attn_norm_2.weight", &[256]),
            ("blk.0.attn_q.weight", &[2 * 256, 256]),
            ("blk.0.attn_k.weight", &[2 * 256, 128]),
            ("blk.0.attn_v.weight", &[2 * 256, 128]),
            ("blk.0.attn_output.weight", &[256, 256]),
            ("blk.0.ffn_norm.weight", &[256]),
            ("blk.0.ffn_gate.weight", &[256, 512]),
            ("blk.0.ffn_up.weight", &[256, 512]),
            ("blk.0.ffn_down.weight", &[512, 256]),
        ];
        assert_eq!(listed(&spec), expected.map(|(name, dims)| (name.to_owned(), dims.to_vec())));
        let metadata = metadata_of(&spec);
        assert!(metadata.has(|wanted| {
            wanted.integers("eagle3.target_layers", &[1, 2, 3]);
            wanted.dimension("target_hidden_size", 256);
        }));
        assert!(metadata.has(|wanted| wanted.dimension("block_count", 1)));
        assert!(metadata.has(|wanted| wanted.dimension("rope.dimension_count", 64)));
    }

    #[test]
    fn dflash_has_everything_but_embeddings_and_an_output_matrix() {
        let spec = spec(DraftKind::DFlash, Architecture::Qwen3);
        let outer: [(&str, &[u64]); 3] = [
            ("fc.weight", &[2 * 256, 256]),
            ("enc.output_norm.weight", &[256]),
            ("output_norm.weight", &[256]),
        ];
        let layer: [(&str, &[u64]); 11] = [
            ("attn_norm.weight", &[256]),
            ("attn_q.weight", &[256, 256]),
            ("attn_k.weight", &[256, 128]),
            ("attn_v.weight", &[256, 128]),
            ("attn_output.weight", &[256, 256]),
            ("attn_q_norm.weight", &[64]),
            ("attn_k_norm.weight", &[64]),
            ("ffn_norm.weight", &[256]),
            ("ffn_gate.weight", &[256, 512]),
            ("ffn_up.weight", &[256, 512]),
            ("ffn_down.weight", &[512, 256]),
        ];
        let mut expected: Vec<(String, Vec<u64>)> =
            outer.map(|(name, dims)| (name.to_owned(), dims.to_vec())).into();
        for prefix in ["blk.0.", "blk.1."] {
            expected.extend(layer.map(|(name, dims)| (format!("{prefix}{name}"), dims.to_vec())));
        }
        assert_eq!(listed(&spec), expected);
        let metadata = metadata_of(&spec);
        assert!(metadata.has(|wanted| {
            wanted.integers("dflash.target_layers", &[1, 3]);
            wanted.dimension("block_size", 8);
            wanted.number("tokenizer.ggml.mask_token_id", 319);
        }));
    }

    #[test]
    fn dflash_follows_the_time_of_a_target_with_sections() {
        let sections = |architecture| {
            metadata_of(&spec(DraftKind::DFlash, architecture))
                .has(|wanted| wanted.integers("dflash.rope.dimension_sections", &[32, 0, 0, 0]))
        };
        assert!(sections(Architecture::Qwen35) && !sections(Architecture::Qwen3));
    }

    #[test]
    fn a_target_without_attention_is_refused() {
        let spec = spec(DraftKind::Eagle3, Architecture::Mamba2);
        let error = write_random_draft(&mut Vec::new(), &spec).expect_err("there are no heads");
        assert!(error.to_string().contains("attention"), "{error}");
    }
}
