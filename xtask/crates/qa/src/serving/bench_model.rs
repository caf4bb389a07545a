//! The random models of the server benchmarks, one for each kind of memory.

use clap::ValueEnum;
use espalier_modelgen::{Architecture, ModelSpec, WeightType};
use serde::{Deserialize, Serialize};

/// A kind of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BenchModel {
    /// qwen3: full attention in every layer.
    #[default]
    Plain,
    /// gemma3: a sliding window in most layers.
    Window,
    /// qwen35: a recurrent state in three of four layers.
    Hybrid,
}

impl BenchModel {
    /// All of them, in the order of the reports.
    pub const ALL: [BenchModel; 3] = [BenchModel::Plain, BenchModel::Window, BenchModel::Hybrid];

    /// Name for `--model`.
    pub fn name(self) -> &'static str {
        match self {
            BenchModel::Plain => "plain",
            BenchModel::Window => "window",
            BenchModel::Hybrid => "hybrid",
        }
    }

    /// Returns the architecture of the model.
    pub fn architecture(self) -> Architecture {
        match self {
            BenchModel::Plain => Architecture::Qwen3,
            BenchModel::Window => Architecture::Gemma3,
            BenchModel::Hybrid => Architecture::Qwen35,
        }
    }

    /// Whether it is the model of records without a name of one.
    pub fn is_plain(&self) -> bool {
        *self == BenchModel::Plain
    }

    /// Returns a model for benchmarks that take times.
    pub fn of_70_million(self) -> ModelSpec {
        match self {
            BenchModel::Plain => ModelSpec::plain_70_million(),
            BenchModel::Window => ModelSpec::window_70_million(),
            BenchModel::Hybrid => ModelSpec::hybrid_70_million(),
        }
    }

    /// Describes that model.
    pub fn title_of_70_million(self) -> String {
        format!("{} of 70 M weights, f16", self.architecture().name())
    }

    /// Returns a model of a few megabytes for benchmarks that take no times.
    pub fn small(self) -> ModelSpec {
        ModelSpec::small(self.architecture(), WeightType::F16)
    }

    /// Returns the suffix of a workload or a plot; the plain model has none.
    pub fn suffix(self, separator: &str) -> String {
        if self.is_plain() { String::new() } else { format!("{separator}{}", self.name()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_what_to_type_and_what_is_recorded() {
        for model in BenchModel::ALL {
            assert_eq!(BenchModel::from_str(model.name(), false), Ok(model));
            assert_eq!(serde_json::to_value(model).unwrap(), model.name());
            assert_eq!(model.of_70_million().architecture, model.small().architecture);
        }
        assert_eq!(
            (BenchModel::Plain.suffix("-"), BenchModel::Hybrid.suffix("-").as_str()),
            (String::new(), "-hybrid")
        );
    }
}
