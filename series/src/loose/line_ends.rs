//! Compares the line ends of a loose diff with those of the files that it changes.
//!
//! A checkout that git converted (`core.autocrlf`), a web page or a mail program may have changed the line ends of a
//! diff. patch(1) then strips carriage returns; git does not, and reports only that the patch failed.

use super::diff_parts::{DiffPart, parts_of};

/// Line ends of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineEnds {
    /// Line feeds only.
    Lf,
    /// A carriage return before each line feed.
    Crlf,
    /// Some of each.
    Mixed,
}

impl LineEnds {
    /// Returns the line ends of `text`; `None` if it has none.
    pub fn of(text: &[u8]) -> Option<LineEnds> {
        LineEnds::of_lines(text.split_inclusive(|byte| *byte == b'\n'))
    }

    fn of_lines<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Option<LineEnds> {
        let ends = lines.filter(|line| line.ends_with(b"\n")).map(|line| line.ends_with(b"\r\n"));
        let kind = |is_crlf| if is_crlf { LineEnds::Crlf } else { LineEnds::Lf };
        ends.map(kind).reduce(|one, other| if one == other { one } else { LineEnds::Mixed })
    }

    /// Describes them for messages.
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
    /// Path of the file.
    pub path: Vec<u8>,
    /// Line ends of its lines in the diff.
    pub diff: LineEnds,
    /// Line ends of the file.
    pub file: LineEnds,
}

/// A diff with its line ends adapted to the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adapted {
    /// The diff. Where line ends are mixed, nothing is changed.
    pub diff: Vec<u8>,
    /// The files whose line ends differed.
    pub others: Vec<OtherLineEnds>,
}

/// Gives `diff` the line ends of the files. `ends_of` is called with their paths without the first `strip` components.
/// With `reverse` the files to change are those on the new side.
pub fn with_line_ends_of_files(
    diff: &[u8],
    strip: u32,
    reverse: bool,
    mut ends_of: impl FnMut(&[u8]) -> Option<LineEnds>,
) -> Adapted {
    let mut adapted = Adapted { diff: Vec::with_capacity(diff.len()), others: Vec::new() };
    for part in parts_of(diff) {
        let there = part.paths(strip, reverse).into_iter().find_map(|path| Some((ends_of(&path)?, path)));
        let ours = LineEnds::of_lines(part.content());
        let is_stripped = adapted.others.iter().any(|other| (other.diff, other.file) == STRIPPED);
        match (ours, there) {
            (Some(ours), Some((file, path))) if ours != file => {
                adapted.others.push(OtherLineEnds { path, diff: ours, file });
                match (ours, file) {
                    STRIPPED => write_lf(&part, &mut adapted.diff),
                    (LineEnds::Lf, LineEnds::Crlf) => write_crlf(&part, &mut adapted.diff),
                    _ => part.write(&mut adapted.diff),
                }
            }
            // The diff creates this file, and was converted as a whole.
            (Some(LineEnds::Crlf), None) if is_stripped => write_lf(&part, &mut adapted.diff),
            _ => part.write(&mut adapted.diff),
        }
    }
    adapted
}

const STRIPPED: (LineEnds, LineEnds) = (LineEnds::Crlf, LineEnds::Lf);

fn write_lf(part: &DiffPart<'_>, to: &mut Vec<u8>) {
    for line in &part.lines {
        match line.bytes.strip_suffix(b"\r\n") {
            Some(bare) => to.extend([bare, b"\n"].concat()),
            None => to.extend(line.bytes),
        }
    }
}

fn write_crlf(part: &DiffPart<'_>, to: &mut Vec<u8>) {
    for (at, line) in part.lines.iter().enumerate() {
        match line.bytes.strip_suffix(b"\n").filter(|_| part.is_content_with_end(at)) {
            Some(bare) => to.extend([bare, b"\r\n"].concat()),
            None => to.extend(line.bytes),
        }
    }
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
    fn mixed_line_ends_are_reported_and_kept() {
        let mixed = LF.replace(" a\n", " a\r\n");
        let adapted = adapt(&mixed, [Some(LineEnds::Lf), Some(LineEnds::Lf)]);
        assert_eq!(adapted.diff, mixed.as_bytes());
        assert_eq!(adapted.others.len(), 1);
        assert_eq!(adapted.others[0].diff, LineEnds::Mixed);
        let same = adapt(LF, [Some(LineEnds::Lf), None]);
        assert_eq!((same.diff.as_slice(), same.others.len()), (LF.as_bytes(), 0));
    }
}
