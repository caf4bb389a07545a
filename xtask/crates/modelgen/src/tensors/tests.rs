//! The layers of the architectures, tensor by tensor, as the loaders in llama.cpp's `src/models/` require them: a
//! tensor too few or too many is an error there.

use super::*;
use crate::architecture::Architecture;

/// Dimensions of a small model: the residual stream, all query heads and all key and value heads.
const EMBD: u64 = 256;
const HEADS: u64 = 256;
const KV_HEADS: u64 = 128;
const HEAD: u64 = 64;
const FF: u64 = 512;

fn small(architecture: Architecture) -> ModelSpec {
    ModelSpec::small(architecture, WeightType::Q8_0)
}

/// Returns the tensors of `layer`, sorted by name, without the prefix of the layer.
fn layer_of(spec: &ModelSpec, layer: u64) -> Vec<(String, Vec<u64>)> {
    let prefix = format!("blk.{layer}.");
    let own = |tensor: Tensor| Some((tensor.name.strip_prefix(&prefix)?.to_owned(), tensor.dims));
    let mut tensors: Vec<(String, Vec<u64>)> = tensors_of(spec).into_iter().filter_map(own).collect();
    tensors.sort();
    tensors
}

/// Returns the names of the tensors that belong to no layer, sorted.
fn outer_of(spec: &ModelSpec) -> Vec<String> {
    let names = tensors_of(spec).into_iter().map(|tensor| tensor.name);
    let mut names: Vec<String> = names.filter(|name| !name.starts_with("blk.")).collect();
    names.sort();
    names
}

fn sorted(groups: &[&[(&str, &[u64])]]) -> Vec<(String, Vec<u64>)> {
    let owned = |(name, dims): &(&str, &[u64])| ((*name).to_owned(), dims.to_vec());
    let mut tensors: Vec<(String, Vec<u64>)> = groups.concat().iter().map(owned).collect();
    tensors.sort();
    tensors
}

/// The four matrices of plain attention.
const ATTENTION: [(&str, &[u64]); 4] = [
    ("attn_q.weight", &[EMBD, HEADS]),
    ("attn_k.weight", &[EMBD, KV_HEADS]),
    ("attn_v.weight", &[EMBD, KV_HEADS]),
    ("attn_output.weight", &[HEADS, EMBD]),
];

/// The norms of queries and keys.
const HEAD_NORMS: [(&str, &[u64]); 2] = [("attn_q_norm.weight", &[HEAD]), ("attn_k_norm.weight", &[HEAD])];

/// The norms before the mixer and before the feed-forward.
const NORMS: [(&str, &[u64]); 2] = [("attn_norm.weight", &[EMBD]), ("ffn_norm.weight", &[EMBD])];

/// A dense feed-forward.
const DENSE: [(&str, &[u64]); 3] =
    [("ffn_gate.weight", &[EMBD, FF]), ("ffn_up.weight", &[EMBD, FF]), ("ffn_down.weight", &[FF, EMBD])];

/// A router and its experts.
const EXPERTS: [(&str, &[u64]); 4] = [
    ("ffn_gate_inp.weight", &[EMBD, 4]),
    ("ffn_gate_exps.weight", &[EMBD, 128, 4]),
    ("ffn_up_exps.weight", &[EMBD, 128, 4]),
    ("ffn_down_exps.weight", &[128, EMBD, 4]),
];

#[test]
fn gpt_oss_has_biases_and_sinks_in_every_layer() {
    let spec = small(Architecture::GptOss);
    let rest: [(&str, &[u64]); 11] = [
        ("attn_norm.weight", &[EMBD]),
        ("post_attention_norm.weight", &[EMBD]),
        ("attn_q.bias", &[HEADS]),
        ("attn_k.bias", &[KV_HEADS]),
        ("attn_v.bias", &[KV_HEADS]),
        ("attn_output.bias", &[EMBD]),
        ("attn_sinks.weight", &[4]),
        ("ffn_gate_inp.bias", &[4]),
        ("ffn_gate_exps.bias", &[128, 4]),
        ("ffn_up_exps.bias", &[128, 4]),
        ("ffn_down_exps.bias", &[EMBD, 4]),
    ];
    for layer in 0..spec.n_layer {
        assert_eq!(layer_of(&spec, layer), sorted(&[&ATTENTION, &EXPERTS, &rest]), "layer {layer}");
    }
}

