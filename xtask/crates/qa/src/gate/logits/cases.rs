//! PURE: models that the probe decodes, and the features that are switched on.

use espalier_core::error::{Error, Result};
use espalier_modelgen::{Architecture, ModelSpec, WeightType};
use espalier_series::Numerics;

use super::kernels::Kernels;
use super::verdict::Claim;
use crate::serving::switches::FEATURE;

/// A model to decode.
#[derive(Clone, Copy, Debug)]
pub struct Model {
    /// Architecture.
    pub architecture: Architecture,
    /// Type of its weights.
    pub weights: WeightType,
    /// Whether every expert is used for each token; otherwise a router chooses some, if there are any.
    pub all_experts: bool,
    /// Features of our build that it is compared with.
    pub features: Features,
}

/// Features of our build with which a model is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Features {
    /// With none, and with each.
    All,
    /// With none only: a feature that rounds differently may make a router choose other experts.
    Off,
    /// With each, but not with none.
    On,
}

impl Features {
    /// Whether a feature, or none, is among them.
    pub fn contain(self, enabled: Option<&str>) -> bool {
        match self {
            Features::All => true,
            Features::Off => enabled.is_none(),
            Features::On => enabled.is_some(),
        }
    }
}

/// Architectures that are compared: one for each kind of layer that a patch or a kernel touches.
const COMPARED: [Architecture; 6] = [
    Architecture::Llama,
    Architecture::Qwen3,
    Architecture::Gemma3,
    Architecture::Qwen35,
    Architecture::Qwen35Moe,
    Architecture::Qwen3Next,
];

/// Returns the models of the named architectures; all if none is named.
///
/// # Errors
///
/// A name is not a compared architecture.
pub fn models(named: &[String]) -> Result<Vec<Model>> {
    let known = COMPARED.map(Architecture::name);
    if let Some(unknown) = named.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(
            Error::usage(format!("no model `{unknown}`")).hint(format!("use one of: {}", known.join(", ")))
        );
    }
    let is_named =
        |model: &Model| named.is_empty() || named.iter().any(|name| name == model.architecture.name());
    Ok(all().into_iter().filter(is_named).collect())
}

/// Returns all models; one with experts twice, since no bound holds for logits that follow from other experts.
pub fn all() -> Vec<Model> {
    let with = |architecture: Architecture| {
        let weights = [WeightType::F16, WeightType::Q8_0, WeightType::Q4_0];
        weights.into_iter().flat_map(move |weights| Model::all_of(architecture, weights))
    };
    COMPARED.into_iter().flat_map(with).collect()
}

/// Numbers of sequences that are decoded at once, with the number of threads. Cases of a round run at the same time.
/// One has two threads: other comparisons of bytes compute with one, and would not show work that is divided wrongly.
const ROUNDS: [&[(u32, u32)]; 2] = [&[(5, 1), (8, 1)], &[(1, 2)]];

/// One comparison.
#[derive(Clone, Copy)]
pub struct Case {
    /// The model.
    pub model: Model,
    /// Number of sequences decoded at once.
    pub sequences: u32,
    /// Number of threads, on both sides: the order of a sum may depend on it.
    pub threads: u32,
}

impl Model {
    fn all_of(architecture: Architecture, weights: WeightType) -> Vec<Model> {
        let with = |all_experts, features| Model { architecture, weights, all_experts, features };
        if architecture.has_experts() {
            vec![with(false, Features::Off), with(true, Features::On)]
        } else {
            vec![with(false, Features::All)]
        }
    }

    /// Returns the model to compare two builds on. Where their kernels round differently, a router may choose other
    /// experts, and the logits that follow from that have no bound: all experts are used then.
    pub fn comparable_with(self, kernels: Kernels) -> Model {
        let must_be_all = self.architecture.has_experts() && !kernels.are_the_same();
        Model { all_experts: self.all_experts || must_be_all, ..self }
    }

    /// Returns the content of its file.
    pub fn spec(self) -> ModelSpec {
        let spec = ModelSpec::small(self.architecture, self.weights);
        if self.all_experts { spec.with_all_experts() } else { spec }
    }

    /// Name for messages.
    fn name(self) -> String {
        let experts = if self.all_experts { " all-experts" } else { "" };
        format!("{} {}{experts}", self.architecture.name(), self.weights.name())
    }

    /// Returns the cases of this model, in rounds that run one after the other.
    pub fn rounds(self) -> impl Iterator<Item = Vec<Case>> {
        let case = move |&(sequences, threads): &(u32, u32)| Case { model: self, sequences, threads };
        ROUNDS.into_iter().map(move |round| round.iter().map(case).collect::<Vec<Case>>())
    }
}

impl Case {
    /// Name for messages.
    pub fn name(&self) -> String {
        format!("{} {} sequences", self.model.name(), self.sequences)
    }

