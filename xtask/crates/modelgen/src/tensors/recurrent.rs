//! The tensors of layers with a recurrent state.

use super::TensorList;
use crate::architecture::Architecture;
use crate::spec::StateSpace;

pub(super) fn push_delta_net(list: &mut TensorList) {
    let spec = list.spec;
    let delta_net = &spec.delta_net;
    let conv_dim = 2 * spec.key_dim() + spec.value_dim();
    list.matrix("attn_qkv.weight", &[spec.n_embd, conv_dim]);
    list.matrix("attn_gate.weight", &[spec.n_embd, spec.value_dim()]);
    list.floats("ssm_conv1d.weight", &[delta_net.conv_kernel, conv_dim], 0.0, 0.8);
    list.floats("ssm_dt.bias", &[delta_net.n_value_heads], 0.0, 1.0);
    push_decay(list, &[delta_net.n_value_heads]);
    push_beta_and_alpha(list);
    list.norm("ssm_norm.weight", delta_net.head_dim);
    list.matrix("ssm_out.weight", &[spec.value_dim(), spec.n_embd]);
}

/// The decay is exp(a * softplus(..)): `a` is negative, and small enough to keep some memory.
fn push_decay(list: &mut TensorList, dims: &[u64]) {
    list.floats("ssm_a", dims, -0.2, 0.15);
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

pub(super) fn push_short_conv(list: &mut TensorList) {
    let (n_embd, kernel) = (list.spec.n_embd, list.spec.short_conv.kernel);
    list.floats("shortconv.conv.weight", &[kernel, n_embd], 0.0, 0.8);
    // Both gates and the input of the convolution.
    list.matrix("shortconv.in_proj.weight", &[n_embd, 3 * n_embd]);
    list.matrix("shortconv.out_proj.weight", &[n_embd, n_embd]);
}

/// A decay for each number of the state. The projection in has the input of the convolution and the gate; x is then
/// projected to the time steps, B and C.
pub(super) fn push_mamba_1(list: &mut TensorList) {
    let (n_embd, inner) = (list.spec.n_embd, list.spec.inner_size());
    let StateSpace { state_size, time_step_rank: rank, conv_kernel, .. } = list.spec.state_space;
    list.matrix("ssm_in.weight", &[n_embd, 2 * inner]);
    push_conv(list, conv_kernel, inner);
    list.matrix("ssm_x.weight", &[inner, rank + 2 * state_size]);
    list.norm("ssm_dt_norm.weight", rank);
    list.norm("ssm_b_norm.weight", state_size);
    list.norm("ssm_c_norm.weight", state_size);
    list.matrix("ssm_dt.weight", &[rank, inner]);
    list.floats("ssm_dt.bias", &[inner], 0.0, 1.0);
    push_decay(list, &[state_size, inner]);
    list.floats("ssm_d", &[inner], 1.0, 0.1);
    list.matrix("ssm_out.weight", &[inner, n_embd]);
}

/// One decay for each head. The projection in has the gate, the input of the convolution (x, B and C), and the time
/// steps.
pub(super) fn push_mamba_2(list: &mut TensorList) {
    let (n_embd, inner) = (list.spec.n_embd, list.spec.inner_size());
    let StateSpace { state_size, time_step_rank: heads, n_groups, conv_kernel, .. } = list.spec.state_space;
    let conv_dim = inner + 2 * n_groups * state_size;
    list.matrix("ssm_in.weight", &[n_embd, inner + conv_dim + heads]);
    push_conv(list, conv_kernel, conv_dim);
    list.floats("ssm_dt.bias", &[heads], 0.0, 1.0);
    push_decay(list, &[1, heads]);
    list.floats("ssm_d", &[1, heads], 1.0, 0.1);
    list.floats("ssm_norm.weight", &[inner / n_groups, n_groups], 1.0, 0.1);
    list.matrix("ssm_out.weight", &[inner, n_embd]);
}

/// A convolution with a bias, which `build_mamba2_layer` in llama.cpp's `src/models/mamba-base.cpp` adds without asking
/// whether there is one, although Granite's loader does not require it.
fn push_conv(list: &mut TensorList, kernel: u64, conv_dim: u64) {
    list.floats("ssm_conv1d.weight", &[kernel, conv_dim], 0.0, 0.8);
    list.bias("ssm_conv1d.bias", &[conv_dim]);
}
