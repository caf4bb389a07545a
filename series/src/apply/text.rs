//! Hunks applied to a blob: each on its own line and byte for byte, or not at all.

use crate::model::hunk_lines::{HunkLine, LineKind};
use crate::model::patch::Hunk;

/// The first line that differs from what a hunk expects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HunkMismatch {
    /// Index of the hunk in its file patch, from 0.
    pub hunk: usize,
    /// Line in the file, from 1.
    pub line: usize,
}

/// Applies `hunks` to `pre_image`. The hunks are in order and do not overlap (the parser checks that), so one pass over
/// the text is enough.
pub(crate) fn apply_hunks(pre_image: &[u8], hunks: &[Hunk]) -> Result<Vec<u8>, HunkMismatch> {
    let added = hunks.iter().map(|hunk| hunk.lines.added_bytes()).sum::<usize>();
    let mut result = Vec::with_capacity(pre_image.len() + added);
    let mut rest = pre_image;
    let mut lines_read = 0usize;
    for (index, hunk) in hunks.iter().enumerate() {
        let mismatch = |line: usize| HunkMismatch { hunk: index, line };
        let wanted = hunk.old_lines_before().saturating_sub(lines_read);
        let (skipped, skipped_lines) = first_lines(rest, wanted);
        lines_read += skipped_lines;
        if skipped_lines < wanted {
            return Err(mismatch(lines_read + 1));
        }
        result.extend_from_slice(skipped);
        rest = rest.get(skipped.len()..).unwrap_or_default();
        (rest, lines_read) = apply_hunk(rest, lines_read, hunk, &mut result).map_err(mismatch)?;
    }
    if !rest.is_empty() && lacks_final_newline(&result) {
        let hunk = hunks.len().saturating_sub(1);
        return Err(HunkMismatch { hunk, line: lines_read + 1 });
    }
    result.extend_from_slice(rest);
    Ok(result)
}

/// Returns the first `count` lines of `text`, and their actual number.
fn first_lines(text: &[u8], count: usize) -> (&[u8], usize) {
    let Some(last) = count.checked_sub(1) else { return (&[], 0) };
    let mut ends = memchr::memchr_iter(b'\n', text);
    if let Some(end) = ends.nth(last) {
        return (text.get(..=end).unwrap_or(text), count);
    }
    let ended = memchr::memchr_iter(b'\n', text).count();
    (text, ended + usize::from(lacks_final_newline(text)))
}

/// Returns the rest of `text` after `line`, with which it must start.
fn after_line<'a>(text: &'a [u8], line: HunkLine<'_>) -> Option<&'a [u8]> {
    let rest = text.strip_prefix(line.bytes)?;
    (rest.is_empty() || !line.lacks_final_newline()).then_some(rest)
}

/// Applies one hunk at the start of `rest`; returns the rest and the number of lines read, or the number of the line
/// that differs.
fn apply_hunk<'a>(
    mut rest: &'a [u8],
    mut lines_read: usize,
    hunk: &Hunk,
    result: &mut Vec<u8>,
) -> Result<(&'a [u8], usize), usize> {
    for line in hunk.lines.iter() {
        if line.kind != LineKind::Add {
            rest = after_line(rest, line).ok_or(lines_read + 1)?;
            lines_read += 1;
        }
        if line.kind != LineKind::Delete {
            if lacks_final_newline(result) {
                return Err(lines_read + 1);
            }
            result.extend_from_slice(line.bytes);
        }
    }
    Ok((rest, lines_read))
}

/// Returns whether a line appended to `text` would be joined to its last line.
fn lacks_final_newline(text: &[u8]) -> bool {
    !text.is_empty() && !text.ends_with(b"\n")
}

#[cfg(test)]
mod tests {
    use super::{HunkMismatch, apply_hunks};
    use crate::read::cursor::Cursor;
    use crate::read::hunk::read_hunks;

    fn apply(pre_image: &str, hunks: &str) -> Result<String, HunkMismatch> {
        let hunks = read_hunks(&mut Cursor::new(hunks.as_bytes()), &mut 100).unwrap();
        apply_hunks(pre_image.as_bytes(), &hunks).map(|bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn applies_in_one_pass() {
        let hunks = "@@ -1,2 +1,2 @@\n-a\n+A\n b\n@@ -4 +4,2 @@\n d\n+e\n";
        assert_eq!(apply("a\nb\nc\nd\n", hunks).as_deref(), Ok("A\nb\nc\nd\ne\n"));
    }

    #[test]
    fn inserts_after_a_line_without_context() {
        assert_eq!(apply("a\nb\n", "@@ -1,0 +2 @@\n+x\n").as_deref(), Ok("a\nx\nb\n"));
    }

    #[test]
    fn never_searches() {
        let mismatch = apply("x\na\nb\n", "@@ -1,2 +1,2 @@\n-a\n+A\n b\n").unwrap_err();
        assert_eq!(mismatch, HunkMismatch { hunk: 0, line: 1 });
    }

    #[test]
    fn tells_line_ends_apart() {
        assert!(apply("a\r\nb\n", "@@ -1,2 +1 @@\n-a\n b\n").is_err());
        assert!(apply("a", "@@ -1 +1 @@\n-a\n+b\n").is_err());
        assert!(apply("a", "@@ -1,0 +2 @@\n+b\n").is_err());
    }

    #[test]
    fn stops_past_the_end() {
        let mismatch = apply("a\n", "@@ -9000000 +9000000 @@\n-a\n+b\n").unwrap_err();
        assert_eq!(mismatch.line, 2);
    }
}
