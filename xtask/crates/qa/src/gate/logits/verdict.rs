//! PURE: whether the distance of two builds' logits is within the bounds that the patches declare.

use std::fmt;

use espalier_series::Numerics;

/// Numerical effect that one patch declares, and the options that it adds.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// File name of the patch.
    pub patch: String,
    /// Its `Numerics:` trailer.
    pub numerics: Numerics,
    /// Flags of options that it adds to upstream's programs.
    pub options: Vec<String>,
}

/// Maximum by which a logit may move with `enabled` switched on; 0 requires identical bytes. The bounds of stacked
/// patches add up.
pub fn most(claims: &[Claim], enabled: Option<&str>) -> f64 {
    claims.iter().map(|claim| claim.numerics.most_with(enabled)).sum()
}

/// Difference between two runs of the probe.
#[derive(Clone, Debug, PartialEq)]
pub enum Distance {
    /// Bit-identical.
    None,
    /// Different values, same number of logits.
    Moved {
        /// Offset of the first differing byte.
        byte: usize,
        /// Maximum change of a logit; infinite if one is NaN and the other is not the same.
        most: f64,
    },
    /// Different numbers of logits, given in bytes.
    Length(usize, usize),
}

/// Computes the distance of `ours` from `stock`: f32 in native byte order.
pub fn distance(stock: &[u8], ours: &[u8]) -> Distance {
    if stock.len() != ours.len() {
        return Distance::Length(stock.len(), ours.len());
    }
    let Some(byte) = stock.iter().zip(ours).position(|(stock, ours)| stock != ours) else {
        return Distance::None;
    };
    let moved = numbers(stock).zip(numbers(ours)).map(|(stock, ours)| apart(stock, ours));
    Distance::Moved { byte, most: moved.fold(0.0, f64::max) }
}

fn numbers(bytes: &[u8]) -> impl Iterator<Item = f32> {
    bytes.as_chunks::<4>().0.iter().map(|chunk| f32::from_ne_bytes(*chunk))
}

fn apart(stock: f32, ours: f32) -> f64 {
    let apart = (f64::from(stock) - f64::from(ours)).abs();
    match stock.to_bits() == ours.to_bits() {
        true => 0.0,
        false if apart.is_nan() => f64::INFINITY,
        false => apart,
    }
}

impl Distance {
    /// Whether it is allowed if a logit may move by `most`.
    pub fn is_within(&self, most: f64) -> bool {
        match self {
            Distance::None => true,
            Distance::Moved { most: moved, .. } => most > 0.0 && *moved <= most,
            Distance::Length(..) => false,
        }
    }

    /// Maximum change of a logit.
    pub fn moved(&self) -> f64 {
        match self {
            Distance::None => 0.0,
            Distance::Moved { most, .. } => *most,
            Distance::Length(..) => f64::INFINITY,
        }
    }
}

impl fmt::Display for Distance {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Distance::None => out.write_str("all bytes equal"),
            Distance::Moved { byte, most } => {
                write!(out, "byte {byte} differs, a logit moved by {most:.1e}")
            }
            Distance::Length(stock, ours) => write!(out, "{ours} bytes of logits instead of {stock}"),
        }
    }
}

/// Results with one feature switched on, over all cases.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The feature that was switched on.
    pub enabled: Option<String>,
    /// Maximum change of a logit.
    pub moved: f64,
    /// Cases too far from stock, one line each.
    pub too_far: Vec<String>,
}

impl Measured {
    /// Creates an empty result.
    pub fn new(enabled: Option<String>) -> Measured {
        Measured { enabled, moved: 0.0, too_far: Vec::new() }
    }

    /// Adds a case.
    pub fn take(&mut self, case: &str, distance: &Distance, claims: &[Claim]) {
        let most = most(claims, self.enabled.as_deref());
        self.moved = self.moved.max(distance.moved());
        if !distance.is_within(most) {
            self.too_far.push(format!("{case}, {}: {distance}; {}", self.switch(), expected(most)));
        }
    }

