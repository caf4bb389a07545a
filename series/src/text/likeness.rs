//! Similarity of two texts, as git measures it to detect renames.
//!
//! A change follows a moved file exactly where git's would, so the measure is git's too, in bytes;
//! `tests/series/likeness_oracle.rs` checks it against git.

use std::borrow::Cow;
use std::collections::HashMap;

use super::line_diff::lines_of;

/// Below this similarity, files count as different.
pub const SIMILAR_PERCENT: u8 = 50;

/// Longer lines are compared in parts, so that a file of a single line is still similar to that line with a word
/// changed.
const PIECE: usize = 64;

/// Returns how many of 100 bytes of the longer text are in lines that the other one has too.
///
/// # Examples
///
/// ```
/// use espalier_series::percent_alike;
///
/// assert_eq!(percent_alike(b"one\ntwo\n", b"one\ntwo\n"), 100);
/// assert_eq!(percent_alike(b"a\nb\n", b"a\nb\nc\nd\n"), 50);
/// ```
pub fn percent_alike(left: &[u8], right: &[u8]) -> u8 {
    let longer = left.len().max(right.len()).max(1);
    let (left, right) = (with_unix_ends(left), with_unix_ends(right));
    u8::try_from(common_bytes(&left, &right) * 100 / longer).unwrap_or(100)
}

/// Returns how many of 100 bytes of `part` are in lines that `whole` has too.
pub(crate) fn percent_within(part: &[u8], whole: &[u8]) -> u8 {
    let (part, whole) = (with_unix_ends(part), with_unix_ends(whole));
    u8::try_from(common_bytes(&part, &whole) * 100 / part.len().max(1)).unwrap_or(100)
}

/// Returns the number of bytes in lines that both texts have.
fn common_bytes(left: &[u8], right: &[u8]) -> usize {
    let mut not_found: HashMap<&[u8], usize> = HashMap::new();
    pieces(left).for_each(|piece| *not_found.entry(piece).or_default() += 1);
    let mut common = 0;
    for piece in pieces(right) {
        if let Some(count) = not_found.get_mut(piece).filter(|count| **count > 0) {
            *count -= 1;
            common += piece.len();
        }
    }
    common
}

fn pieces(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    lines_of(text).into_iter().flat_map(|line| line.chunks(PIECE))
}

fn with_unix_ends(text: &[u8]) -> Cow<'_, [u8]> {
    if !text.contains(&b'\r') {
        return Cow::Borrowed(text);
    }
    let followed = text.iter().skip(1).map(Some).chain([None]);
    let kept = text.iter().zip(followed).filter(|(byte, next)| **byte != b'\r' || *next != Some(&b'\n'));
    Cow::Owned(kept.map(|(byte, _)| *byte).collect())
}

#[cfg(test)]
mod tests {
    use super::{percent_alike, percent_within};

    #[test]
    fn likeness_is_a_share_of_the_bytes_of_the_longer_text() {
        assert_eq!(percent_alike(b"a\nb\n", b"a\nb\nc\nd\n"), 50);
        assert_eq!(percent_alike(b"a\na\n", b"a\nb\n"), 50);
        assert_eq!(percent_alike(b"a\nb\nthis is longer\n", b"a\nb\nand this is so too\n"), 17);
        assert_eq!(percent_alike(b"a\r\nb\r\n", b"a\nb\n"), 66);
        assert_eq!(percent_alike(b"", b""), 0);
    }

    #[test]
    fn a_part_is_measured_by_its_own_bytes() {
        assert_eq!(percent_within(b"a\nb\n", b"x\nb\ny\na\n"), 100);
        assert_eq!(percent_within(b"a\nb\n", b"b\nb\nc\r\n"), 50);
        assert_eq!(percent_within(b"", b"a\n"), 0);
    }
}
