//! Feature switches: every feature is off by default.
//!
//! `ESPALIER_ENABLE` and `ESPALIER_DISABLE` hold comma-separated lists of feature names. They are read once, on first
//! use, so that a process never changes its behaviour between two graphs. The second one overrides features that
//! another option enables: attention, with a paged cache.

use std::sync::OnceLock;

use crate::report;

/// The environment variable that names the features to switch on.
pub const ENABLE_VARIABLE: &str = "ESPALIER_ENABLE";

/// The environment variable that names the features to keep off, even if another option enables them.
pub const DISABLE_VARIABLE: &str = "ESPALIER_DISABLE";

/// A behaviour that differs from stock llama.cpp.
///
/// The values are part of the C ABI (`enum espalier_feature`): append, never renumber.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Feature {
    /// Gated delta net layers multiply all sequences by the output projection at once.
    GdnFlatOutput = 0,
    /// Flash attention on the CPU is computed by our kernel.
    Attention = 1,
    /// The recurrence of gated delta nets on the CPU is computed by our kernel, in place.
    GdnRecurrence = 2,
    /// Matrix multiplication with q8_0 weights on the CPU is computed by our kernel.
    MulMat = 3,
}

impl Feature {
    /// Every feature, in the order of their numbers.
    pub const ALL: [Feature; 4] =
        [Feature::GdnFlatOutput, Feature::Attention, Feature::GdnRecurrence, Feature::MulMat];

    /// Returns the name used in both variables.
    pub fn name(self) -> &'static str {
        match self {
            Feature::GdnFlatOutput => "gdn-flat-output",
            Feature::Attention => "attention",
            Feature::GdnRecurrence => "gdn-recurrence",
            Feature::MulMat => "mul-mat",
        }
    }

    /// Returns the feature with this C number, or `None` if there is none.
    pub fn from_number(number: u32) -> Option<Feature> {
        Self::ALL.into_iter().find(|feature| *feature as u32 == number)
    }

    fn from_name(name: &str) -> Option<Feature> {
        Self::ALL.into_iter().find(|feature| feature.name() == name)
    }

    fn bit(self) -> u32 {
        1 << (self as u32)
    }
}

/// A set of features.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FeatureSet {
    bits: u32,
}

impl FeatureSet {
    /// Returns whether `feature` is in the set.
    pub fn contains(self, feature: Feature) -> bool {
        self.bits & feature.bit() != 0
    }

    /// Returns the names in the set, comma-separated, in the order of their numbers; empty if none.
    pub fn names(self) -> String {
        comma_separated(Feature::ALL.into_iter().filter(|feature| self.contains(*feature)))
    }

    /// Returns the features that are not in `others`.
    fn without(self, others: FeatureSet) -> FeatureSet {
        FeatureSet { bits: self.bits & !others.bits }
    }

    fn insert(&mut self, feature: Feature) {
        self.bits |= feature.bit();
    }
}

/// The parsed value of a variable: known features, and unknown names.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// The features that have these names.
    pub features: FeatureSet,
    /// Unknown names, in the order in which they were written.
    pub unknown: Vec<String>,
}

/// Reads a comma-separated list of feature names. Blanks and empty entries are skipped.
pub fn parse_request(text: &str) -> Request {
    let mut request = Request::default();
    for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        match Feature::from_name(name) {
            Some(feature) => request.features.insert(feature),
            None => request.unknown.push(name.to_owned()),
        }
    }
    request
}

/// Returns the features that are enabled in this process and not disabled. Unknown names are reported once, on first
/// use.
pub fn enabled_features() -> FeatureSet {
    static ENABLED: OnceLock<FeatureSet> = OnceLock::new();
    *ENABLED.get_or_init(|| read_variable(ENABLE_VARIABLE).without(disabled_features()))
}

/// Returns the features that are disabled in this process; unknown names are reported as above.
pub fn disabled_features() -> FeatureSet {
    static DISABLED: OnceLock<FeatureSet> = OnceLock::new();
    *DISABLED.get_or_init(|| read_variable(DISABLE_VARIABLE))
}

fn read_variable(name: &str) -> FeatureSet {
    let text = std::env::var_os(name).unwrap_or_default();
    let request = parse_request(&text.to_string_lossy());
    if !request.unknown.is_empty() {
        report::line_to_stderr(&unknown_names_message(name, &request.unknown));
    }
    request.features
}

fn unknown_names_message(variable: &str, unknown: &[String]) -> String {
    let unknown = unknown.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let known = comma_separated(Feature::ALL.into_iter());
    format!("{variable} names unknown features: {unknown}; known features: {known}")
}

fn comma_separated(features: impl Iterator<Item = Feature>) -> String {
    features.map(Feature::name).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_asked_means_nothing_enabled() {
        for text in ["", " ", ",", " , ,"] {
            assert_eq!(parse_request(text), Request::default(), "{text:?}");
        }
    }

    #[test]
    fn a_known_name_is_enabled_despite_blanks_and_repeats() {
        let request = parse_request(" gdn-flat-output ,gdn-flat-output,");
        assert!(request.features.contains(Feature::GdnFlatOutput));
        assert!(request.unknown.is_empty());
    }

    #[test]
    fn unknown_names_are_collected_and_do_not_affect_known_ones() {
        let request = parse_request("paged-kv,gdn-flat-output,GDN-FLAT-OUTPUT");
        assert!(request.features.contains(Feature::GdnFlatOutput));
        assert_eq!(request.unknown, ["paged-kv", "GDN-FLAT-OUTPUT"]);
    }

    #[test]
    fn the_message_names_the_unknown_and_the_known() {
        let message = unknown_names_message(ENABLE_VARIABLE, &["paged-kv".to_owned()]);
        assert_eq!(
            message,
            "ESPALIER_ENABLE names unknown features: `paged-kv`; \
             known features: gdn-flat-output,attention,gdn-recurrence,mul-mat"
        );
    }

    #[test]
    fn disabled_features_are_off() {
        let asked = parse_request("gdn-flat-output,attention").features;
        let off = parse_request("attention").features;
        assert_eq!(asked.without(off).names(), "gdn-flat-output");
        assert_eq!(asked.without(FeatureSet::default()), asked);
    }

    #[test]
    fn numbers_and_names_lead_back_to_the_feature() {
        for feature in Feature::ALL {
            assert_eq!(Feature::from_number(feature as u32), Some(feature));
            assert_eq!(Feature::from_name(feature.name()), Some(feature));
        }
        assert_eq!(Feature::from_number(u32::MAX), None);
    }

    #[test]
    fn a_set_lists_its_names() {
        assert_eq!(FeatureSet::default().names(), "");
        assert_eq!(parse_request("gdn-flat-output").features.names(), "gdn-flat-output");
    }
}
