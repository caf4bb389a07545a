//! The change to one text file, merged into another version of it.
//!
//! It is merged as git would, and what that gives is believed only when every changed line landed where it was made for.

use super::landing::check_landing;
use super::outcome::Doubt;
use crate::model::patch::Hunk;
use crate::model::path::RepoPath;
use crate::text::language::Language;
use crate::text::line_diff::{changed_runs, lines_of};
use crate::text::markers::{Labels, Sides, add_marked};
use crate::text::three_way::ThreeWay;

/// The three versions of a text, and how they are called beside conflict markers.
pub(crate) struct ThreeTexts<'a> {
    /// The file: what is a function in it depends on its language.
    pub path: &'a RepoPath,
    pub base: &'a [u8],
    pub ours: &'a [u8],
    pub theirs: &'a [u8],
    pub labels: &'a Labels,
}

/// What merging came to.
pub(crate) enum TextMerge {
    /// Upstream left every hunk's lines alone: the hunks are the same, on other lines perhaps.
    Placed { text: Vec<u8> },
    /// Every change has its place; `there` of `of` changed lines were there already.
    Clean { text: Vec<u8>, there: usize, of: usize },
    /// Both changed the same lines.
    Conflict { marked: Vec<u8> },
    /// The lines could be merged, but not every place is certain.
    Doubt { marked: Vec<u8>, doubts: Vec<Doubt> },
}

/// Merges `hunks`, which turn base into theirs, into ours.
pub(crate) fn merge_text(texts: &ThreeTexts<'_>, hunks: &[Hunk]) -> TextMerge {
    let merge = ThreeWay::new(texts.base, texts.ours, texts.theirs);
    if merge.has_conflict() {
        return TextMerge::Conflict { marked: merge.write(texts.labels, &[]) };
    }
    let doubts = check_landing(&merge, hunks, Language::of(texts.path.as_bytes(), texts.ours));
    let doubtful: Vec<usize> = doubts.iter().map(|doubt| doubt.line - 1).collect();
    let text = merge.write(texts.labels, &doubtful);
    let (there, of) = merge.lines_there();
    if !doubts.is_empty() {
        TextMerge::Doubt { marked: text, doubts }
    } else if there == 0 && hunks.iter().all(|hunk| merge.has_untouched(&hunk.old_lines())) {
        TextMerge::Placed { text }
    } else {
        TextMerge::Clean { text, there, of }
    }
}

/// What two files that came from nowhere have in common is context, the rest is marked.
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

/// Whether git would not show this as text.
pub(crate) fn is_binary(content: &[u8]) -> bool {
    content.iter().take(8000).any(|byte| *byte == 0)
}
