//! Writes small random models in GGUF, for the gate and the smoke test.
//!
//! The weights are noise of a sensible size with a fixed seed: a model that says nothing, in
//! milliseconds, with the tensor names, shapes and types of the real architecture. The same
//! [`ModelSpec`] always gives the same bytes. Nothing is held in memory but one row's block, so
//! a model of many gigabytes is only a matter of time.
//!
//! Quantized types are written directly, as random blocks: no quantizer is needed.
//!
//! Pure: `std` only, and the one effect is the [`Write`] that is passed in. Pass a buffered one.

use std::io::{self, Write};

/// A model architecture that llama.cpp loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    /// Plain attention and a dense feed-forward.
    Llama,
    /// Gated delta net and attention layers, dense feed-forward.
    Qwen35,
    /// Gated delta net and attention layers, mixture of experts.
    Qwen35Moe,
    /// As `Qwen35Moe`, with beta and alpha in one tensor and ordinary rotary positions.
    Qwen3Next,
}

impl Architecture {
    /// Every architecture this module writes.
    pub const ALL: [Architecture; 4] =
        [Architecture::Llama, Architecture::Qwen35, Architecture::Qwen35Moe, Architecture::Qwen3Next];

    /// The value of `general.architecture`.
    pub fn name(self) -> &'static str {
        match self {
            Architecture::Llama => "llama",
            Architecture::Qwen35 => "qwen35",
            Architecture::Qwen35Moe => "qwen35moe",
            Architecture::Qwen3Next => "qwen3next",
        }
    }

    fn has_delta_net(self) -> bool {
        self != Architecture::Llama
    }

    fn has_experts(self) -> bool {
        matches!(self, Architecture::Qwen35Moe | Architecture::Qwen3Next)
    }

    fn has_rope_sections(self) -> bool {
        matches!(self, Architecture::Qwen35 | Architecture::Qwen35Moe)
    }
}

/// The type of a model's matrices. Vectors, convolutions and routers are always f32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeightType {
    /// 32-bit floats.
    F32,
    /// 16-bit floats.
    F16,
    /// Blocks of 32 signed bytes with an f16 scale.
    Q8_0,
    /// Blocks of 32 nibbles with an f16 scale.
    Q4_0,
}

impl WeightType {
    /// Every weight type this module writes.
    pub const ALL: [WeightType; 4] = [WeightType::F32, WeightType::F16, WeightType::Q8_0, WeightType::Q4_0];

    /// The usual lower-case name, as in file names.
    pub fn name(self) -> &'static str {
        match self {
            WeightType::F32 => "f32",
            WeightType::F16 => "f16",
            WeightType::Q8_0 => "q8_0",
            WeightType::Q4_0 => "q4_0",
        }
    }

    /// `enum ggml_type`.
    fn ggml_number(self) -> u32 {
        match self {
            WeightType::F32 => 0,
            WeightType::F16 => 1,
            WeightType::Q4_0 => 2,
            WeightType::Q8_0 => 8,
        }
    }

    /// `enum llama_ftype`, the value of `general.file_type`.
    fn file_type_number(self) -> u32 {
        match self {
            WeightType::F32 => 0,
            WeightType::F16 => 1,
            WeightType::Q4_0 => 2,
            WeightType::Q8_0 => 7,
        }
    }

    /// Weights in a block, and bytes of a block.
    fn block(self) -> (u64, u64) {
        match self {
            WeightType::F32 => (1, 4),
            WeightType::F16 => (1, 2),
            WeightType::Q8_0 => (32, 34),
            WeightType::Q4_0 => (32, 18),
        }
    }
}

/// Dimensions of the gated delta net layers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeltaNet {
    /// Size of a key and of a value head.
    pub head_dim: u64,
    /// Number of key heads. Divides `n_value_heads`.
    pub n_key_heads: u64,
    /// Number of value heads; the output projection has `head_dim * n_value_heads` inputs.
    pub n_value_heads: u64,
    /// Width of the causal convolution, in tokens.
    pub conv_kernel: u64,
    /// Every n-th layer is an attention layer, the others are gated delta nets.
    pub full_attention_interval: u64,
}

