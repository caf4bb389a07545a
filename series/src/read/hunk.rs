//! Text hunks: headers, lines, and whether they fit together.

use super::cursor::{Cursor, RawLine, number};
use super::hunk_header::{HunkHeader, Range};
use super::parse_error::{ParseError, Refusal};
use crate::model::hunk_lines::{HunkLines, LineKind};
use crate::model::patch::Hunk;

const NO_NEWLINE_MARKER: &[u8] = b"\\ No newline at end of file";

/// Reads hunks as long as there are any. `budget` is how many more hunk lines the patch may have.
pub(crate) fn read_hunks(cursor: &mut Cursor<'_>, budget: &mut usize) -> Result<Vec<Hunk>, ParseError> {
    let mut hunks: Vec<Hunk> = Vec::new();
    while let Some(line) = cursor.peek_prefix(b"@@ ") {
        let hunk = read_hunk(cursor, budget)?;
        check_order(hunks.last(), &hunk, &line)?;
        hunks.push(hunk);
    }
    if hunks.is_empty() {
        let line = cursor.require("a hunk, `@@ -1,7 +1,8 @@`")?;
        return Err(line.refused(Refusal::ContentMissing, "a hunk, `@@ -1,7 +1,8 @@`"));
    }
    check_shifts(&hunks)?;
    Ok(hunks)
}

fn read_hunk(cursor: &mut Cursor<'_>, budget: &mut usize) -> Result<Hunk, ParseError> {
    let header_line = cursor.require("a hunk header")?;
    let mut hunk = read_hunk_header(&header_line)?;
    let mut sides =
        SidesLeft { old: hunk.old_count, new: hunk.new_count, old_ended: false, new_ended: false };
    while sides.old > 0 || sides.new > 0 {
        *budget = budget
            .checked_sub(1)
            .ok_or_else(|| header_line.refused(Refusal::TooManyLines, "at most 2000000 lines"))?;
        read_hunk_line(cursor, &mut sides, &mut hunk.lines)?;
    }
    refuse_more_lines(cursor, &header_line)?;
    if hunk.lines.iter().all(|line| line.kind == LineKind::Context) {
        let expected = "at least one added or deleted line";
        return Err(header_line.refused(Refusal::HunkWithoutChange, expected));
    }
    Ok(hunk)
}

fn read_hunk_header(line: &RawLine<'_>) -> Result<Hunk, ParseError> {
    let bad = || line.refused(Refusal::BadHunkHeader, "`@@ -1,7 +1,8 @@`");
    let header = HunkHeader::split(line.bytes).ok_or_else(bad)?;
    let section = match header.section {
        [] => &[],
        [b' ', section @ ..] => section,
        _ => return Err(bad()),
    };
    let (old_start, old_count) = range(header.old, line)?;
    let (new_start, new_count) = range(header.new, line)?;
    Ok(Hunk {
        old_start,
        old_count,
        new_start,
        new_count,
        section: section.to_vec(),
        lines: HunkLines::default(),
        line: line.number,
    })
}

fn range(written: Range<'_>, line: &RawLine<'_>) -> Result<(usize, usize), ParseError> {
    let start = number(written.start, line)?;
    let count = written.count.map_or(Ok(1), |count| number(count, line))?;
    if start == 0 && count > 0 {
        return Err(line.refused(Refusal::BadHunkHeader, "a start of at least 1"));
    }
    Ok((start, count))
}

/// Number of lines that a hunk still lacks on each side, and whether a side has reached the end of its file.
struct SidesLeft {
    old: usize,
    new: usize,
    old_ended: bool,
    new_ended: bool,
}

impl SidesLeft {
    /// Counts one line on the sides that `kind` belongs to.
    fn count(&mut self, kind: LineKind, line: &RawLine<'_>) -> Result<(), ParseError> {
        let wrong = || line.refused(Refusal::WrongHunkCount, "the counts of the hunk header");
        if kind != LineKind::Add {
            self.old = self.old.checked_sub(1).ok_or_else(wrong)?;
        }
        if kind != LineKind::Delete {
            self.new = self.new.checked_sub(1).ok_or_else(wrong)?;
        }
        if (kind != LineKind::Add && self.old_ended) || (kind != LineKind::Delete && self.new_ended) {
            let expected = "no line after `\\ No newline at end of file`";
            return Err(line.refused(Refusal::HunkAfterEndOfFile, expected));
        }
        Ok(())
    }

    fn end(&mut self, kind: LineKind) {
        self.old_ended |= kind != LineKind::Add;
        self.new_ended |= kind != LineKind::Delete;
    }
}

