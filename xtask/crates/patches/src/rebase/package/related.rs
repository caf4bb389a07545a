//! Upstream's other changes that define or use identifiers of the lines in conflict: what a resolution needs is often a
//! class in a header, or a helper with another signature.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use espalier_series::{Hunk, HunkWithIdentifiers, hunks_with_identifiers, identifiers, lossy};

use super::changed_files::ChangedFile;
use super::diff_text::{diff_text, fitting};
use super::lines::{ConflictLines, ConflictedVersions, FileText, text_of};
use crate::report::conflict::{RelatedChange, UpstreamDiff};
use crate::report::content::{Content, PathText};

/// Maximum number of files.
const FILES_LIMIT: usize = 12;
/// Size limit of the diff of one of them, in bytes.
const DIFF_LIMIT: usize = 4 << 10;
/// Maximum number of identifiers that are looked for.
const IDENTIFIERS_LIMIT: usize = 500;
/// Number of bytes of one side of a place in which identifiers are collected.
const BYTES_LIMIT: usize = 32 << 10;
/// Number of changed files above which an identifier is too common to say anything.
const COMMON: usize = 12;

/// The identifiers in all places with a conflict.
#[derive(Default)]
pub struct ConflictIdentifiers(BTreeMap<Vec<u8>, WantedIdentifier>);

#[derive(Default)]
struct WantedIdentifier {
    /// Numbers of its places.
    places: BTreeSet<usize>,
    /// Whether not all sides of a place have it.
    is_changed: bool,
}

/// The hunks of the files in conflict that are shown already: path and first line in the new file.
pub type ShownHunks = BTreeSet<(Vec<u8>, usize)>;

impl ConflictIdentifiers {
    /// Adds the identifiers of all sides of the place `number`.
    pub fn add(&mut self, number: usize, versions: &ConflictedVersions<'_>, lines: &ConflictLines) {
        let sides =
            [(&versions.base, &lines.base), (&versions.ours, &lines.ours), (&versions.theirs, &lines.theirs)];
        let of_side = |file: &FileText<'_>, text: &[u8]| -> BTreeSet<Vec<u8>> {
            let text = text.get(..BYTES_LIMIT).unwrap_or(text);
            identifiers(file.path.as_bytes(), text).into_iter().map(<[u8]>::to_vec).collect()
        };
        let sides = sides.into_iter().filter_map(|(file, lines)| {
            let (file, lines) = file.as_ref().zip(lines.as_ref())?;
            Some(of_side(file, text_of(&file.text, lines)))
        });
        let sides: Vec<BTreeSet<Vec<u8>>> = sides.collect();
        for word in sides.iter().flatten() {
            if self.0.len() == IDENTIFIERS_LIMIT && !self.0.contains_key(word) {
                continue;
            }
            let wanted = self.0.entry(word.clone()).or_default();
            wanted.places.insert(number);
            wanted.is_changed |= sides.iter().any(|side| !side.contains(word));
        }
    }

    /// Returns the changes in `files` with these identifiers, the likeliest to matter first.
    pub fn changes(&self, files: &[ChangedFile], shown: &ShownHunks) -> Vec<RelatedChange> {
        let words: HashSet<&[u8]> = self.0.keys().map(Vec::as_slice).collect();
        let mut found: Vec<FileWithIdentifiers<'_>> =
            files.iter().filter_map(|file| FileWithIdentifiers::in_file(file, &words, shown)).collect();
        let mut counts: HashMap<&[u8], usize> = HashMap::new();
        for word in found.iter().flat_map(|file| file.identifiers().into_keys()) {
            *counts.entry(word).or_default() += 1;
        }
        let weights = Weights { wanted: self, counts: &counts };
        found.iter_mut().for_each(|file| file.leave_out_common(&counts));
        found.retain(|file| !file.hunks.is_empty());
        // Stable: files that are equally likely stay in their order, those near the conflict first.
        found.sort_by_cached_key(|file| Reverse(weights.of(&file.identifiers())));
        found.iter().take(FILES_LIMIT).map(|file| self.described(file, &weights)).collect()
    }

    fn described(&self, found: &FileWithIdentifiers<'_>, weights: &Weights<'_>) -> RelatedChange {
        let identifiers = found.identifiers();
        let places =
            identifiers.keys().filter_map(|word| self.0.get(*word)).flat_map(|wanted| &wanted.places);
        let named = |is_defined: bool| -> Vec<String> {
            let words = identifiers.iter().filter(move |(_, defined)| **defined == is_defined);
            words.map(|(word, _)| lossy(word).into_owned()).collect()
        };
        let paths = [found.file.path.as_slice(); 2];
        let mut hunks: Vec<(usize, &HunkWithIdentifiers<'_>)> = found.hunks.iter().enumerate().collect();
        hunks.sort_by_key(|(_, hunk)| Reverse(weights.of(&hunk.identifiers)));
        let hunks: Vec<(usize, &Hunk)> = hunks.into_iter().map(|(at, hunk)| (at, &hunk.hunk)).collect();
        let kept = fitting(&hunks, DIFF_LIMIT);
        let shown = kept.iter().filter_map(|at| found.hunks.get(*at)).map(|hunk| &hunk.hunk);
        let content = Content::of(&diff_text(paths, shown), DIFF_LIMIT);
        RelatedChange {
            path: PathText::from(found.file.path.as_slice()),
            hunks: places.copied().collect::<BTreeSet<usize>>().into_iter().collect(),
            defines: named(true),
            uses: named(false),
            diff: UpstreamDiff { content, hunks_left_out: found.hunks.len() - kept.len() },
            whole: diff_text(paths, found.hunks.iter().map(|hunk| &hunk.hunk)),
        }
    }
}