    /// Returns the failures, and the patches that may have caused them. `is_overridden`: the feature has no effect on
    /// this machine.
    pub fn failures(&self, claims: &[Claim], is_overridden: bool) -> Vec<String> {
        let mut failures = self.too_far.clone();
        if !failures.is_empty() {
            failures.push(format!("{}: {}", self.switch(), self.suspects(claims)));
        }
        failures.extend(self.never_switched_on(claims).filter(|_| !is_overridden));
        failures
    }

    /// Reports a feature that changed no logit although a patch declares that it does: it was never switched on.
    fn never_switched_on(&self, claims: &[Claim]) -> Option<String> {
        let enabled = self.enabled.as_deref()?;
        let of_it = claims.iter().find(|claim| {
            claim.numerics.most_with(Some(enabled)) > 0.0 && claim.numerics.most_with(None) == 0.0
        })?;
        (self.moved == 0.0 && self.too_far.is_empty()).then(|| {
            format!(
                "{}: no bit of any logit changed: `{enabled}` was never switched on, or {} is `identical`",
                self.switch(),
                of_it.patch
            )
        })
    }

    fn suspects(&self, claims: &[Claim]) -> String {
        let enabled = self.enabled.as_deref();
        let says = |claim: &Claim| match claim.numerics.most_with(enabled) {
            0.0 => format!("{} (identical)", claim.patch),
            most => format!("{} (bounded {most:e})", claim.patch),
        };
        // A feature alone changes only what its patches do; failures that also occur without it are reported there.
        let its_own = claims
            .iter()
            .filter(|claim| claim.numerics.most_with(enabled) > 0.0 && claim.numerics.most_with(None) == 0.0);
        let its_own: Vec<String> = its_own.map(says).collect();
        match &its_own[..] {
            [] => format!("one of these: {}", claims.iter().map(says).collect::<Vec<_>>().join(", ")),
            [one] => format!("it is {one}, unless something differs with everything off"),
            several => format!("one of these: {}", several.join(", ")),
        }
    }

    fn switch(&self) -> String {
        self.enabled.as_ref().map_or_else(|| "everything off".to_string(), |name| format!("`{name}` on"))
    }

    /// Returns a line for a report; `None` if identical bytes are required.
    pub fn summary(&self, claims: &[Claim]) -> Option<String> {
        let most = most(claims, self.enabled.as_deref());
        (most > 0.0).then(|| {
            let Measured { moved, .. } = self;
            format!("{}: a logit moved by {moved:.1e} at most, {most:e} is allowed", self.switch())
        })
    }
}

