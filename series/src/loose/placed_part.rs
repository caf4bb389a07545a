//! Places the hunks of a loose diff in one file.
//!
//! If git has the blob that the diff names, it applies the hunks to that blob and merges the result with the file; only
//! if they do not fit the blob, it applies them to the file. So the hunks are placed in the blob if all of them fit
//! there, and otherwise in the file, without the `index` line, so that git cannot merge.

use std::collections::HashMap;

use super::changed_files::FileAfter;
use super::diff_parts::DiffPart;
use super::hunk_lines::DiffLine;
use super::hunk_places::{Decision, File, FileHere};
use super::look_alikes::uncertain;
use super::loose_hunk::LooseHunk;
use super::loose_reading::LooseReading;
use crate::model::printable::printable;
use crate::text::line_index::LineIndex;

/// Returns the hunks of `part`, each with the line of its header.
fn hunks_of<'a>(part: &DiffPart<'a>, reverse: bool) -> impl Iterator<Item = (usize, LooseHunk<'a>)> {
    let heads = (0..).zip(&part.lines).filter(|(_, line)| line.kind == DiffLine::HunkHead);
    heads.filter_map(move |(at, _)| Some((at, LooseHunk::read(part, at, reverse)?)))
}

/// Returns the hunks of `part` that cannot be placed.
pub(super) fn without_context(part: &DiffPart<'_>, strip: u32, reverse: bool) -> Vec<String> {
    let paths = part.paths(strip, reverse);
    let path = paths.first().map(|path| printable(path)).unwrap_or_default();
    let hunks = (1..).zip(hunks_of(part, reverse)).filter(|(_, (_, hunk))| hunk.lacks_context());
    hunks.map(|(number, _)| format!("{path}: hunk #{number} {WITHOUT_CONTEXT}")).collect()
}

const WITHOUT_CONTEXT: &str = "has no lines of context, so nothing but a line number says where it belongs; \
                               make the diff with them: git diff -U3";

/// The part of a diff for one file.
#[derive(Default)]
pub(super) struct PlacedPart {
    pub text: Vec<u8>,
    pub notes: Vec<String>,
    pub is_elsewhere: bool,
    pub uncertain: Vec<String>,
    pub after: FileAfter,
}

/// Places the hunks of `part` in the base of the file if git can merge from it, otherwise in the file. The content
/// after a merge is not known here, so a file is merged only if no other part changes it (`is_only_part`).
pub(super) fn place_part(
    part: &DiffPart<'_>,
    reading: LooseReading,
    path: &[u8],
    here: &FileHere,
    is_only_part: bool,
) -> PlacedPart {
    if !part.has_hunks() || (here.base.is_none() && is_only_part) {
        return place_in(part, reading, path, here);
    }
    if let Some(base) = here.base.as_ref().filter(|_| is_only_part && part.is_of_git()) {
        let base = FileHere { content: base.clone(), is_base: true, base: None };
        let placed = place_in(part, reading, path, &base);
        if matches!(placed.after, FileAfter::Content(_)) {
            let notes = placed.notes.into_iter().map(|note| note + OF_THE_BLOB).collect();
            return PlacedPart { after: FileAfter::Merged, notes, ..placed };
        }
    }
    place_in(&part.without_index(), reading, path, here)
}

const OF_THE_BLOB: &str = " (lines of the blob that its `index` line names)";

fn place_in(part: &DiffPart<'_>, reading: LooseReading, path: &[u8], here: &FileHere) -> PlacedPart {
    let (heads, hunks): (Vec<usize>, Vec<LooseHunk<'_>>) = hunks_of(part, reading.reverse).unzip();
    let index = LineIndex::new(&here.content);
    let file = File::new(path, here, &index, reading.may_fuzz);
    let decisions = file.decide(&hunks, reading.reverse);
    let after = decisions.content.map_or(FileAfter::Unknown, FileAfter::Content);
    let mut placed = PlacedPart { after, ..PlacedPart::default() };
    let named = |number: usize, text: &str| format!("{}: hunk #{number} {text}", printable(path));
    if reading.finds_uncertain {
        let uncertain = uncertain_of(&file, &hunks, &decisions.hunks);
        placed.uncertain = uncertain.iter().map(|(at, text)| named(at + 1, text)).collect();
    }
    let mut headers: HashMap<usize, Vec<u8>> = HashMap::new();
    for (number, (at, decision)) in (1..).zip(heads.into_iter().zip(decisions.hunks)) {
        headers.extend(decision.header.map(|header| (at, header)));
        placed.is_elsewhere |= decision.is_elsewhere;
        placed.notes.extend(decision.report.map(|report| named(number, &report)));
    }
    for (at, line) in part.lines.iter().enumerate() {
        placed.text.extend(headers.get(&at).map_or(line.bytes, Vec::as_slice));
    }
    placed
}

/// Returns the hunks whose place is not certain, by index; none unless all have a place.
fn uncertain_of(file: &File<'_>, hunks: &[LooseHunk<'_>], decisions: &[Decision]) -> Vec<(usize, String)> {
    let starts: Option<Vec<usize>> = decisions.iter().map(|decision| decision.start).collect();
    starts.map(|starts| uncertain(file, hunks, &starts)).unwrap_or_default()
}
