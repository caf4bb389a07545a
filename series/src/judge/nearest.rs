//! Search for the place where a hunk almost fits.

use std::collections::HashMap;

use super::drift::{Candidate, Disagreement};
use crate::model::hunk_lines::LineKind;
use crate::model::patch::Hunk;
use crate::model::printable::printable;
use crate::text::line_index::LineIndex;

/// A line that occurs more often is ignored: it hardly tells where a hunk belongs.
const COMMON_LINE: usize = 256;
/// Limit of the votes of one hunk, so that a hostile one cannot make the search long.
const VOTE_LIMIT: usize = 1_000_000;
const SHOWN_DISAGREEMENTS: usize = 8;

/// Returns the place where most lines of the hunk's pre-image agree with the file; among equals the one nearest to the
/// hunk's own line. `function_at` returns the function around a place.
pub(crate) fn nearest_candidate(
    index: &LineIndex<'_>,
    function_at: impl Fn(usize) -> Option<String>,
    hunk: &Hunk,
) -> Option<Candidate> {
    let expected: Vec<ExpectedLine<'_>> = expected_lines(hunk);
    let start = best_start(index, &expected, hunk.old_lines_before())?;
    let agrees = |(at, line): (usize, &ExpectedLine<'_>)| found_at(index, start, at) == Some(line.bytes);
    let agreeing = expected.iter().enumerate().filter(|pair| agrees(*pair)).count();
    let disagreeing = expected.iter().enumerate().filter(|pair| !agrees(*pair));
    let disagreements = disagreeing.take(SHOWN_DISAGREEMENTS).map(|(at, line)| Disagreement {
        patch_line: line.patch_line,
        file_line: start + at + 1,
        expected: printable(line.bytes),
        found: found_at(index, start, at).map(printable),
    });
    Some(Candidate {
        line: start + 1,
        function: function_at(start),
        agreeing,
        of: expected.len(),
        disagreements: disagreements.collect(),
    })
}

struct ExpectedLine<'a> {
    bytes: &'a [u8],
    patch_line: usize,
}

/// Returns the pre-image, each line with its line in the patch file. A line without a line feed takes two lines there:
/// itself and the marker.
fn expected_lines(hunk: &Hunk) -> Vec<ExpectedLine<'_>> {
    let mut patch_line = hunk.line;
    let mut expected = Vec::new();
    for line in hunk.lines.iter() {
        patch_line += 1;
        if line.kind != LineKind::Add {
            expected.push(ExpectedLine { bytes: line.bytes, patch_line });
        }
        patch_line += usize::from(line.lacks_final_newline());
    }
    expected
}

fn found_at<'a>(index: &LineIndex<'a>, start: usize, at: usize) -> Option<&'a [u8]> {
    index.lines.get(start.checked_add(at)?).copied()
}

/// Returns the start with the most votes: each line of the hunk that is not too common votes for the starts at which it
/// would agree.
fn best_start(index: &LineIndex<'_>, expected: &[ExpectedLine<'_>], own: usize) -> Option<usize> {
    let mut votes: HashMap<usize, usize> = HashMap::new();
    let mut votes_left = VOTE_LIMIT;
    for (at, line) in expected.iter().enumerate() {
        let positions = index.positions_of(line.bytes);
        if positions.len() > COMMON_LINE || positions.len() > votes_left {
            continue;
        }
        votes_left -= positions.len();
        for start in positions.iter().filter_map(|position| position.checked_sub(at)) {
            *votes.entry(start).or_default() += 1;
        }
    }
    let by_votes_then_nearness =
        |(start, count): &(usize, usize)| (*count, std::cmp::Reverse((start.abs_diff(own), *start)));
    votes.into_iter().max_by_key(by_votes_then_nearness).map(|(start, _)| start)
}
