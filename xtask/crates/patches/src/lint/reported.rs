//! PURE: a finding of lint with the path to open.

use std::fmt;

use espalier_series::{Finding, LintRule};
use serde::Serialize;

/// A finding with the path to open. The derived order is the order of the output.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Reported {
    /// Path of the patch, relative to the root.
    pub file: String,
    /// Line in it, from 1.
    pub line: usize,
    /// Description of the problem.
    pub message: String,
    /// The rule.
    pub rule: String,
    /// Suggested fix.
    pub hint: String,
}

/// `FILE:LINE: message [rule]`, which ci/lint-problem-matcher.json reads; the hint is indented below.
impl fmt::Display for Reported {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Reported { file, line, message, rule, hint } = self;
        write!(out, "{file}:{line}: {message} [{rule}]\n  next: {hint}")
    }
}

/// Returns a finding about `file`.
pub(super) fn reported(file: &str, finding: Finding) -> Reported {
    Reported {
        file: plain(file),
        line: finding.line.unwrap_or(1),
        message: plain(&finding.message),
        rule: rule_name(finding.rule),
        hint: finding.hint,
    }
}

/// Returns the rule's name in JSON.
pub(super) fn rule_name(rule: LintRule) -> String {
    serde_json::to_value(rule).ok().and_then(|name| name.as_str().map(str::to_string)).unwrap_or_default()
}

/// Replaces control characters, so that a file name cannot break the line: CI systems interpret some lines of a log as
/// commands.
pub(super) fn plain(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { '?' } else { letter }).collect()
}
