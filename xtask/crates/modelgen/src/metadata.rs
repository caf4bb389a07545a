//! The metadata of each architecture: dimensions and tokenizer.

use super::architecture::{Architecture, Mixer};
use super::header::Metadata;
use super::spec::{LatentAttention, ModelSpec, SMALLEST_VOCAB, WeightType};

pub(super) fn metadata_of(spec: &ModelSpec) -> Metadata {
    let mut metadata = Metadata::new(spec.architecture.name());
    push_general(&mut metadata, spec.architecture.name(), spec.weights);
    push_dimensions(&mut metadata, spec);
    if spec.architecture.has_sliding_window() {
        let window = &spec.sliding_window;
        metadata.dimension("attention.sliding_window", window.tokens);
        metadata.dimension("attention.sliding_window_pattern", window.full_attention_interval);
    }
    match spec.architecture.recurrent_mixer() {
        Some(Mixer::DeltaNet) => push_delta_net_dimensions(&mut metadata, spec),
        Some(Mixer::ShortConv) => push_short_conv_dimensions(&mut metadata, spec),
        Some(Mixer::Mamba1) => push_state_space_dimensions(&mut metadata, spec),
        Some(Mixer::Mamba2) => {
            push_state_space_dimensions(&mut metadata, spec);
            metadata.dimension("ssm.group_count", spec.state_space.n_groups);
        }
        Some(Mixer::Attention | Mixer::LatentAttention) | None => {}
    }
    if spec.architecture.has_rope_sections() {
        let sections = rope_sections(spec.rope_dims());
        metadata.integers(&metadata.own_key("rope.dimension_sections"), &sections);
    }
    if spec.architecture.has_experts() {
        push_expert_dimensions(&mut metadata, spec);
    }
    push_tokenizer(&mut metadata, spec.n_vocab);
    metadata
}

pub(super) fn push_general(metadata: &mut Metadata, name: &str, weights: WeightType) {
    metadata.text("general.name", &format!("random {name}"));
    metadata.number("general.file_type", weights.file_type_number().into());
    metadata.number("general.quantization_version", 2);
}

fn push_dimensions(metadata: &mut Metadata, spec: &ModelSpec) {
    metadata.dimension("vocab_size", spec.n_vocab);
    metadata.dimension("context_length", spec.n_context);
    metadata.dimension("embedding_length", spec.n_embd);
    metadata.dimension("block_count", spec.n_layer + spec.n_layer_nextn);
    if spec.n_layer_nextn > 0 {
        metadata.dimension("nextn_predict_layers", spec.n_layer_nextn);
    }
    match spec.architecture.has_attention() {
        true => push_attention_dimensions(metadata, spec),
        false => push_no_attention(metadata),
    }
    metadata.float(&metadata.own_key("attention.layer_norm_rms_epsilon"), 1e-6);
}

/// As llama.cpp's `conversion/mamba.py` writes them.
fn push_no_attention(metadata: &mut Metadata) {
    metadata.dimension("feed_forward_length", 0);
    metadata.dimension("attention.head_count", 0);
}

pub(super) fn push_attention_dimensions(metadata: &mut Metadata, spec: &ModelSpec) {
    metadata.dimension("feed_forward_length", spec.n_ff);
    metadata.dimension("attention.head_count", spec.n_head);
    match spec.architecture.attention_mixer() {
        Mixer::LatentAttention => push_latent_attention(metadata, &spec.latent),
        _ => push_key_and_value_heads(metadata, spec),
    }
    metadata.dimension("rope.dimension_count", spec.rope_dims());
    metadata.float(&metadata.own_key("rope.freq_base"), spec.rope_base.into());
}

fn push_key_and_value_heads(metadata: &mut Metadata, spec: &ModelSpec) {
    if spec.architecture.has_head_counts_by_layer() {
        let heads = |layer| if spec.is_attention_layer(layer) { spec.n_head_kv as i32 } else { 0 };
        let heads: Vec<i32> = (0..spec.n_layer).map(heads).collect();
        metadata.integers(&metadata.own_key("attention.head_count_kv"), &heads);
    } else {
        metadata.dimension("attention.head_count_kv", spec.n_head_kv);
    }
    metadata.dimension("attention.key_length", spec.head_dim);
    metadata.dimension("attention.value_length", spec.head_dim);
}

