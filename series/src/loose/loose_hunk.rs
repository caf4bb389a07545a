//! A hunk of a loose diff as data, and its header for another place.

use super::diff_parts::DiffPart;
use super::hunk_lines::DiffLine;
use crate::model::hunk_lines::LineKind;
use crate::model::signed::signed;
use crate::read::cursor::NUMBER_LIMIT;
use crate::text::function::is_function_line;

/// One hunk, its sides as it is applied.
pub(super) struct LooseHunk<'a> {
    /// The lines above it in the old file, as its header says.
    pub stated: usize,
    /// `-1,2` and `+1,3` of the header, the counts as they are written.
    counts: [Option<&'a str>; 2],
    /// What follows the ranges in its header.
    pub section: &'a [u8],
    lines: Vec<(LineKind, &'a [u8])>,
}

/// The place of a hunk.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// Lines above the first one that was compared.
    pub start: usize,
    /// Lines of the hunk that were left out above that one.
    pub trimmed: usize,
}

impl<'a> LooseHunk<'a> {
    /// The hunk whose header is line `at` of `part`.
    pub fn read(part: &DiffPart<'a>, at: usize, reverse: bool) -> Option<LooseHunk<'a>> {
        let header = part.lines.get(at)?.bytes.strip_prefix(b"@@ -")?;
        let end = header.windows(3).position(|window| window == b" @@")?;
        let (old, new) = std::str::from_utf8(header.get(..end)?).ok()?.split_once(" +")?;
        let sides = if reverse { [new, old] } else { [old, new] };
        let counts = sides.map(|range| range.split_once(',').map(|(_, count)| count));
        let start = sides.first()?.split(',').next()?.parse::<usize>().ok()?.min(NUMBER_LIMIT);
        let is_empty = counts.first()?.is_some_and(|count| count == "0");
        Some(LooseHunk {
            stated: if is_empty { start } else { start.saturating_sub(1) },
            counts,
            section: header.get(end + 3..)?.trim_ascii(),
            lines: read_lines(part, at + 1, reverse),
        })
    }

    /// The lines that it is placed by.
    pub fn expected(&self) -> impl Iterator<Item = &'a [u8]> {
        self.lines.iter().filter(|(kind, _)| *kind != LineKind::Add).map(|(_, bytes)| *bytes)
    }

    /// Lines of context above the first change.
    pub fn leading(&self) -> usize {
        self.lines.iter().take_while(|(kind, _)| *kind == LineKind::Context).count()
    }

    /// Lines of context below the last change.
    pub fn trailing(&self) -> usize {
        self.lines.iter().rev().take_while(|(kind, _)| *kind == LineKind::Context).count()
    }

    /// How many lines longer it makes the file.
    pub fn growth(&self) -> i64 {
        let count = |wanted| signed(self.lines.iter().filter(|(kind, _)| *kind == wanted).count());
        count(LineKind::Add) - count(LineKind::Delete)
    }

    /// Whether the line that opens the function is in the context, and so is compared with it.
    pub fn shows_function(&self) -> bool {
        let above = self.lines.get(..self.leading()).unwrap_or_default();
        above.iter().any(|(_, line)| is_function_line(line))
    }

    /// The header that sends git to `place` when the hunks above add `grown` lines. git starts from the number of the new
    /// side, and goes up a line for every line of context above that it leaves out.
    pub fn header_at(&self, place: Place, grown: i64, reverse: bool) -> Vec<u8> {
        let start = |lines_above: i64, count: Option<&str>| {
            let first = lines_above + i64::from(count != Some("0"));
            count.map_or(first.to_string(), |count| format!("{first},{count}"))
        };
        let (above, trimmed) = (signed(place.start), signed(place.trimmed));
        let [old, new] = self.counts;
        let old = start((above - trimmed).max(0), old);
        let new = start(above + trimmed + grown, new);
        let (minus, plus) = if reverse { (new, old) } else { (old, new) };
        let blank: &[u8] = if self.section.is_empty() { b"" } else { b" " };
        [format!("@@ -{minus} +{plus} @@").as_bytes(), blank, self.section, b"\n"].concat()
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
