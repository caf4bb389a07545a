//! The line ends of a loose diff against those of the files that it changes.
//!
//! A checkout that git converted (`core.autocrlf`), a web page or a mail program may have given a diff other line ends than
//! the file has. patch(1) strips carriage returns then; git does not, and says only that the patch failed.

use super::hunk_lines::{DiffLine, HunkLines};

/// How the lines of a text end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineEnds {
    /// All with a line feed alone.
    Lf,
    /// All with a carriage return before it.
    Crlf,
    /// Some this way and some that way.
    Mixed,
}

impl LineEnds {
    /// The line ends of `text`; nothing when it has none.
    pub fn of(text: &[u8]) -> Option<LineEnds> {
        LineEnds::of_lines(text.split_inclusive(|byte| *byte == b'\n'))
    }

    fn of_lines<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Option<LineEnds> {
        let ends = lines.filter(|line| line.ends_with(b"\n")).map(|line| line.ends_with(b"\r\n"));
        let kind = |is_crlf| if is_crlf { LineEnds::Crlf } else { LineEnds::Lf };
        ends.map(kind).reduce(|one, other| if one == other { one } else { LineEnds::Mixed })
    }

    /// In words.
    pub fn describe(self) -> &'static str {
        match self {
            LineEnds::Lf => "LF line endings",
            LineEnds::Crlf => "CRLF line endings",
            LineEnds::Mixed => "mixed line endings",
        }
    }
}

/// A file whose line ends are not those of the diff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherLineEnds {
    /// Its path.
    pub path: Vec<u8>,
    /// Those of the diff's lines for it.
    pub diff: LineEnds,
    /// Its own.
    pub file: LineEnds,
}

/// A diff with the line ends of the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adapted {
    /// The text. Where line ends are mixed nothing is changed.
    pub diff: Vec<u8>,
    /// The files that had others.
    pub others: Vec<OtherLineEnds>,
}

/// Gives `diff` the line ends of the files, which `ends_of` knows by their paths without the first `strip` parts; a
/// `reverse` diff is made from what it calls the new files.
pub fn with_line_ends_of_files(
    diff: &[u8],
    strip: u32,
    reverse: bool,
    mut ends_of: impl FnMut(&[u8]) -> Option<LineEnds>,
) -> Adapted {
    let mut adapted = Adapted { diff: Vec::with_capacity(diff.len()), others: Vec::new() };
    for part in parts_of(diff) {
        let path = part.path(strip, reverse);
        let ours = LineEnds::of_lines(part.content());
        let file = path.as_deref().and_then(&mut ends_of);
        let is_stripped = adapted.others.iter().any(|other| (other.diff, other.file) == STRIPPED);
        match (ours, file, path) {
            (Some(ours), Some(file), Some(path)) if ours != file => {
                adapted.others.push(OtherLineEnds { path, diff: ours, file });
                match (ours, file) {
                    STRIPPED => part.write_lf(&mut adapted.diff),
                    (LineEnds::Lf, LineEnds::Crlf) => part.write_crlf(&mut adapted.diff),
                    _ => part.write(&mut adapted.diff),
                }
            }
            // A file that the diff makes, in a diff that was converted as a whole.
            (Some(LineEnds::Crlf), None, _) if is_stripped => part.write_lf(&mut adapted.diff),
            _ => part.write(&mut adapted.diff),
        }
    }
    adapted
}

const STRIPPED: (LineEnds, LineEnds) = (LineEnds::Crlf, LineEnds::Lf);

/// The part of a diff for one file: what stands above its hunks, and the hunks.
#[derive(Default)]
struct Part<'a> {
    lines: Vec<Line<'a>>,
}

#[derive(Clone, Copy)]
struct Line<'a> {
    bytes: &'a [u8],
    kind: DiffLine,
}

