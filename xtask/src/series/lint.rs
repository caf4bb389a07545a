//! Rules a patch must keep besides being well formed: its name, its subject, its trailers.

use serde::Serialize;

use super::lint_paths::check_source_only;
use super::lint_rules::LintRules;
use super::lint_trailers::check_trailers;
use super::model::Patch;
use super::series_order::{check_name, check_slug};

/// The most characters that a subject may have.
pub const SUBJECT_LIMIT: usize = 72;

/// Which rule was broken. The name is part of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the finding's message says what each means")]
pub enum LintRule {
    FileName,
    SlugUnlikeSubject,
    NumberGap,
    NumberTwice,
    SubjectTooLong,
    NoFinalNewline,
    TrailerMissing,
    TrailerTwice,
    TrailerValue,
    TrailerPlaceholder,
    NotAPatch,
    NotSource,
    OverlayPath,
    SubjectTwice,
}

/// One broken rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The patch's file name.
    pub patch: String,
    /// Line in the patch file, from 1; `None` when no line is to blame.
    pub line: Option<usize>,
    /// The rule.
    pub rule: LintRule,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: String,
}

impl Finding {
    pub(crate) fn new(patch: &str, line: Option<usize>, rule: LintRule, text: [&str; 2]) -> Finding {
        let [message, hint] = text;
        Finding { patch: patch.to_owned(), line, rule, message: message.to_owned(), hint: hint.to_owned() }
    }
}

/// Every rule that `patch`, read from `text`, breaks on its own. Rules about a whole series are
/// checked by [`series_order`](super::series_order).
pub fn lint_patch(patch: &Patch, text: &[u8], rules: &LintRules) -> Vec<Finding> {
    let mut findings = Vec::new();
    match check_name(&patch.name) {
        Ok(entry) => findings.extend(check_slug(&entry, &patch.subject)),
        Err(finding) => findings.push(*finding),
    }
    findings.extend(check_subject(patch));
    findings.extend(check_final_newline(patch, text));
    findings.extend(check_trailers(patch, rules));
    findings.extend(check_source_only(patch, rules));
    findings
}

/// The finding for `patch`, whose subject the patch file `first` of the same stack has too: people and
/// tools tell patches apart by their subjects.
pub fn same_subject(patch: &Patch, first: &str) -> Finding {
    let message = format!("{first} has the same subject `{}`", patch.subject);
    let hint = "say in each what only it does, or make one patch of the two: cargo xtask edit, then export";
    Finding::new(&patch.name, Some(patch.subject_line), LintRule::SubjectTwice, [&message, hint])
}

fn check_subject(patch: &Patch) -> Option<Finding> {
    let length = patch.subject.chars().count();
    let message = format!("the subject has {length} characters");
    let hint = "say it in at most 72 characters, and the rest in the body";
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
