//! The tensors of attention.

use super::TensorList;
use crate::spec::{LatentAttention, ModelSpec};

pub(super) fn push_attention(list: &mut TensorList) {
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
    if spec.architecture.has_query_biases() {
        list.bias("attn_q.bias", &[heads]);
        list.bias("attn_k.bias", &[kv_heads]);
        list.bias("attn_v.bias", &[kv_heads]);
    }
    if spec.architecture.has_biases_and_sinks() {
        list.bias("attn_output.bias", &[spec.n_embd]);
        // The logit of a sink, among scores of variance 1: large enough to take a noticeable share from a small window.
        list.floats("attn_sinks.weight", &[spec.n_head], 2.0, 1.0);
    }
}

/// Mean weight of the query norm, which sets the spread of the attention scores of normalized noise. With 1, a token
/// averages over about a thousand others, which cancel out, and a wrong cache would go unnoticed; with 2 it attends to
/// a few of them.
fn query_norm(spec: &ModelSpec) -> f32 {
    if spec.architecture.has_delta_net() { 1.0 } else { 2.0 }
}

/// Multi-head latent attention in the form that computes with the latent vectors themselves: the projections of keys
/// and values are separate, and the one of keys is transposed.
pub(super) fn push_latent_attention(list: &mut TensorList) {
    let (n_embd, n_head) = (list.spec.n_embd, list.spec.n_head);
    let LatentAttention { q_lora_rank, kv_lora_rank, rope_dim, nope_dim, value_dim } = list.spec.latent;
    list.matrix("attn_q_a.weight", &[n_embd, q_lora_rank]);
    list.norm("attn_q_a_norm.weight", q_lora_rank);
    list.matrix("attn_q_b.weight", &[q_lora_rank, n_head * (nope_dim + rope_dim)]);
    list.matrix("attn_kv_a_mqa.weight", &[n_embd, kv_lora_rank + rope_dim]);
    list.norm("attn_kv_a_norm.weight", kv_lora_rank);
    list.matrix("attn_k_b.weight", &[nope_dim, kv_lora_rank, n_head]);
    list.matrix("attn_v_b.weight", &[kv_lora_rank, value_dim, n_head]);
    list.matrix("attn_output.weight", &[n_head * value_dim, n_embd]);
}
