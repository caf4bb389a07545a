//! Where did upstream move a file that a patch changes?
//!
//! Only files that came since the pin are looked at: a copy that was there all along is no new home.

use std::collections::HashMap;

use super::origin::Origin;
use super::text::is_binary;
use crate::judge::drift::RenameCandidate;
use crate::model::object_id::ObjectId;
use crate::model::path::RepoPath;
use crate::model::printable::printable;
use crate::model::tree::{Arrival, Tree, TreeError};
use crate::text::line_diff::lines_of;

/// Less than this share of equal lines, and a file is another one.
const SIMILAR_PERCENT: u8 = 50;
/// With less than that it may still be one of those that a file was split into: worth a person's look.
const LIKE_PERCENT: u8 = 25;
/// Files that are read in search of a moved one.
const READ_LIMIT: usize = 2_000;
const CANDIDATES_SHOWN: usize = 5;

/// Where a missing file is.
pub(crate) enum Found {
    /// At one path, certainly or clearly.
    At { path: RepoPath, percent: u8 },
    /// Nobody can say; these are like it.
    Unknown(Vec<RenameCandidate>),
}

/// Looks for the file with the blob `id` among those that came to `tree`.
pub(crate) fn find_moved(id: ObjectId, origin: &Origin<'_>, tree: &dyn Tree) -> Result<Found, TreeError> {
    let arrivals = tree.arrivals()?;
    let mut same: Vec<(&[u8], u8)> = Vec::new();
    for arrival in arrivals.iter().filter(|arrival| arrival.id == id) {
        same.push((&arrival.path, 100));
    }
    if same.is_empty() {
        same = similar_ones(id, &arrivals, origin, tree)?;
    }
    same.sort_by(|left, right| right.1.cmp(&left.1).then(left.0.cmp(right.0)));
    let similar = same.iter().filter(|(_, percent)| *percent >= SIMILAR_PERCENT).count();
    if let (1, Some((path, percent))) = (similar, same.first())
        && let Ok(path) = RepoPath::new(path)
    {
        let percent = *percent;
        return Ok(Found::At { path, percent });
    }
    let certain = |path: &[u8]| arrivals.iter().any(|known| known.id == id && known.path == path);
    let candidates = same.iter().take(CANDIDATES_SHOWN).map(|(path, percent)| RenameCandidate {
        path: printable(path),
        certain: certain(path),
        percent_of_lines: *percent,
    });
    Ok(Found::Unknown(candidates.collect()))
}

fn similar_ones<'a>(
    id: ObjectId,
    arrivals: &'a [Arrival],
    origin: &Origin<'_>,
    tree: &dyn Tree,
) -> Result<Vec<(&'a [u8], u8)>, TreeError> {
    let content = origin.blob(id)?;
    let mut similar = Vec::new();
    if is_binary(&content) {
        return Ok(similar);
    }
    for arrival in arrivals.iter().take(READ_LIMIT) {
        let known = origin.likeness.borrow().get(&(id, arrival.id)).copied();
        let percent = match known {
            Some(percent) => percent,
            None => percent_of_lines(&content, &tree.blob(arrival.id)?),
        };
        origin.likeness.borrow_mut().insert((id, arrival.id), percent);
        if percent >= LIKE_PERCENT {
            similar.push((arrival.path.as_slice(), percent));
        }
    }
    Ok(similar)
}

/// Of 100 lines of the longer text, how many are in the other one too. Blank ones and lone brackets are
/// in every file and do not count.
fn percent_of_lines(left: &[u8], right: &[u8]) -> u8 {
    let says_something = |line: &&&[u8]| line.iter().any(u8::is_ascii_alphanumeric);
    let (left, right) = (lines_of(left), lines_of(right));
    let mut counts: HashMap<&[u8], usize> = HashMap::new();
    left.iter().filter(says_something).for_each(|line| *counts.entry(line).or_default() += 1);
    let all: usize = counts.values().sum();
    let (mut others, mut common) = (0, 0);
    for line in right.iter().filter(says_something) {
        others += 1;
        if let Some(count) = counts.get_mut(line).filter(|count| **count > 0) {
            *count -= 1;
            common += 1;
        }
    }
    u8::try_from(common * 100 / all.max(others).max(1)).unwrap_or(100)
}

#[cfg(test)]
mod tests {
    use super::percent_of_lines;

    #[test]
    fn similarity_is_a_share_of_the_longer_text() {
        assert_eq!(percent_of_lines(b"a\nb\n{\n", b"a\nb\n{\n}\n"), 100);
        assert_eq!(percent_of_lines(b"a\nb\n", b"a\nb\nc\nd\n"), 50);
        assert_eq!(percent_of_lines(b"a\na\n", b"a\nb\n"), 50);
        assert_eq!(percent_of_lines(b"", b""), 0);
    }
}
