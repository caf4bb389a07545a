//! Specification of a random model: dimensions and weight type.

use super::architecture::{Architecture, Mixer};

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
    pub(super) fn ggml_number(self) -> u32 {
        match self {
            WeightType::F32 => 0,
            WeightType::F16 => 1,
            WeightType::Q4_0 => 2,
            WeightType::Q8_0 => 8,
        }
    }

    /// `enum llama_ftype`, the value of `general.file_type`.
    pub(super) fn file_type_number(self) -> u32 {
        match self {
            WeightType::F32 => 0,
            WeightType::F16 => 1,
            WeightType::Q4_0 => 2,
            WeightType::Q8_0 => 7,
        }
    }

    /// Weights in a block, and bytes of a block.
    pub(super) fn block(self) -> (u64, u64) {
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

/// Dimensions of the state-space (Mamba) layers. Their inner size is twice `n_embd`: the hybrid architectures have no
/// other in llama.cpp.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateSpace {
    /// Size of the state of each inner dimension.
    pub state_size: u64,
    /// Mamba-1: rank of the time steps. Mamba-2: number of heads, which divides the inner size.
    pub time_step_rank: u64,
    /// Mamba-2: number of groups of heads with the same B and C. Divides `time_step_rank`.
    pub n_groups: u64,
    /// Width of the causal convolution, in tokens.
    pub conv_kernel: u64,
    /// In hybrid architectures every n-th layer is an attention layer, the others are state-space layers.
    pub full_attention_interval: u64,
}

impl StateSpace {
    /// The state and the heads of the real models: other backends support no other sizes. The rank is a row of
    /// weights, so a multiple of the blocks of quantized types.
    fn small(architecture: Architecture) -> StateSpace {
        let (state_size, time_step_rank) = match architecture.recurrent_mixer() {
            Some(Mixer::Mamba1) => (16, 32),
            _ => (128, 8),
        };
        StateSpace { state_size, time_step_rank, n_groups: 1, conv_kernel: 4, full_attention_interval: 4 }
    }
}

/// Dimensions of the short convolutions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShortConv {
    /// Width of the convolution, in tokens, from 2; its state is one less.
    pub kernel: u64,
    /// Every n-th layer is an attention layer, the others are convolutions.
    pub full_attention_interval: u64,
    /// Whether every attention layer attends to the sliding window only.
    pub is_windowed: bool,
}

/// Dimensions of multi-head latent attention. The KV cache has one row for all heads: the latent vector, of which keys
/// and values are projections, and the rotated part of the keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LatentAttention {
    /// Size of the latent vector of queries.
    pub q_lora_rank: u64,
    /// Size of the latent vector of keys and values.
    pub kv_lora_rank: u64,
    /// Rotated dimensions of a key, which all heads share.
    pub rope_dim: u64,
    /// Dimensions of a key without a position.
    pub nope_dim: u64,
    /// Size of a value.
    pub value_dim: u64,
}

/// Sliding-window attention.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlidingWindow {
    /// Size of the window, in tokens.
    pub tokens: u64,
    /// Every n-th layer attends to all tokens, the others to the window.
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
    /// Hidden size of the shared expert, for architectures that have one; for `DeepSeek2` a multiple of `n_ff`.
    pub n_ff_shared: u64,
}

/// Specification of the model to write. [`ModelSpec::small`] returns a valid one to start from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelSpec {
    /// The architecture; it determines which of the dimensions below are used.
    pub architecture: Architecture,
    /// The type of the matrices.
    pub weights: WeightType,
    /// Seed of the weights; the same seed gives the same weights.
    pub seed: u64,
    /// Number of layers, without `n_layer_nextn`.
    pub n_layer: u64,
    /// Number of blocks after the layers that predict the token after the next (MTP), 0 or 1. Used by `Qwen35`.
    pub n_layer_nextn: u64,
    /// Size of the residual stream.
    pub n_embd: u64,
    /// Hidden size of the dense feed-forward.
    pub n_ff: u64,
    /// Number of tokens, at least [`SMALLEST_VOCAB`].
    pub n_vocab: u64,
    /// Trained context length, in tokens. It does not affect the size of the model.
    pub n_context: u64,
    /// Base of the frequencies of rotary positions. It does not affect the weights.
    pub rope_base: u16,
    /// Number of attention heads.
    pub n_head: u64,
    /// Number of key and value heads of attention. Divides `n_head`.
    pub n_head_kv: u64,
    /// Size of an attention head.
    pub head_dim: u64,
    /// Used by `Gemma3`, `GptOss` and, if it is windowed, `Lfm2`.
    pub sliding_window: SlidingWindow,
    /// Used by `Qwen35`, `Qwen35Moe` and `Qwen3Next`.
    pub delta_net: DeltaNet,
    /// Used by `DeepSeek2`, instead of `n_head_kv` and `head_dim`.
    pub latent: LatentAttention,
    /// Used by `Lfm2`.
    pub short_conv: ShortConv,
    /// Used by `GraniteHybrid`, `Jamba` and `Mamba2`.
    pub state_space: StateSpace,
    /// Used by `Qwen35Moe`, `Qwen3Next`, `GptOss` and `DeepSeek2`.
    pub experts: Experts,
}

/// The smallest vocabulary: three special tokens and one for each byte.
pub const SMALLEST_VOCAB: u64 = 3 + 256;

