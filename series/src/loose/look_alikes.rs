//! Whether a hunk is where it belongs, in a file with several places that look like its own.
//!
//! A file has the result of a hunk if it has those lines, but perhaps only a similar section has them, and the hunk's
//! own section is another one by now. A place is certain if it is the hunk's own line, moved as far as a hunk of the
//! same file whose place is certain; or if no other place, in the function that the header names, has the context of
//! the hunk.

use super::hunk_places::{Anchor, Anchors, File, lines};
use super::loose_hunk::LooseHunk;
use crate::model::signed::signed;

/// Number of lines that a place may have between the context lines of a hunk in addition to the hunk's own ones.
const MORE_LINES: usize = 20;
/// Maximum number of places that are looked at: with so many, none of them is certain.
const PLACES_LIMIT: usize = 1000;

/// Returns a description for each of `hunks` whose place in `starts` is not certain, with its index. All context of the
/// hunks fits there.
pub(super) fn uncertain(file: &File<'_>, hunks: &[LooseHunk<'_>], starts: &[usize]) -> Vec<(usize, String)> {
    let places: Vec<Vec<usize>> =
        hunks.iter().zip(starts).map(|(hunk, start)| places_like(file, hunk, *start)).collect();
    let found: Vec<Anchor> = hunks.iter().zip(starts).map(|(hunk, start)| anchor(hunk, *start)).collect();
    let is_only: Vec<bool> =
        places.iter().zip(starts).map(|(places, start)| places[..] == [*start]).collect();
    let is_certain = |other: &usize| is_only[*other];
    let mut uncertain = Vec::new();
    for (at, here) in found.iter().enumerate() {
        let above = (0..at).rev().find(is_certain).map(|other| found[other]).unwrap_or_default();
        let below = (at + 1..found.len()).find(is_certain).map(|other| found[other]);
        let is_moved_alike = |other: Anchor| other.offset == here.offset;
        if is_only[at] || is_moved_alike(above) || below.is_some_and(is_moved_alike) {
            continue;
        }
        let own = signed(here.stated) + Anchors { above, below }.nearer(here.stated).offset + 1;
        uncertain.push((at, describe(starts[at], own, &places[at])));
    }
    uncertain
}

fn anchor(hunk: &LooseHunk<'_>, start: usize) -> Anchor {
    Anchor { stated: hunk.stated, offset: signed(start) - signed(hunk.stated) }
}

fn describe(start: usize, own: i64, places: &[usize]) -> String {
    format!(
        "is for line {own}, and its result is at line {}, which may be a look-alike: its context is at {}",
        start + 1,
        lines(places)
    )
}

/// Returns the places at which `hunk`, which fits at `start`, may belong: those with the lines above and below its
/// changes, and about as many lines between them; if some are in the function that its header names, only those. Only
/// `start` if nothing else is possible.
fn places_like(file: &File<'_>, hunk: &LooseHunk<'_>, start: usize) -> Vec<usize> {
    let expected: Vec<&[u8]> = hunk.expected().collect();
    let (leading, trailing) = (hunk.leading(), hunk.trailing());
    let (old, new) = (expected.len(), hunk.result([0, 0]).count());
    let has_no_change = leading + trailing > old.min(new);
    // git applies a hunk for the beginning or the end of a file only there.
    if has_no_change || trailing == 0 || hunk.stated == 0 {
        return vec![start];
    }
    let most_between = old.max(new) - leading - trailing + MORE_LINES;
    let (above, below) = (file.find(&expected[..leading]), file.find(&expected[old - trailing..]));
    let has_end = |place: &usize| {
        let begin = place + leading;
        let next = below.partition_point(|at| *at < begin);
        below.get(next).is_some_and(|at| *at <= begin + most_between)
    };
    let places: Vec<usize> = match leading {
        0 => below.iter().map(|at| at.saturating_sub(old - trailing)).take(PLACES_LIMIT).collect(),
        _ => above.iter().copied().filter(has_end).take(PLACES_LIMIT).collect(),
    };
    let named = file.in_section(hunk.section_below(0), &places);
    if named.is_empty() { places } else { named }
}
