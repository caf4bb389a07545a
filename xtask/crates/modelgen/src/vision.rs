//! A vision encoder for a random model: a transformer over patches and a projector into the model's embeddings.

use std::io::{self, Write};

use super::header::Metadata;
use super::spec::WeightType;
use super::tensors::Tensor;
use super::write_file;

/// The part that turns patches into embeddings of the model, and the encoder before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Projector {
    /// LLaVA's: a token for each patch of an image that is resized to a fixed size.
    Llava,
    /// Qwen2-VL's: a token for four patches of an image that keeps its size. The model gets its width and height too.
    Qwen2Vl,
}

/// The dimensions of a vision encoder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VisionSpec {
    /// The projector; it determines the encoder.
    pub projector: Projector,
    /// Embedding size of the model that reads the image.
    pub n_embd_of_model: u64,
    /// `Llava`: width and height, in pixels, to which every image is resized. `Qwen2Vl`: not used by llama.cpp, but
    /// required; images keep their size, up to a multiple of two patches.
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
        VisionSpec {
            projector: Projector::Llava,
            n_embd_of_model,
            image_size: 80,
            patch_size: 8,
            n_embd: 64,
            seed: 1,
        }
    }

    /// An encoder for [`Architecture::Qwen2Vl`](crate::Architecture::Qwen2Vl), with 100 tokens, 10 in a row, for an
    /// image of 40 by 40 pixels.
    pub fn small_qwen2vl(n_embd_of_model: u64) -> VisionSpec {
        VisionSpec {
            projector: Projector::Qwen2Vl,
            image_size: 40,
            patch_size: 2,
            ..VisionSpec::small(n_embd_of_model)
        }
    }

    /// Number of tokens of an image of `image_size` by `image_size` pixels.
    pub fn tokens(&self) -> u64 {
        let patches_of_a_token = match self.projector {
            Projector::Llava => 1,
            Projector::Qwen2Vl => MERGED,
        };
        self.patches() / patches_of_a_token
    }

    fn patches(&self) -> u64 {
        (self.image_size / self.patch_size).pow(2)
    }

    /// Layers of the encoder. LLaVA's last one is not computed. Qwen2-VL's warm-up has 8,464 patches, so one must do.
    fn layers(&self) -> u64 {
        match self.projector {
            Projector::Llava => 2,
            Projector::Qwen2Vl => 1,
        }
    }

    /// The value of `clip.projector_type`.
    fn projector_name(&self) -> &'static str {
        match self.projector {
            Projector::Llava => "mlp",
            Projector::Qwen2Vl => "qwen2vl_merger",
        }
    }
}

/// Patches that Qwen2-VL's projector merges into a token: two by two.
const MERGED: u64 = 4;

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
    metadata.text("clip.projector_type", spec.projector_name());
    metadata.dimension("vision.image_size", spec.image_size);
    metadata.dimension("vision.patch_size", spec.patch_size);
    metadata.dimension("vision.embedding_length", spec.n_embd);
    metadata.dimension("vision.feed_forward_length", 4 * spec.n_embd);
    metadata.dimension("vision.block_count", spec.layers());
    metadata.dimension("vision.attention.head_count", 4);
    metadata.dimension("vision.projection_dim", spec.n_embd_of_model);
    metadata.float("clip.vision.attention.layer_norm_epsilon", 1e-6);
    metadata.floats("clip.vision.image_mean", &[0.5; 3]);
    metadata.floats("clip.vision.image_std", &[0.5; 3]);
    metadata
}

fn tensors_of(spec: &VisionSpec) -> Vec<Tensor> {
    let mut tensors = match spec.projector {
        Projector::Llava => llava_tensors(spec),
        Projector::Qwen2Vl => qwen2vl_tensors(spec),
    };
    for layer in 0..spec.layers() {
        tensors.extend(layer_tensors(layer, spec.n_embd));
        if spec.projector == Projector::Qwen2Vl {
            tensors.extend(layer_biases(layer, spec.n_embd));
        }
    }
    tensors
}

fn llava_tensors(spec: &VisionSpec) -> Vec<Tensor> {
    let embd = spec.n_embd;
    vec![
        matrix("v.patch_embd.weight", &[spec.patch_size, spec.patch_size, 3, embd]),
        matrix("v.position_embd.weight", &[embd, spec.patches()]),
        matrix("mm.0.weight", &[embd, spec.n_embd_of_model]),
        vector("mm.0.bias", spec.n_embd_of_model, 0.0),
        matrix("mm.2.weight", &[spec.n_embd_of_model, spec.n_embd_of_model]),
        vector("mm.2.bias", spec.n_embd_of_model, 0.0),
    ]
}

