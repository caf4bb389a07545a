//! The permitted numerical effect of a patch: the value of its trailer `Numerics:`.
//!
//! * `identical`: no bit of any logit changes.
//! * `bounded N`: no logit changes by more than `N`, whatever is enabled or disabled.
//! * `bounded N with FEATURE`: the same, and no bit changes unless `FEATURE` is enabled.
//!
//! `N` is a difference of logits, so in natural logarithms. It is additive: the bound of a series is the sum of the
//! bounds of its patches.

use crate::model::patch::Patch;

/// The numerical effect that a patch declares.
#[derive(Clone, Debug, PartialEq)]
pub enum Numerics {
    /// No bit of any logit changes.
    Identical,
    /// No logit changes by more than the bound.
    Bounded {
        /// The bound, above 0 and finite.
        most: f64,
        /// The feature that has to be enabled before any bit changes; `None` if the bound always applies.
        feature: Option<String>,
    },
}

/// The permitted values of the trailer, for messages.
pub const NUMERICS_ALLOWED: &str = "`identical`, `bounded N` or `bounded N with FEATURE`, where N is the most that a logit moves, such as 1e-5";

impl Numerics {
    /// Parses the trailer's value; `None` if it is malformed.
    pub fn parse(value: &str) -> Option<Numerics> {
        match value.split(' ').collect::<Vec<_>>()[..] {
            ["identical"] => Some(Numerics::Identical),
            ["bounded", most] => Some(Numerics::Bounded { most: read_bound(most)?, feature: None }),
            ["bounded", most, "with", feature] if is_feature(feature) => {
                Some(Numerics::Bounded { most: read_bound(most)?, feature: Some(feature.to_string()) })
            }
            _ => None,
        }
    }

    /// Returns the declaration of `patch`. A missing or malformed one counts as `identical`.
    pub fn of(patch: &Patch) -> Numerics {
        let mut trailers = patch.trailers.iter();
        let trailer = trailers.find(|trailer| trailer.key.eq_ignore_ascii_case("numerics"));
        trailer.and_then(|trailer| Numerics::parse(&trailer.value)).unwrap_or(Numerics::Identical)
    }

    /// Returns the largest change of a logit if only `enabled` is enabled.
    pub fn most_with(&self, enabled: Option<&str>) -> f64 {
        match self {
            Numerics::Bounded { most, feature } if feature.is_none() || feature.as_deref() == enabled => {
                *most
            }
            _ => 0.0,
        }
    }
}

/// Accepts digits, a point and an exponent: not `inf`, `nan` or a sign, which Rust would parse too.
fn read_bound(text: &str) -> Option<f64> {
    let is_plain = text.starts_with(|letter: char| letter.is_ascii_digit())
        && text.bytes().all(|byte| byte.is_ascii_digit() || b".e-".contains(&byte));
    let most: f64 = is_plain.then(|| text.parse().ok())??;
    (most > 0.0 && most.is_finite()).then_some(most)
}

/// Returns whether `name` is a valid feature name; it becomes a word of an environment variable.
fn is_feature(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !name.is_empty() && name.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounded(most: f64, feature: Option<&str>) -> Option<Numerics> {
        Some(Numerics::Bounded { most, feature: feature.map(str::to_string) })
    }

    #[test]
    fn the_three_forms_are_read() {
        assert_eq!(Numerics::parse("identical"), Some(Numerics::Identical));
        assert_eq!(Numerics::parse("bounded 1e-5"), bounded(1e-5, None));
        assert_eq!(Numerics::parse("bounded 0.002 with flat-2"), bounded(0.002, Some("flat-2")));
    }

    #[test]
    fn a_bound_is_a_positive_number() {
        for value in [
            "",
            "bounded",
            "bounded ",
            "bounded 0",
            "bounded 0e5",
            "bounded -1e-5",
            "bounded inf",
            "bounded NaN",
            "bounded 1e999",
            "bounded 1e-5 ",
            "bounded 1e-5  with x",
            "bounded 1e-5 with",
            "bounded 1e-5 with X",
            "bounded 1e-5 with a b",
            "bounded 1e-5 without x",
            "bounded by 1e-5",
            "identical with x",
            "Identical",
        ] {
            assert_eq!(Numerics::parse(value), None, "{value}");
        }
    }

    #[test]
    fn a_feature_that_is_off_moves_nothing() {
        let always = bounded(0.5, None).unwrap();
        let asked_for = bounded(0.25, Some("x")).unwrap();
        assert_eq!([always.most_with(None), always.most_with(Some("y"))], [0.5, 0.5]);
        let with = [None, Some("y"), Some("x")].map(|enabled| asked_for.most_with(enabled));
        assert_eq!(with, [0.0, 0.0, 0.25]);
        assert_eq!(Numerics::Identical.most_with(Some("x")), 0.0);
    }
}
