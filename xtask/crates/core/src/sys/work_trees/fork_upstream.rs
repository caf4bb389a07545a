//! Commits of a fork that upstream has too, as separate commits.

use std::collections::{BTreeSet, HashMap};

use espalier_series::ObjectId;

use super::fork_history::{Fork, ForkCommit, unreadable};
use crate::error::Result;
use crate::sys::git::ids::{object_id, oid};

impl Fork<'_> {
    /// Returns upstream's commits that make exactly the change of one of `commits`, by the id of the latter; searches
    /// the commits of `until` that are not in `since`.
    pub fn same_changes(
        &self,
        commits: &[&ForkCommit],
        since: Option<ObjectId>,
        until: ObjectId,
    ) -> Result<HashMap<ObjectId, ObjectId>> {
        let fail = |error: git2::Error| unreadable(until, &error);
        let mut wanted: HashMap<BTreeSet<Vec<u8>>, Vec<ObjectId>> = HashMap::new();
        for commit in commits.iter().filter(|commit| !commit.is_merge()) {
            wanted.entry(self.paths(commit.id)?).or_default().push(commit.id);
        }
        let mut walk = self.git().revwalk().map_err(fail)?;
        walk.push(oid(until)).map_err(fail)?;
        since.map_or(Ok(()), |since| walk.hide(oid(since))).map_err(fail)?;
        let mut found = HashMap::new();
        for upstream in walk {
            let upstream = object_id(upstream.map_err(fail)?);
            // Paths are cheap to compare and leave few commits for the expensive comparison.
            let Some(ours) = wanted.get(&self.paths(upstream)?) else { continue };
            let change = self.patch_id(upstream)?;
            for commit in ours {
                if change.is_some() && self.patch_id(*commit)? == change {
                    found.insert(*commit, upstream);
                }
            }
        }
        Ok(found)
    }

    /// Returns the last upstream commit that is an ancestor of the pin's commit and of all of `commits`.
    pub fn left_upstream(&self, commits: &[&ForkCommit]) -> Option<ObjectId> {
        let mut commits = commits.iter();
        let both =
            |at, commit: &&ForkCommit| self.git().merge_base(oid(at), oid(commit.id)).ok().map(object_id);
        commits.try_fold(self.merge_base, both)
    }

    fn diff(&self, commit: ObjectId) -> Result<git2::Diff<'_>> {
        let fail = |error: git2::Error| unreadable(commit, &error);
        let commit = self.git().find_commit(oid(commit)).map_err(fail)?;
        let old = commit.parent(0).and_then(|parent| parent.tree()).ok();
        let new = commit.tree().map_err(fail)?;
        self.git().diff_tree_to_tree(old.as_ref(), Some(&new), None).map_err(fail)
    }

    /// Returns the paths that a commit changes.
    pub fn paths(&self, commit: ObjectId) -> Result<BTreeSet<Vec<u8>>> {
        let diff = self.diff(commit)?;
        let path = |delta: git2::DiffDelta<'_>| {
            delta.new_file().path_bytes().or(delta.old_file().path_bytes()).map(<[u8]>::to_vec)
        };
        Ok(diff.deltas().filter_map(path).collect())
    }

    /// Returns git's patch id; `None` for an empty change.
    fn patch_id(&self, commit: ObjectId) -> Result<Option<ObjectId>> {
        let diff = self.diff(commit)?;
        if diff.deltas().len() == 0 {
            return Ok(None);
        }
        Ok(diff.patchid(None).ok().map(object_id))
    }
}
