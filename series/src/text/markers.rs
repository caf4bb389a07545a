//! Conflict markers in git's style `zdiff3`.

use std::collections::HashMap;
use std::ops::Range;

use serde::Serialize;

use super::language::Language;

/// Labels beside conflict markers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Labels {
    pub base: String,
    pub ours: String,
    pub theirs: String,
}

/// The lines of one region in one text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Side<'l, 'a> {
    /// The first of them, from 0.
    pub start: usize,
    pub lines: Lines<'l, 'a>,
}

/// The lines of one region in three texts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sides<'l, 'a> {
    pub base: Side<'l, 'a>,
    pub ours: Side<'l, 'a>,
    pub theirs: Side<'l, 'a>,
}

type Lines<'l, 'a> = &'l [&'a [u8]];

impl<'l, 'a> Side<'l, 'a> {
    fn range(&self) -> Range<usize> {
        self.start..self.start + self.lines.len()
    }

    /// Returns the side without its first `first` and its last `last` lines.
    fn without_ends(self, first: usize, last: usize) -> Side<'l, 'a> {
        let lines = self.lines.get(first..self.lines.len() - last).unwrap_or_default();
        Side { start: self.start + first, lines }
    }
}

/// The place of one conflict in each text: lines, from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConflictHunk {
    /// In the text with markers, the markers included.
    pub marked: Range<usize>,
    /// In the file that the patch was made from.
    pub base: Range<usize>,
    /// In the file of the tree that the patch is replayed on.
    pub ours: Range<usize>,
    /// In the file that results from the patch on its own base.
    pub theirs: Range<usize>,
}

/// The relation of the two sides of a conflict between markers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ConflictKind {
    /// Both sides changed lines of the base.
    BothChanged,
    /// Both sides added lines at one place, and changed none.
    BothAdded,
    /// Both sides added lines at one place, and ours are those of theirs and more.
    OursHasTheirs,
    /// The same with the sides exchanged.
    TheirsHasOurs,
}

impl ConflictHunk {
    /// Returns the relation of the two sides. Lines with which both begin or end are outside of the markers: of two
    /// additions, one that has no lines left is a part of the other.
    pub fn kind(&self) -> ConflictKind {
        match (self.base.is_empty(), self.ours.is_empty(), self.theirs.is_empty()) {
            (false, _, _) => ConflictKind::BothChanged,
            (true, false, true) => ConflictKind::OursHasTheirs,
            (true, true, false) => ConflictKind::TheirsHasOurs,
            (true, _, _) => ConflictKind::BothAdded,
        }
    }
}

/// A text with conflict markers, while it is written.
#[derive(Debug, Default)]
pub(crate) struct MarkedText {
    bytes: Vec<u8>,
    /// Number of lines in `bytes`.
    lines: usize,
    hunks: Vec<ConflictHunk>,
}

impl MarkedText {
    /// Adds lines that need no decision.
    pub fn add(&mut self, lines: Lines<'_, '_>) {
        self.bytes.extend(lines.concat());
        self.lines += lines.len();
    }

    /// Returns the text.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Returns the text, and the places between markers in it.
    pub fn into_parts(self) -> (Vec<u8>, Vec<ConflictHunk>) {
        (self.bytes, self.hunks)
    }

    /// Adds a line with a marker, also after a last line without a line feed.
    fn add_marker(&mut self, marker: &str) {
        if !self.bytes.is_empty() && !self.bytes.ends_with(b"\n") {
            self.bytes.push(b'\n');
        }
        self.bytes.extend(marker.as_bytes());
        self.bytes.push(b'\n');
        self.lines += 1;
    }
}

/// Adds both sides with markers around them, and the base between them if requested. Common lines at the start or end
/// of both sides are outside of the markers.
pub(crate) fn add_marked(text: &mut MarkedText, sides: &Sides<'_, '_>, labels: &Labels, with_base: bool) {
    let (first, last) = common_ends(sides.ours.lines, sides.theirs.lines);
    let (ours, theirs) = (sides.ours.without_ends(first, last), sides.theirs.without_ends(first, last));
    text.add(sides.ours.lines.get(..first).unwrap_or_default());
    add_blocks(text, &Sides { base: sides.base, ours, theirs }, labels, with_base);
    text.add(sides.ours.lines.get(sides.ours.lines.len() - last..).unwrap_or_default());
}