/// Two convolutions, one for each frame of a video or both for an image, and no position embeddings: positions are
/// rotary.
fn qwen2vl_tensors(spec: &VisionSpec) -> Vec<Tensor> {
    let (embd, merged) = (spec.n_embd, MERGED * spec.n_embd);
    vec![
        matrix("v.patch_embd.weight", &[spec.patch_size, spec.patch_size, 3, embd]),
        matrix("v.patch_embd.weight.1", &[spec.patch_size, spec.patch_size, 3, embd]),
        vector("v.post_ln.weight", embd, 1.0),
        vector("v.post_ln.bias", embd, 0.0),
        matrix("mm.0.weight", &[merged, merged]),
        vector("mm.0.bias", merged, 0.0),
        matrix("mm.2.weight", &[merged, spec.n_embd_of_model]),
        vector("mm.2.bias", spec.n_embd_of_model, 0.0),
    ]
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

/// The biases of queries, keys and values are added without asking whether there are any.
fn layer_biases(layer: u64, embd: u64) -> Vec<Tensor> {
    let bias = |rest: &str, size| vector(&format!("v.blk.{layer}.{rest}.bias"), size, 0.0);
    let mut tensors: Vec<Tensor> =
        ["attn_q", "attn_k", "attn_v", "attn_out", "ffn_down"].map(|rest| bias(rest, embd)).into();
    tensors.push(bias("ffn_up", 4 * embd));
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

    fn dims_of(spec: &VisionSpec, name: &str) -> Option<Vec<u64>> {
        tensors_of(spec).into_iter().find(|one| one.name == name).map(|one| one.dims)
    }

    #[test]
    fn an_encoder_has_the_announced_size_and_the_same_bytes_each_time() {
        for spec in [VisionSpec::small(256), VisionSpec::small_qwen2vl(256)] {
            let tensors = tensors_of(&spec);
            let data: u64 = tensors.iter().map(|one| one.bytes() + padding_after(one.bytes())).sum();
            let header = encode_header(&metadata_of(&spec), &tensors).len() as u64;
            let written = || {
                let mut bytes = Vec::new();
                write_random_vision(&mut bytes, &spec).expect("writing to memory succeeds");
                bytes
            };
            assert_eq!(written().len() as u64, header + data, "{spec:?}");
            assert_eq!(written(), written(), "{spec:?}");
        }
    }

    #[test]
    fn an_image_has_100_tokens() {
        assert_eq!(VisionSpec::small(256).tokens(), 100);
        assert_eq!(VisionSpec::small_qwen2vl(256).tokens(), 100);
    }

    #[test]
    fn llava_has_a_place_for_each_patch() {
        assert_eq!(dims_of(&VisionSpec::small(256), "v.position_embd.weight"), Some(vec![64, 100]));
    }

    #[test]
    fn qwen2vl_has_two_frames_no_places_and_merges_four_patches() {
        let spec = VisionSpec::small_qwen2vl(256);
        for name in ["v.patch_embd.weight", "v.patch_embd.weight.1"] {
            assert_eq!(dims_of(&spec, name), Some(vec![2, 2, 3, 64]), "{name}");
        }
        assert_eq!(dims_of(&spec, "v.position_embd.weight"), None);
        assert_eq!(dims_of(&spec, "mm.0.weight"), Some(vec![256, 256]));
        assert_eq!(dims_of(&spec, "mm.2.bias"), Some(vec![256]));
        assert_eq!(dims_of(&spec, "v.blk.0.attn_k.bias"), Some(vec![64]));
        assert_eq!(dims_of(&spec, "v.blk.0.ffn_up.bias"), Some(vec![256]));
        assert_eq!(dims_of(&spec, "v.blk.1.attn_k.bias"), None);
    }

    #[test]
    fn the_projector_is_named() {
        let is_named = |spec: &VisionSpec, name| {
            metadata_of(spec).has(|wanted| wanted.text("clip.projector_type", name))
        };
        assert!(is_named(&VisionSpec::small(256), "mlp"));
        assert!(is_named(&VisionSpec::small_qwen2vl(256), "qwen2vl_merger"));
    }
}