/// Dimensions of the mixture of experts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Experts {
    /// Number of experts.
    pub count: u64,
    /// Experts used for each token.
    pub used: u64,
    /// Hidden size of one expert.
    pub n_ff: u64,
    /// Hidden size of the shared expert.
    pub n_ff_shared: u64,
}

/// What to write. [`ModelSpec::small`] gives a valid one to start from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelSpec {
    /// The architecture; decides which of the dimensions below count.
    pub architecture: Architecture,
    /// The type of the matrices.
    pub weights: WeightType,
    /// Same seed, same weights.
    pub seed: u64,
    /// Number of layers.
    pub n_layer: u64,
    /// Size of the residual stream.
    pub n_embd: u64,
    /// Hidden size of the dense feed-forward.
    pub n_ff: u64,
    /// Number of tokens, at least [`SMALLEST_VOCAB`].
    pub n_vocab: u64,
    /// Trained context length, in tokens. Costs nothing.
    pub n_context: u64,
    /// Number of attention heads.
    pub n_head: u64,
    /// Number of key and value heads of attention. Divides `n_head`.
    pub n_head_kv: u64,
    /// Size of an attention head.
    pub head_dim: u64,
    /// Not used by `Llama`.
    pub delta_net: DeltaNet,
    /// Used by `Qwen35Moe` and `Qwen3Next`.
    pub experts: Experts,
}

/// Three special tokens and one for each byte.
pub const SMALLEST_VOCAB: u64 = 3 + 256;

impl ModelSpec {
    /// A model of a few megabytes, four layers deep, that every supported type can hold.
    pub fn small(architecture: Architecture, weights: WeightType) -> ModelSpec {
        ModelSpec {
            architecture,
            weights,
            seed: 1,
            n_layer: 4,
            n_embd: 256,
            n_ff: 512,
            n_vocab: 320,
            n_context: 4096,
            n_head: 4,
            n_head_kv: 2,
            head_dim: 64,
            delta_net: DeltaNet {
                head_dim: 64,
                n_key_heads: 4,
                n_value_heads: 8,
                conv_kernel: 4,
                full_attention_interval: 4,
            },
            experts: Experts { count: 4, used: 2, n_ff: 128, n_ff_shared: 128 },
        }
    }

    fn is_attention_layer(&self, layer: u64) -> bool {
        !self.architecture.has_delta_net()
            || (layer + 1).is_multiple_of(self.delta_net.full_attention_interval)
    }

    /// Rotated dimensions of a head: llama rotates all, the Qwen models a quarter.
    fn rope_dims(&self) -> u64 {
        if self.architecture.has_delta_net() { self.head_dim / 4 } else { self.head_dim }
    }

    fn value_dim(&self) -> u64 {
        self.delta_net.head_dim * self.delta_net.n_value_heads
    }

    fn key_dim(&self) -> u64 {
        self.delta_net.head_dim * self.delta_net.n_key_heads
    }
}

/// Writes the model of `spec` to `out` as GGUF version 3.
///
/// # Errors
///
/// `InvalidInput` if the dimensions do not fit together, by the name of the tensor or the field;
/// otherwise what `out` answers.
pub fn write_random_model(out: &mut impl Write, spec: &ModelSpec) -> io::Result<()> {
    check_spec(spec)?;
    let tensors = tensors_of(spec);
    tensors.iter().try_for_each(check_tensor)?;
    let header = encode_header(spec, &tensors);
    out.write_all(&header)?;
    tensors.iter().try_for_each(|tensor| write_tensor_data(out, tensor, spec.seed))?;
    out.flush()
}

