//! PURE: results of the promise checks, as text and as JSON.

use espalier_core::context::Outcome;
use espalier_core::error::Kind;
use serde_json::{Value, json};

/// Result of checking one promise.
#[derive(Clone, Debug, PartialEq)]
pub struct PromiseResult {
    /// Name of the promise.
    pub name: &'static str,
    /// Violations, one line each; empty if there are none.
    pub broken: Vec<String>,
    /// Situations of the promise that did not arise on this machine, one line each: nothing was learned there.
    pub not_reproduced: Vec<String>,
    /// Duration in seconds.
    pub seconds: f64,
}

/// Result of the check of a promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Kept,
    /// Violated in one situation at least, whatever did not arise.
    Broken,
    /// No violation, but not every situation arose: neither kept nor broken.
    NotReproduced,
}

/// Largest number of promises whose situation may not arise, for the gate to pass. Fast devices miss three of them; a
/// gate that reproduces little proves little.
const MAX_NOT_REPRODUCED: usize = 8;

impl PromiseResult {
    fn verdict(&self) -> Verdict {
        match (self.broken.is_empty(), self.not_reproduced.is_empty()) {
            (false, _) => Verdict::Broken,
            (true, false) => Verdict::NotReproduced,
            (true, true) => Verdict::Kept,
        }
    }

    fn line(&self) -> String {
        let head = format!("{:<36} {:>5.1} s", self.name, self.seconds);
        let list = |lines: &[String]| lines.join("\n       ");
        match self.verdict() {
            Verdict::Kept => format!("{head}  kept"),
            Verdict::Broken => format!("{head}  BROKEN: {}", list(&self.broken)),
            Verdict::NotReproduced => format!("{head}  NOT REPRODUCED: {}", list(&self.not_reproduced)),
        }
    }

    fn to_json(&self) -> Value {
        json!({ "name": self.name, "kept": self.verdict() == Verdict::Kept, "broken": self.broken,
                "not_reproduced": self.not_reproduced, "seconds": self.seconds })
    }
}

fn count(all: &[PromiseResult], verdict: Verdict) -> usize {
    all.iter().filter(|one| one.verdict() == verdict).count()
}

/// Returns one line for each promise. The exit code is 1 if one is broken, and otherwise 3 if the situation of one did
/// not arise: this machine cannot tell whether it is kept.
pub fn outcome(all: &[PromiseResult]) -> Outcome {
    let lines = all.iter().map(PromiseResult::line).chain([summary(all)]);
    let code = match (count(all, Verdict::Broken), count(all, Verdict::NotReproduced)) {
        (0, 0) => 0,
        (0, _) => Kind::Environment.exit_code(),
        _ => Kind::No.exit_code(),
    };
    Outcome {
        text: lines.collect::<Vec<_>>().join("\n"),
        json: json!({ "promises": all.iter().map(PromiseResult::to_json).collect::<Vec<_>>() }),
        code,
    }
}

fn summary(all: &[PromiseResult]) -> String {
    let kept = format!("promises: {} of {} kept", count(all, Verdict::Kept), all.len());
    match count(all, Verdict::NotReproduced) {
        0 => kept,
        several => format!("{kept}, {several} not reproduced"),
    }
}

/// Returns the failures, one line each: the violations, and one line if too few situations arose.
pub fn broken(all: &[PromiseResult]) -> impl Iterator<Item = String> + '_ {
    let words = |one: &PromiseResult| format!("the promise {}: {}", one.name, one.broken.join("; "));
    let missed = count(all, Verdict::NotReproduced);
    let too_many = (missed > MAX_NOT_REPRODUCED).then(|| {
        format!(
            "{missed} promises were not reproduced, expected at most {MAX_NOT_REPRODUCED}: {}",
            not_reproduced(all).join("; ")
        )
    });
    all.iter().filter(|one| one.verdict() == Verdict::Broken).map(words).chain(too_many)
}

/// Returns the promises of which nothing was learned in some situation, with the reasons, one line each.
pub fn not_reproduced(all: &[PromiseResult]) -> Vec<String> {
    let missed = all.iter().filter(|one| one.verdict() == Verdict::NotReproduced);
    missed.map(|one| format!("{}: {}", one.name, one.not_reproduced.join("; "))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(broken: &[&str]) -> PromiseResult {
        let broken = broken.iter().map(|line| (*line).to_string()).collect();
        PromiseResult { name: "a-name", broken, not_reproduced: Vec::new(), seconds: 1.25 }
    }

    fn missed(broken: &[&str]) -> PromiseResult {
        PromiseResult { not_reproduced: vec!["the stream was over before".to_string()], ..kept(broken) }
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

    #[test]
    fn a_situation_that_did_not_arise_is_neither_a_pass_nor_a_violation() {
        let all = [kept(&[]), missed(&[])];
        let outcome = outcome(&all);
        assert_eq!(outcome.code, 3);
        assert!(outcome.text.contains("NOT REPRODUCED: the stream was over before"), "{}", outcome.text);
        assert!(outcome.text.ends_with("promises: 1 of 2 kept, 1 not reproduced"), "{}", outcome.text);
        assert_eq!(outcome.json["promises"][1]["kept"], false);
        assert_eq!(broken(&all).count(), 0);
        assert_eq!(not_reproduced(&all), ["a-name: the stream was over before"]);
    }

    #[test]
    fn a_violation_counts_whatever_did_not_arise() {
        let all = [missed(&["returned 500"])];
        assert_eq!(outcome(&all).code, 1);
        assert_eq!(broken(&all).collect::<Vec<_>>(), ["the promise a-name: returned 500"]);
        assert!(not_reproduced(&all).is_empty());
    }

    #[test]
    fn a_gate_that_reproduces_little_fails() {
        let all = vec![missed(&[]); MAX_NOT_REPRODUCED];
        assert_eq!(broken(&all).count(), 0);
        let all = vec![missed(&[]); MAX_NOT_REPRODUCED + 1];
        let lines: Vec<String> = broken(&all).collect();
        assert!(lines.len() == 1 && lines[0].starts_with("9 promises were not reproduced"), "{lines:?}");
    }
}
