//! Tells the lines of a file from other lines of a diff, by the counts in the hunk headers.

use crate::read::hunk_header::{HunkHeader, Range};

/// A line of a diff.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DiffLine {
    /// A line of the file, after its sign.
    Content,
    /// `@@ -1,2 +1,3 @@`.
    HunkHead,
    /// A line that states which file is changed: `diff --git`, the lines that git writes below it, `---` and `+++`.
    /// Only a split into parts distinguishes it from [`DiffLine::Other`].
    Header,
    /// Any other line outside of the hunks, or the marker for a line without a line feed.
    Other,
}

/// Numbers of lines that the current hunk still lacks.
#[derive(Clone, Copy, Default)]
pub(crate) struct HunkLines {
    /// Lines of the old file.
    pub old: u64,
    /// Lines of the new file.
    pub new: u64,
}

impl HunkLines {
    /// Returns the kind of the next line of the diff; it is never [`DiffLine::Header`].
    pub fn next(&mut self, line: &[u8]) -> DiffLine {
        if (self.old > 0 || self.new > 0) && !line.starts_with(b"\\") {
            self.old -= u64::from(!line.starts_with(b"+")).min(self.old);
            self.new -= u64::from(!line.starts_with(b"-")).min(self.new);
            return DiffLine::Content;
        }
        match hunk_sizes(line) {
            Some((old, new)) => {
                *self = HunkLines { old, new };
                DiffLine::HunkHead
            }
            None => DiffLine::Other,
        }
    }
}

/// Returns the number of lines of the old and of the new file that follow `@@ -1,2 +1,3 @@`.
fn hunk_sizes(line: &[u8]) -> Option<(u64, u64)> {
    let header = HunkHeader::split(line)?;
    let size =
        |range: Range<'_>| range.count.map_or(Some(1), |count| std::str::from_utf8(count).ok()?.parse().ok());
    Some((size(header.old)?, size(header.new)?))
}
