//! Other places of the new tree that have the text that a patch expects: the code may have been moved there.

use espalier_series::{LineSearch, enclosing_function};

use super::changed_files::ChangedFile;
use super::lines::{ConflictLines, ConflictedVersions, lines_of, text_of};
use crate::report::conflict::{FoundText, Occurrence};
use crate::report::content::PathText;

/// Maximum number of places that are named, of one text in one file and in all.
const PLACES_IN_FILE: usize = 4;
const PLACES_LIMIT: usize = 16;
/// Number of letters and digits below which lines say too little to be looked for.
const TELLING: usize = 12;

/// A file, prepared for the search.
pub struct FileSearch<'f> {
    path: &'f [u8],
    text: &'f [u8],
    search: LineSearch<'f>,
}

impl<'f> FileSearch<'f> {
    /// Prepares the new version of `file`.
    pub fn new(file: &'f ChangedFile) -> FileSearch<'f> {
        FileSearch::of(&file.path, &file.new)
    }

    fn of(path: &'f [u8], text: &'f [u8]) -> FileSearch<'f> {
        FileSearch { path, text, search: LineSearch::new(text) }
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
/// those that have the lines in conflict. The place of the conflict itself is not among them.
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
    found.truncate(PLACES_LIMIT);
    found
}

/// Whether lines say enough to be looked for: a brace is everywhere.
pub fn is_telling(lines: &[&[u8]]) -> bool {
    lines.concat().iter().filter(|byte| byte.is_ascii_alphanumeric()).count() >= TELLING
}
