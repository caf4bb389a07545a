//! The architectures of random models, and which parts their layers have.

/// A model architecture that llama.cpp loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    /// Plain attention and a dense feed-forward.
    Llama,
    /// As `Llama`, with normalized queries and keys.
    Qwen3,
    /// As `Qwen3`, with a sliding window in most layers and norms after each block.
    Gemma3,
    /// Gated delta net and attention layers, dense feed-forward.
    Qwen35,
    /// Gated delta net and attention layers, mixture of experts.
    Qwen35Moe,
    /// As `Qwen35Moe`, with beta and alpha in one tensor and ordinary rotary positions.
    Qwen3Next,
    /// gpt-oss: a sliding window in every second layer, attention sinks, biases everywhere, mixture of experts.
    GptOss,
    /// Short convolutions and attention layers, dense feed-forward.
    Lfm2,
    /// Mamba-2 and attention layers, dense feed-forward. Unlike in most published models, rotary positions are on (the
    /// default, without `rope.scaling.finetuned`), so that a wrong position shows.
    GraniteHybrid,
    /// Mamba-1 and attention layers without positions, dense feed-forward.
    Jamba,
    /// Mamba-2 layers alone: no attention, no feed-forward, no KV cache.
    Mamba2,
    /// Multi-head latent attention (MLA), a dense first layer, then a mixture of experts.
    DeepSeek2,
    /// As `Llama`, with biases of queries, keys and values, and positions of time, height and width (M-RoPE).
    Qwen2Vl,
}

/// The part of a layer that mixes tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mixer {
    Attention,
    LatentAttention,
    DeltaNet,
    ShortConv,
    Mamba1,
    Mamba2,
}

impl Architecture {
    /// Every architecture this module writes.
    pub const ALL: [Architecture; 13] = [
        Architecture::Llama,
        Architecture::Qwen3,
        Architecture::Gemma3,
        Architecture::Qwen35,
        Architecture::Qwen35Moe,
        Architecture::Qwen3Next,
        Architecture::GptOss,
        Architecture::Lfm2,
        Architecture::GraniteHybrid,
        Architecture::Jamba,
        Architecture::Mamba2,
        Architecture::DeepSeek2,
        Architecture::Qwen2Vl,
    ];

    /// The value of `general.architecture`.
    pub fn name(self) -> &'static str {
        match self {
            Architecture::Llama => "llama",
            Architecture::Qwen3 => "qwen3",
            Architecture::Gemma3 => "gemma3",
            Architecture::Qwen35 => "qwen35",
            Architecture::Qwen35Moe => "qwen35moe",
            Architecture::Qwen3Next => "qwen3next",
            Architecture::GptOss => "gpt-oss",
            Architecture::Lfm2 => "lfm2",
            Architecture::GraniteHybrid => "granitehybrid",
            Architecture::Jamba => "jamba",
            Architecture::Mamba2 => "mamba2",
            Architecture::DeepSeek2 => "deepseek2",
            Architecture::Qwen2Vl => "qwen2vl",
        }
    }

    /// Whether most layers have the recurrent state of a gated delta net instead of a KV cache.
    pub fn has_delta_net(self) -> bool {
        matches!(self, Architecture::Qwen35 | Architecture::Qwen35Moe | Architecture::Qwen3Next)
    }

    /// Mixer of the layers that are not attention, if there are any.
    pub(super) fn recurrent_mixer(self) -> Option<Mixer> {
        match self {
            _ if self.has_delta_net() => Some(Mixer::DeltaNet),
            Architecture::Lfm2 => Some(Mixer::ShortConv),
            Architecture::GraniteHybrid | Architecture::Mamba2 => Some(Mixer::Mamba2),
            Architecture::Jamba => Some(Mixer::Mamba1),
            _ => None,
        }
    }

    /// Mixer of the attention layers.
    pub(super) fn attention_mixer(self) -> Mixer {
        if self == Architecture::DeepSeek2 { Mixer::LatentAttention } else { Mixer::Attention }
    }

    /// Whether there are attention layers; without them there is no feed-forward either.
    pub(super) fn has_attention(self) -> bool {
        self != Architecture::Mamba2
    }

    /// Whether the metadata tells attention layers by their number of key and value heads, which is 0 in the others.
    pub(super) fn has_head_counts_by_layer(self) -> bool {
        matches!(self, Architecture::Lfm2 | Architecture::GraniteHybrid | Architecture::Jamba)
    }

    /// Whether the loader takes `n_embd` for the size of all query heads.
    pub(super) fn has_heads_as_wide_as_embeddings(self) -> bool {
        matches!(self, Architecture::Lfm2 | Architecture::Jamba | Architecture::Qwen2Vl)
    }

    pub(super) fn has_query_and_key_norms(self) -> bool {
        let others = [Architecture::Qwen3, Architecture::Gemma3, Architecture::Lfm2];
        self.has_delta_net() || others.contains(&self)
    }

    pub(super) fn has_sliding_window(self) -> bool {
        matches!(self, Architecture::Gemma3 | Architecture::GptOss)
    }

    pub(super) fn has_norms_after_blocks(self) -> bool {
        self == Architecture::Gemma3
    }

    pub(super) fn has_query_biases(self) -> bool {
        matches!(self, Architecture::GptOss | Architecture::Qwen2Vl)
    }

    /// Whether the output of attention and the experts have biases, and attention has a sink for each head.
    pub(super) fn has_biases_and_sinks(self) -> bool {
        self == Architecture::GptOss
    }

    /// Whether a router chooses among experts for each token.
    pub fn has_experts(self) -> bool {
        let others = [Architecture::Qwen3Next, Architecture::GptOss, Architecture::DeepSeek2];
        self == Architecture::Qwen35Moe || others.contains(&self)
    }

    /// Number of layers, from the first, that have a dense feed-forward before the layers with experts.
    pub(super) fn n_leading_dense(self) -> u64 {
        u64::from(self == Architecture::DeepSeek2)
    }

    /// Whether each token also uses an expert that is not chosen.
    pub(super) fn has_shared_expert(self) -> bool {
        self.has_experts() && self != Architecture::GptOss
    }

    /// Whether the shared expert is weighed by a router of its own.
    pub(super) fn has_shared_expert_router(self) -> bool {
        self.has_shared_expert() && self != Architecture::DeepSeek2
    }

    pub(super) fn has_rope_sections(self) -> bool {
        matches!(self, Architecture::Qwen35 | Architecture::Qwen35Moe | Architecture::Qwen2Vl)
    }

    /// Name of the norm before the output; LFM2's is wrong in llama.cpp, and stays for compatibility.
    pub(super) fn output_norm(self) -> &'static str {
        if self == Architecture::Lfm2 { "token_embd_norm.weight" } else { "output_norm.weight" }
    }

    /// Name of the norm before the feed-forward, which depends on the family.
    pub(super) fn feed_forward_norm(self) -> &'static str {
        let is_named_after_attention = self.has_delta_net() || self == Architecture::GptOss;
        if is_named_after_attention { "post_attention_norm.weight" } else { "ffn_norm.weight" }
    }
}