/// The same, with all lines of both sides between the markers, and the base.
pub(crate) fn add_marked_whole(text: &mut MarkedText, sides: &Sides<'_, '_>, labels: &Labels) {
    add_blocks(text, sides, labels, true);
}

fn add_blocks(text: &mut MarkedText, sides: &Sides<'_, '_>, labels: &Labels, with_base: bool) {
    let start = text.lines;
    let Sides { base, ours, theirs } = sides;
    text.add_marker(&format!("<<<<<<< {}", labels.ours));
    text.add(ours.lines);
    if with_base {
        text.add_marker(&format!("||||||| {}", labels.base));
        text.add(base.lines);
    }
    text.add_marker("=======");
    text.add(theirs.lines);
    text.add_marker(&format!(">>>>>>> {}", labels.theirs));
    let (base, ours, theirs) = (base.range(), ours.range(), theirs.range());
    text.hunks.push(ConflictHunk { marked: start..text.lines, base, ours, theirs });
}

/// Returns the numbers of common lines at the start and at the end of both.
fn common_ends(ours: Lines<'_, '_>, theirs: Lines<'_, '_>) -> (usize, usize) {
    let first = ours.iter().zip(theirs).take_while(|(one, other)| one == other).count();
    let (ours, theirs) = (ours.get(first..).unwrap_or_default(), theirs.get(first..).unwrap_or_default());
    let last = ours.iter().rev().zip(theirs.iter().rev()).take_while(|(one, other)| one == other).count();
    (first, last)
}

/// Returns the line, from 1, of the first conflict marker in `text`, the file `path`, that a merge has put there:
/// `versions` are the texts that were merged, which can have such lines of their own.
///
/// # Examples
///
/// ```
/// use espalier_series::new_marker;
///
/// let base = b"<<<<<<< a line of the file\none\n".as_slice();
/// let merged = b"<<<<<<< a line of the file\n<<<<<<< v2\n1\n=======\n2\n>>>>>>> 0001-a.patch\n";
/// assert_eq!(new_marker(b"a.txt", merged, &[base]), Some(2));
/// assert_eq!(new_marker(b"a.txt", base, &[base]), None);
/// assert_eq!(new_marker(b"a.txt", base, &[]), Some(1));
/// ```
pub fn new_marker(path: &[u8], text: &[u8], versions: &[&[u8]]) -> Option<usize> {
    // A merge can add a marker that is equal to a line of the file, so lines are counted.
    let mut left: HashMap<&[u8], usize> = HashMap::new();
    for version in versions {
        let mut counts: HashMap<&[u8], usize> = HashMap::new();
        for (_, marker) in markers_of(version) {
            *counts.entry(marker).or_default() += 1;
        }
        for (marker, count) in counts {
            let most = left.entry(marker).or_default();
            *most = count.max(*most);
        }
    }
    let is_new = |(_, marker): &(usize, &[u8])| match left.get_mut(*marker).filter(|count| **count > 0) {
        Some(count) => {
            *count -= 1;
            false
        }
        None => true,
    };
    let new: Vec<(usize, &[u8])> = markers_of(text).filter(is_new).collect();
    // In prose a line of equals signs also underlines a heading; the other markers occur for no other reason.
    let is_code = Language::of(path, text) != Language::NotCode;
    let has_any = new.iter().any(|(_, marker)| is_code || !marker.starts_with(b"="));
    new.first().filter(|_| has_any).map(|(at, _)| at + 1)
}

/// Iterates over the lines that look like conflict markers, each with its number, from 0.
fn markers_of(text: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let is_marker = |line: &[u8]| {
        [&b"<<<<<<< "[..], b"||||||| ", b">>>>>>> "].iter().any(|marker| line.starts_with(marker))
            || line.trim_ascii_end() == b"======="
    };
    let lines = text.split(|byte| *byte == b'\n').enumerate();
    lines.filter(move |(_, line)| is_marker(line)).map(|(at, line)| (at, line.trim_ascii_end()))
}

#[cfg(test)]
mod tests {
    use super::{ConflictKind, Labels, MarkedText, Side, Sides, add_marked, new_marker};
    use crate::text::line_diff::lines_of;