#[test]
fn every_second_layer_of_lfm2_is_a_short_convolution() {
    let conv: [(&str, &[u64]); 3] = [
        ("shortconv.conv.weight", &[3, EMBD]),
        ("shortconv.in_proj.weight", &[EMBD, 3 * EMBD]),
        ("shortconv.out_proj.weight", &[EMBD, EMBD]),
    ];
    for spec in [small(Architecture::Lfm2), ModelSpec::small_windowed_hybrid(WeightType::Q8_0)] {
        for layer in [0, 2] {
            assert_eq!(layer_of(&spec, layer), sorted(&[&NORMS, &conv, &DENSE]), "layer {layer}");
        }
        for layer in [1, 3] {
            let attention = sorted(&[&NORMS, &ATTENTION, &HEAD_NORMS, &DENSE]);
            assert_eq!(layer_of(&spec, layer), attention, "layer {layer}");
        }
        assert_eq!(outer_of(&spec), ["output.weight", "token_embd.weight", "token_embd_norm.weight"]);
    }
}

/// A Mamba-2 mixer with 8 heads of 64 and a state of 128.
const MAMBA_2: [(&str, &[u64]); 8] = [
    ("ssm_in.weight", &[EMBD, 2 * 512 + 2 * 128 + 8]),
    ("ssm_conv1d.weight", &[4, 512 + 2 * 128]),
    ("ssm_conv1d.bias", &[512 + 2 * 128]),
    ("ssm_dt.bias", &[8]),
    ("ssm_a", &[1, 8]),
    ("ssm_d", &[1, 8]),
    ("ssm_norm.weight", &[512, 1]),
    ("ssm_out.weight", &[512, EMBD]),
];

#[test]
fn three_layers_in_four_of_granite_are_mamba_2() {
    let spec = small(Architecture::GraniteHybrid);
    for layer in 0..3 {
        assert_eq!(layer_of(&spec, layer), sorted(&[&NORMS, &MAMBA_2, &DENSE]), "layer {layer}");
    }
    assert_eq!(layer_of(&spec, 3), sorted(&[&NORMS, &ATTENTION, &DENSE]));
}

#[test]
fn three_layers_in_four_of_jamba_are_mamba_1() {
    let spec = small(Architecture::Jamba);
    let mamba_1: [(&str, &[u64]); 12] = [
        ("ssm_in.weight", &[EMBD, 2 * 512]),
        ("ssm_conv1d.weight", &[4, 512]),
        ("ssm_conv1d.bias", &[512]),
        ("ssm_x.weight", &[512, 32 + 2 * 16]),
        ("ssm_dt_norm.weight", &[32]),
        ("ssm_b_norm.weight", &[16]),
        ("ssm_c_norm.weight", &[16]),
        ("ssm_dt.weight", &[32, 512]),
        ("ssm_dt.bias", &[512]),
        ("ssm_a", &[16, 512]),
        ("ssm_d", &[512]),
        ("ssm_out.weight", &[512, EMBD]),
    ];
    for layer in 0..3 {
        assert_eq!(layer_of(&spec, layer), sorted(&[&NORMS, &mamba_1, &DENSE]), "layer {layer}");
    }
    assert_eq!(layer_of(&spec, 3), sorted(&[&NORMS, &ATTENTION, &DENSE]));
}

#[test]
fn mamba_2_has_nothing_but_mixers() {
    let spec = small(Architecture::Mamba2);
    let norm: [(&str, &[u64]); 1] = [("attn_norm.weight", &[EMBD])];
    for layer in 0..spec.n_layer {
        assert_eq!(layer_of(&spec, layer), sorted(&[&norm, &MAMBA_2]), "layer {layer}");
    }
}

