//! Parts of files that are compared by themselves, and the place of their lines in the files.

use std::ops::Range;

use super::finding::FileVersion;
use crate::model::path::RepoPath;
use crate::text::line_diff::{lines_of, slice};

/// The lines of a text that are in a part, from 0 and in order.
pub(super) struct Kept(Vec<Range<usize>>);

impl Kept {
    /// Keeps only these lines.
    pub fn only(lines: &Range<usize>) -> Kept {
        Kept(vec![lines.clone()])
    }

    /// Keeps the lines of `whole` that are in none of `cuts`, which do not overlap.
    pub fn without(mut cuts: Vec<Range<usize>>, whole: &[u8]) -> Kept {
        cuts.sort_by_key(|cut| cut.start);
        let starts = std::iter::once(0).chain(cuts.iter().map(|cut| cut.end));
        let ends = cuts.iter().map(|cut| cut.start).chain([lines_of(whole).len()]);
        Kept(starts.zip(ends).map(|(start, end)| start..end).collect())
    }

    /// Returns the text of the part.
    pub fn text(&self, whole: &[u8]) -> Vec<u8> {
        let lines = lines_of(whole);
        self.0.iter().flat_map(|kept| slice(&lines, kept.clone()).concat()).collect()
    }

    /// Returns the position in the whole text of line `at` of the part, both from 0.
    fn place(&self, at: usize) -> usize {
        let mut left = at;
        for kept in &self.0 {
            if left < kept.len() {
                return kept.start + left;
            }
            left -= kept.len();
        }
        // Below the last line.
        self.0.last().map_or(at, |kept| kept.end + left)
    }
}

/// A part of the four contents of a file, or of two files: a moved function, or all but moved functions.
pub(super) struct FilePart<'a> {
    /// Its lines after the patch on the old base, and before and after it on the new one.
    pub kept: [Kept; 3],
    /// The whole contents before and after the patch, on the old base and on the new one.
    pub whole: [&'a [u8]; 4],
    /// The file on the old base.
    pub old_path: &'a RepoPath,
    /// If it is a function: the first line of its head on the old base and on the new one.
    pub heads: Option<[&'a [u8]; 2]>,
}

impl<'a> FilePart<'a> {
    /// Returns the position in the file of line `at` of the part, both from 0.
    pub fn place(&self, version: FileVersion, at: usize) -> usize {
        let [old_after, new_before, new_after] = &self.kept;
        match version {
            FileVersion::OldAfter => old_after.place(at),
            FileVersion::NewBefore => new_before.place(at),
            FileVersion::NewAfter => new_after.place(at),
        }
    }

    /// Returns the head of the function that the part is.
    pub fn head(&self, version: FileVersion) -> Option<&'a [u8]> {
        let [old, new] = self.heads?;
        Some(if version == FileVersion::OldAfter { old } else { new })
    }
}

#[cfg(test)]
mod tests {
    use super::Kept;

    const TEXT: &[u8] = b"0\n1\n2\n3\n4\n5\n";

    #[test]
    fn a_part_has_the_lines_that_are_not_cut_out() {
        let kept = Kept::without(vec![4..5, 1..3], TEXT);
        assert_eq!(kept.text(TEXT), b"0\n3\n5\n");
        assert_eq!([0, 1, 2, 3].map(|at| kept.place(at)), [0, 3, 5, 6]);
        assert_eq!(Kept::without(Vec::new(), TEXT).text(TEXT), TEXT);
        assert_eq!(Kept::without(vec![0..3, 3..6], TEXT).text(TEXT), b"");
    }

    #[test]
    fn a_function_is_a_part_with_consecutive_lines() {
        let kept = Kept::only(&(2..4));
        assert_eq!(kept.text(TEXT), b"2\n3\n");
        assert_eq!([0, 1, 2].map(|at| kept.place(at)), [2, 3, 4]);
    }
}