fn read_hunk_line(
    cursor: &mut Cursor<'_>,
    sides: &mut SidesLeft,
    lines: &mut HunkLines,
) -> Result<(), ParseError> {
    let raw = cursor.require("as many lines as the hunk header counts")?;
    let (kind, content) = kind_and_content(&raw)?;
    sides.count(kind, &raw)?;
    if content.contains(&0) {
        return Err(raw.refused(Refusal::NulInText, "text (`git format-patch --binary`)"));
    }
    if !raw.has_line_feed {
        return Err(raw.refused(Refusal::TruncatedPatch, "a line feed at the end of the line"));
    }
    if take_no_newline_marker(cursor)? {
        sides.end(kind);
        lines.push(kind, &[content]);
    } else {
        lines.push(kind, &[content, b"\n"]);
    }
    Ok(())
}

fn kind_and_content<'a>(line: &RawLine<'a>) -> Result<(LineKind, &'a [u8]), ParseError> {
    match line.bytes.split_first() {
        Some((b' ', content)) => Ok((LineKind::Context, content)),
        Some((b'+', content)) => Ok((LineKind::Add, content)),
        Some((b'-', content)) => Ok((LineKind::Delete, content)),
        Some((b'\\', _)) => Err(line.refused(Refusal::BadNoNewlineMarker, "one marker, after a hunk line")),
        None => {
            let expected = "a hunk line (was a blank at the end of ` ` stripped?)";
            Err(line.refused(Refusal::BadHunkLine, expected))
        }
        Some(_) if starts_next_part(line.bytes) => {
            Err(line.refused(Refusal::WrongHunkCount, "as many lines as the hunk header counts"))
        }
        Some(_) => Err(line.refused(Refusal::BadHunkLine, "a line that starts with ` `, `+` or `-`")),
    }
}

fn starts_next_part(bytes: &[u8]) -> bool {
    bytes.starts_with(b"@@ ") || bytes.starts_with(b"diff --git ")
}

fn take_no_newline_marker(cursor: &mut Cursor<'_>) -> Result<bool, ParseError> {
    let Some(line) = cursor.peek_prefix(b"\\") else {
        return Ok(false);
    };
    if line.bytes != NO_NEWLINE_MARKER {
        let expected = "`\\ No newline at end of file`";
        return Err(line.refused(Refusal::BadNoNewlineMarker, expected));
    }
    cursor.take();
    Ok(true)
}

/// After the last counted line, a line that could belong to the hunk means a wrong count. The
/// signature `-- ` of a mail is the one exception.
fn refuse_more_lines(cursor: &Cursor<'_>, header_line: &RawLine<'_>) -> Result<(), ParseError> {
    let Some(next) = cursor.peek() else {
        return Ok(());
    };
    let could_belong = matches!(next.bytes.first(), Some(b' ' | b'+' | b'-' | b'\\'));
    if could_belong && next.bytes != b"-- " {
        let expected = "as many lines as the hunk header counts";
        return Err(header_line.refused(Refusal::WrongHunkCount, expected));
    }
    Ok(())
}

fn check_order(above: Option<&Hunk>, hunk: &Hunk, line: &RawLine<'_>) -> Result<(), ParseError> {
    let Some(above) = above else {
        return Ok(());
    };
    let start = hunk.old_lines_before();
    let expected = "hunks in the order of the file, none overlapping";
    if start < above.old_lines_before() {
        return Err(line.refused(Refusal::HunkOutOfOrder, expected));
    }
    if start < above.old_lines_before() + above.old_count {
        return Err(line.refused(Refusal::HunksOverlap, expected));
    }
    if above.lines.iter().any(|line| line.lacks_final_newline()) {
        let expected = "no hunk after `\\ No newline at end of file`";
        return Err(line.refused(Refusal::HunkAfterEndOfFile, expected));
    }
    Ok(())
}

