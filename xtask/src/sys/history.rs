//! Upstream's commits since the pin, oldest first, and what each of them changed.

use std::collections::HashMap;

use git2::{Delta, Oid, Sort};

use super::store::Store;
use crate::error::{Error, Result};

/// One upstream commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Its id.
    pub id: Oid,
    /// Its tree.
    pub tree: Oid,
    /// The trees of its parents; the pin's where a parent is not later than the pin.
    pub parent_trees: Vec<Oid>,
    /// Where its parents are in the history; those that are not later than the pin are left out.
    pub parents: Vec<usize>,
    /// The first line of its message.
    pub subject: String,
    /// Who wrote it.
    pub author: String,
    /// When it was committed, in seconds since 1970.
    pub seconds: i64,
}

/// One path that a commit changed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChangedPath {
    /// The path.
    pub path: Vec<u8>,
    /// Whether it was made or taken away, and not only filled with something else.
    pub comes_or_goes: bool,
}

/// The commits that are in `tip` and not in the commit whose tree is `base`: every parent comes before its
/// children. Nothing when the tip came without its history, as from a bundle of one release.
pub fn since(store: &Store, tip: Oid, base: Oid) -> Result<Option<Vec<Commit>>> {
    let repo = store.repository();
    let mut walk = repo.revwalk().map_err(unreadable)?;
    walk.set_sorting(Sort::TOPOLOGICAL | Sort::TIME).map_err(unreadable)?;
    walk.push(tip).map_err(unreadable)?;
    let mut ids = Vec::new();
    let mut found = false;
    for id in walk.by_ref() {
        let id = id.map_err(unreadable)?;
        if repo.find_commit(id).map_err(unreadable)?.tree_id() == base {
            found = true;
            ids = not_in(store, tip, id)?;
            break;
        }
        ids.push(id);
    }
    ids.reverse();
    if !found && ids.len() < 2 {
        return Ok(None);
    }
    read_commits(store, &ids, base).map(Some)
}

/// Newest first.
fn not_in(store: &Store, tip: Oid, hidden: Oid) -> Result<Vec<Oid>> {
    let mut walk = store.repository().revwalk().map_err(unreadable)?;
    walk.set_sorting(Sort::TOPOLOGICAL | Sort::TIME).map_err(unreadable)?;
    walk.push(tip).map_err(unreadable)?;
    walk.hide(hidden).map_err(unreadable)?;
    walk.collect::<std::result::Result<_, _>>().map_err(unreadable)
}

fn read_commits(store: &Store, ids: &[Oid], base: Oid) -> Result<Vec<Commit>> {
    let mut places: HashMap<Oid, usize> = HashMap::new();
    let mut commits: Vec<Commit> = Vec::with_capacity(ids.len());
    for id in ids {
        let commit = store.repository().find_commit(*id).map_err(unreadable)?;
        let parents: Vec<usize> =
            commit.parent_ids().filter_map(|parent| places.get(&parent).copied()).collect();
        let mut parent_trees: Vec<Oid> =
            parents.iter().filter_map(|at| commits.get(*at)).map(|parent| parent.tree).collect();
        if parents.len() < commit.parent_count() || parents.is_empty() {
            parent_trees.push(base);
        }
        places.insert(*id, commits.len());
        commits.push(Commit {
            id: *id,
            tree: commit.tree_id(),
            parent_trees,
            parents,
            subject: text(commit.summary_bytes()),
            author: text(Some(commit.author().name_bytes())),
            seconds: commit.time().seconds(),
        });
    }
    Ok(commits)
}

fn text(bytes: Option<&[u8]>) -> String {
    String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned()
}

/// The paths that `commit` changed: for a merge, those that are as in none of its parents. Sorted.
pub fn changed_paths(store: &Store, commit: &Commit) -> Result<Vec<ChangedPath>> {
    let mut parents = commit.parent_trees.iter();
    let Some(first) = parents.next() else { return Ok(Vec::new()) };
    let mut changed = changed_between(store, *first, commit.tree)?;
    for parent in parents {
        let other = changed_between(store, *parent, commit.tree)?;
        changed.retain(|change| other.binary_search_by(|probe| probe.path.cmp(&change.path)).is_ok());
    }
    Ok(changed)
}

/// The paths that differ between two trees, sorted. Folders that are equal are not entered.
pub fn changed_between(store: &Store, old: Oid, new: Oid) -> Result<Vec<ChangedPath>> {
    let repo = store.repository();
    let (old, new) = (repo.find_tree(old).map_err(unreadable)?, repo.find_tree(new).map_err(unreadable)?);
    let diff = repo.diff_tree_to_tree(Some(&old), Some(&new), None).map_err(unreadable)?;
    let mut changed: Vec<ChangedPath> = diff
        .deltas()
        .filter_map(|delta| {
            let path = delta.new_file().path_bytes().or(delta.old_file().path_bytes())?.to_vec();
            let comes_or_goes = !matches!(delta.status(), Delta::Modified);
            Some(ChangedPath { path, comes_or_goes })
        })
        .collect();
    changed.sort();
    Ok(changed)
}

fn unreadable(error: git2::Error) -> Error {
    Error::surroundings("upstream's history cannot be read from the store")
        .detail(error.message().to_string())
        .hint(super::store::FETCH_ANEW)
}