fn check_spec(spec: &ModelSpec) -> io::Result<()> {
    let delta_net = &spec.delta_net;
    let conditions = [
        (spec.n_vocab >= SMALLEST_VOCAB, "n_vocab has no room for the byte tokens"),
        (
            spec.n_head_kv > 0 && spec.n_head.is_multiple_of(spec.n_head_kv),
            "n_head_kv does not divide n_head",
        ),
        (spec.rope_dims() >= 6 && spec.rope_dims().is_multiple_of(2), "head_dim is too small or odd"),
        (
            delta_net.n_key_heads > 0 && delta_net.n_value_heads.is_multiple_of(delta_net.n_key_heads),
            "n_key_heads does not divide n_value_heads",
        ),
        (delta_net.full_attention_interval > 0, "full_attention_interval is 0"),
        (spec.experts.used <= spec.experts.count, "more experts are used than there are"),
    ];
    match conditions.iter().find(|(holds, _)| !holds) {
        Some((_, problem)) => Err(invalid_input((*problem).to_owned())),
        None => Ok(()),
    }
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

// ---- the tensors of a model

struct Tensor {
    name: String,
    /// Innermost first, as in the file.
    dims: Vec<u64>,
    weights: WeightType,
    center: f32,
    /// Values are uniform within `center +- spread`; quantized ones around 0.
    spread: f32,
}

impl Tensor {
    fn elements(&self) -> u64 {
        self.dims.iter().product()
    }

    fn bytes(&self) -> u64 {
        let (block, block_bytes) = self.weights.block();
        self.elements() / block * block_bytes
    }
}

/// Collects the tensors of a model, with the names of a layer completed.
struct TensorList<'a> {
    spec: &'a ModelSpec,
    prefix: String,
    tensors: Vec<Tensor>,
}

impl TensorList<'_> {
    /// A matrix whose first dimension is summed over: noise that keeps the size of its input.
    fn matrix(&mut self, name: &str, dims: &[u64]) {
        let spread = (3.0 / dims[0] as f32).sqrt();
        self.push(name, dims, self.spec.weights, 0.0, spread);
    }

    /// Values that stay f32 in every model.
    fn floats(&mut self, name: &str, dims: &[u64], center: f32, spread: f32) {
        self.push(name, dims, WeightType::F32, center, spread);
    }

    fn norm(&mut self, name: &str, size: u64) {
        self.floats(name, &[size], 1.0, 0.1);
    }

    fn push(&mut self, name: &str, dims: &[u64], weights: WeightType, center: f32, spread: f32) {
        let name = format!("{}{name}", self.prefix);
        self.tensors.push(Tensor { name, dims: dims.to_vec(), weights, center, spread });
    }
}

fn tensors_of(spec: &ModelSpec) -> Vec<Tensor> {
    let mut list = TensorList { spec, prefix: String::new(), tensors: Vec::new() };
    list.matrix("token_embd.weight", &[spec.n_embd, spec.n_vocab]);
    list.norm("output_norm.weight", spec.n_embd);
    list.matrix("output.weight", &[spec.n_embd, spec.n_vocab]);
    for layer in 0..spec.n_layer {
        list.prefix = format!("blk.{layer}.");
        push_layer(&mut list, spec.is_attention_layer(layer));
    }
    list.tensors
}

fn push_layer(list: &mut TensorList, is_attention: bool) {
    let spec = list.spec;
    list.norm("attn_norm.weight", spec.n_embd);
    match is_attention {
        true => push_attention(list),
        false => push_delta_net(list),
    }
    // The same norm under the name of its family.
    let delta_net_family = spec.architecture.has_delta_net();
    let ffn_norm = if delta_net_family { "post_attention_norm.weight" } else { "ffn_norm.weight" };
    list.norm(ffn_norm, spec.n_embd);
    match spec.architecture.has_experts() {
        true => push_experts(list),
        false => push_dense_feed_forward(list),
    }
}

fn push_attention(list: &mut TensorList) {
    let spec = list.spec;
    let heads = spec.head_dim * spec.n_head;
    let kv_heads = spec.head_dim * spec.n_head_kv;
    // The Qwen models have the gate of a head beside its query.
    let queries = if spec.architecture.has_delta_net() { 2 * heads } else { heads };
    list.matrix("attn_q.weight", &[spec.n_embd, queries]);
    list.matrix("attn_k.weight", &[spec.n_embd, kv_heads]);
    list.matrix("attn_v.weight", &[spec.n_embd, kv_heads]);
    list.matrix("attn_output.weight", &[heads, spec.n_embd]);
    if spec.architecture.has_delta_net() {
        list.norm("attn_q_norm.weight", spec.head_dim);
        list.norm("attn_k_norm.weight", spec.head_dim);
    }
}

