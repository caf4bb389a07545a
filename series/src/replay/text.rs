//! Merge of the change to one text file into another version of it.
//!
//! It is merged as git would, and the result is accepted only if every changed line landed where it was made for.

use std::ops::Range;

use super::landing::{FileFacts, check_landing};
use crate::judge::drift::{HunkClass, PatchClass};
use crate::judge::replayed::{Ambiguity, MergeKind};
use crate::model::patch::Hunk;
use crate::model::path::RepoPath;
use crate::model::signed::signed;
use crate::text::language::Language;
use crate::text::line_diff::{changed_runs, lines_of, slice};
use crate::text::markers::{Labels, MarkedText, Side, Sides, add_marked};
use crate::text::three_way::{Region, ThreeWay};

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
pub(crate) struct TextMerge {
    /// The class of each hunk.
    pub hunks: Vec<HunkClass>,
    /// The merged text, with conflict markers where a person has to decide.
    pub text: MarkedText,
    pub result: MergeResult,
}

pub(crate) enum MergeResult {
    /// Every change has its place.
    Clean(MergeKind),
    /// Both changed the same lines.
    Conflict,
    /// The lines could be merged, but some places are uncertain.
    Ambiguous(Vec<Ambiguity>),
}

/// Merges `hunks`, which turn base into theirs, into ours.
pub(crate) fn merge_text(texts: &ThreeTexts<'_>, hunks: &[Hunk], known: FileFacts<'_>) -> TextMerge {
    let merge = ThreeWay::new(texts.base, texts.ours, texts.theirs);
    if merge.has_conflict() {
        let hunks = hunk_classes(&merge, hunks, &[]);
        return TextMerge { hunks, text: merge.write(texts.labels, &[]), result: MergeResult::Conflict };
    }
    let language = Language::of(texts.path.as_bytes(), texts.ours);
    let ambiguities = check_landing(&merge, hunks, language, known);
    let ambiguous: Vec<usize> = ambiguities.iter().map(|ambiguity| ambiguity.line - 1).collect();
    let text = merge.write(texts.labels, &ambiguous);
    let hunks = hunk_classes(&merge, hunks, &ambiguities);
    let result = match ambiguities.is_empty() {
        true => MergeResult::Clean(kind_of_merge(&merge, &hunks)),
        false => MergeResult::Ambiguous(ambiguities),
    };
    TextMerge { hunks, text, result }
}

fn kind_of_merge(merge: &ThreeWay<'_>, hunks: &[HunkClass]) -> MergeKind {
    let is_placed = |hunk: &HunkClass| matches!(hunk, HunkClass::Exact | HunkClass::Shifted { .. });
    match merge.lines_there() {
        (0, _) if hunks.iter().all(is_placed) => MergeKind::Placed,
        (0, _) => MergeKind::Merged,
        (lines, _) if merge.shares_only_deletions() => MergeKind::DeletedByBoth { lines },
        (lines, of) => MergeKind::PartlyThere { lines, of },
    }
}

/// Returns the class of each hunk in a merge. Each change of theirs is in a hunk: a line diff may move one past the end
/// of its hunk, so the lines up to the next hunk count too.
fn hunk_classes(merge: &ThreeWay<'_>, hunks: &[Hunk], ambiguities: &[Ambiguity]) -> Vec<HunkClass> {
    let later = || hunks.iter().skip(1).map(|hunk| hunk.old_lines().start);
    let lines = std::iter::once(0).chain(later()).zip(later().chain([usize::MAX]));
    let class =
        |(hunk, (start, end)): (&Hunk, (usize, usize))| hunk_class(merge, hunk, start..end, ambiguities);
    hunks.iter().zip(lines).map(class).collect()
}

fn hunk_class(
    merge: &ThreeWay<'_>,
    hunk: &Hunk,
    lines: Range<usize>,
    ambiguities: &[Ambiguity],
) -> HunkClass {
    let regions: Vec<&Region> = merge.changed_by_theirs(lines).collect();
    if regions.iter().any(|region| region.is_conflict()) {
        return HunkClass::Conflict;
    }
    let at = |line: usize| ambiguities.iter().find(|ambiguity| ambiguity.line == line);
    let uncertain: Vec<(&Region, &Ambiguity)> =
        regions.iter().filter_map(|region| Some((*region, at(region.ours.start + 1)?))).collect();
    let moved = uncertain.iter().find(|(_, ambiguity)| ambiguity.class == PatchClass::MovedFunction);
    if let Some((region, _)) = moved {
        return HunkClass::MovedFunction { offset: signed(region.ours.start) - signed(region.base.start) };
    }
    if !uncertain.is_empty() {
        return HunkClass::Ambiguous;
    }
    let is_asked_about = !merge.shares_only_deletions();
    let is_there = |region: &&&Region| is_asked_about && region.is_alike();
    let there = regions.iter().filter(is_there).count();
    let own = hunk.old_lines();
    match (there, merge.place_of(&own)) {
        (0, Some(place)) => HunkClass::at_offset(signed(place) - signed(own.start)),
        (0, None) => HunkClass::Merged,
        (there, _) if there == regions.len() => HunkClass::Upstreamed,
        _ => HunkClass::PartlyUpstreamed,
    }
}

/// Merges two files without a common base: common lines are context, the rest is marked.
pub(crate) fn merge_new_files(ours: &[u8], theirs: &[u8], labels: &Labels) -> MarkedText {
    let (ours, theirs) = (lines_of(ours), lines_of(theirs));
    let mut text = MarkedText::default();
    let mut at = 0;
    for run in changed_runs(&ours, &theirs) {
        text.add(slice(&ours, at..run.old.start));
        at = run.old.end;
        let sides = Sides {
            base: Side { start: 0, lines: &[] },
            ours: Side { start: run.old.start, lines: slice(&ours, run.old) },
            theirs: Side { start: run.new.start, lines: slice(&theirs, run.new) },
        };
        add_marked(&mut text, &sides, labels, false);
    }
    text.add(slice(&ours, at..ours.len()));
    text
}

/// Returns whether git would treat this as binary.
pub(crate) fn is_binary(content: &[u8]) -> bool {
    content.iter().take(8000).any(|byte| *byte == 0)
}
