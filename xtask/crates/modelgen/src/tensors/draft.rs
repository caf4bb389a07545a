//! The tensors of draft models, with the sizes of their target.

use super::feed_forward::push_dense_feed_forward;
use super::{Tensor, TensorList};
use crate::spec::ModelSpec;

/// As llama.cpp's `src/models/eagle3.cpp` loads them: a projection of the hidden states of `n_features` layers, a layer
/// of attention, and an output matrix. The embeddings are the target's, and so is the whole vocabulary (no `d2t`).
pub(crate) fn eagle3_tensors(target: &ModelSpec, n_features: u64) -> Vec<Tensor> {
    let n_embd = target.n_embd;
    let mut list = TensorList::new(target);
    list.matrix("fc.weight", &[n_features * n_embd, n_embd]);
    list.norm("output_norm.weight", n_embd);
    list.matrix("output.weight", &[n_embd, target.n_vocab]);
    list.prefix = "blk.0.".to_owned();
    list.norm("attn_norm.weight", n_embd);
    list.norm("attn_norm_2.weight", n_embd);
    // The norms' outputs, of the embedding and of the state, beside each other.
    push_heads(&mut list, 2 * n_embd);
    list.norm("ffn_norm.weight", n_embd);
    push_dense_feed_forward(&mut list);
    list.tensors
}

/// As llama.cpp's `src/models/dflash.cpp` loads them: a projection of the hidden states of `n_features` layers, whose
/// result is the input of keys and values, and layers of attention. Embeddings and output matrix are the target's.
pub(crate) fn dflash_tensors(target: &ModelSpec, n_features: u64, n_layer: u64) -> Vec<Tensor> {
    let n_embd = target.n_embd;
    let mut list = TensorList::new(target);
    list.matrix("fc.weight", &[n_features * n_embd, n_embd]);
    list.norm("enc.output_norm.weight", n_embd);
    list.norm("output_norm.weight", n_embd);
    for layer in 0..n_layer {
        list.prefix = format!("blk.{layer}.");
        list.norm("attn_norm.weight", n_embd);
        push_heads(&mut list, n_embd);
        list.norm("attn_q_norm.weight", target.head_dim);
        list.norm("attn_k_norm.weight", target.head_dim);
        list.norm("ffn_norm.weight", n_embd);
        push_dense_feed_forward(&mut list);
    }
    list.tensors
}

fn push_heads(list: &mut TensorList, n_inputs: u64) {
    let spec = list.spec;
    let (heads, kv_heads) = (spec.head_dim * spec.n_head, spec.head_dim * spec.n_head_kv);
    list.matrix("attn_q.weight", &[n_inputs, heads]);
    list.matrix("attn_k.weight", &[n_inputs, kv_heads]);
    list.matrix("attn_v.weight", &[n_inputs, kv_heads]);
    list.matrix("attn_output.weight", &[heads, spec.n_embd]);
}