/// To the KV cache there is one head: its key is the latent vector and the rotated part, its value the latent vector.
/// The sizes of the heads that are computed from it have keys of their own.
fn push_latent_attention(metadata: &mut Metadata, latent: &LatentAttention) {
    metadata.dimension("attention.head_count_kv", 1);
    metadata.dimension("attention.key_length", latent.kv_lora_rank + latent.rope_dim);
    metadata.dimension("attention.value_length", latent.kv_lora_rank);
    metadata.dimension("attention.key_length_mla", latent.nope_dim + latent.rope_dim);
    metadata.dimension("attention.value_length_mla", latent.value_dim);
    metadata.dimension("attention.q_lora_rank", latent.q_lora_rank);
    metadata.dimension("attention.kv_lora_rank", latent.kv_lora_rank);
}

fn push_state_space_dimensions(metadata: &mut Metadata, spec: &ModelSpec) {
    let state_space = &spec.state_space;
    metadata.dimension("ssm.conv_kernel", state_space.conv_kernel);
    metadata.dimension("ssm.inner_size", spec.inner_size());
    metadata.dimension("ssm.state_size", state_space.state_size);
    metadata.dimension("ssm.time_step_rank", state_space.time_step_rank);
}

/// Without a pattern: the loader gives every attention layer the window.
fn push_short_conv_dimensions(metadata: &mut Metadata, spec: &ModelSpec) {
    metadata.dimension("shortconv.l_cache", spec.short_conv.kernel);
    if spec.short_conv.is_windowed {
        metadata.dimension("attention.sliding_window", spec.sliding_window.tokens);
    }
}

fn push_delta_net_dimensions(metadata: &mut Metadata, spec: &ModelSpec) {
    let delta_net = &spec.delta_net;
    metadata.dimension("full_attention_interval", delta_net.full_attention_interval);
    metadata.dimension("ssm.conv_kernel", delta_net.conv_kernel);
    metadata.dimension("ssm.state_size", delta_net.head_dim);
    metadata.dimension("ssm.group_count", delta_net.n_key_heads);
    metadata.dimension("ssm.time_step_rank", delta_net.n_value_heads);
    metadata.dimension("ssm.inner_size", spec.value_dim());
}

/// Time, height and width share the rotated pairs; the fourth section is unused.
fn rope_sections(rope_dims: u64) -> [i32; 4] {
    let pairs = (rope_dims / 2) as i32;
    let third = pairs / 3;
    [pairs - 2 * third, third, third, 0]
}

fn push_expert_dimensions(metadata: &mut Metadata, spec: &ModelSpec) {
    let experts = &spec.experts;
    metadata.dimension("expert_count", experts.count);
    metadata.dimension("expert_used_count", experts.used);
    metadata.dimension("expert_feed_forward_length", experts.n_ff);
    if spec.architecture == Architecture::DeepSeek2 {
        metadata.dimension("leading_dense_block_count", spec.architecture.n_leading_dense());
        metadata.dimension("expert_shared_count", experts.n_ff_shared / experts.n_ff);
    } else if spec.architecture.has_shared_expert() {
        metadata.dimension("expert_shared_feed_forward_length", experts.n_ff_shared);
    }
}

/// A SentencePiece vocabulary of bytes, padded with words that text rarely contains. It lets a server accept text as
/// well as token ids.
pub(super) fn push_tokenizer(metadata: &mut Metadata, n_vocab: u64) {
    let tokens: Vec<String> = (0..n_vocab).map(token_text).collect();
    let kinds: Vec<i32> = (0..n_vocab).map(token_kind).collect();
    metadata.text("tokenizer.ggml.model", "llama");
    metadata.texts("tokenizer.ggml.tokens", &tokens);
    metadata.floats("tokenizer.ggml.scores", &vec![0.0; tokens.len()]);
    metadata.integers("tokenizer.ggml.token_type", &kinds);
    metadata.number("tokenizer.ggml.unknown_token_id", 0);
    metadata.number("tokenizer.ggml.bos_token_id", 1);
    metadata.number("tokenizer.ggml.eos_token_id", 2);
    metadata.boolean("tokenizer.ggml.add_bos_token", false);
    metadata.boolean("tokenizer.ggml.add_space_prefix", false);
}

fn token_text(token: u64) -> String {
    match token {
        0 => "<unk>".to_owned(),
        1 => "<s>".to_owned(),
        2 => "</s>".to_owned(),
        3..SMALLEST_VOCAB => format!("<0x{:02X}>", token - 3),
        _ => format!("~{token}~"),
    }
}