fn push_delta_net(list: &mut TensorList) {
    let spec = list.spec;
    let delta_net = &spec.delta_net;
    let conv_dim = 2 * spec.key_dim() + spec.value_dim();
    list.matrix("attn_qkv.weight", &[spec.n_embd, conv_dim]);
    list.matrix("attn_gate.weight", &[spec.n_embd, spec.value_dim()]);
    list.floats("ssm_conv1d.weight", &[delta_net.conv_kernel, conv_dim], 0.0, 0.8);
    list.floats("ssm_dt.bias", &[delta_net.n_value_heads], 0.0, 1.0);
    // The decay is exp(a * softplus(..)): negative, and small enough for some memory.
    list.floats("ssm_a", &[delta_net.n_value_heads], -0.2, 0.15);
    push_beta_and_alpha(list);
    list.norm("ssm_norm.weight", delta_net.head_dim);
    list.matrix("ssm_out.weight", &[spec.value_dim(), spec.n_embd]);
}

fn push_beta_and_alpha(list: &mut TensorList) {
    let (n_embd, n_heads) = (list.spec.n_embd, list.spec.delta_net.n_value_heads);
    if list.spec.architecture == Architecture::Qwen3Next {
        list.matrix("ssm_ba.weight", &[n_embd, 2 * n_heads]);
    } else {
        list.matrix("ssm_beta.weight", &[n_embd, n_heads]);
        list.matrix("ssm_alpha.weight", &[n_embd, n_heads]);
    }
}

fn push_dense_feed_forward(list: &mut TensorList) {
    let (n_embd, n_ff) = (list.spec.n_embd, list.spec.n_ff);
    list.matrix("ffn_gate.weight", &[n_embd, n_ff]);
    list.matrix("ffn_up.weight", &[n_embd, n_ff]);
    list.matrix("ffn_down.weight", &[n_ff, n_embd]);
}

fn push_experts(list: &mut TensorList) {
    let n_embd = list.spec.n_embd;
    let Experts { count, n_ff, n_ff_shared, .. } = list.spec.experts;
    list.floats("ffn_gate_inp.weight", &[n_embd, count], 0.0, (3.0 / n_embd as f32).sqrt());
    list.matrix("ffn_gate_exps.weight", &[n_embd, n_ff, count]);
    list.matrix("ffn_up_exps.weight", &[n_embd, n_ff, count]);
    list.matrix("ffn_down_exps.weight", &[n_ff, n_embd, count]);
    list.floats("ffn_gate_inp_shexp.weight", &[n_embd], 0.0, (3.0 / n_embd as f32).sqrt());
    list.matrix("ffn_gate_shexp.weight", &[n_embd, n_ff_shared]);
    list.matrix("ffn_up_shexp.weight", &[n_embd, n_ff_shared]);
    list.matrix("ffn_down_shexp.weight", &[n_ff_shared, n_embd]);
}

// ---- the header: magic, metadata, tensor table

const ALIGNMENT: u64 = 32;

fn padding_after(bytes: u64) -> u64 {
    bytes.next_multiple_of(ALIGNMENT) - bytes
}

