//! Rules for a well-formed patch: its name, its subject, its trailers.

use super::finding::{Finding, LintRule};
use super::order::{check_name, check_slug};
use super::paths::check_source_only;
use super::rules::LintRules;
use super::trailers::{check_reason, check_trailers};
use crate::model::patch::Patch;

/// Maximum length of a subject in characters.
pub const SUBJECT_LIMIT: usize = 72;

/// Returns the violations of `patch`, parsed from `text`, on its own. Rules for a whole series are checked by
/// `series_order`.
pub fn lint_patch(patch: &Patch, text: &[u8], rules: &LintRules) -> Vec<Finding> {
    let mut findings = Vec::new();
    match check_name(&patch.name) {
        Ok(entry) => findings.extend(check_slug(&entry, &patch.subject)),
        Err(finding) => findings.push(*finding),
    }
    findings.extend(check_subject(patch));
    findings.extend(check_final_newline(patch, text));
    findings.extend(match patch.is_dropped() {
        true => check_reason(patch),
        false => check_trailers(patch, rules),
    });
    findings.extend(check_source_only(patch, rules));
    findings
}

/// Returns the finding for `patch`, whose subject is that of the patch file `first` of the same stack too: users and
/// tools identify patches by their subjects.
pub fn same_subject(patch: &Patch, first: &str) -> Finding {
    let message = format!("{first} has the same subject `{}`", patch.subject);
    let hint = "give each its own subject, or combine them with `cargo xtask edit` and `export`";
    Finding::new(&patch.name, Some(patch.subject_line), LintRule::SubjectTwice, [&message, hint])
}

fn check_subject(patch: &Patch) -> Option<Finding> {
    let length = patch.subject.chars().count();
    let message = format!("the subject has {length} characters");
    let hint = "shorten the subject to 72 characters; details go in the body";
    let line = Some(patch.subject_line);
    (length > SUBJECT_LIMIT)
        .then(|| Finding::new(&patch.name, line, LintRule::SubjectTooLong, [&message, hint]))
}

fn check_final_newline(patch: &Patch, text: &[u8]) -> Option<Finding> {
    let last_line = text.split(|byte| *byte == b'\n').count();
    let message = "the patch file does not end with a line feed";
    let hint = "end it: cargo xtask lint --fix";
    let rule = LintRule::NoFinalNewline;
    (!text.ends_with(b"\n")).then(|| Finding::new(&patch.name, Some(last_line), rule, [message, hint]))
}
