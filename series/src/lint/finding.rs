//! Lint findings.

use serde::Serialize;

/// The rule that was broken. The name is part of the output.
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
    LineEnds,
    NotSource,
    OverlayPath,
    SubjectTwice,
    SiblingWithoutPatch,
    SiblingOfNoGeneration,
    SiblingNotNeeded,
    SiblingBehindPatch,
}

/// One broken rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The patch's file name.
    pub patch: String,
    /// Line in the patch file, from 1; `None` if no single line is responsible.
    pub line: Option<usize>,
    /// The rule.
    pub rule: LintRule,
    /// Description of the problem.
    pub message: String,
    /// Suggested fix.
    pub hint: String,
}

impl Finding {
    pub(crate) fn new(patch: &str, line: Option<usize>, rule: LintRule, text: [&str; 2]) -> Finding {
        let [message, hint] = text;
        Finding { patch: patch.to_owned(), line, rule, message: message.to_owned(), hint: hint.to_owned() }
    }
}
