//! Merge of the change to one text file into another version of it.
//!
//! It is merged as git would, and the result is accepted only if every changed line landed where it was made for.

use super::landing::check_landing;
use crate::judge::replayed::Ambiguity;
use crate::model::patch::Hunk;
use crate::model::path::RepoPath;
use crate::text::language::Language;
use crate::text::line_diff::{changed_runs, lines_of};
use crate::text::markers::{Labels, Sides, add_marked};
use crate::text::three_way::ThreeWay;

/// The three versions of a text, and their labels in conflict markers.
pub(crate) struct ThreeTexts<'a> {
    /// The file: its language decides what counts as a function.
    pub path: &'a RepoPath,
    pub base: &'a [u8],
    pub ours: &'a [u8],
    pub theirs: &'a [u8],
    pub labels: &'a Labels,
}

/// The result of a merge.
pub(crate) enum TextMerge {
    /// Upstream did not touch any hunk's lines: the hunks are the same, possibly on other lines.
    Placed { text: Vec<u8> },
    /// Every change has its place; `there` of `of` changed lines were already present.
    Clean { text: Vec<u8>, there: usize, of: usize },
    /// Both changed the same lines.
    Conflict { marked: Vec<u8> },
    /// The lines could be merged, but some places are uncertain.
    Ambiguous { marked: Vec<u8>, ambiguities: Vec<Ambiguity> },
}

/// Merges `hunks`, which turn base into theirs, into ours.
pub(crate) fn merge_text(texts: &ThreeTexts<'_>, hunks: &[Hunk]) -> TextMerge {
    let merge = ThreeWay::new(texts.base, texts.ours, texts.theirs);
    if merge.has_conflict() {
        return TextMerge::Conflict { marked: merge.write(texts.labels, &[]) };
    }
    let ambiguities = check_landing(&merge, hunks, Language::of(texts.path.as_bytes(), texts.ours));
    let ambiguous: Vec<usize> = ambiguities.iter().map(|ambiguity| ambiguity.line - 1).collect();
    let text = merge.write(texts.labels, &ambiguous);
    let (there, of) = merge.lines_there();
    if !ambiguities.is_empty() {
        TextMerge::Ambiguous { marked: text, ambiguities }
    } else if there == 0 && hunks.iter().all(|hunk| merge.has_untouched(&hunk.old_lines())) {
        TextMerge::Placed { text }
    } else {
        TextMerge::Clean { text, there, of }
    }
}

/// Merges two files without a common base: common lines are context, the rest is marked.
pub(crate) fn merge_new_files(ours: &[u8], theirs: &[u8], labels: &Labels) -> Vec<u8> {
    let (ours, theirs) = (lines_of(ours), lines_of(theirs));
    let mut text = Vec::new();
    let mut at = 0;
    for run in changed_runs(&ours, &theirs) {
        text.extend(ours.get(at..run.old.start).unwrap_or_default().concat());
        at = run.old.end;
        let (ours, theirs) = (ours.get(run.old).unwrap_or_default(), theirs.get(run.new).unwrap_or_default());
        add_marked(&mut text, &Sides { base: &[], ours, theirs }, labels, false);
    }
    text.extend(ours.get(at..).unwrap_or_default().concat());
    text
}

/// Returns whether git would treat this as binary.
pub(crate) fn is_binary(content: &[u8]) -> bool {
    content.iter().take(8000).any(|byte| *byte == 0)
}
