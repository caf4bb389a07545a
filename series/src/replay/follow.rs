//! Where did upstream move a file that a patch changes?
//!
//! Only files that came since the pin are looked at: a copy that was there all along is no new home.

use std::collections::HashMap;
use std::rc::Rc;

use super::origin::Origin;
use super::text::is_binary;
use crate::judge::drift::RenameCandidate;
use crate::model::arrivals::{Arrival, Arrivals};
use crate::model::object_id::ObjectId;
use crate::model::path::RepoPath;
use crate::model::printable::printable;
use crate::model::tree::{Tree, TreeError};
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
    let search = Search { id, origin, tree, arrivals: tree.arrivals()? };
    let mut same: Vec<(&Arrival, u8)> = search
        .arrivals
        .came
        .iter()
        .filter(|arrival| arrival.id == id)
        .map(|arrival| (arrival, 100))
        .collect();
    if same.is_empty() {
        same = search.similar_ones()?;
    }
    same.sort_by(|left, right| right.1.cmp(&left.1).then(left.0.path.cmp(&right.0.path)));
    let similar = same.iter().filter(|(_, percent)| *percent >= SIMILAR_PERCENT).count();
    if let (1, Some((arrival, percent))) = (similar, same.first())
        && let Ok(path) = RepoPath::new(&arrival.path)
        && !search.may_be_another(arrival, *percent)?
    {
        return Ok(Found::At { path, percent: *percent });
    }
    let candidates = same.iter().take(CANDIDATES_SHOWN).map(|(arrival, percent)| RenameCandidate {
        path: printable(&arrival.path),
        certain: arrival.id == id,
        percent_of_lines: *percent,
    });
    Ok(Found::Unknown(candidates.collect()))
}

/// For the file with the blob `id`, among the files that came to `tree`.
struct Search<'s, 'o> {
    id: ObjectId,
    origin: &'s Origin<'o>,
    tree: &'s dyn Tree,
    arrivals: Rc<Arrivals>,
}

impl Search<'_, '_> {
    /// What is another file of the pin, moved unchanged, is left out, as by git.
    fn similar_ones(&self) -> Result<Vec<(&Arrival, u8)>, TreeError> {
        let mut similar = Vec::new();
        if is_binary(&self.origin.blob(self.id)?) {
            return Ok(similar);
        }
        let others = self.arrivals.came.iter().filter(|arrival| !self.arrivals.is_moved(arrival.id));
        for arrival in others.take(READ_LIMIT) {
            let percent = self.likeness(self.id, arrival.id)?;
            if percent >= LIKE_PERCENT {
                similar.push((arrival, percent));
            }
        }
        Ok(similar)
    }

    /// Whether another file that went is at least as much like `arrival` as the one that is looked for, which is so by
    /// `percent`: then it may be that one under another name.
    fn may_be_another(&self, arrival: &Arrival, percent: u8) -> Result<bool, TreeError> {
        if arrival.id == self.id {
            return Ok(self.arrivals.gone.iter().filter(|gone| gone.id == self.id).count() > 1);
        }
        let is_other = |gone: &&Arrival| gone.id != self.id && !self.arrivals.is_moved(gone.id);
        for gone in self.arrivals.gone.iter().filter(is_other).take(READ_LIMIT) {
            if self.likeness(gone.id, arrival.id)? >= percent {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// How much the file `old` of the pin is like the file `new` of the tree, in percent of their lines.
    fn likeness(&self, old: ObjectId, new: ObjectId) -> Result<u8, TreeError> {
        if let Some(percent) = self.origin.likeness.borrow().get(&(old, new)) {
            return Ok(*percent);
        }
        let percent = percent_of_lines(&self.origin.blob(old)?, &self.tree.blob(new)?);
        self.origin.likeness.borrow_mut().insert((old, new), percent);
        Ok(percent)
    }
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
