//! The models of the fuzzer: one for each kind of memory.

use clap::ValueEnum;
use espalier_modelgen::{Architecture, ModelSpec, SlidingWindow, WeightType};

/// A model that servers load. Only the first is trained; the weights of the others are random, and their tokens are
/// bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ModelKind {
    /// Full attention, trained.
    Trained,
    /// Full attention; the adapters and the vision encoder are for this model.
    Llama,
    /// Full attention with one row for all heads (MLA).
    #[value(name = "deepseek2")]
    DeepSeek2,
    /// Full attention with positions in three dimensions (M-RoPE).
    #[value(name = "qwen2vl")]
    Qwen2Vl,
    /// A sliding window in every second layer.
    Gemma3,
    /// A sliding window in every second layer, attention sinks, mixture of experts.
    GptOss,
    /// Gated delta nets and attention, M-RoPE.
    Qwen35,
    /// Short convolutions and attention.
    Lfm2,
    /// Short convolutions, and attention with a sliding window.
    Lfm2Window,
    /// Mamba-2 and attention.
    GraniteHybrid,
    /// Mamba-1 and attention.
    Jamba,
    /// Mamba-2 without attention.
    Mamba2,
}

impl ModelKind {
    /// All models.
    pub const ALL: [ModelKind; 12] = [
        ModelKind::Trained,
        ModelKind::Llama,
        ModelKind::DeepSeek2,
        ModelKind::Qwen2Vl,
        ModelKind::Gemma3,
        ModelKind::GptOss,
        ModelKind::Qwen35,
        ModelKind::Lfm2,
        ModelKind::Lfm2Window,
        ModelKind::GraniteHybrid,
        ModelKind::Jamba,
        ModelKind::Mamba2,
    ];

    /// The random models, in the order in which rounds rotate through them: each class of memory comes early.
    pub const ROTATION: [ModelKind; 11] = [
        ModelKind::Qwen35,
        ModelKind::Gemma3,
        ModelKind::GptOss,
        ModelKind::Lfm2,
        ModelKind::GraniteHybrid,
        ModelKind::Jamba,
        ModelKind::Mamba2,
        ModelKind::Lfm2Window,
        ModelKind::DeepSeek2,
        ModelKind::Qwen2Vl,
        ModelKind::Llama,
    ];

    /// Models for which there is an encoder whose tokens share a position, without and with a recurrent state. The
    /// encoder of [`ModelKind::Llama`] is another one.
    pub const SEEING: [ModelKind; 2] = [ModelKind::Qwen2Vl, ModelKind::Qwen35];

    /// As [`ModelKind::suggested`], for the theme of images.
    pub fn suggested_for_images(pass: usize) -> Option<ModelKind> {
        (pass % 2 == 1).then(|| ModelKind::SEEING[pass / 2 % ModelKind::SEEING.len()])
    }

    /// Returns the model that a round suggests to its theme. `pass` counts how often all themes have come before. In
    /// even passes it is the theme's own, `None`; in odd ones the next of the rotation.
    pub fn suggested(pass: usize, theme: usize) -> Option<ModelKind> {
        (pass % 2 == 1).then(|| ModelKind::ROTATION[(pass / 2 + theme) % ModelKind::ROTATION.len()])
    }

    /// Name for `--model`, and of its file.
    pub fn name(self) -> &'static str {
        match self {
            ModelKind::Trained => "trained",
            ModelKind::Llama => "llama",
            ModelKind::DeepSeek2 => "deepseek2",
            ModelKind::Qwen2Vl => "qwen2vl",
            ModelKind::Gemma3 => "gemma3",
            ModelKind::GptOss => "gpt-oss",
            ModelKind::Qwen35 => "qwen35",
            ModelKind::Lfm2 => "lfm2",
            ModelKind::Lfm2Window => "lfm2-window",
            ModelKind::GraniteHybrid => "granite-hybrid",
            ModelKind::Jamba => "jamba",
            ModelKind::Mamba2 => "mamba2",
        }
    }

    /// Returns the specification of a random model.
    pub fn spec(self) -> Option<ModelSpec> {
        let architecture = match self {
            ModelKind::Trained => return None,
            ModelKind::Lfm2Window => return Some(ModelSpec::small_windowed_hybrid(WeightType::F16)),
            ModelKind::Llama => Architecture::Llama,
            ModelKind::DeepSeek2 => Architecture::DeepSeek2,
            ModelKind::Qwen2Vl => Architecture::Qwen2Vl,
            ModelKind::Gemma3 => Architecture::Gemma3,
            ModelKind::GptOss => return Some(widely_windowed()),
            ModelKind::Qwen35 => Architecture::Qwen35,
            ModelKind::Lfm2 => Architecture::Lfm2,
            ModelKind::GraniteHybrid => Architecture::GraniteHybrid,
            ModelKind::Jamba => Architecture::Jamba,
            ModelKind::Mamba2 => Architecture::Mamba2,
        };
        Some(ModelSpec::small(architecture, WeightType::F16))
    }

    /// Whether its memory can be paged: not yet a state beside a window, and not a state alone.
    pub fn can_be_paged(self) -> bool {
        !matches!(self, ModelKind::Lfm2Window | ModelKind::Mamba2)
    }

    /// Whether layers attend to a sliding window.
    pub fn has_window(self) -> bool {
        matches!(self, ModelKind::Gemma3 | ModelKind::GptOss | ModelKind::Lfm2Window)
    }

    /// Whether sequences have a recurrent state.
    pub fn has_state(self) -> bool {
        matches!(self, ModelKind::Lfm2Window | ModelKind::Mamba2) || self.state_kib().is_some()
    }

    /// Size of the states of a sequence in KiB, rounded up, if snapshots of them are taken: those of convolutions and
    /// of recurrences in all layers.
    pub fn state_kib(self) -> Option<u64> {
        match self {
            ModelKind::Qwen35 => Some(420),
            ModelKind::Lfm2 => Some(4),
            ModelKind::GraniteHybrid => Some(795),
            ModelKind::Jamba => Some(114),
            _ => None,
        }
    }

    /// Kind of its memory, for reports.
    pub fn memory(self) -> &'static str {
        match (self.has_state(), self.has_window()) {
            (true, _) => "recurrent states",
            (false, true) => "sliding windows",
            (false, false) => "full attention",
        }
    }

    /// Whether the tolerances of all cache types were observed with its architecture.
    pub fn has_every_cache_type(self) -> bool {
        matches!(self, ModelKind::Trained | ModelKind::Llama)
    }
}

/// A window of more than two blocks, which does not end where a block ends. That of [`ModelKind::Gemma3`] is smaller
/// than a block.
fn widely_windowed() -> ModelSpec {
    let small = ModelSpec::small(Architecture::GptOss, WeightType::F16);
    let sliding_window = SlidingWindow { tokens: 130, ..small.sliding_window.clone() };
    ModelSpec { sliding_window, ..small }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_random_model_is_in_the_rotation() {
        for model in ModelKind::ALL {
            assert_eq!(ModelKind::ROTATION.contains(&model), model.spec().is_some(), "{model:?}");
        }
    }

    #[test]
    fn every_theme_gets_every_random_model() {
        for theme in 0..16 {
            let suggested = |model| (0..22).any(|pass| ModelKind::suggested(pass, theme) == Some(model));
            assert!(ModelKind::ROTATION.into_iter().all(suggested), "{theme}");
            assert_eq!(ModelKind::suggested(0, theme), None);
        }
    }
}
