//! PURE: models that the probe decodes, and the features that are switched on.

use espalier_core::error::{Error, Result};
use espalier_modelgen::{Architecture, WeightType};
use espalier_series::Numerics;

use super::verdict::Claim;
use crate::serving::switches::FEATURE;

/// A model to decode.
#[derive(Clone, Copy)]
pub struct Model {
    /// Architecture.
    pub architecture: Architecture,
    /// Type of its weights.
    pub weights: WeightType,
}

/// Returns the models of the named architectures; all if none is named.
///
/// # Errors
///
/// A name is not a compared architecture.
pub fn models(named: &[String]) -> Result<Vec<Model>> {
    let known = Architecture::ALL.map(Architecture::name);
    if let Some(unknown) = named.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(
            Error::usage(format!("no model `{unknown}`")).hint(format!("use one of: {}", known.join(", ")))
        );
    }
    let is_named =
        |model: &Model| named.is_empty() || named.iter().any(|name| name == model.architecture.name());
    Ok(all().into_iter().filter(is_named).collect())
}

/// Returns all models.
pub fn all() -> Vec<Model> {
    let with = |architecture: Architecture| {
        let weights = [WeightType::F16, WeightType::Q8_0, WeightType::Q4_0];
        weights.map(|weights| Model { architecture, weights })
    };
    Architecture::ALL.into_iter().flat_map(with).collect()
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
    /// Returns the cases of this model, in rounds that run one after the other.
    pub fn rounds(self) -> impl Iterator<Item = Vec<Case>> {
        let case = move |&(sequences, threads): &(u32, u32)| Case { model: self, sequences, threads };
        ROUNDS.into_iter().map(move |round| round.iter().map(case).collect::<Vec<Case>>())
    }
}

impl Case {
    /// Name for messages.
    pub fn name(&self) -> String {
        let Model { architecture, weights } = self.model;
        format!("{} {} {} sequences", architecture.name(), weights.name(), self.sequences)
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