    /// Whether the kernels allow the flat shape for these weights; otherwise stock's is kept, which is logged.
    pub fn may_be_flat(&self) -> bool {
        matches!(self.model.weights, WeightType::Q8_0 | WeightType::Q4_0)
    }

    /// Whether there is anything to flatten.
    pub fn asks_for_a_shape(&self) -> bool {
        self.model.architecture.has_delta_net() && self.sequences > 1
    }
}

/// Returns the features to switch on, each alone: none, a feature of the kernels if the build has them, and every
/// feature that a patch has a claim for.
pub fn switches(claims: &[Claim], has_kernels: bool) -> Vec<Option<String>> {
    let mut switches = vec![None];
    switches.extend(has_kernels.then(|| Some(FEATURE.to_string())));
    for claim in claims {
        if let Numerics::Bounded { feature: Some(feature), .. } = &claim.numerics {
            let switch = Some(feature.clone());
            if !switches.contains(&switch) {
                switches.push(switch);
            }
        }
    }
    switches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_keeps_two_cores_busy_and_one_case_has_several_threads() {
        let rounds: Vec<Vec<Case>> = all()[0].rounds().collect();
        for round in &rounds {
            assert_eq!(round.iter().map(|case| case.threads).sum::<u32>(), 2);
        }
        assert_eq!(rounds.concat().iter().filter(|case| case.threads > 1).count(), 1);
    }

    /// Names of the models with experts, and how many of the others there are, on builds with these buffer types.
    fn compared_on(reference: &[&str], variant: &[&str]) -> (Vec<String>, usize) {
        let owned =
            |types: &[&str]| -> Vec<String> { types.iter().map(|name| (*name).to_string()).collect() };
        let kernels = Kernels::of(&owned(reference), &owned(variant));
        let models = all().into_iter().map(|model| model.comparable_with(kernels));
        let (with_experts, others): (Vec<Model>, Vec<Model>) =
            models.partition(|model| model.architecture.has_experts());
        assert!(others.iter().all(|model| !model.all_experts), "{others:?}");
        assert!(others.iter().all(|model| model.features == Features::All), "{others:?}");
        (with_experts.into_iter().map(Model::name).collect(), others.len())
    }

    #[test]
    fn experts_are_chosen_where_both_builds_have_the_same_kernels() {
        let names = ["qwen35moe f16", "qwen35moe q8_0", "qwen35moe q4_0"];
        let names = [names, ["qwen3next f16", "qwen3next q8_0", "qwen3next q4_0"]].concat();
        let off_and_on = |name: &str| [name.to_string(), format!("{name} all-experts")];
        let expected = (names.into_iter().flat_map(off_and_on).collect::<Vec<String>>(), 12);
        assert_eq!(compared_on(&[], &[]), expected);
        assert_eq!(compared_on(&["CPU_REPACK"], &["CPU_REPACK"]), expected);
        assert_eq!(compared_on(&["AMX", "CPU_REPACK"], &["AMX", "CPU_REPACK"]), expected);
    }

    #[test]
    fn all_experts_are_used_where_one_build_has_amx() {
        for (reference, variant) in [(["CPU_REPACK"], ["AMX"]), (["AMX"], ["CPU_REPACK"])] {
            let (with_experts, others) = compared_on(&reference, &variant);
            assert_eq!((with_experts.len(), others), (12, 12));
            assert!(with_experts.iter().all(|name| name.ends_with(" all-experts")), "{with_experts:?}");
        }
    }

    #[test]
    fn each_model_is_compared_with_all_features_off_and_on() {
        for architecture in COMPARED {
            let of: Vec<Model> =
                all().into_iter().filter(|model| model.architecture == architecture).collect();
            for enabled in [None, Some("a")] {
                let compared = of.iter().filter(|model| model.features.contain(enabled));
                assert_eq!(compared.count(), 3, "{} {enabled:?}", architecture.name());
            }
        }
    }

    #[test]
    fn a_model_with_all_experts_is_written_with_all_of_them() {
        let (architecture, weights) = (Architecture::Qwen3Next, WeightType::F16);
        let model = Model { architecture, weights, all_experts: false, features: Features::Off };
        let used = |model: Model| model.spec().experts.used;
        assert_eq!((used(model), used(Model { all_experts: true, ..model })), (2, 4));
    }

    #[test]
    fn each_feature_is_switched_on_once_and_alone() {
        let claim = |value: &str| Claim {
            patch: "p".to_string(),
            numerics: Numerics::parse(value).unwrap(),
            options: Vec::new(),
        };
        let claims = ["identical", "bounded 1e-5", "bounded 1e-5 with b", "bounded 1e-6 with b"].map(claim);
        let expected = [None, Some(FEATURE.to_string()), Some("b".to_string())];
        assert_eq!(switches(&claims, true), expected);
        assert_eq!(
            switches(&claims[..2], false),
            [None],
            "without the kernels there is nothing to switch on"
        );
    }
}