fn encode_header(spec: &ModelSpec, tensors: &[Tensor]) -> Vec<u8> {
    let metadata = encode_metadata(spec);
    let mut header = b"GGUF".to_vec();
    header.extend(3u32.to_le_bytes());
    header.extend((tensors.len() as u64).to_le_bytes());
    header.extend(metadata.count.to_le_bytes());
    header.extend(metadata.bytes);
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

fn encode_metadata(spec: &ModelSpec) -> Metadata {
    let mut metadata = Metadata { architecture: spec.architecture.name(), ..Metadata::default() };
    metadata.text("general.architecture", spec.architecture.name());
    metadata.text("general.name", &format!("random {}", spec.architecture.name()));
    metadata.number("general.file_type", spec.weights.file_type_number().into());
    metadata.number("general.quantization_version", 2);
    push_dimensions(&mut metadata, spec);
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
    metadata.float(&metadata.own_key("rope.freq_base"), 10000.0);
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

/// Time, height and width share the rotated pairs; the fourth is not used.
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

/// A SentencePiece vocabulary of bytes, filled up with words that text rarely contains. With it
/// a server takes text as well as token numbers.
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

/// Encoded key-value pairs, and how many they are.
#[derive(Default)]
struct Metadata {
    architecture: &'static str,
    count: u64,
    bytes: Vec<u8>,
}

impl Metadata {
    /// The full name of a key that belongs to the architecture.
    fn own_key(&self, key: &str) -> String {
        format!("{}.{key}", self.architecture)
    }

    fn dimension(&mut self, key: &str, value: u64) {
        let key = self.own_key(key);
        self.number(&key, value);
    }

    fn number(&mut self, key: &str, value: u64) {
        self.pair(key, 4, &(value as u32).to_le_bytes());
    }

    fn float(&mut self, key: &str, value: f32) {
        self.pair(key, 6, &value.to_le_bytes());
    }

    fn boolean(&mut self, key: &str, value: bool) {
        self.pair(key, 7, &[value.into()]);
    }

    fn text(&mut self, key: &str, value: &str) {
        let mut bytes = Vec::new();
        encode_string(&mut bytes, value);
        self.pair(key, 8, &bytes);
    }

    fn integers(&mut self, key: &str, values: &[i32]) {
        let items: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.array(key, 5, values.len(), &items);
    }

    fn floats(&mut self, key: &str, values: &[f32]) {
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

// ---- the data

fn write_tensor_data(out: &mut impl Write, tensor: &Tensor, seed: u64) -> io::Result<()> {
    let mut noise = Noise::new(seed, &tensor.name);
    let (block, block_bytes) = tensor.weights.block();
    let mut bytes = Vec::with_capacity(block_bytes as usize);
    for _ in 0..tensor.elements() / block {
        bytes.clear();
        encode_block(&mut bytes, tensor, &mut noise);
        out.write_all(&bytes)?;
    }
    out.write_all(&vec![0; padding_after(tensor.bytes()) as usize])
}

fn encode_block(bytes: &mut Vec<u8>, tensor: &Tensor, noise: &mut Noise) {
    match tensor.weights {
        WeightType::F32 => bytes.extend(value_of(tensor, noise).to_le_bytes()),
        WeightType::F16 => bytes.extend(f16_bits(value_of(tensor, noise)).to_le_bytes()),
        WeightType::Q8_0 => encode_quantized::<32>(bytes, tensor.spread / 127.0, noise, centered_byte),
        WeightType::Q4_0 => encode_quantized::<16>(bytes, tensor.spread / 7.0, noise, centered_nibbles),
    }
}

fn value_of(tensor: &Tensor, noise: &mut Noise) -> f32 {
    tensor.center + tensor.spread * (2.0 * noise.unit() - 1.0)
}

/// A scale near `scale`, then random quants.
fn encode_quantized<const QUANT_BYTES: usize>(
    bytes: &mut Vec<u8>,
    scale: f32,
    noise: &mut Noise,
    centered: fn(u8) -> u8,
) {
    let scale = scale * (0.75 + 0.5 * noise.unit());
    bytes.extend(f16_bits(scale).to_le_bytes());
    for _ in 0..QUANT_BYTES / 8 {
        bytes.extend(noise.next().to_le_bytes().map(centered));
    }
}

/// A signed byte, with 0 for -128: that one has no counterpart, and a mean that is not 0 adds up
/// over a row until it drowns the noise.
fn centered_byte(byte: u8) -> u8 {
    if byte == 0x80 { 0 } else { byte }
}

/// Two nibbles that stand for -8..=7; as in [`centered_byte`], 0 is put for the lowest.
fn centered_nibbles(byte: u8) -> u8 {
    let centered = |nibble: u8| if nibble == 0 { 8 } else { nibble };
    centered(byte & 0x0f) | centered(byte >> 4) << 4
}

/// The bits of the nearest IEEE half-precision number, ties to even.
fn f16_bits(value: f32) -> u16 {
    let sign = ((value.to_bits() >> 16) & 0x8000) as u16;
    let magnitude = value.abs();
    if magnitude < 2f32.powi(-14) {
        // Subnormal halves are multiples of 2^-24. Rounding up may give the smallest normal.
        return sign | (magnitude * 2f32.powi(24)).round_ties_even() as u16;
    }
    if magnitude >= 65520.0 {
        return sign | 0x7c00;
    }
    let bits = magnitude.to_bits();
    let rounded = bits + 0x0fff + ((bits >> 13) & 1);
    sign | ((rounded - (112 << 23)) >> 13) as u16
}

/// SplitMix64, seeded by the model's seed and the tensor's name, so that a tensor's weights do
/// not depend on which tensors come before it.
struct Noise {
    state: u64,
}

impl Noise {
    fn new(seed: u64, name: &str) -> Noise {
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        Noise { state: hash ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Uniform in [0, 1).
    fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1u64 << 24) as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(spec: &ModelSpec) -> Vec<u8> {
        let mut bytes = Vec::new();
        write_random_model(&mut bytes, spec).expect("writing to memory succeeds");
        bytes
    }

    #[test]
    fn every_architecture_and_type_has_the_announced_size() {
        for architecture in Architecture::ALL {
            for weights in WeightType::ALL {
                let spec = ModelSpec::small(architecture, weights);
                let tensors = tensors_of(&spec);
                let data: u64 = tensors.iter().map(|t| t.bytes() + padding_after(t.bytes())).sum();
                let header = encode_header(&spec, &tensors).len() as u64;
                assert_eq!(written(&spec).len() as u64, header + data, "{spec:?}");
            }
        }
    }

    #[test]
    fn the_same_spec_gives_the_same_bytes_and_another_seed_others() {
        let spec = ModelSpec::small(Architecture::Qwen35, WeightType::Q8_0);
        assert_eq!(written(&spec), written(&spec));
        assert_ne!(written(&spec), written(&ModelSpec { seed: 2, ..spec.clone() }));
    }

    #[test]
    fn a_file_starts_as_gguf_3_with_its_tensor_count() {
        let spec = ModelSpec::small(Architecture::Llama, WeightType::F16);
        let bytes = written(&spec);
        assert_eq!(bytes[..8], *b"GGUF\x03\0\0\0");
        assert_eq!(bytes[8..16], (tensors_of(&spec).len() as u64).to_le_bytes());
    }

    #[test]
    fn a_row_that_is_no_multiple_of_the_block_is_refused_by_name() {
        let spec = ModelSpec { n_ff: 500, ..ModelSpec::small(Architecture::Llama, WeightType::Q4_0) };
        let error = write_random_model(&mut Vec::new(), &spec).expect_err("500 is no multiple of 32");
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
    fn halves_are_rounded_to_the_nearest_even() {
        let cases = [
            (0.0, 0x0000),
            (1.0, 0x3c00),
            (-2.0, 0xc000),
            (65504.0, 0x7bff),
            (1.0e6, 0x7c00),
            (2f32.powi(-14), 0x0400),
            (2f32.powi(-24), 0x0001),
            (2f32.powi(-26), 0x0000),
            (1.0 + 2f32.powi(-11), 0x3c00),
            (1.0 + 3.0 * 2f32.powi(-11), 0x3c02),
        ];
        for (value, bits) in cases {
            assert_eq!(f16_bits(value), bits, "{value}");
        }
    }

    #[test]
    fn quants_have_no_value_without_its_opposite() {
        assert_eq!([0x7f, 0x80, 0x81].map(centered_byte), [0x7f, 0x00, 0x81]);
        assert_eq!([0x00, 0x0f, 0xf0, 0x18].map(centered_nibbles), [0x88, 0x8f, 0xf8, 0x18]);
    }

    #[test]
    fn one_layer_in_four_is_attention() {
        let spec = ModelSpec { n_layer: 8, ..ModelSpec::small(Architecture::Qwen35, WeightType::F16) };
        let attention: Vec<u64> = (0..8).filter(|layer| spec.is_attention_layer(*layer)).collect();
        assert_eq!(attention, [3, 7]);
    }
}
