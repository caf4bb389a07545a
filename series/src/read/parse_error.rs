//! Reasons why a patch was refused, with position and expectation.

use std::fmt;

use serde::Serialize;

use crate::model::path_refusal::PathRefusal;
use crate::model::printable::printable;

/// The reason why a patch was refused. The name is part of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "`describe` has a sentence for each")]
pub enum Refusal {
    PatchTooLarge,
    TooManyLines,
    PatchFileHasCarriageReturns,
    NoMailHeader,
    BadMailHeader,
    BadEncodedWord,
    ControlCharacterInHeader,
    BadAuthor,
    BadDate,
    UnsupportedTransferEncoding,
    MessageNotUtf8,
    NoDiff,
    DiffOutsideOfGitDiff,
    BadDiffHeader,
    DuplicateDiffHeader,
    ContradictoryDiffHeaders,
    PathsDisagree,
    BadQuotedPath,
    BadPath(PathRefusal),
    SymlinkMode,
    SubmoduleMode,
    UnsupportedMode,
    MissingIndexLine,
    BadIndexLine,
    AbbreviatedId,
    NullIdWhereFileExists,
    ContentMissing,
    BadHunkHeader,
    NumberTooLarge,
    WrongHunkCount,
    BadHunkLine,
    HunkOutOfOrder,
    HunksOverlap,
    HunkStartsDisagree,
    HunkWithoutChange,
    HunkAfterEndOfFile,
    NulInText,
    BadNoNewlineMarker,
    BinaryDataMissing,
    BadBinaryPatch,
    BinaryTooLarge,
    DuplicatePath,
    TruncatedPatch,
    TrailingText,
}

impl Refusal {
    /// Returns one sentence without a full stop.
    pub fn describe(self) -> String {
        if let Refusal::BadPath(refusal) = self {
            return format!("the patch names {refusal}");
        }
        self.sentence().to_owned()
    }

    fn sentence(self) -> &'static str {
        self.message_sentence().or_else(|| self.header_sentence()).unwrap_or_else(|| self.content_sentence())
    }

    fn message_sentence(self) -> Option<&'static str> {
        Some(match self {
            Refusal::PatchTooLarge => "the patch file is larger than 64 MiB",
            Refusal::TooManyLines => "the patch has more than 2,000,000 hunk lines",
            Refusal::PatchFileHasCarriageReturns => "the patch file itself has CRLF line ends",
            Refusal::NoMailHeader => "this is not the output of `git format-patch`",
            Refusal::BadMailHeader => "a mail header is malformed or missing",
            Refusal::BadEncodedWord => "a mail header has an encoded word that cannot be decoded",
            Refusal::ControlCharacterInHeader => "a mail header has a tab or another control character",
            Refusal::BadAuthor => "the author is not one that a commit can have",
            Refusal::BadDate => "no commit can have this date",
            Refusal::UnsupportedTransferEncoding => "the mail body is encoded",
            Refusal::MessageNotUtf8 => "the commit message is not UTF-8",
            Refusal::NoDiff => "the patch changes nothing",
            Refusal::DiffOutsideOfGitDiff => "a diff without a `diff --git` line",
            Refusal::TruncatedPatch => "the patch ends too early",
            Refusal::TrailingText => "there is text after the end of a diff",
            _ => return None,
        })
    }

    fn header_sentence(self) -> Option<&'static str> {
        Some(match self {
            Refusal::BadDiffHeader => "a diff header line is malformed",
            Refusal::DuplicateDiffHeader => "a diff header line is there twice",
            Refusal::ContradictoryDiffHeaders => "the diff headers contradict each other",
            Refusal::PathsDisagree => "the diff headers name different paths",
            Refusal::BadQuotedPath => "a quoted path is malformed",
            Refusal::BadPath(_) => "the patch names a path that is not allowed",
            Refusal::SymlinkMode => "the patch writes a symlink (mode 120000)",
            Refusal::SubmoduleMode => "the patch is about a submodule (mode 160000)",
            Refusal::UnsupportedMode => "the patch uses a mode other than 100644 and 100755",
            Refusal::MissingIndexLine => "the `index` line is missing",
            Refusal::BadIndexLine => "the `index` line is malformed",
            Refusal::AbbreviatedId => "a blob id is abbreviated",
            Refusal::NullIdWhereFileExists => "the all-zero id is on the wrong side",
            Refusal::DuplicatePath => "the patch changes one path twice",
            _ => return None,
        })
    }

    fn content_sentence(self) -> &'static str {
        match self {
            Refusal::ContentMissing => "the ids differ but the change itself is missing",
            Refusal::BadHunkHeader => "a hunk header is malformed",
            Refusal::NumberTooLarge => "a number is larger than 10,000,000",
            Refusal::WrongHunkCount => "a hunk has another number of lines than its header says",
            Refusal::BadHunkLine => "a hunk line starts with none of ` `, `+`, `-`, `\\`",
            Refusal::HunkOutOfOrder => "a hunk comes before the one above it",
            Refusal::HunksOverlap => "a hunk overlaps the one above it",
            Refusal::HunkStartsDisagree => "a hunk's old and new start do not belong together",
            Refusal::HunkWithoutChange => "a hunk changes nothing",
            Refusal::HunkAfterEndOfFile => "a line comes after the end of the file",
            Refusal::NulInText => "a text hunk holds a NUL",
            Refusal::BadNoNewlineMarker => "a `\\ No newline at end of file` is out of place",
            Refusal::BinaryDataMissing => "a binary file is mentioned without its data",
            Refusal::BadBinaryPatch => "a binary patch is malformed",
            Refusal::BinaryTooLarge => "the binary content is larger than 256 MiB",
            _ => "the patch is refused",
        }
    }
}

/// A refused patch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ParseError {
    /// The patch's file name.
    pub patch: String,
    /// Line in the patch file, from 1.
    pub line: usize,
    /// The reason.
    pub refusal: Refusal,
    /// The text found, safe to print.
    pub found: String,
    /// The text expected.
    pub expected: String,
}

impl ParseError {
    /// Creates a refusal of the line `line` with the text `found`. `parse` adds the patch's name.
    pub(crate) fn new(line: usize, refusal: Refusal, found: &[u8], expected: &str) -> ParseError {
        ParseError {
            patch: String::new(),
            line,
            refusal,
            found: printable(found),
            expected: expected.to_owned(),
        }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = self.refusal.describe();
        write!(formatter, "{}:{}: {reason}: ", self.patch, self.line)?;
        write!(formatter, "expected {}, found `{}`", self.expected, self.found)
    }
}

impl std::error::Error for ParseError {}

#[cfg(test)]
mod tests {
    use super::{ParseError, Refusal};

    #[test]
    fn reads_as_one_line() {
        let mut error = ParseError::new(7, Refusal::SymlinkMode, b"new file mode 120000", "100644");
        error.patch = "0001-x.patch".to_owned();
        assert_eq!(
            error.to_string(),
            "0001-x.patch:7: the patch writes a symlink (mode 120000): \
             expected 100644, found `new file mode 120000`"
        );
    }
}
