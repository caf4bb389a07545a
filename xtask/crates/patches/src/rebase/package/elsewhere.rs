//! Other places of the new tree that have the text that a patch expects: the code may have been moved there.

use espalier_series::{LineKind, LineSearch, enclosing_function};

use super::changed_files::ChangedFile;
use super::lines::{ConflictLines, ConflictedVersions, lines_of, text_of};
use crate::report::conflict::{FoundText, Occurrence};
use crate::report::content::PathText;

/// Maximum number of places that are named, of one text in one file and in all.
const PLACES_IN_FILE: usize = 4;
const PLACES_LIMIT: usize = 16;
/// Number of letters and digits below which lines say too little to be looked for.
const TELLING: usize = 12;
/// The same for a line alone.
const TELLING_ALONE: usize = 20;

/// A file, prepared for the search.
pub struct FileSearch<'f> {
    path: &'f [u8],
    text: &'f [u8],
    /// The old version; empty for the file in conflict, which is not searched for what is new.
    old: &'f [u8],
    search: LineSearch<'f>,
}

impl<'f> FileSearch<'f> {
    /// Prepares the new version of `file`.
    pub fn new(file: &'f ChangedFile) -> FileSearch<'f> {
        FileSearch { old: &file.old, ..FileSearch::of(&file.path, &file.new) }
    }

    fn of(path: &'f [u8], text: &'f [u8]) -> FileSearch<'f> {
        FileSearch { path, text, old: &[], search: LineSearch::new(text) }
    }

    fn occurrences(&self, lines: &[&[u8]], found: FoundText) -> Vec<Occurrence> {
        let places = self.search.places_of(lines, PLACES_IN_FILE).into_iter();
        let occurrence = |at: usize| Occurrence {
            path: PathText::from(self.path),
            line: at + 1,
            function: enclosing_function(self.path, self.text, at).map(|function| function.name),
            found,
        };
        places.map(occurrence).collect()
    }
}

/// Returns the places of `changed`, and of the file itself, that have the text of the patch's hunks; if there are none,
/// those that have the lines in conflict, and else those that have a single line of the hunks, as when code was moved and
/// changed. The place of the conflict itself is not among them.
pub fn occurrences(
    versions: &ConflictedVersions<'_>,
    lines: &ConflictLines,
    changed: &[FileSearch<'_>],
) -> Vec<Occurrence> {
    let hunks = versions.affected_hunks(lines).into_iter();
    let hunks = hunks.map(|hunk| (FoundText::Hunk, hunk.pre_image().collect::<Vec<&[u8]>>()));
    let base = versions.base.as_ref().zip(lines.base.as_ref());
    let alone = base.map(|(file, lines)| lines_of(text_of(&file.text, lines)).collect::<Vec<&[u8]>>());
    let own = versions.ours.as_ref().map(|file| FileSearch::of(file.path.as_bytes(), &file.text));
    let mut found = Vec::new();
    for (what, needle) in hunks.chain(alone.map(|lines| (FoundText::Lines, lines))) {
        let is_needed = what == FoundText::Hunk || found.is_empty();
        if !is_needed || !is_telling(&needle) {
            continue;
        }
        let is_own = |file: &&FileSearch<'_>| own.as_ref().is_some_and(|own| own.path == file.path);
        let here = |place: &Occurrence| {
            let start = place.line - 1;
            lines.ours.as_ref().is_some_and(|ours| start <= ours.end && start + needle.len() >= ours.start)
        };
        let in_own = own.iter().flat_map(|own| own.occurrences(&needle, what)).filter(|place| !here(place));
        found.extend(in_own);
        let others = changed.iter().filter(|file| !is_own(file));
        found.extend(others.flat_map(|file| file.occurrences(&needle, what)));
    }
    if found.is_empty() {
        found = places_of_rare_lines(versions, lines, own.as_ref(), changed);
    }
    found.truncate(PLACES_LIMIT);
    found
}

/// Returns the places that upstream's new code has of lines that the hunks of the patch delete or have as context, one for
/// each function. Each line is once in the base, no longer in its own file, and once in all of the others, where it was not
/// before.
fn places_of_rare_lines(
    versions: &ConflictedVersions<'_>,
    lines: &ConflictLines,
    own: Option<&FileSearch<'_>>,
    changed: &[FileSearch<'_>],
) -> Vec<Occurrence> {
    let Some(base) = &versions.base else { return Vec::new() };
    let before = LineSearch::new(&base.text);
    let hunks = versions.affected_hunks(lines);
    let old = |kind: LineKind| {
        let lines = hunks.iter().flat_map(|hunk| hunk.lines.iter());
        lines.filter(move |line| line.kind == kind).map(|line| line.bytes)
    };
    let mut found: Vec<Occurrence> = Vec::new();
    for line in old(LineKind::Delete).chain(old(LineKind::Context)) {
        let is_gone = own.is_none_or(|own| own.search.places_of(&[line], 1).is_empty());
        if letters(&[line]) < TELLING_ALONE || before.places_of(&[line], 2).len() != 1 || !is_gone {
            continue;
        }
        let there = changed.iter().flat_map(|file| {
            file.occurrences(&[line], FoundText::Line).into_iter().map(move |place| (file, place))
        });
        let mut there: Vec<(&FileSearch<'_>, Occurrence)> = there.take(2).collect();
        let (Some((file, place)), true) = (there.pop(), there.is_empty()) else { continue };
        let is_known = |other: &Occurrence| (&other.path, &other.function) == (&place.path, &place.function);
        if !lines_of(file.old).any(|old| old == line) && !found.iter().any(is_known) {
            found.push(place);
        }
    }
    found
}

/// Whether lines say enough to be looked for: a brace is everywhere.
pub fn is_telling(lines: &[&[u8]]) -> bool {
    letters(lines) >= TELLING
}

/// Returns the number of letters and digits.
fn letters(lines: &[&[u8]]) -> usize {
    lines.concat().iter().filter(|byte| byte.is_ascii_alphanumeric()).count()
}
