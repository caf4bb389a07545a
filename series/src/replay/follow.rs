//! Search for the new path of a file that upstream moved.
//!
//! Only files added since the pin are considered: a copy that existed all along is not a move.

use std::cmp::Reverse;
use std::rc::Rc;

use super::applied_series::AppliedSeries;
use super::text::is_binary;
use crate::judge::drift::RenameCandidate;
use crate::model::arrivals::{Arrival, Arrivals};
use crate::model::object_id::ObjectId;
use crate::model::path::{RepoPath, last_component};
use crate::model::printable::printable;
use crate::model::tree::{Tree, TreeError};
use crate::text::likeness::{SIMILAR_PERCENT, percent_alike};

/// A file of at least this similarity may be one of those that the old file was split into, and is reported.
const LIKE_PERCENT: u8 = 25;
/// Maximum number of files that are read in search of a moved one.
const READ_LIMIT: usize = 2_000;
const CANDIDATES_SHOWN: usize = 5;

/// Location of a missing file.
pub(crate) enum MovedFile {
    /// At one path, with certainty or by clear similarity.
    At { path: RepoPath, percent: u8 },
    /// Uncertain; these are similar.
    Unknown(Vec<RenameCandidate>),
}

/// Searches for the file `path` with the blob `id` among those added to `tree`. Of several files with identical content
/// the one with the same file name is taken, as git does, if it is unique.
pub(crate) fn find_moved(
    (path, id): (&[u8], ObjectId),
    applied: &AppliedSeries<'_>,
    tree: &dyn Tree,
) -> Result<MovedFile, TreeError> {
    let search = Search { id, applied, tree, arrivals: tree.arrivals()? };
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
    let has_other_name = |arrival: &Arrival| last_component(&arrival.path) != last_component(path);
    same.sort_by_key(|(arrival, percent)| (Reverse(*percent), has_other_name(arrival), &arrival.path));
    if let Some(path) = search.only_namesake(path) {
        return Ok(MovedFile::At { path, percent: 100 });
    }
    let similar = same.iter().filter(|(_, percent)| *percent >= SIMILAR_PERCENT).count();
    if let (1, Some((arrival, percent))) = (similar, same.first())
        && let Ok(path) = RepoPath::new(&arrival.path)
        && !search.may_be_another(arrival, *percent)?
    {
        return Ok(MovedFile::At { path, percent: *percent });
    }
    let candidates = same.iter().take(CANDIDATES_SHOWN).map(|(arrival, percent)| RenameCandidate {
        path: printable(&arrival.path),
        certain: arrival.id == id,
        percent: *percent,
        of_whole_file: true,
    });
    Ok(MovedFile::Unknown(candidates.collect()))
}

/// A search for the file with the blob `id` among the files added to `tree`.
struct Search<'s, 'o> {
    id: ObjectId,
    applied: &'s AppliedSeries<'o>,
    tree: &'s dyn Tree,
    arrivals: Rc<Arrivals>,
}

impl Search<'_, '_> {
    /// Returns the new path if exactly one file of that name and content was removed, and exactly one was added.
    fn only_namesake(&self, path: &[u8]) -> Option<RepoPath> {
        let is_namesake =
            |file: &&Arrival| file.id == self.id && last_component(&file.path) == last_component(path);
        let mut gone = self.arrivals.gone.iter().filter(is_namesake);
        let mut came = self.arrivals.came.iter().filter(is_namesake);
        match (gone.next(), gone.next(), came.next(), came.next()) {
            (Some(gone), None, Some(came), None) if gone.path == path => RepoPath::new(&came.path).ok(),
            _ => None,
        }
    }

    /// Returns the similar files. Another file of the pin that was moved unchanged is left out, as in git.
    fn similar_ones(&self) -> Result<Vec<(&Arrival, u8)>, TreeError> {
        let mut similar = Vec::new();
        if is_binary(&self.applied.blob(self.id)?) {
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

    /// Returns whether another removed file is at least as similar to `arrival` as the one searched for, whose
    /// similarity is `percent`: then `arrival` may be that other file under a new name.
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

    /// Returns the similarity of the file `old` of the pin and the file `new` of the tree, in percent of their bytes.
    fn likeness(&self, old: ObjectId, new: ObjectId) -> Result<u8, TreeError> {
        if let Some(percent) = self.applied.likeness.borrow().get(&(old, new)) {
            return Ok(*percent);
        }
        let percent = percent_alike(&self.applied.blob(old)?, &self.tree.blob(new)?);
        self.applied.likeness.borrow_mut().insert((old, new), percent);
        Ok(percent)
    }
}