fn expected(most: f64) -> String {
    if most > 0.0 { format!("{most:e} is allowed") } else { "expected all bytes equal".to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(numbers: &[f32]) -> Vec<u8> {
        numbers.iter().flat_map(|number| number.to_ne_bytes()).collect()
    }

    fn claims(values: &[&str]) -> Vec<Claim> {
        let claim = |(at, value): (usize, &&str)| Claim {
            patch: format!("000{}", at + 1),
            numerics: Numerics::parse(value).unwrap(),
            options: Vec::new(),
        };
        values.iter().enumerate().map(claim).collect()
    }

    fn measured(enabled: Option<&str>, claims: &[Claim], ours: &[f32]) -> Vec<String> {
        let mut measured = Measured::new(enabled.map(str::to_string));
        measured.take("m", &distance(&bytes(&[1.0, 2.0]), &bytes(ours)), claims);
        measured.failures(claims, false)
    }

    #[test]
    fn a_difference_is_found_wherever_it_is() {
        let stock = bytes(&[1.0, 2.0]);
        assert_eq!(distance(&stock, &stock), Distance::None);
        let Distance::Moved { byte, most } = distance(&stock, &bytes(&[1.0, 2.5])) else { panic!() };
        assert!((4..8).contains(&byte) && most == 0.5, "{byte} {most}");
        assert_eq!(distance(&stock, &stock[..4]), Distance::Length(8, 4));
        assert_eq!(distance(b"", &stock[..4]), Distance::Length(0, 4));
    }

    #[test]
    fn nan_is_infinitely_far_from_other_values() {
        let far = |stock: f32, ours: f32| distance(&bytes(&[stock]), &bytes(&[ours])).moved();
        assert_eq!(far(1.0, f32::NAN), f64::INFINITY);
        assert_eq!(far(f32::INFINITY, f32::NEG_INFINITY), f64::INFINITY);
        assert_eq!(far(f32::NAN, f32::NAN), 0.0);
    }

    #[test]
    fn minus_zero_is_another_bit_and_no_distance() {
        let zero = distance(&bytes(&[0.0]), &bytes(&[-0.0]));
        assert!(!zero.is_within(0.0) && zero.is_within(1e-9));
    }

    #[test]
    fn identical_patches_are_held_to_the_bit() {
        let claims = claims(&["identical", "identical"]);
        assert_eq!(measured(None, &claims, &[1.0, 2.0]), Vec::<String>::new());
        insta::assert_snapshot!(measured(None, &claims, &[1.0, 2.5]).join("\n"), @"
        m, everything off: byte 6 differs, a logit moved by 5.0e-1; expected all bytes equal
        everything off: one of these: 0001 (identical), 0002 (identical)
        ");
    }

    #[test]
    fn a_bounded_patch_may_move_a_logit_by_its_bound() {
        let claims = claims(&["identical", "bounded 0.25", "bounded 0.25"]);
        assert_eq!(measured(None, &claims, &[1.0, 2.5]), Vec::<String>::new(), "bounds add up");
        insta::assert_snapshot!(measured(None, &claims, &[1.0, 2.75]).join("\n"), @"
        m, everything off: byte 6 differs, a logit moved by 7.5e-1; 5e-1 is allowed
        everything off: one of these: 0001 (identical), 0002 (bounded 2.5e-1), 0003 (bounded 2.5e-1)
        ");
    }

    #[test]
    fn a_patch_bounded_with_a_feature_is_held_to_the_bit_without_it() {
        let claims = claims(&["identical", "bounded 0.5 with x"]);
        assert_eq!(measured(Some("x"), &claims, &[1.0, 2.5]), Vec::<String>::new());
        assert!(measured(None, &claims, &[1.0, 2.5])[0].contains("expected all bytes equal"));
        assert!(measured(Some("y"), &claims, &[1.0, 2.5])[0].contains("expected all bytes equal"));
        insta::assert_snapshot!(measured(Some("x"), &claims, &[1.0, 3.0]).join("\n"), @"
        m, `x` on: byte 6 differs, a logit moved by 1.0e0; 5e-1 is allowed
        `x` on: it is 0002 (bounded 5e-1), unless something differs with everything off
        ");
    }

    #[test]
    fn a_feature_that_never_switches_on_does_not_pass() {
        let claims = claims(&["bounded 0.5 with x"]);
        insta::assert_snapshot!(measured(Some("x"), &claims, &[1.0, 2.0]).join("\n"), @"`x` on: no bit of any logit changed: `x` was never switched on, or 0001 is `identical`");
        assert_eq!(measured(None, &claims, &[1.0, 2.0]), Vec::<String>::new());
        assert_eq!(Measured::new(Some("x".to_string())).failures(&claims, true), Vec::<String>::new());
    }

    #[test]
    fn a_report_says_how_much_of_a_bound_was_used() {
        let claims = claims(&["bounded 0.5 with x"]);
        let mut measured = Measured::new(Some("x".to_string()));
        measured.take("m", &distance(&bytes(&[1.0]), &bytes(&[1.25])), &claims);
        let summary = measured.summary(&claims).unwrap();
        assert_eq!(summary, "`x` on: a logit moved by 2.5e-1 at most, 5e-1 is allowed");
        assert_eq!(Measured::new(None).summary(&claims), None);
    }
}
