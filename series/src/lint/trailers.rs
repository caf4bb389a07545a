//! The four required trailers of a patch.

use super::finding::{Finding, LintRule};
use super::requirements::{DROPPED, REQUIREMENTS, Requirement};
use super::rules::LintRules;
use crate::model::patch::{Patch, Trailer};

/// Value of a trailer that has not been filled in yet. It satisfies no rule, so that lint reports it.
pub const PLACEHOLDER: &str = "TODO";

/// Returns whether `value` is permitted for the trailer `key`. For an unknown key none is.
pub fn is_valid_trailer(key: &str, value: &str) -> bool {
    let known = REQUIREMENTS.iter().find(|requirement| requirement.key == key);
    known.is_some_and(|requirement| value != PLACEHOLDER && (requirement.is_valid)(value))
}

/// Returns every required trailer that is missing, repeated or invalid.
pub(crate) fn check_trailers(patch: &Patch, rules: &LintRules) -> Vec<Finding> {
    let is_required = |requirement: &Requirement| rules.required().contains(&requirement.key);
    let checks = REQUIREMENTS.iter();
    checks.flat_map(|requirement| check_requirement(patch, requirement, is_required(requirement))).collect()
}

/// Returns the findings about the reason of a sibling without a diff, which no project can make optional.
pub(crate) fn check_reason(patch: &Patch) -> Vec<Finding> {
    check_requirement(patch, &DROPPED, true)
}

fn check_requirement(patch: &Patch, requirement: &Requirement, is_required: bool) -> Vec<Finding> {
    let is_it = |trailer: &&Trailer| trailer.key.eq_ignore_ascii_case(requirement.key);
    let found: Vec<&Trailer> = patch.trailers.iter().filter(is_it).collect();
    if found.is_empty() {
        return is_required.then(|| missing(patch, requirement)).into_iter().collect();
    }
    let mut findings: Vec<Finding> = found
        .iter()
        .filter(|trailer| trailer.value == PLACEHOLDER || !(requirement.is_valid)(&trailer.value))
        .map(|trailer| bad_value(patch, requirement, trailer))
        .collect();
    if let (Some(second), false) = (found.get(1), requirement.may_repeat) {
        let message = format!("`{}:` is there twice", requirement.key);
        let rule = LintRule::TrailerTwice;
        let text = [message.as_str(), "keep one of them"];
        findings.push(Finding::new(&patch.name, Some(second.line), rule, text));
    }
    findings
}

fn missing(patch: &Patch, requirement: &Requirement) -> Finding {
    let key = requirement.key;
    let message = format!("the trailer `{key}:` is missing");
    let hint = format!("add `{key}: ...` to the trailers at the end of the message: {}", requirement.allowed);
    Finding::new(&patch.name, None, LintRule::TrailerMissing, [&message, &hint])
}

fn bad_value(patch: &Patch, requirement: &Requirement, trailer: &Trailer) -> Finding {
    if trailer.value == PLACEHOLDER {
        return placeholder(patch, requirement, trailer);
    }
    let message = format!("`{}: {}` is not allowed", requirement.key, trailer.value);
    let hint = format!("write {}", requirement.allowed);
    let rule = LintRule::TrailerValue;
    Finding::new(&patch.name, Some(trailer.line), rule, [&message, &hint])
}

fn placeholder(patch: &Patch, requirement: &Requirement, trailer: &Trailer) -> Finding {
    let Requirement { key, allowed, .. } = requirement;
    let message = format!("`{key}:` still says `{PLACEHOLDER}`");
    let hint = format!("write {allowed}");
    let rule = LintRule::TrailerPlaceholder;
    Finding::new(&patch.name, Some(trailer.line), rule, [&message, &hint])
}
