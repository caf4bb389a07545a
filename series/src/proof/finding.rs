//! The differences that a proof of a move finds.

use serde::{Deserialize, Serialize};

use crate::model::object_id::ObjectId;
use crate::model::printable::printable_and_cut;

/// The class of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingClass {
    /// The hunk makes the same change between other lines of context.
    ContextOnly,
    /// Upstream and the patch changed the same lines, and the result has the changes of both.
    ResolvedByHand,
    /// The patch no longer makes a change that upstream has now.
    Upstreamed,
    /// A line that upstream has had all along is missing, and the patch did not delete it before.
    LostUpstreamLine,
    /// A line that the patch added is missing, and upstream does not have it.
    LostOwnLine,
    /// A line that the patch deleted is there again.
    LostDeletion,
    /// Nothing is left of a patch, and upstream does not have it.
    LostPatch,
    /// A line is there more often than upstream and the patch account for.
    Doubled,
    /// A line that upstream has deleted since the old base is there again.
    Restored,
    /// The patch deletes what upstream has added since the old base, or a whole file that it did not delete before.
    NewDeletion,
    /// A line is in another place, or in another function.
    Misplaced,
    /// The mode or the name of a file differs.
    ModeOrName,
    /// A binary file or a symbolic link is not what upstream and the patch made it.
    Binary,
    /// A line that neither upstream nor the patch had, where nothing was to be resolved.
    Added,
}

impl FindingClass {
    /// Every class.
    pub const ALL: [FindingClass; 14] = [
        FindingClass::ContextOnly,
        FindingClass::ResolvedByHand,
        FindingClass::Upstreamed,
        FindingClass::LostUpstreamLine,
        FindingClass::LostOwnLine,
        FindingClass::LostDeletion,
        FindingClass::LostPatch,
        FindingClass::Doubled,
        FindingClass::Restored,
        FindingClass::NewDeletion,
        FindingClass::Misplaced,
        FindingClass::ModeOrName,
        FindingClass::Binary,
        FindingClass::Added,
    ];

    /// Returns the name, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            FindingClass::ContextOnly => "context-only",
            FindingClass::ResolvedByHand => "resolved-by-hand",
            FindingClass::Upstreamed => "upstreamed",
            FindingClass::LostUpstreamLine => "lost-upstream-line",
            FindingClass::LostOwnLine => "lost-own-line",
            FindingClass::LostDeletion => "lost-deletion",
            FindingClass::LostPatch => "lost-patch",
            FindingClass::Doubled => "doubled",
            FindingClass::Restored => "restored",
            FindingClass::NewDeletion => "new-deletion",
            FindingClass::Misplaced => "misplaced",
            FindingClass::ModeOrName => "mode-or-name",
            FindingClass::Binary => "binary",
            FindingClass::Added => "added",
        }
    }

    /// Returns whether a move may have such a difference without anyone having to name it as intended.
    pub fn is_accounted_for(self) -> bool {
        matches!(self, FindingClass::ContextOnly | FindingClass::ResolvedByHand | FindingClass::Upstreamed)
    }
}

/// The version of a file that a line number counts in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileVersion {
    /// After the patch, on its old base.
    OldAfter,
    /// Before the patch, on its new base.
    NewBefore,
    /// After the patch, on its new base.
    NewAfter,
}

/// The place of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct LinePlace {
    /// The version of the file.
    pub version: FileVersion,
    /// Line number, from 1.
    pub line: usize,
}

/// A change by upstream since the old base that the patch reverses on the new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Undone {
    /// It added the line.
    Added,
    /// It deleted the line.
    Deleted,
    /// It changed a binary file.
    Binary,
}

/// A hunk of the patch on either base; `None` where no hunk corresponds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct HunkPair {
    /// On the old base.
    pub old: Option<String>,
    /// On the new base.
    pub new: Option<String>,
}

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Its class.
    pub class: FindingClass,
    /// The file; for a whole patch, its file name.
    pub path: String,
    /// The head of the function that has the line, if it is in one.
    pub function: Option<String>,
    /// The place of the line; `None` for a difference that is not about one line.
    pub place: Option<LinePlace>,
    /// The line, or a description of a difference that is not about one; safe to print. A long line is cut, and ends with
    /// a digest: two that begin alike are not the same difference.
    pub text: String,
    /// The [`line_digest`] of the line; `None` for a difference that is not about one line.
    pub digest: Option<String>,
    /// The line that upstream has instead, another place of the line, or the reason why it is accounted for.
    pub evidence: Option<String>,
    /// The change by upstream that is reversed, if it is one.
    pub undone: Option<Undone>,
    /// The hunks.
    pub hunks: HunkPair,
    /// The reason why the difference is intended, if a person gave one.
    pub intended: Option<String>,
}

impl Finding {
    /// Creates a finding that is not about one line.
    pub(crate) fn new(class: FindingClass, path: String, text: String) -> Finding {
        Finding {
            class,
            path,
            function: None,
            place: None,
            text,
            digest: None,
            evidence: None,
            undone: None,
            hunks: HunkPair::default(),
            intended: None,
        }
    }

    /// Creates a finding about one line.
    pub(super) fn of_line(class: FindingClass, path: String, line: &[u8]) -> Finding {
        Finding { digest: Some(line_digest(line)), ..Finding::new(class, path, line_text(line)) }
    }

    /// Returns whether it has to be fixed or named as intended.
    pub fn is_open(&self) -> bool {
        !self.class.is_accounted_for() && self.intended.is_none()
    }
}

/// Returns the digest that identifies a line without quoting it: the first 12 digits of the id that git gives to a file
/// with the line alone, without its line feed and without spaces and tabs around it.
///
/// # Examples
///
/// ```
/// use espalier_series::line_digest;
///
/// assert_eq!(line_digest(b"    }\n"), line_digest(b"}"));
/// assert_ne!(line_digest(b"}\r\n"), line_digest(b"}"));
/// assert_eq!(line_digest(b""), "e69de29bb2d1");
/// ```
pub fn line_digest(line: &[u8]) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let is_part = |byte: &u8| !matches!(byte, b' ' | b'\t');
    let begin = line.iter().position(is_part).unwrap_or(line.len());
    let end = line.iter().rposition(is_part).map_or(begin, |last| last + 1);
    format!("{:.12}", ObjectId::of_blob(line.get(begin..end).unwrap_or_default()).to_string())
}

/// Returns a line as the text of a finding.
fn line_text(line: &[u8]) -> String {
    let (shown, is_cut) = printable_and_cut(line);
    match is_cut {
        true => format!("{shown}({})", line_digest(line)),
        false => shown,
    }
}

#[cfg(test)]
mod tests {
    use super::{FindingClass, line_text};

    #[test]
    fn long_lines_that_begin_alike_differ() {
        let line = |end: &str| line_text(format!("{}{end}\n", "x".repeat(300)).as_bytes());
        assert_ne!(line("a"), line("b"));
        assert_eq!(line("a"), line("a "));
        assert_eq!(line("a").chars().count(), 160 + "…(0123456789ab)".chars().count());
        assert_eq!(line_text(b"  a();\n"), "  a();");
    }

    #[test]
    fn names_are_those_of_json() {
        for class in FindingClass::ALL {
            let json = serde_json::to_string(&class).unwrap();
            assert_eq!(json, format!("\"{}\"", class.name()));
            assert_eq!(serde_json::from_str::<FindingClass>(&json).unwrap(), class);
        }
    }
}
