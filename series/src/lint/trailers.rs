//! The four trailers that every patch carries.

use super::finding::{Finding, LintRule};
use super::numerics::{NUMERICS_ALLOWED, Numerics};
use super::rules::LintRules;
use crate::model::patch::{Patch, Trailer};

/// One required trailer.
struct Requirement {
    key: &'static str,
    may_repeat: bool,
    is_valid: fn(&str) -> bool,
    allowed: &'static str,
}

const REQUIREMENTS: [Requirement; 4] = [
    Requirement {
        key: "Upstream-Status",
        may_repeat: false,
        is_valid: is_upstream_status,
        allowed: "`Pending`, `Submitted <URL>`, `Inappropriate <why>` or `Backport <commit>`",
    },
    Requirement {
        key: "Drop-when",
        may_repeat: false,
        is_valid: |value| !value.is_empty(),
        allowed: "what must be true upstream for this patch to go",
    },
    Requirement {
        key: "Verified-by",
        may_repeat: true,
        is_valid: |value| !value.is_empty(),
        allowed: "the test or the gate that proves this patch",
    },
    Requirement {
        key: "Numerics",
        may_repeat: false,
        is_valid: |value| Numerics::parse(value).is_some(),
        allowed: NUMERICS_ALLOWED,
    },
];

/// The required trailers with what each may say, for the message of a new patch.
pub const TRAILER_KEYS: [(&str, &str); 4] = [
    (REQUIREMENTS[0].key, REQUIREMENTS[0].allowed),
    (REQUIREMENTS[1].key, REQUIREMENTS[1].allowed),
    (REQUIREMENTS[2].key, REQUIREMENTS[2].allowed),
    (REQUIREMENTS[3].key, REQUIREMENTS[3].allowed),
];

/// What a trailer says that nobody has filled in yet. It keeps no rule, so that lint finds it.
pub const PLACEHOLDER: &str = "TODO";

/// Whether the trailer `key`, which lint knows, may say `value`. An unknown one never may.
pub fn is_valid_trailer(key: &str, value: &str) -> bool {
    let known = REQUIREMENTS.iter().find(|requirement| requirement.key == key);
    known.is_some_and(|requirement| value != PLACEHOLDER && (requirement.is_valid)(value))
}

/// Every required trailer that is missing, and every one that is repeated or has a value it must not have.
pub(crate) fn check_trailers(patch: &Patch, rules: &LintRules) -> Vec<Finding> {
    REQUIREMENTS.iter().flat_map(|requirement| check_requirement(patch, requirement, rules)).collect()
}

fn check_requirement(patch: &Patch, requirement: &Requirement, rules: &LintRules) -> Vec<Finding> {
    let is_it = |trailer: &&Trailer| trailer.key.eq_ignore_ascii_case(requirement.key);
    let found: Vec<&Trailer> = patch.trailers.iter().filter(is_it).collect();
    if found.is_empty() {
        let is_required = rules.required().contains(&requirement.key);
        return is_required.then(|| missing(patch, requirement)).into_iter().collect();
    }
    let mut findings: Vec<Finding> = found
        .iter()
        .filter(|trailer| !is_valid_trailer(requirement.key, &trailer.value))
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
    let hint = format!("in the last paragraph of the message say `{key}:` and {}", requirement.allowed);
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

fn is_upstream_status(value: &str) -> bool {
    let (status, detail) = value.split_once(' ').unwrap_or((value, ""));
    match status {
        "Pending" => detail.is_empty(),
        "Submitted" => detail.starts_with("https://") && !detail.contains(char::is_whitespace),
        "Inappropriate" => !detail.trim().is_empty(),
        "Backport" => is_commit(detail),
        _ => false,
    }
}

/// Twelve digits are the shortest that stay unique in a repository of upstream's size.
fn is_commit(detail: &str) -> bool {
    (12..=40).contains(&detail.len()) && detail.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::is_upstream_status;

    #[test]
    fn knows_the_four_states() {
        let good = [
            "Pending",
            "Submitted https://github.com/ggml-org/llama.cpp/pull/1",
            "Inappropriate fork only",
            "Backport 0123456789ab",
        ];
        let bad = [
            "",
            "pending",
            "Pending soon",
            "Submitted",
            "Submitted by mail",
            "Inappropriate",
            "Inappropriate  ",
            "Backport",
            "Backport 1234",
            "Backport the fix of 0123456789ab",
            "Denied",
        ];
        assert!(good.iter().all(|value| is_upstream_status(value)));
        for value in bad {
            assert!(!is_upstream_status(value), "{value}");
        }
    }
}