/// A changed file with wanted identifiers in its changed lines.
struct FileWithIdentifiers<'f> {
    file: &'f ChangedFile,
    hunks: Vec<HunkWithIdentifiers<'f>>,
}

impl<'f> FileWithIdentifiers<'f> {
    fn in_file(
        file: &'f ChangedFile,
        words: &HashSet<&'f [u8]>,
        shown: &ShownHunks,
    ) -> Option<FileWithIdentifiers<'f>> {
        let mut hunks = hunks_with_identifiers(&file.path, &file.old, &file.new, words);
        hunks.retain(|hunk| !shown.contains(&(file.path.clone(), hunk.hunk.new_start)));
        (!hunks.is_empty()).then_some(FileWithIdentifiers { file, hunks })
    }

    /// Returns its identifiers, each with whether it is defined in one of the hunks.
    fn identifiers(&self) -> BTreeMap<&'f [u8], bool> {
        let mut all: BTreeMap<&'f [u8], bool> = BTreeMap::new();
        for (word, is_defined) in self.hunks.iter().flat_map(|hunk| &hunk.identifiers) {
            *all.entry(*word).or_default() |= *is_defined;
        }
        all
    }

    fn leave_out_common(&mut self, counts: &HashMap<&[u8], usize>) {
        for hunk in &mut self.hunks {
            hunk.identifiers.retain(|word, _| counts.get(*word).is_none_or(|count| *count <= COMMON));
        }
        self.hunks.retain(|hunk| !hunk.identifiers.is_empty());
    }
}

/// The weights of identifiers: one that few files have says more, and so does a definition, and one that a side of the
/// conflict lacks.
struct Weights<'w> {
    wanted: &'w ConflictIdentifiers,
    /// Number of changed files with each identifier.
    counts: &'w HashMap<&'w [u8], usize>,
}

impl Weights<'_> {
    fn of(&self, identifiers: &BTreeMap<&[u8], bool>) -> usize {
        let weight = |(word, is_defined): (&&[u8], &bool)| {
            let is_changed = self.wanted.0.get(*word).is_some_and(|wanted| wanted.is_changed);
            let count = self.counts.get(*word).copied().unwrap_or(1).max(1);
            let (defined, changed) = (if *is_defined { 4 } else { 1 }, if is_changed { 2 } else { 1 });
            1_000 * defined * changed / count
        };
        identifiers.iter().map(weight).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{COMMON, ChangedFile, ConflictIdentifiers, ShownHunks, WantedIdentifier};
    use crate::report::conflict::RelatedChange;

    fn wanted(words: &[(&str, bool)]) -> ConflictIdentifiers {
        let identifier = |is_changed| WantedIdentifier { places: BTreeSet::from([1]), is_changed };
        ConflictIdentifiers(
            words.iter().map(|(word, changed)| (word.as_bytes().to_vec(), identifier(*changed))).collect(),
        )
    }

    fn changed(path: &str, old: &str, new: &str) -> ChangedFile {
        ChangedFile { path: path.into(), old: old.into(), new: new.into() }
    }

    fn paths(found: &[RelatedChange]) -> Vec<&str> {
        found.iter().map(|change| change.path.as_str()).collect()
    }

    #[test]
    fn a_definition_and_a_rare_name_come_first() {
        let wanted = wanted(&[("session", true), ("make_ctx", false)]);
        let files = [
            changed("a.cpp", "make_ctx(1);\n", "make_ctx(2);\n"),
            changed("b.cpp", "", "f(session);\n"),
            changed("c.h", "", "struct session {\n    int n;\n};\n"),
            changed("d.h", "int n;\n", "int m;\n"),
        ];
        let found = wanted.changes(&files, &ShownHunks::new());
        assert_eq!(paths(&found), ["c.h", "a.cpp", "b.cpp"]);
        assert_eq!((found[0].defines.as_slice(), found[0].uses.len()), (&["session".to_string()][..], 0));
        assert_eq!(found[2].uses, ["session"]);
        assert_eq!(found[0].hunks, [1]);
    }

    #[test]
    fn common_names_and_hunks_that_are_shown_are_left_out() {
        let wanted = wanted(&[("session", true)]);
        let file = |at: usize| changed(&format!("{at:02}.cpp"), "", "f(session);\n");
        let files: Vec<ChangedFile> = (0..=COMMON).map(file).collect();
        assert!(wanted.changes(&files, &ShownHunks::new()).is_empty());
        let few = files.get(..2).unwrap();
        let shown = ShownHunks::from([(b"00.cpp".to_vec(), 1)]);
        assert_eq!(paths(&wanted.changes(few, &shown)), ["01.cpp"]);
    }
}