impl ModelSpec {
    /// A model of a few megabytes with four layers, whose dimensions fit every supported weight type.
    pub fn small(architecture: Architecture, weights: WeightType) -> ModelSpec {
        ModelSpec {
            architecture,
            weights,
            seed: 1,
            n_layer: 4,
            n_layer_nextn: 0,
            n_embd: 256,
            n_ff: 512,
            n_vocab: 320,
            n_context: 4096,
            rope_base: 10_000,
            n_head: 4,
            n_head_kv: 2,
            head_dim: 64,
            sliding_window: SlidingWindow { tokens: 16, full_attention_interval: 2 },
            delta_net: DeltaNet {
                head_dim: 64,
                n_key_heads: 4,
                n_value_heads: 8,
                conv_kernel: 4,
                full_attention_interval: 4,
            },
            latent: LatentAttention {
                q_lora_rank: 64,
                kv_lora_rank: 128,
                rope_dim: 64,
                nope_dim: 64,
                value_dim: 64,
            },
            short_conv: ShortConv { kernel: 3, full_attention_interval: 2, is_windowed: false },
            state_space: StateSpace::small(architecture),
            experts: Experts { count: 4, used: 2, n_ff: 128, n_ff_shared: 128 },
        }
    }

    /// The same weights with every expert used for each token, so that no rounding error changes the choice.
    #[must_use]
    pub fn with_all_experts(mut self) -> ModelSpec {
        self.experts.used = self.experts.count;
        self
    }

    /// A small model that drafts for itself, with one block that predicts the token after the next (`--spec-type
    /// draft-mtp`).
    pub fn small_with_nextn(weights: WeightType) -> ModelSpec {
        ModelSpec { n_layer_nextn: 1, ..ModelSpec::small(Architecture::Qwen35, weights) }
    }

    /// A small model with short convolutions whose attention layers attend to a window: the only architecture with a
    /// recurrent state beside a window.
    pub fn small_windowed_hybrid(weights: WeightType) -> ModelSpec {
        let spec = ModelSpec::small(Architecture::Lfm2, weights);
        let short_conv = ShortConv { is_windowed: true, ..spec.short_conv };
        ModelSpec { short_conv, ..spec }
    }

    /// The model for the server benchmarks: 70 million weights with plain attention, small enough for two cores and
    /// large enough that computation, not HTTP, dominates the time.
    pub fn plain_70_million() -> ModelSpec {
        ModelSpec {
            n_layer: 12,
            n_embd: 512,
            n_ff: 1536,
            n_vocab: 32_000,
            n_context: 32_768,
            n_head: 8,
            n_head_kv: 2,
            head_dim: 64,
            ..ModelSpec::small(Architecture::Qwen3, WeightType::F16)
        }
    }

    /// As [`ModelSpec::plain_70_million`], with a window of 512 tokens in five of six layers, as in Gemma 3.
    pub fn window_70_million() -> ModelSpec {
        ModelSpec {
            architecture: Architecture::Gemma3,
            sliding_window: SlidingWindow { tokens: 512, full_attention_interval: 6 },
            ..ModelSpec::plain_70_million()
        }
    }

    /// As [`ModelSpec::plain_70_million`], with gated delta nets in three of four layers, as in Qwen 3.5. The heads are
    /// as large as in the published models; the states of a sequence have 4.9 MB.
    pub fn hybrid_70_million() -> ModelSpec {
        ModelSpec {
            architecture: Architecture::Qwen35,
            n_ff: 832,
            delta_net: DeltaNet {
                head_dim: 128,
                n_key_heads: 4,
                n_value_heads: 8,
                conv_kernel: 4,
                full_attention_interval: 4,
            },
            ..ModelSpec::plain_70_million()
        }
    }

    pub(super) fn mixer(&self, layer: u64) -> Mixer {
        let is_last_of_interval = (layer + 1).is_multiple_of(self.full_attention_interval());
        match self.architecture.recurrent_mixer() {
            Some(mixer) if !self.architecture.has_attention() || !is_last_of_interval => mixer,
            _ => self.architecture.attention_mixer(),
        }
    }

    pub(super) fn is_attention_layer(&self, layer: u64) -> bool {
        self.mixer(layer) == self.architecture.attention_mixer()
    }

    fn full_attention_interval(&self) -> u64 {
        match self.architecture.recurrent_mixer() {
            Some(Mixer::DeltaNet) => self.delta_net.full_attention_interval,
            Some(Mixer::ShortConv) => self.short_conv.full_attention_interval,
            Some(Mixer::Mamba1 | Mixer::Mamba2) => self.state_space.full_attention_interval,
            Some(Mixer::Attention | Mixer::LatentAttention) | None => 1,
        }
    }

    pub(super) fn has_experts_in(&self, layer: u64) -> bool {
        self.architecture.has_experts() && layer >= self.architecture.n_leading_dense()
    }

    /// Rotated dimensions of a head: a quarter in architectures with delta nets, a part of its own in latent attention,
    /// all in the others.
    pub(super) fn rope_dims(&self) -> u64 {
        match self.architecture.attention_mixer() {
            Mixer::LatentAttention => self.latent.rope_dim,
            _ if self.architecture.has_delta_net() => self.head_dim / 4,
            _ => self.head_dim,
        }
    }

    pub(super) fn value_dim(&self) -> u64 {
        self.delta_net.head_dim * self.delta_net.n_value_heads
    }

    pub(super) fn key_dim(&self) -> u64 {
        self.delta_net.head_dim * self.delta_net.n_key_heads
    }

    /// Inner size of the state-space layers.
    pub(super) fn inner_size(&self) -> u64 {
        2 * self.n_embd
    }
}
