//! The content of the files that a diff changes, after each of its parts.
//!
//! git's result is compared with it: a note on the place of a hunk is true only if they are equal.

use std::collections::{BTreeMap, HashSet};

use super::diff_parts::DiffPart;
use super::hunk_places::FileHere;
use super::loose_reading::LooseReading;

/// A file after a diff.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum FileAfter {
    /// This content. A file without any may also be gone.
    Content(Vec<u8>),
    /// The result of a merge by git.
    Merged,
    /// Not known: a hunk has no place, or the file is gone or has moved.
    #[default]
    Unknown,
}

impl FileAfter {
    /// Returns whether git changed the file as expected: it has `content` now, and was merged or not (`is_merged`).
    pub fn is_result(&self, content: Option<&[u8]>, is_merged: bool) -> bool {
        match self {
            FileAfter::Content(expected) => content.unwrap_or_default() == expected,
            FileAfter::Merged => is_merged,
            FileAfter::Unknown => true,
        }
    }
}

/// The files as the parts so far leave them, by path.
#[derive(Default)]
pub(super) struct ChangedFiles(pub BTreeMap<Vec<u8>, FileAfter>);

impl ChangedFiles {
    /// Returns the file that `part` changes, and its path; `None` if there is none, or it is not known.
    pub fn file_of(
        &self,
        part: &DiffPart<'_>,
        reading: LooseReading,
        file_of: &mut impl FnMut(&[u8], Option<&str>) -> Option<FileHere>,
    ) -> Option<(Vec<u8>, FileHere)> {
        let stated = part.stated_blob(reading.reverse);
        // git copies and renames a file as it was before the whole diff.
        let is_original = part.is_copy() || part.is_rename();
        part.paths(reading.strip, reading.reverse).into_iter().find_map(|path| {
            let file = match self.0.get(&path).filter(|_| !is_original) {
                Some(FileAfter::Content(content)) => {
                    FileHere { content: content.clone(), is_base: false, base: None }
                }
                Some(_) => return None,
                None => file_of(&path, stated)?,
            };
            Some((path, file))
        })
    }

    /// Records that `part` changes the file at `before`, if there is one, to `after`.
    pub fn record(
        &mut self,
        part: &DiffPart<'_>,
        reading: LooseReading,
        before: Option<&[u8]>,
        after: FileAfter,
    ) {
        let path = part.path_after(reading.strip, reading.reverse, before);
        if let Some(before) = before.filter(|before| !part.is_copy() && path.as_deref() != Some(*before)) {
            self.0.insert(before.to_vec(), FileAfter::Unknown);
        }
        if let Some(path) = path {
            self.0.insert(path, after);
        }
    }
}

/// Returns the paths that more than one part has.
pub(super) fn changed_twice(parts: &[DiffPart<'_>], reading: LooseReading) -> HashSet<Vec<u8>> {
    let mut seen = HashSet::new();
    let paths = parts.iter().flat_map(|part| {
        let mut paths = part.paths(reading.strip, reading.reverse);
        paths.dedup();
        paths
    });
    paths.filter(|path| !seen.insert(path.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::FileAfter;

    #[test]
    fn another_result_than_the_expected_one_is_found() {
        let content = |text: &str| FileAfter::Content(text.as_bytes().to_vec());
        assert!(content("a").is_result(Some(b"a"), false) && content("").is_result(None, false));
        assert!(!content("a").is_result(Some(b"b"), true) && !content("a").is_result(None, false));
        assert!(
            FileAfter::Merged.is_result(Some(b"a"), true) && !FileAfter::Merged.is_result(Some(b"a"), false)
        );
        assert!(FileAfter::Unknown.is_result(Some(b"a"), false));
    }
}