    fn marked(base: &[u8], ours: &[u8], theirs: &[u8], with_base: bool) -> MarkedText {
        let labels = Labels { base: "base".into(), ours: "v2".into(), theirs: "0001-a.patch".into() };
        let (base, ours, theirs) = (lines_of(base), lines_of(ours), lines_of(theirs));
        let side = |start, lines| Side { start, lines };
        let sides = Sides { base: side(10, &base), ours: side(20, &ours), theirs: side(30, &theirs) };
        let mut text = MarkedText::default();
        text.add(&[&b"above\n"[..]]);
        add_marked(&mut text, &sides, &labels, with_base);
        text
    }

    fn drawn(base: &[u8], ours: &[u8], theirs: &[u8], with_base: bool) -> String {
        let text = String::from_utf8(marked(base, ours, theirs, with_base).into_bytes()).unwrap();
        text.strip_prefix("above\n").unwrap().to_owned()
    }

    #[test]
    fn both_sides_are_shown_without_what_they_have_in_common() {
        let text = drawn(b"a\nb\nz\n", b"A\nb\nc\nz\n", b"A\nd\nz\n", true);
        let expected = "A\n<<<<<<< v2\nb\nc\n||||||| base\na\nb\nz\n=======\nd\n>>>>>>> 0001-a.patch\nz\n";
        assert_eq!(text, expected);
        assert_eq!(new_marker(b"a.txt", text.as_bytes(), &[]), Some(2));
        assert_eq!(drawn(b"", b"c", b"d", false), "<<<<<<< v2\nc\n=======\nd\n>>>>>>> 0001-a.patch\n");
        assert_eq!(new_marker(b"a.txt", b"Title\n=======\n", &[]), None);
    }

    #[test]
    fn lines_of_the_file_that_look_like_markers_are_its_own() {
        let own = b"a\n=======\n<<<<<<< a line of the file\n".as_slice();
        let twice = [own, b"<<<<<<< a line of the file\n"].concat();
        let left = [own, b"b\n=======\n>>>>>>> 0001-a.patch\n"].concat();
        for path in [b"a.c".as_slice(), b"a.txt"] {
            assert_eq!(new_marker(path, own, &[]), Some(2));
            assert_eq!(new_marker(path, own, &[b"", own]), None);
            assert_eq!(new_marker(path, &twice, &[own, own]), Some(4));
            assert_eq!(new_marker(path, &left, &[own]), Some(5));
        }
    }

    #[test]
    fn a_separator_that_is_left_alone_is_a_marker_in_source_code() {
        let left = b"int a;\n=======\nint b;\n".as_slice();
        assert_eq!(new_marker(b"a.c", left, &[b"int a;\n"]), Some(2));
        assert_eq!(new_marker(b"a.c", left, &[b"", left]), None);
        for prose in [b"README.md".as_slice(), b"NEWS"] {
            assert_eq!(new_marker(prose, left, &[]), None);
        }
    }

    #[test]
    fn the_place_of_a_conflict_is_known_in_each_text() {
        let (text, hunks) = marked(b"a\nb\nz\n", b"A\nb\nc\nz\n", b"A\nd\nz\n", true).into_parts();
        let [hunk] = &hunks[..] else { panic!("{hunks:?}") };
        assert_eq!((&hunk.base, &hunk.ours, &hunk.theirs), (&(10..13), &(21..23), &(31..32)));
        let lines = lines_of(&text);
        assert_eq!(lines[hunk.marked.start], b"<<<<<<< v2\n");
        assert_eq!(lines[hunk.marked.end - 1], b">>>>>>> 0001-a.patch\n");
    }

    #[test]
    fn an_addition_is_not_a_change() {
        let kind = |base: &[u8], ours: &[u8], theirs: &[u8]| {
            let (_, hunks) = marked(base, ours, theirs, true).into_parts();
            hunks.iter().map(|hunk| hunk.kind()).collect::<Vec<_>>()
        };
        assert_eq!(kind(b"a\n", b"b\n", b"c\n"), [ConflictKind::BothChanged]);
        assert_eq!(kind(b"a\n", b"b\n", b""), [ConflictKind::BothChanged]);
        assert_eq!(kind(b"", b"b\n}\n", b"c\n}\n"), [ConflictKind::BothAdded]);
        assert_eq!(kind(b"", b"b\nc\n", b"c\n"), [ConflictKind::OursHasTheirs]);
        assert_eq!(kind(b"", b"b\n", b"b\nc\n"), [ConflictKind::TheirsHasOurs]);
    }
}
