//! The tensors of each architecture: names, shapes and noise magnitudes.

mod attention;
pub(super) mod draft;
mod feed_forward;
mod recurrent;
#[cfg(test)]
mod tests;

use super::architecture::Mixer;
use super::spec::{ModelSpec, WeightType};

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
    fn new(spec: &ModelSpec) -> TensorList<'_> {
        TensorList { spec, prefix: String::new(), tensors: Vec::new() }
    }

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

    fn bias(&mut self, name: &str, dims: &[u64]) {
        self.floats(name, dims, 0.0, 0.1);
    }

    fn push(&mut self, name: &str, dims: &[u64], weights: WeightType, center: f32, spread: f32) {
        let name = format!("{}{name}", self.prefix);
        self.tensors.push(Tensor { name, dims: dims.to_vec(), weights, center, spread });
    }
}

pub(super) fn tensors_of(spec: &ModelSpec) -> Vec<Tensor> {
    let mut list = TensorList::new(spec);
    list.matrix("token_embd.weight", &[spec.n_embd, spec.n_vocab]);
    list.norm(spec.architecture.output_norm(), spec.n_embd);
    list.matrix("output.weight", &[spec.n_embd, spec.n_vocab]);
    for layer in 0..spec.n_layer {
        list.prefix = format!("blk.{layer}.");
        push_layer(&mut list, layer, spec.mixer(layer));
    }
    for layer in spec.n_layer..spec.n_layer + spec.n_layer_nextn {
        list.prefix = format!("blk.{layer}.");
        push_layer(&mut list, layer, Mixer::Attention);
        push_nextn(&mut list);
    }
    list.tensors
}

/// Beside a layer of attention: the norms of the embedding and of the hidden state, and the projection of both. The
/// embeddings, the norm and the matrix of the output are those of the model, which the loader allows.
fn push_nextn(list: &mut TensorList) {
    let n_embd = list.spec.n_embd;
    list.matrix("nextn.eh_proj.weight", &[2 * n_embd, n_embd]);
    list.norm("nextn.enorm.weight", n_embd);
    list.norm("nextn.hnorm.weight", n_embd);
}

fn push_layer(list: &mut TensorList, layer: u64, mixer: Mixer) {
    let spec = list.spec;
    list.norm("attn_norm.weight", spec.n_embd);
    match mixer {
        Mixer::Attention => attention::push_attention(list),
        Mixer::LatentAttention => attention::push_latent_attention(list),
        Mixer::DeltaNet => recurrent::push_delta_net(list),
        Mixer::ShortConv => recurrent::push_short_conv(list),
        Mixer::Mamba1 => recurrent::push_mamba_1(list),
        Mixer::Mamba2 => recurrent::push_mamba_2(list),
    }
    if spec.architecture.has_norms_after_blocks() {
        list.norm("post_attention_norm.weight", spec.n_embd);
        list.norm("post_ffw_norm.weight", spec.n_embd);
    }
    if spec.architecture.has_attention() {
        push_feed_forward(list, layer);
    }
}

fn push_feed_forward(list: &mut TensorList, layer: u64) {
    let spec = list.spec;
    list.norm(spec.architecture.feed_forward_norm(), spec.n_embd);
    match spec.has_experts_in(layer) {
        true => feed_forward::push_experts(list),
        false => feed_forward::push_dense_feed_forward(list),
    }
}
