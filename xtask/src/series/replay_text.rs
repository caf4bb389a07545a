//! The change to one text file, merged into another version of it.
//!
//! When every hunk fits at one place only, and that in its own function, that is where it goes. All else
//! is merged three-way. Such a merge goes by lines alone: where upstream deleted the patched function and
//! a look-alike stays, it may put the change into the look-alike and call that clean. So what it gives is
//! believed only when every changed line landed in the function that it was made for.

use git2::{MergeFileInput, MergeFileOptions};

use super::classify_hunk::{CurrentFile, classify_hunk};
use super::drift::{HunkClass, HunkDrift};
use super::function::FunctionMap;
use super::landing::{Landing, check_landing};
use super::line_diff::{changed_runs, lines_of};
use super::line_index::LineIndex;
use super::markers::mark_runs;
use super::model::Hunk;
use super::replay_outcome::Doubt;
use super::tree::TreeError;

/// The three versions of a text, and how they are called beside conflict markers.
pub(crate) struct ThreeTexts<'a> {
    pub base: &'a [u8],
    pub ours: &'a [u8],
    pub theirs: &'a [u8],
    pub labels: &'a Labels,
}

/// What stands beside conflict markers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Labels {
    pub base: String,
    pub ours: String,
    pub theirs: String,
}

/// What merging came to.
pub(crate) enum TextMerge {
    /// Every hunk fits at one place only, and that in its own function: no merge is needed.
    Placed { text: Vec<u8> },
    /// Every change has its place; `there` of `of` changed lines were there already.
    Clean { text: Vec<u8>, there: usize, of: usize },
    /// Both changed the same lines.
    Conflict { marked: Vec<u8> },
    /// The lines could be merged, but not every place is certain.
    Doubt { marked: Vec<u8>, doubts: Vec<Doubt> },
}

/// Merges `hunks`, which turn base into theirs, into ours.
pub(crate) fn merge_text(texts: &ThreeTexts<'_>, hunks: &[Hunk]) -> Result<TextMerge, TreeError> {
    let index = LineIndex::new(texts.ours);
    let functions = FunctionMap::new(&index.lines);
    let base = lines_of(texts.base);
    let base_functions = FunctionMap::new(&base);
    let file = CurrentFile { index: &index, functions: &functions, pre_image: Some(&base_functions) };
    let drifts: Vec<HunkDrift> =
        hunks.iter().zip(1..).map(|(hunk, number)| classify_hunk(&file, hunk, number)).collect();
    if let Some(text) = place(hunks, &drifts, &index.lines) {
        return Ok(TextMerge::Placed { text });
    }
    let (automatic, merged) = three_way(texts)?;
    if !automatic {
        return Ok(TextMerge::Conflict { marked: merged });
    }
    let theirs = lines_of(texts.theirs);
    let merged_lines = lines_of(&merged);
    let landing = Landing {
        made: changed_runs(&base, &theirs),
        base: &base_functions,
        landed: changed_runs(&index.lines, &merged_lines),
        ours: &functions,
        hunks,
        drifts: &drifts,
    };
    let doubts = check_landing(&landing);
    if !doubts.is_empty() {
        let places: Vec<usize> = doubts.iter().map(|(run, _)| *run).collect();
        let marked = mark_runs(&index.lines, &merged_lines, &landing.landed, &places, texts.labels);
        let doubts = doubts.into_iter().map(|(_, doubt)| doubt).collect();
        return Ok(TextMerge::Doubt { marked, doubts });
    }
    let (of, landed) = (landing.lines_made(), landing.lines_landed());
    Ok(TextMerge::Clean { text: merged, there: of.saturating_sub(landed), of })
}

/// Ours with each hunk on the one place where it fits, when each has such a place in its own function.
fn place(hunks: &[Hunk], drifts: &[HunkDrift], ours: &[&[u8]]) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    let mut at = 0;
    for (hunk, drift) in hunks.iter().zip(drifts) {
        let (HunkClass::Exact | HunkClass::Shifted { .. }) = drift.class else { return None };
        let start = drift.fits_at.first()?.line.checked_sub(1)?;
        text.extend(ours.get(at..start)?.concat());
        hunk.post_image().for_each(|line| text.extend_from_slice(line));
        at = start + hunk.old_count;
    }
    text.extend(ours.get(at..)?.concat());
    Some(text)
}

/// The merge by lines, and whether it needed nobody. An emptied file is given to a person: there is
/// nothing left to see where a change landed.
fn three_way(texts: &ThreeTexts<'_>) -> Result<(bool, Vec<u8>), TreeError> {
    let labels = texts.labels;
    if texts.ours.is_empty() || texts.theirs.is_empty() {
        let (ours, theirs) = (lines_of(texts.ours), lines_of(texts.theirs));
        let all = [super::line_diff::ChangedRun { old: 0..ours.len(), new: 0..theirs.len() }];
        return Ok((false, mark_runs(&ours, &theirs, &all, &[0], labels)));
    }
    let input = |text| {
        let mut input = MergeFileInput::new();
        input.content(text);
        input
    };
    let mut options = MergeFileOptions::new();
    options.ancestor_label(labels.base.as_str()).our_label(labels.ours.as_str());
    options.their_label(labels.theirs.as_str()).style_zdiff3(true);
    let (base, ours, theirs) = (input(texts.base), input(texts.ours), input(texts.theirs));
    let merged = git2::merge_file(&base, &ours, &theirs, Some(&mut options))
        .map_err(|error| TreeError { message: error.message().to_owned() })?;
    Ok((merged.is_automergeable(), merged.content().to_vec()))
}

/// What two files that came from nowhere have in common is context, the rest is marked.
pub(crate) fn merge_new_files(ours: &[u8], theirs: &[u8], labels: &Labels) -> Vec<u8> {
    let (ours, theirs) = (lines_of(ours), lines_of(theirs));
    let runs = changed_runs(&ours, &theirs);
    let all: Vec<usize> = (0..runs.len()).collect();
    mark_runs(&ours, &theirs, &runs, &all, labels)
}

/// Whether git would not show this as text.
pub(crate) fn is_binary(content: &[u8]) -> bool {
    content.iter().take(8000).any(|byte| *byte == 0)
}