#[test]
fn a_nextn_block_of_qwen35_is_an_attention_layer_with_three_tensors_more() {
    let spec = ModelSpec::small_with_nextn(WeightType::Q8_0);
    let rest: [(&str, &[u64]); 9] = [
        ("attn_norm.weight", &[EMBD]),
        ("post_attention_norm.weight", &[EMBD]),
        ("attn_q.weight", &[EMBD, 2 * HEADS]),
        ("attn_k.weight", &[EMBD, KV_HEADS]),
        ("attn_v.weight", &[EMBD, KV_HEADS]),
        ("attn_output.weight", &[HEADS, EMBD]),
        ("nextn.eh_proj.weight", &[2 * EMBD, EMBD]),
        ("nextn.enorm.weight", &[EMBD]),
        ("nextn.hnorm.weight", &[EMBD]),
    ];
    assert_eq!(layer_of(&spec, 4), sorted(&[&HEAD_NORMS, &DENSE, &rest]));
    let trunk = layer_of(&spec, 3);
    assert!(!trunk.iter().any(|(name, _)| name.starts_with("nextn")), "{trunk:?}");
}

#[test]
fn deepseek2_has_latent_attention_and_experts_from_the_second_layer() {
    let spec = small(Architecture::DeepSeek2);
    let latent: [(&str, &[u64]); 8] = [
        ("attn_q_a.weight", &[EMBD, 64]),
        ("attn_q_a_norm.weight", &[64]),
        ("attn_q_b.weight", &[64, 4 * 128]),
        ("attn_kv_a_mqa.weight", &[EMBD, 128 + 64]),
        ("attn_kv_a_norm.weight", &[128]),
        ("attn_k_b.weight", &[64, 128, 4]),
        ("attn_v_b.weight", &[128, 64, 4]),
        ("attn_output.weight", &[4 * 64, EMBD]),
    ];
    let shared: [(&str, &[u64]); 3] = [
        ("ffn_gate_shexp.weight", &[EMBD, 128]),
        ("ffn_up_shexp.weight", &[EMBD, 128]),
        ("ffn_down_shexp.weight", &[128, EMBD]),
    ];
    assert_eq!(layer_of(&spec, 0), sorted(&[&NORMS, &latent, &DENSE]));
    for layer in 1..spec.n_layer {
        let expected = sorted(&[&NORMS, &latent, &EXPERTS, &shared]);
        assert_eq!(layer_of(&spec, layer), expected, "layer {layer}");
    }
}

#[test]
fn qwen2vl_has_biases_of_queries_keys_and_values_alone() {
    let spec = small(Architecture::Qwen2Vl);
    let biases: [(&str, &[u64]); 3] =
        [("attn_q.bias", &[HEADS]), ("attn_k.bias", &[KV_HEADS]), ("attn_v.bias", &[KV_HEADS])];
    for layer in 0..spec.n_layer {
        let expected = sorted(&[&NORMS, &ATTENTION, &biases, &DENSE]);
        assert_eq!(layer_of(&spec, layer), expected, "layer {layer}");
    }
}

#[test]
fn tensors_that_a_quantizer_skips_are_f32() {
    for architecture in Architecture::ALL {
        for tensor in tensors_of(&small(architecture)) {
            let stays = tensor.dims.len() == 1
                || tensor.name.ends_with(".bias")
                || tensor.name.ends_with("ffn_gate_inp.weight")
                || tensor.name.contains("conv1d")
                || ["ssm_a", "ssm_d", "ssm_norm.weight"].iter().any(|name| tensor.name.ends_with(name))
                || tensor.name.ends_with("conv.weight");
            let is_f32 = tensor.weights == WeightType::F32;
            assert_eq!(is_f32, stays, "{} of {}", tensor.name, architecture.name());
        }
    }
}
