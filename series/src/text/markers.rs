//! Conflict markers in git's style `zdiff3`.

/// Labels beside conflict markers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Labels {
    pub base: String,
    pub ours: String,
    pub theirs: String,
}

/// The lines of one region in three texts.
pub(crate) struct Sides<'l, 'a> {
    pub base: &'l [&'a [u8]],
    pub ours: &'l [&'a [u8]],
    pub theirs: &'l [&'a [u8]],
}

/// Adds both sides with markers around them, and the base between them if requested. Common lines at the start or end
/// of both sides are outside of the markers.
pub(crate) fn add_marked(text: &mut Vec<u8>, sides: &Sides<'_, '_>, labels: &Labels, with_base: bool) {
    let (before, ours, theirs, after) = without_common_ends(sides.ours, sides.theirs);
    text.extend(before.concat());
    add_blocks(text, &Sides { base: sides.base, ours, theirs }, labels, with_base);
    text.extend(after.concat());
}

/// The same, with all lines of both sides between the markers, and the base.
pub(crate) fn add_marked_whole(text: &mut Vec<u8>, sides: &Sides<'_, '_>, labels: &Labels) {
    add_blocks(text, sides, labels, true);
}

fn add_blocks(text: &mut Vec<u8>, sides: &Sides<'_, '_>, labels: &Labels, with_base: bool) {
    let base = with_base.then(|| (format!("||||||| {}\n", labels.base), sides.base));
    let ours = Some((format!("<<<<<<< {}\n", labels.ours), sides.ours));
    let blocks = [ours, base, Some(("=======\n".to_owned(), sides.theirs))];
    for (marker, block) in blocks.into_iter().flatten() {
        start_line(text);
        text.extend(marker.as_bytes());
        text.extend(block.concat());
    }
    start_line(text);
    text.extend(format!(">>>>>>> {}\n", labels.theirs).as_bytes());
}

type Lines<'l, 'a> = &'l [&'a [u8]];

fn without_common_ends<'l, 'a>(
    ours: Lines<'l, 'a>,
    theirs: Lines<'l, 'a>,
) -> (Lines<'l, 'a>, Lines<'l, 'a>, Lines<'l, 'a>, Lines<'l, 'a>) {
    let first = ours.iter().zip(theirs).take_while(|(one, other)| one == other).count();
    let (before, ours) = ours.split_at(first);
    let (_, theirs) = theirs.split_at(first);
    let last = ours.iter().rev().zip(theirs.iter().rev()).take_while(|(one, other)| one == other).count();
    let (ours, after) = ours.split_at(ours.len() - last);
    let (theirs, _) = theirs.split_at(theirs.len() - last);
    (before, ours, theirs, after)
}

/// Starts a new line for a marker, also after a last line without a line feed.
fn start_line(text: &mut Vec<u8>) {
    if !text.is_empty() && !text.ends_with(b"\n") {
        text.push(b'\n');
    }
}

/// Returns the line, from 1, of the first conflict marker in `text`.
pub fn first_marker(text: &[u8]) -> Option<usize> {
    let is_marker = |line: &[u8]| {
        [&b"<<<<<<< "[..], b"||||||| ", b">>>>>>> "].iter().any(|marker| line.starts_with(marker))
            || line.trim_ascii_end() == b"======="
    };
    let mut lines = text.split(|byte| *byte == b'\n');
    // A line of equals signs also underlines headings; the other markers occur for no other reason.
    let is_certain = |line: &[u8]| is_marker(line) && !line.starts_with(b"=");
    let has_any = text.split(|byte| *byte == b'\n').any(is_certain);
    if has_any { lines.position(is_marker).map(|at| at + 1) } else { None }
}

#[cfg(test)]
mod tests {
    use super::{Labels, Sides, add_marked, first_marker};
    use crate::text::line_diff::lines_of;

    fn drawn(base: &[u8], ours: &[u8], theirs: &[u8], with_base: bool) -> String {
        let labels = Labels { base: "base".into(), ours: "v2".into(), theirs: "0001-a.patch".into() };
        let (base, ours, theirs) = (lines_of(base), lines_of(ours), lines_of(theirs));
        let mut text = Vec::new();
        add_marked(&mut text, &Sides { base: &base, ours: &ours, theirs: &theirs }, &labels, with_base);
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn both_sides_are_shown_without_what_they_have_in_common() {
        let text = drawn(b"a\nb\nz\n", b"A\nb\nc\nz\n", b"A\nd\nz\n", true);
        let expected = "A\n<<<<<<< v2\nb\nc\n||||||| base\na\nb\nz\n=======\nd\n>>>>>>> 0001-a.patch\nz\n";
        assert_eq!(text, expected);
        assert_eq!(first_marker(text.as_bytes()), Some(2));
        assert_eq!(drawn(b"", b"c", b"d", false), "<<<<<<< v2\nc\n=======\nd\n>>>>>>> 0001-a.patch\n");
        assert_eq!(first_marker(b"Title\n=======\n"), None);
    }
}
