//! PURE: results of the promise checks, as text and as JSON.

use espalier_core::context::Outcome;
use serde_json::{Value, json};

/// Result of checking one promise.
#[derive(Clone, Debug, PartialEq)]
pub struct PromiseResult {
    /// Name of the promise.
    pub name: &'static str,
    /// Violations, one line each; empty if there are none.
    pub broken: Vec<String>,
    /// Duration in seconds.
    pub seconds: f64,
}

impl PromiseResult {
    fn line(&self) -> String {
        let head = format!("{:<36} {:>5.1} s", self.name, self.seconds);
        match self.broken.is_empty() {
            true => format!("{head}  kept"),
            false => format!("{head}  BROKEN: {}", self.broken.join("\n       ")),
        }
    }

    fn to_json(&self) -> Value {
        json!({ "name": self.name, "kept": self.broken.is_empty(), "broken": self.broken,
                "seconds": self.seconds })
    }
}

/// Returns one line for each promise, and exit code 1 if one is broken.
pub fn outcome(all: &[PromiseResult]) -> Outcome {
    let kept = all.iter().filter(|one| one.broken.is_empty()).count();
    let lines =
        all.iter().map(PromiseResult::line).chain([format!("promises: {kept} of {} kept", all.len())]);
    Outcome {
        text: lines.collect::<Vec<_>>().join("\n"),
        json: json!({ "promises": all.iter().map(PromiseResult::to_json).collect::<Vec<_>>() }),
        code: u8::from(kept < all.len()),
    }
}

/// Returns the violations, one line each.
pub fn broken(all: &[PromiseResult]) -> impl Iterator<Item = String> + '_ {
    let words = |one: &PromiseResult| format!("the promise {}: {}", one.name, one.broken.join("; "));
    all.iter().filter(|one| !one.broken.is_empty()).map(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(broken: &[&str]) -> PromiseResult {
        let broken = broken.iter().map(|line| (*line).to_string()).collect();
        PromiseResult { name: "a-name", broken, seconds: 1.25 }
    }

    #[test]
    fn one_broken_promise_fails_all_and_says_what_came() {
        let outcome = outcome(&[kept(&[]), kept(&["returned 500"])]);
        assert_eq!(outcome.code, 1);
        assert!(outcome.text.contains("BROKEN: returned 500"), "{}", outcome.text);
        assert!(outcome.text.ends_with("promises: 1 of 2 kept"), "{}", outcome.text);
        assert_eq!(outcome.json["promises"][1]["kept"], false);
    }

    #[test]
    fn promises_that_hold_are_not_failures() {
        assert_eq!(outcome(&[kept(&[])]).code, 0);
        assert_eq!(broken(&[kept(&[]), kept(&["x", "y"])]).collect::<Vec<_>>(), ["the promise a-name: x; y"]);
    }
}