/// Each hunk starts in the new file where it starts in the old one, moved by what the hunks
/// above it added and deleted.
fn check_shifts(hunks: &[Hunk]) -> Result<(), ParseError> {
    let (mut added, mut deleted) = (0usize, 0usize);
    for hunk in hunks {
        if hunk.old_lines_before() + added != hunk.new_lines_before() + deleted {
            let expected = "a new start that follows from the hunks above";
            let header = hunk.header();
            let refusal = Refusal::HunkStartsDisagree;
            return Err(ParseError::new(hunk.line, refusal, header.as_bytes(), expected));
        }
        added += hunk.new_count;
        deleted += hunk.old_count;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::read_hunks;
    use crate::model::hunk_lines::HunkLine;
    use crate::model::patch::Hunk;
    use crate::read::cursor::Cursor;
    use crate::read::parse_error::{ParseError, Refusal};

    fn read(text: &str) -> Result<Vec<Hunk>, ParseError> {
        read_hunks(&mut Cursor::new(text.as_bytes()), &mut 100)
    }

    fn lines(hunk: &Hunk) -> Vec<HunkLine<'_>> {
        hunk.lines.iter().collect()
    }

    #[test]
    fn reads_hunks_with_and_without_counts() {
        let hunks = read("@@ -1 +1,2 @@ int f()\n-a\n+b\r\n+c\n@@ -9,2 +10 @@\n x\n-y\n").unwrap();
        assert_eq!(hunks.len(), 2);
        assert_eq!((hunks[0].old_count, hunks[0].new_count, hunks[1].new_count), (1, 2, 1));
        assert_eq!(hunks[0].section, b"int f()");
        assert_eq!(lines(&hunks[0])[1].bytes, b"b\r\n");
    }

    #[test]
    fn reads_a_missing_final_newline() {
        let marker = "\\ No newline at end of file\n";
        let hunks = read(&format!("@@ -1 +1 @@\n-a\n{marker}+a\n")).unwrap();
        assert!(lines(&hunks[0])[0].lacks_final_newline());
        assert_eq!(lines(&hunks[0])[1].bytes, b"a\n");
        let both = format!("@@ -1 +1 @@\n-a\n{marker}{marker}+a\n");
        assert_eq!(read(&both).unwrap_err().refusal, Refusal::BadNoNewlineMarker);
    }

    #[test]
    fn refuses_each_by_its_own_name() {
        let marker = "\\ No newline at end of file\n";
        let cases = [
            ("@@ -1 +1 @@\n-a\n".to_owned(), Refusal::TruncatedPatch),
            ("@@ -1 +1 @@\n-a\n+b".to_owned(), Refusal::TruncatedPatch),
            ("@@ -1 +1 @@\n-a\n+b\n+c\n".to_owned(), Refusal::WrongHunkCount),
            ("@@ -1 +1,3 @@\n-a\n+b\n@@ -5 +5 @@\n".to_owned(), Refusal::WrongHunkCount),
            ("@@ -1 +1 @@\n-a\n-b\n".to_owned(), Refusal::WrongHunkCount),
            ("@@ -1,2 +1,2 @@\n a\n b\n".to_owned(), Refusal::HunkWithoutChange),
            ("@@ -1,2 +1,1 @@\n\n-b\n".to_owned(), Refusal::BadHunkLine),
            ("@@ -1,2 +1,1 @@\n*a\n-b\n".to_owned(), Refusal::BadHunkLine),
            ("@@ -1 +1 @@x\n-a\n+b\n".to_owned(), Refusal::BadHunkHeader),
            ("@@ -0,1 +1 @@\n-a\n+b\n".to_owned(), Refusal::BadHunkHeader),
            ("@@ -1,4000000000 +1 @@\n-a\n+b\n".to_owned(), Refusal::NumberTooLarge),
            ("@@ -1,9999999 +1 @@\n-a\n+b\n".to_owned(), Refusal::TruncatedPatch),
            ("@@ -1 +1 @@\n-a\0\n+b\n".to_owned(), Refusal::NulInText),
            ("@@ -1 +2 @@\n-a\n+b\n".to_owned(), Refusal::HunkStartsDisagree),
            ("@@ -5 +5 @@\n-a\n+b\n@@ -2 +2 @@\n-a\n+b\n".to_owned(), Refusal::HunkOutOfOrder),
            ("@@ -5,2 +5 @@\n-a\n-b\n+b\n@@ -6 +5 @@\n-a\n+b\n".to_owned(), Refusal::HunksOverlap),
            (format!("@@ -1,2 +1 @@\n-a\n{marker} b\n"), Refusal::HunkAfterEndOfFile),
            (format!("@@ -1 +1 @@\n-a\n+b\n{marker}@@ -2 +2 @@\n-a\n+b\n"), Refusal::HunkAfterEndOfFile),
            ("@@ -1 +1 @@\n-a\n\\ Kein Zeilenende\n+b\n".to_owned(), Refusal::BadNoNewlineMarker),
            ("nothing\n".to_owned(), Refusal::ContentMissing),
        ];
        for (text, refusal) in cases {
            assert_eq!(read(&text).unwrap_err().refusal, refusal, "{text}");
        }
    }

    #[test]
    fn stops_at_the_line_budget() {
        let text = format!("@@ -0,0 +1,200 @@\n{}", "+a\n".repeat(200));
        assert_eq!(read(&text).unwrap_err().refusal, Refusal::TooManyLines);
    }
}
