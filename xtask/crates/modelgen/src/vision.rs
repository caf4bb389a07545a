//! A vision encoder for a random model: a transformer over patches and a projector into the model's embeddings.

use std::io::{self, Write};

use super::header::Metadata;
use super::spec::WeightType;
use super::tensors::Tensor;
use super::write_file;

/// The dimensions of a vision encoder. An image becomes `(image_size / patch_size)^2` tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VisionSpec {
    /// Embedding size of the model that reads the image.
    pub n_embd_of_model: u64,
    /// Width and height, in pixels, to which every image is resized.
    pub image_size: u64,
    /// Width and height of a patch, in pixels.
    pub patch_size: u64,
    /// Embedding size of the encoder.
    pub n_embd: u64,
    /// Seed of the weights.
    pub seed: u64,
}

impl VisionSpec {
    /// An encoder with 100 tokens for each image, which is not a multiple of the KV cache's block size.
    pub fn small(n_embd_of_model: u64) -> VisionSpec {
        VisionSpec { n_embd_of_model, image_size: 80, patch_size: 8, n_embd: 64, seed: 1 }
    }

    /// Number of tokens of an image.
    pub fn tokens(&self) -> u64 {
        (self.image_size / self.patch_size).pow(2)
    }
}

/// Layers of the encoder; the last one is not computed, as in LLaVA.
const LAYERS: u64 = 2;

/// Writes the vision encoder of `spec` to `out` as GGUF version 3, for llama.cpp's `--mmproj`.
///
/// # Errors
///
/// Errors of `out`.
pub fn write_random_vision(out: &mut dyn Write, spec: &VisionSpec) -> io::Result<()> {
    write_file(out, &metadata_of(spec), &tensors_of(spec), spec.seed)
}

fn metadata_of(spec: &VisionSpec) -> Metadata {
    let mut metadata = Metadata::new("clip");
    metadata.text("general.name", "random vision encoder");
    metadata.boolean("clip.has_vision_encoder", true);
    metadata.text("clip.projector_type", "mlp");
    metadata.dimension("vision.image_size", spec.image_size);
    metadata.dimension("vision.patch_size", spec.patch_size);
    metadata.dimension("vision.embedding_length", spec.n_embd);
    metadata.dimension("vision.feed_forward_length", 4 * spec.n_embd);
    metadata.dimension("vision.block_count", LAYERS);
    metadata.dimension("vision.attention.head_count", 4);
    metadata.dimension("vision.projection_dim", spec.n_embd_of_model);
    metadata.float("clip.vision.attention.layer_norm_epsilon", 1e-6);
    metadata.floats("clip.vision.image_mean", &[0.5; 3]);
    metadata.floats("clip.vision.image_std", &[0.5; 3]);
    metadata
}

fn tensors_of(spec: &VisionSpec) -> Vec<Tensor> {
    let embd = spec.n_embd;
    let mut tensors = vec![
        matrix("v.patch_embd.weight", &[spec.patch_size, spec.patch_size, 3, embd]),
        matrix("v.position_embd.weight", &[embd, spec.tokens()]),
        matrix("mm.0.weight", &[embd, spec.n_embd_of_model]),
        vector("mm.0.bias", spec.n_embd_of_model, 0.0),
        matrix("mm.2.weight", &[spec.n_embd_of_model, spec.n_embd_of_model]),
        vector("mm.2.bias", spec.n_embd_of_model, 0.0),
    ];
    tensors.extend((0..LAYERS).flat_map(|layer| layer_tensors(layer, embd)));
    tensors
}

fn layer_tensors(layer: u64, embd: u64) -> Vec<Tensor> {
    let name = |rest: &str| format!("v.blk.{layer}.{rest}");
    let square = ["attn_q.weight", "attn_k.weight", "attn_v.weight", "attn_out.weight"];
    let mut tensors: Vec<Tensor> = square.map(|rest| matrix(&name(rest), &[embd, embd])).into();
    tensors.push(matrix(&name("ffn_up.weight"), &[embd, 4 * embd]));
    tensors.push(matrix(&name("ffn_down.weight"), &[4 * embd, embd]));
    for norm in ["ln1", "ln2"] {
        tensors.push(vector(&name(&format!("{norm}.weight")), embd, 1.0));
        tensors.push(vector(&name(&format!("{norm}.bias")), embd, 0.0));
    }
    tensors
}

/// Noise scaled to keep the magnitude of its input: a patch is summed over all its pixels and colours.
fn matrix(name: &str, dims: &[u64]) -> Tensor {
    let summed: u64 = dims[..dims.len() - 1].iter().product();
    tensor(name, dims, 0.0, (3.0 / summed as f32).sqrt())
}

fn vector(name: &str, size: u64, center: f32) -> Tensor {
    tensor(name, &[size], center, 0.1)
}

fn tensor(name: &str, dims: &[u64], center: f32, spread: f32) -> Tensor {
    Tensor { name: name.to_owned(), dims: dims.to_vec(), weights: WeightType::F32, center, spread }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::{encode_header, padding_after};

    #[test]
    fn an_encoder_has_the_announced_size_and_a_place_for_each_patch() {
        let spec = VisionSpec::small(256);
        let tensors = tensors_of(&spec);
        let data: u64 = tensors.iter().map(|one| one.bytes() + padding_after(one.bytes())).sum();
        let header = encode_header(&metadata_of(&spec), &tensors).len() as u64;
        let mut bytes = Vec::new();
        write_random_vision(&mut bytes, &spec).expect("writing to memory succeeds");
        assert_eq!(bytes.len() as u64, header + data);
        let places =
            tensors.iter().find(|one| one.name == "v.position_embd.weight").map(|one| one.dims.clone());
        assert_eq!(places, Some(vec![64, 100]));
    }
}
