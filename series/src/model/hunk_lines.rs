//! The lines of a hunk, in one allocation: a series has tens of thousands of them.

/// The kind of a hunk line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineKind {
    /// On both sides.
    Context,
    /// On the new side.
    Add,
    /// On the old side.
    Delete,
}

impl LineKind {
    /// Returns the sign that such a line begins with in a diff.
    pub fn sign(self) -> u8 {
        match self {
            LineKind::Context => b' ',
            LineKind::Add => b'+',
            LineKind::Delete => b'-',
        }
    }
}

/// One line of a hunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HunkLine<'a> {
    /// Its kind.
    pub kind: LineKind,
    /// The line as it is in the file: with its line feed, unless it is a last line without one.
    pub bytes: &'a [u8],
}

impl HunkLine<'_> {
    /// Returns whether this is the last line of a file that does not end with a line feed.
    pub fn lacks_final_newline(&self) -> bool {
        !self.bytes.ends_with(b"\n")
    }
}

/// The lines of a hunk, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HunkLines {
    text: Vec<u8>,
    /// Kind and length of each line.
    lines: Vec<(LineKind, usize)>,
}

impl HunkLines {
    /// Adds a line at the end; `bytes` may be in pieces.
    pub(crate) fn push(&mut self, kind: LineKind, bytes: &[&[u8]]) {
        let before = self.text.len();
        bytes.iter().for_each(|piece| self.text.extend_from_slice(piece));
        self.lines.push((kind, self.text.len() - before));
    }

    /// Iterates over the lines.
    pub fn iter(&self) -> impl Iterator<Item = HunkLine<'_>> {
        let mut rest = self.text.as_slice();
        self.lines.iter().map(move |(kind, length)| {
            let (bytes, after) = rest.split_at_checked(*length).unwrap_or((rest, &[]));
            rest = after;
            HunkLine { kind: *kind, bytes }
        })
    }

    /// Returns the number of bytes that only the new side has.
    pub fn added_bytes(&self) -> usize {
        self.lines.iter().filter(|(kind, _)| *kind == LineKind::Add).map(|(_, length)| length).sum()
    }
}