/// `enum llama_token_type`: 1 normal, 2 unknown, 3 control, 6 byte.
fn token_kind(token: u64) -> i32 {
    match token {
        0 => 2,
        1 | 2 => 3,
        3..SMALLEST_VOCAB => 6,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small(architecture: Architecture) -> ModelSpec {
        ModelSpec::small(architecture, WeightType::F16)
    }

    #[test]
    fn gpt_oss_has_a_window_in_every_second_layer_and_no_shared_expert() {
        let metadata = metadata_of(&small(Architecture::GptOss));
        assert!(metadata.has(|wanted| wanted.dimension("attention.sliding_window", 16)));
        assert!(metadata.has(|wanted| wanted.dimension("attention.sliding_window_pattern", 2)));
        assert!(metadata.has(|wanted| wanted.dimension("expert_feed_forward_length", 128)));
        assert!(!metadata.has_key("expert_shared_feed_forward_length"));
    }

    #[test]
    fn the_convolutions_of_lfm2_are_layers_without_heads() {
        let metadata = metadata_of(&small(Architecture::Lfm2));
        assert!(metadata.has(|wanted| {
            wanted.integers("lfm2.attention.head_count_kv", &[0, 2, 0, 2]);
        }));
        assert!(metadata.has(|wanted| wanted.dimension("shortconv.l_cache", 3)));
        assert!(!metadata.has_key("attention.sliding_window"));
    }

    #[test]
    fn a_windowed_lfm2_has_a_window_and_no_pattern() {
        let metadata = metadata_of(&ModelSpec::small_windowed_hybrid(WeightType::F16));
        assert!(metadata.has(|wanted| wanted.dimension("attention.sliding_window", 16)));
        assert!(!metadata.has_key("attention.sliding_window_pattern"));
    }

    #[test]
    fn granite_has_one_attention_layer_in_four_and_twice_the_inner_size() {
        let metadata = metadata_of(&small(Architecture::GraniteHybrid));
        assert!(metadata.has(|wanted| {
            wanted.integers("granitehybrid.attention.head_count_kv", &[0, 0, 0, 2]);
        }));
        assert!(metadata.has(|wanted| wanted.dimension("ssm.inner_size", 512)));
        assert!(metadata.has(|wanted| wanted.dimension("ssm.time_step_rank", 8)));
        assert!(metadata.has(|wanted| wanted.dimension("ssm.group_count", 1)));
    }

    #[test]
    fn jamba_has_a_rank_of_time_steps_and_no_groups() {
        let metadata = metadata_of(&small(Architecture::Jamba));
        assert!(metadata.has(|wanted| wanted.integers("jamba.attention.head_count_kv", &[0, 0, 0, 2])));
        assert!(metadata.has(|wanted| wanted.dimension("ssm.state_size", 16)));
        assert!(metadata.has(|wanted| wanted.dimension("ssm.time_step_rank", 32)));
        assert!(!metadata.has_key("ssm.group_count"));
    }

    #[test]
    fn mamba_2_has_no_heads_of_attention() {
        let metadata = metadata_of(&small(Architecture::Mamba2));
        assert!(metadata.has(|wanted| wanted.dimension("attention.head_count", 0)));
        assert!(metadata.has(|wanted| wanted.dimension("ssm.group_count", 1)));
        assert!(!metadata.has_key("attention.head_count_kv") && !metadata.has_key("rope.freq_base"));
    }

    #[test]
    fn a_nextn_block_counts_as_a_block() {
        let metadata = metadata_of(&ModelSpec::small_with_nextn(WeightType::F16));
        assert!(metadata.has(|wanted| {
            wanted.dimension("block_count", 5);
            wanted.dimension("nextn_predict_layers", 1);
        }));
        assert!(!metadata_of(&small(Architecture::Qwen35)).has_key("nextn_predict_layers"));
    }

    #[test]
    fn the_cache_of_deepseek2_has_one_head_and_its_attention_four() {
        let metadata = metadata_of(&small(Architecture::DeepSeek2));
        assert!(metadata.has(|wanted| {
            wanted.dimension("attention.head_count", 4);
            wanted.dimension("attention.head_count_kv", 1);
            wanted.dimension("attention.key_length", 192);
            wanted.dimension("attention.value_length", 128);
            wanted.dimension("attention.key_length_mla", 128);
            wanted.dimension("attention.value_length_mla", 64);
        }));
        assert!(metadata.has(|wanted| wanted.dimension("rope.dimension_count", 64)));
        assert!(metadata.has(|wanted| {
            wanted.dimension("leading_dense_block_count", 1);
            wanted.dimension("expert_shared_count", 1);
        }));
    }

    #[test]
    fn the_sections_of_qwen2vl_share_the_pairs_of_a_head() {
        let metadata = metadata_of(&small(Architecture::Qwen2Vl));
        let sections = [12, 10, 10, 0];
        assert_eq!(sections.iter().sum::<i32>(), 64 / 2);
        assert!(metadata.has(|wanted| wanted.integers("qwen2vl.rope.dimension_sections", &sections)));
    }
}
