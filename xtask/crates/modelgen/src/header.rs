//! The header of a GGUF file: magic, metadata, tensor table.

use super::spec::{Experts, ModelSpec, SMALLEST_VOCAB};
use super::tensors::Tensor;

const ALIGNMENT: u64 = 32;

pub(super) fn padding_after(bytes: u64) -> u64 {
    bytes.next_multiple_of(ALIGNMENT) - bytes
}

pub(super) fn encode_header(metadata: &Metadata, tensors: &[Tensor]) -> Vec<u8> {
    let mut header = b"GGUF".to_vec();
    header.extend(3u32.to_le_bytes());
    header.extend((tensors.len() as u64).to_le_bytes());
    header.extend(metadata.count.to_le_bytes());
    header.extend(&metadata.bytes);
    encode_tensor_table(&mut header, tensors);
    let padding = padding_after(header.len() as u64);
    header.resize(header.len() + padding as usize, 0);
    header
}

fn encode_tensor_table(header: &mut Vec<u8>, tensors: &[Tensor]) {
    let mut offset = 0u64;
    for tensor in tensors {
        encode_string(header, &tensor.name);
        header.extend((tensor.dims.len() as u32).to_le_bytes());
        tensor.dims.iter().for_each(|dim| header.extend(dim.to_le_bytes()));
        header.extend(tensor.weights.ggml_number().to_le_bytes());
        header.extend(offset.to_le_bytes());
        offset += tensor.bytes() + padding_after(tensor.bytes());
    }
}

fn encode_string(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend((text.len() as u64).to_le_bytes());
    bytes.extend(text.as_bytes());
}

pub(super) fn metadata_of(spec: &ModelSpec) -> Metadata {
    let mut metadata = Metadata::new(spec.architecture.name());
    metadata.text("general.name", &format!("random {}", spec.architecture.name()));
    metadata.number("general.file_type", spec.weights.file_type_number().into());
    metadata.number("general.quantization_version", 2);
    push_dimensions(&mut metadata, spec);
    if spec.architecture.has_sliding_window() {
        let window = &spec.sliding_window;
        metadata.dimension("attention.sliding_window", window.tokens);
        metadata.dimension("attention.sliding_window_pattern", window.full_attention_interval);
    }
    if spec.architecture.has_delta_net() {
        push_delta_net_dimensions(&mut metadata, spec);
    }
    if spec.architecture.has_experts() {
        push_expert_dimensions(&mut metadata, &spec.experts);
    }
    push_tokenizer(&mut metadata, spec.n_vocab);
    metadata
}

fn push_dimensions(metadata: &mut Metadata, spec: &ModelSpec) {
    metadata.dimension("vocab_size", spec.n_vocab);
    metadata.dimension("context_length", spec.n_context);
    metadata.dimension("embedding_length", spec.n_embd);
    metadata.dimension("block_count", spec.n_layer);
    metadata.dimension("feed_forward_length", spec.n_ff);
    metadata.dimension("attention.head_count", spec.n_head);
    metadata.dimension("attention.head_count_kv", spec.n_head_kv);
    metadata.dimension("attention.key_length", spec.head_dim);
    metadata.dimension("attention.value_length", spec.head_dim);
    metadata.dimension("rope.dimension_count", spec.rope_dims());
    metadata.float(&metadata.own_key("rope.freq_base"), spec.rope_base.into());
    metadata.float(&metadata.own_key("attention.layer_norm_rms_epsilon"), 1e-6);
}

fn push_delta_net_dimensions(metadata: &mut Metadata, spec: &ModelSpec) {
    let delta_net = &spec.delta_net;
    metadata.dimension("full_attention_interval", delta_net.full_attention_interval);
    metadata.dimension("ssm.conv_kernel", delta_net.conv_kernel);
    metadata.dimension("ssm.state_size", delta_net.head_dim);
    metadata.dimension("ssm.group_count", delta_net.n_key_heads);
    metadata.dimension("ssm.time_step_rank", delta_net.n_value_heads);
    metadata.dimension("ssm.inner_size", spec.value_dim());
    if spec.architecture.has_rope_sections() {
        let sections = rope_sections(spec.rope_dims());
        metadata.integers(&metadata.own_key("rope.dimension_sections"), &sections);
    }
}

/// Time, height and width share the rotated pairs; the fourth section is unused.
fn rope_sections(rope_dims: u64) -> [i32; 4] {
    let pairs = (rope_dims / 2) as i32;
    let third = pairs / 3;
    [pairs - 2 * third, third, third, 0]
}

fn push_expert_dimensions(metadata: &mut Metadata, experts: &Experts) {
    metadata.dimension("expert_count", experts.count);
    metadata.dimension("expert_used_count", experts.used);
    metadata.dimension("expert_feed_forward_length", experts.n_ff);
    metadata.dimension("expert_shared_feed_forward_length", experts.n_ff_shared);
}

/// A SentencePiece vocabulary of bytes, padded with words that text rarely contains. It lets a server accept text as
/// well as token ids.
fn push_tokenizer(metadata: &mut Metadata, n_vocab: u64) {
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

/// Encoded key-value pairs, and their count.
#[derive(Default)]
pub(super) struct Metadata {
    architecture: &'static str,
    count: u64,
    bytes: Vec<u8>,
}

impl Metadata {
    /// Metadata that begins with the architecture.
    pub(super) fn new(architecture: &'static str) -> Metadata {
        let mut metadata = Metadata { architecture, ..Metadata::default() };
        metadata.text("general.architecture", architecture);
        metadata
    }

    /// The full name of a key that belongs to the architecture.
    pub(super) fn own_key(&self, key: &str) -> String {
        format!("{}.{key}", self.architecture)
    }

    pub(super) fn dimension(&mut self, key: &str, value: u64) {
        let key = self.own_key(key);
        self.number(&key, value);
    }

    fn number(&mut self, key: &str, value: u64) {
        self.pair(key, 4, &(value as u32).to_le_bytes());
    }

    pub(super) fn float(&mut self, key: &str, value: f32) {
        self.pair(key, 6, &value.to_le_bytes());
    }

    pub(super) fn boolean(&mut self, key: &str, value: bool) {
        self.pair(key, 7, &[value.into()]);
    }

    pub(super) fn text(&mut self, key: &str, value: &str) {
        let mut bytes = Vec::new();
        encode_string(&mut bytes, value);
        self.pair(key, 8, &bytes);
    }

    fn integers(&mut self, key: &str, values: &[i32]) {
        let items: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.array(key, 5, values.len(), &items);
    }

    pub(super) fn floats(&mut self, key: &str, values: &[f32]) {
        let items: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.array(key, 6, values.len(), &items);
    }

    fn texts(&mut self, key: &str, values: &[String]) {
        let mut items = Vec::new();
        values.iter().for_each(|value| encode_string(&mut items, value));
        self.array(key, 8, values.len(), &items);
    }

    fn array(&mut self, key: &str, item_type: u32, count: usize, items: &[u8]) {
        let head = [&item_type.to_le_bytes()[..], &(count as u64).to_le_bytes()[..]].concat();
        self.pair(key, 9, &[&head[..], items].concat());
    }

    fn pair(&mut self, key: &str, value_type: u32, value: &[u8]) {
        self.count += 1;
        encode_string(&mut self.bytes, key);
        self.bytes.extend(value_type.to_le_bytes());
        self.bytes.extend(value);
    }
}
