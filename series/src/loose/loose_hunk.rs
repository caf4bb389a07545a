//! A hunk of a loose diff as data, and a header that moves it to another place.

use super::diff_parts::DiffPart;
use super::hunk_lines::DiffLine;
use crate::model::hunk_lines::LineKind;
use crate::model::signed::signed;
use crate::read::cursor::NUMBER_LIMIT;
use crate::read::hunk_header::HunkHeader;
use crate::text::function::is_function_line;

/// The count of a side without lines: its start is then the line above.
const NO_LINES: Option<&[u8]> = Some(b"0");

/// One hunk; with `reverse` its sides are swapped.
pub(super) struct LooseHunk<'a> {
    /// Number of lines above it in the old file, by its header.
    pub stated: usize,
    /// The counts of `-1,2` and `+1,3` in the header, as written.
    counts: [Option<&'a [u8]>; 2],
    /// The text after the ranges in its header.
    pub section: &'a [u8],
    lines: Vec<(LineKind, &'a [u8])>,
}

/// The position of a hunk in a file.
#[derive(Clone, Copy)]
pub(super) struct HunkPosition {
    /// Number of lines above the first line compared.
    pub start: usize,
    /// Number of the hunk's lines above that one, which are ignored.
    pub trimmed: usize,
}

impl<'a> LooseHunk<'a> {
    /// Parses the hunk whose header is line `at` of `part`.
    pub fn read(part: &DiffPart<'a>, at: usize, reverse: bool) -> Option<LooseHunk<'a>> {
        let header = HunkHeader::split(part.lines.get(at)?.bytes)?;
        let sides = if reverse { [header.new, header.old] } else { [header.old, header.new] };
        let [old, _] = sides;
        let start = std::str::from_utf8(old.start).ok()?.parse::<usize>().ok()?.min(NUMBER_LIMIT);
        Some(LooseHunk {
            stated: if old.count == NO_LINES { start } else { start.saturating_sub(1) },
            counts: sides.map(|side| side.count),
            section: header.section.trim_ascii(),
            lines: read_lines(part, at + 1, reverse),
        })
    }

    /// Iterates over the lines that it expects in the old file.
    pub fn expected(&self) -> impl Iterator<Item = &'a [u8]> {
        self.lines.iter().filter(|(kind, _)| *kind != LineKind::Add).map(|(_, bytes)| *bytes)
    }

    /// Returns the number of context lines above the first change.
    pub fn leading(&self) -> usize {
        self.lines.iter().take_while(|(kind, _)| *kind == LineKind::Context).count()
    }

    /// Returns the number of context lines below the last change.
    pub fn trailing(&self) -> usize {
        self.lines.iter().rev().take_while(|(kind, _)| *kind == LineKind::Context).count()
    }

    /// Returns whether only its line number determines its place. A hunk for a whole file needs no context.
    pub fn lacks_context(&self) -> bool {
        self.stated > 0 && self.leading() == 0 && self.trailing() == 0
    }

    /// Returns the number of lines that it adds to the file.
    pub fn growth(&self) -> i64 {
        let count = |wanted| signed(self.lines.iter().filter(|(kind, _)| *kind == wanted).count());
        count(LineKind::Add) - count(LineKind::Delete)
    }

    /// Returns whether the context below the first `trimmed` lines, which is compared, has the line that opens the
    /// function.
    pub fn shows_function(&self, trimmed: usize) -> bool {
        self.above().iter().skip(trimmed).any(|(_, line)| is_function_line(line))
    }

    /// Returns the section for a header of the hunk without its first `trimmed` lines.
    pub fn section_below(&self, trimmed: usize) -> &'a [u8] {
        let left_out = self.above().get(..trimmed).unwrap_or_default();
        let shown = left_out.iter().rev().find(|(_, line)| is_function_line(line));
        shown.map_or(self.section, |(_, line)| line.trim_ascii_end())
    }

    fn above(&self) -> &[(LineKind, &'a [u8])] {
        self.lines.get(..self.leading()).unwrap_or_default()
    }

    /// Iterates over the lines that replace those compared, without the ignored context.
    pub fn result(&self, trimmed: [usize; 2]) -> impl Iterator<Item = &'a [u8]> {
        let [above, below] = trimmed;
        let compared = self.lines.get(above..self.lines.len().saturating_sub(below)).unwrap_or_default();
        compared.iter().filter(|(kind, _)| *kind != LineKind::Delete).map(|(_, bytes)| *bytes)
    }

    /// Returns the header that makes git apply the hunk at `place` if the hunks above add `grown` lines. git starts
    /// from the line number of the new side, and goes up one line for each line of context above that it ignores.
    pub fn header_at(&self, place: HunkPosition, grown: i64, reverse: bool) -> Vec<u8> {
        let start = |lines_above: i64, count: Option<&[u8]>| {
            let first = (lines_above + i64::from(count != NO_LINES)).to_string();
            match count {
                Some(count) => [first.as_bytes(), b",", count].concat(),
                None => first.into_bytes(),
            }
        };
        let (above, trimmed) = (signed(place.start), signed(place.trimmed));
        let [old, new] = self.counts;
        let old = start((above - trimmed).max(0), old);
        let new = start(above + trimmed + grown, new);
        let (minus, plus) = if reverse { (new, old) } else { (old, new) };
        let blank: &[u8] = if self.section.is_empty() { b"" } else { b" " };
        [b"@@ -", &minus[..], b" +", &plus, b" @@", blank, self.section, b"\n"].concat()
    }
}

fn read_lines<'a>(part: &DiffPart<'a>, from: usize, reverse: bool) -> Vec<(LineKind, &'a [u8])> {
    let lines = (from..).map_while(|at| part.lines.get(at).map(|line| (at, line)));
    lines
        .take_while(|(_, line)| line.kind == DiffLine::Content || line.bytes.starts_with(b"\\"))
        .filter(|(_, line)| line.kind == DiffLine::Content)
        .map(|(at, line)| {
            let (kind, bytes) = match line.bytes.split_first() {
                Some((b'+', rest)) if reverse => (LineKind::Delete, rest),
                Some((b'-', rest)) if reverse => (LineKind::Add, rest),
                Some((b'+', rest)) => (LineKind::Add, rest),
                Some((b'-', rest)) => (LineKind::Delete, rest),
                Some((b' ', rest)) => (LineKind::Context, rest),
                _ => (LineKind::Context, line.bytes),
            };
            let bare = bytes.strip_suffix(b"\n").unwrap_or(bytes);
            (kind, if part.is_content_with_end(at) { bytes } else { bare })
        })
        .collect()
}
