//! The tensors of each architecture: names, shapes and noise magnitudes.

use super::spec::{Architecture, Experts, ModelSpec, WeightType};

pub(super) struct Tensor {
    pub(super) name: String,
    /// Dimensions, innermost first, as in the file.
    pub(super) dims: Vec<u64>,
    pub(super) weights: WeightType,
    pub(super) center: f32,
    /// Values are uniform within `center +- spread`; quantized ones around 0.
    pub(super) spread: f32,
}

impl Tensor {
    pub(super) fn elements(&self) -> u64 {
        self.dims.iter().product()
    }

    pub(super) fn bytes(&self) -> u64 {
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
    /// A matrix whose first dimension is summed over: noise scaled to keep the magnitude of its input.
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

pub(super) fn tensors_of(spec: &ModelSpec) -> Vec<Tensor> {
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
    if spec.architecture.has_norms_after_blocks() {
        list.norm("post_attention_norm.weight", spec.n_embd);
        list.norm("post_ffw_norm.weight", spec.n_embd);
    }
    // The same norm, whose name depends on the architecture's family.
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
    // The Qwen models with delta nets store the gate of a head beside its query.
    let queries = if spec.architecture.has_delta_net() { 2 * heads } else { heads };
    list.matrix("attn_q.weight", &[spec.n_embd, queries]);
    list.matrix("attn_k.weight", &[spec.n_embd, kv_heads]);
    list.matrix("attn_v.weight", &[spec.n_embd, kv_heads]);
    list.matrix("attn_output.weight", &[heads, spec.n_embd]);
    if spec.architecture.has_query_and_key_norms() {
        list.floats("attn_q_norm.weight", &[spec.head_dim], query_norm(spec), 0.1);
        list.norm("attn_k_norm.weight", spec.head_dim);
    }
}

/// Mean weight of the query norm, which sets the spread of the attention scores of normalized noise. With 1, a token
/// averages over about a thousand others, which cancel out, and a wrong cache would go unnoticed; with 2 it attends to
/// a few of them.
fn query_norm(spec: &ModelSpec) -> f32 {
    if spec.architecture.has_delta_net() { 1.0 } else { 2.0 }
}

fn push_delta_net(list: &mut TensorList) {
    let spec = list.spec;
    let delta_net = &spec.delta_net;
    let conv_dim = 2 * spec.key_dim() + spec.value_dim();
    list.matrix("attn_qkv.weight", &[spec.n_embd, conv_dim]);
    list.matrix("attn_gate.weight", &[spec.n_embd, spec.value_dim()]);
    list.floats("ssm_conv1d.weight", &[delta_net.conv_kernel, conv_dim], 0.0, 0.8);
    list.floats("ssm_dt.bias", &[delta_net.n_value_heads], 0.0, 1.0);
    // The decay is exp(a * softplus(..)): `a` is negative, and small enough to keep some memory.
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
