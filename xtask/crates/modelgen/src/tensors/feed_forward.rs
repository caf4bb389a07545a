//! The tensors of the feed-forward: dense, or a mixture of experts.

use super::TensorList;
use crate::spec::Experts;

pub(super) fn push_dense_feed_forward(list: &mut TensorList) {
    let (n_embd, n_ff) = (list.spec.n_embd, list.spec.n_ff);
    list.matrix("ffn_gate.weight", &[n_embd, n_ff]);
    list.matrix("ffn_up.weight", &[n_embd, n_ff]);
    list.matrix("ffn_down.weight", &[n_ff, n_embd]);
}

pub(super) fn push_experts(list: &mut TensorList) {
    let n_embd = list.spec.n_embd;
    let Experts { count, n_ff, n_ff_shared, .. } = list.spec.experts;
    list.floats("ffn_gate_inp.weight", &[n_embd, count], 0.0, (3.0 / n_embd as f32).sqrt());
    list.matrix("ffn_gate_exps.weight", &[n_embd, n_ff, count]);
    list.matrix("ffn_up_exps.weight", &[n_embd, n_ff, count]);
    list.matrix("ffn_down_exps.weight", &[n_ff, n_embd, count]);
    if list.spec.architecture.has_biases_and_sinks() {
        push_expert_biases(list);
    }
    if list.spec.architecture.has_shared_expert_router() {
        list.floats("ffn_gate_inp_shexp.weight", &[n_embd], 0.0, (3.0 / n_embd as f32).sqrt());
    }
    if list.spec.architecture.has_shared_expert() {
        list.matrix("ffn_gate_shexp.weight", &[n_embd, n_ff_shared]);
        list.matrix("ffn_up_shexp.weight", &[n_embd, n_ff_shared]);
        list.matrix("ffn_down_shexp.weight", &[n_ff_shared, n_embd]);
    }
}

fn push_expert_biases(list: &mut TensorList) {
    let n_embd = list.spec.n_embd;
    let Experts { count, n_ff, .. } = list.spec.experts;
    list.bias("ffn_gate_inp.bias", &[count]);
    list.bias("ffn_gate_exps.bias", &[n_ff, count]);
    list.bias("ffn_up_exps.bias", &[n_ff, count]);
    list.bias("ffn_down_exps.bias", &[n_embd, count]);
}