impl<'a> Part<'a> {
    /// Lines of the file; one without a line end in the file has none that could be another one.
    fn content(&self) -> impl Iterator<Item = &'a [u8]> {
        (0..self.lines.len()).filter(|at| self.is_content_with_end(*at)).map(|at| self.lines[at].bytes)
    }

    fn is_content_with_end(&self, at: usize) -> bool {
        let is_content = self.lines.get(at).is_some_and(|line| line.kind == DiffLine::Content);
        is_content && !self.lines.get(at + 1).is_some_and(|next| next.bytes.starts_with(b"\\"))
    }

    fn path(&self, strip: u32, reverse: bool) -> Option<Vec<u8>> {
        let key: &[u8] = if reverse { b"+++ " } else { b"--- " };
        let mut names = self.lines.iter().filter(|line| line.kind != DiffLine::Content);
        let name = names.find_map(|line| line.bytes.strip_prefix(key))?;
        let name = name.split(|byte| *byte == b'\t').next().unwrap_or_default().trim_ascii_end();
        if name == b"/dev/null" {
            return None;
        }
        let parts: Vec<&[u8]> = name.split(|byte| *byte == b'/').collect();
        parts
            .get(usize::try_from(strip).ok()?..)
            .filter(|parts| !parts.is_empty())
            .map(|parts| parts.join(&b'/'))
    }

    fn write(&self, to: &mut Vec<u8>) {
        self.lines.iter().for_each(|line| to.extend(line.bytes));
    }

    fn write_lf(&self, to: &mut Vec<u8>) {
        for line in &self.lines {
            match line.bytes.strip_suffix(b"\r\n") {
                Some(bare) => to.extend([bare, b"\n"].concat()),
                None => to.extend(line.bytes),
            }
        }
    }

    fn write_crlf(&self, to: &mut Vec<u8>) {
        for (at, line) in self.lines.iter().enumerate() {
            match line.bytes.strip_suffix(b"\n").filter(|_| self.is_content_with_end(at)) {
                Some(bare) => to.extend([bare, b"\r\n"].concat()),
                None => to.extend(line.bytes),
            }
        }
    }
}

/// `diff` cut before the head of each file.
fn parts_of(diff: &[u8]) -> Vec<Part<'_>> {
    let mut parts = vec![Part::default()];
    let mut lacks = HunkLines::default();
    let mut has_hunks = false;
    for bytes in diff.split_inclusive(|byte| *byte == b'\n') {
        let kind = lacks.next(bytes);
        has_hunks |= kind == DiffLine::HunkHead;
        if kind == DiffLine::Other && has_hunks && !bytes.starts_with(b"\\") {
            parts.push(Part::default());
            has_hunks = false;
        }
        if let Some(part) = parts.last_mut() {
            part.lines.push(Line { bytes, kind });
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::{Adapted, LineEnds, OtherLineEnds, with_line_ends_of_files};

    const LF: &str = "words\ndiff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n\\ No newline\n\
                      --- a/y\t2020\n+++ b/y\t2020\n@@ -3 +3 @@ f\n--- y\n+++ z\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+n\n";

    fn adapt(diff: &str, [x, y]: [Option<LineEnds>; 2]) -> Adapted {
        with_line_ends_of_files(diff.as_bytes(), 1, false, |path| if path == b"x" { x } else { y })
    }

    #[test]
    fn a_diff_that_was_converted_gets_the_files_line_ends() {
        let crlf = LF.replace('\n', "\r\n");
        let adapted = adapt(&crlf, [Some(LineEnds::Lf), Some(LineEnds::Lf)]);
        assert_eq!(String::from_utf8(adapted.diff).unwrap(), LF);
        let other =
            |path: &str| OtherLineEnds { path: path.into(), diff: LineEnds::Crlf, file: LineEnds::Lf };
        assert_eq!(adapted.others, [other("x"), other("y")]);
        let one = adapt(LF, [Some(LineEnds::Lf), Some(LineEnds::Crlf)]);
        assert_eq!(String::from_utf8(one.diff).unwrap(), LF.replace("--- y\n+++ z\n", "--- y\r\n+++ z\r\n"));
    }

    #[test]
    fn what_is_mixed_is_told_and_stays() {
        let mixed = LF.replace(" a\n", " a\r\n");
        let adapted = adapt(&mixed, [Some(LineEnds::Lf), Some(LineEnds::Lf)]);
        assert_eq!(adapted.diff, mixed.as_bytes());
        assert_eq!(adapted.others.len(), 1);
        assert_eq!(adapted.others[0].diff, LineEnds::Mixed);
        let same = adapt(LF, [Some(LineEnds::Lf), None]);
        assert_eq!((same.diff.as_slice(), same.others.len()), (LF.as_bytes(), 0));
    }
}
