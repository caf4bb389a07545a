//! Upstream's commits since the pin, oldest first, and the paths that each of them changed.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use espalier_series::Difference;
use espalier_series::ObjectId;
use git2::{Delta, Repository, Sort};

use super::ids::{object_id, oid, text};
use super::store::Store;
use crate::error::{Error, Result};

/// One upstream commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Commit id.
    pub id: ObjectId,
    /// Id of its tree.
    pub tree: ObjectId,
    /// Trees of its parents; the pin's for a parent that is not later than the pin.
    pub parent_trees: Vec<ObjectId>,
    /// Indices of its parents in the history; parents that are not later than the pin are left out.
    pub parents: Vec<usize>,
    /// Index of its first parent in the history, if it is there.
    pub first_parent: Option<usize>,
    /// Whether the pin is one of its parents.
    pub follows_pin: bool,
    /// First line of the message.
    pub subject: String,
    /// Author.
    pub author: String,
    /// Commit time, in seconds since 1970.
    pub seconds: i64,
}

/// Author, date and message of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitMessage {
    /// Name of the author.
    pub author: String,
    /// Date of the author, in seconds since 1970.
    pub seconds: i64,
    /// The message, as it is.
    pub message: Vec<u8>,
}

/// Returns author, date and message of the commit `id`.
pub fn message_of(store: &Store, id: ObjectId) -> Result<CommitMessage> {
    let commit = store.repository().find_commit(oid(id)).map_err(unreadable)?;
    let (author, seconds) = {
        let author = commit.author();
        (text(Some(author.name_bytes())), author.when().seconds())
    };
    Ok(CommitMessage { author, seconds, message: commit.message_bytes().to_vec() })
}

/// Returns the commits that are in `tip` and not in the commit whose tree is `base`, parents before children. `None`
/// if the tip came without its history, as from a bundle of one release, or does not have the pin among its
/// ancestors.
pub fn since(store: &Store, tip: ObjectId, base: ObjectId) -> Result<Option<Vec<Commit>>> {
    let repo = store.opened_for_walking()?;
    let mut walk = repo.revwalk().map_err(unreadable)?;
    walk.set_sorting(Sort::TOPOLOGICAL | Sort::TIME).map_err(unreadable)?;
    walk.push(oid(tip)).map_err(unreadable)?;
    let mut ids = Vec::new();
    let fetched = store.fetched_pin(base);
    let mut pin = None;
    for id in walk.by_ref() {
        let id = id.map_err(unreadable)?;
        // Reverts reproduce the pinned tree, before the pin and after it. If the pin's own commit is unknown, as with
        // a mirror that squashes, the oldest commit with that tree is assumed to be it.
        let has_tree = repo.find_commit(id).map_err(unreadable)?.tree_id() == oid(base);
        if has_tree && (pin != fetched || pin.is_none()) {
            pin = Some(object_id(id));
        }
        ids.push(object_id(id));
    }
    if let Some(pin) = pin {
        ids = not_in(&repo, tip, pin)?;
    } else if ids.len() < 2 || starts_from_nothing(store, &ids)? {
        return Ok(None);
    }
    ids.reverse();
    read_commits(store, &ids, &Base { tree: base, commit: pin }).map(Some)
}

/// Whether the history is complete down to a root commit: then the pin would have been found if it were part of it.
fn starts_from_nothing(store: &Store, ids: &[ObjectId]) -> Result<bool> {
    let mut all = ids.iter().map(|id| named_parents(store, *id));
    all.try_fold(false, |found, parents| Ok(found || parents?.is_empty()))
}

/// Returns the commits of `tip` that are not ancestors of `hidden`, newest first.
fn not_in(repo: &Repository, tip: ObjectId, hidden: ObjectId) -> Result<Vec<ObjectId>> {
    let mut walk = repo.revwalk().map_err(unreadable)?;
    walk.set_sorting(Sort::TOPOLOGICAL | Sort::TIME).map_err(unreadable)?;
    walk.push(oid(tip)).map_err(unreadable)?;
    walk.hide(oid(hidden)).map_err(unreadable)?;
    walk.map(|id| id.map(object_id)).collect::<std::result::Result<_, _>>().map_err(unreadable)
}

/// The pin: its tree is known, its commit only if the history reaches it.
struct Base {
    tree: ObjectId,
    commit: Option<ObjectId>,
}

impl Base {
    /// A history that was cut off at the pin still names it as a parent.
    fn is(&self, store: &Store, commit: ObjectId) -> bool {
        match self.commit {
            Some(pin) => commit == pin,
            None => store.tree_of(commit).is_ok_and(|tree| tree == self.tree),
        }
    }
}

fn read_commits(store: &Store, ids: &[ObjectId], base: &Base) -> Result<Vec<Commit>> {
    let mut places: HashMap<ObjectId, usize> = HashMap::new();
    let mut commits: Vec<Commit> = Vec::with_capacity(ids.len());
    for id in ids {
        let commit = store.repository().find_commit(oid(*id)).map_err(unreadable)?;
        let named = named_parents(store, *id)?;
        let parents: Vec<usize> = named.iter().filter_map(|parent| places.get(parent).copied()).collect();
        let mut parent_trees: Vec<ObjectId> =
            parents.iter().filter_map(|at| commits.get(*at)).map(|parent| parent.tree).collect();
        if parents.len() < named.len() || parents.is_empty() {
            parent_trees.push(base.tree);
        }
        places.insert(*id, commits.len());
        commits.push(Commit {
            id: *id,
            tree: object_id(commit.tree_id()),
            parent_trees,
            first_parent: named.first().and_then(|first| places.get(first).copied()),
            follows_pin: parents.len() < named.len() && named.iter().any(|parent| base.is(store, *parent)),
            parents,
            subject: text(commit.summary_bytes()),
            author: text(Some(commit.author().name_bytes())),
            seconds: commit.time().seconds(),
        });
    }
    assume_pin(&mut commits);
    Ok(commits)
}

/// Assumes that upstream's main line starts from the pin, for a pin whose own commit is unknown, as with a mirror
/// that squashes.
fn assume_pin(commits: &mut [Commit]) {
    if commits.iter().any(|commit| commit.follows_pin) {
        return;
    }
    let mut at = commits.len().checked_sub(1);
    while let Some(commit) = at.and_then(|at| commits.get_mut(at)) {
        at = commit.first_parent;
        commit.follows_pin = at.is_none();
    }
}

/// Returns the parents that a commit names, including those that were cut off, which libgit2 hides.
fn named_parents(store: &Store, id: ObjectId) -> Result<Vec<ObjectId>> {
    let text = store.read(id)?;
    let lines = text.split(|byte| *byte == b'\n').skip(1);
    let ids = lines.map_while(|line| std::str::from_utf8(line.strip_prefix(b"parent ")?).ok());
    Ok(ids.filter_map(|id| id.parse::<ObjectId>().ok()).collect())
}

/// Returns the sorted paths that `commit` changed: for a merge, those that differ from every parent.
pub fn changed_paths(store: &Store, commit: &Commit) -> Result<Vec<Difference>> {
    let mut parents = commit.parent_trees.iter();
    let Some(first) = parents.next() else { return Ok(Vec::new()) };
    let mut changed = changed_between(store, *first, commit.tree)?;
    for parent in parents {
        let other = changed_between(store, *parent, commit.tree)?;
        changed.retain(|change| other.binary_search_by(|probe| probe.path.cmp(&change.path)).is_ok());
    }
    Ok(changed)
}

/// A cache of comparisons between trees of one store.
pub struct Comparisons<'a> {
    store: &'a Store,
    known: RefCell<HashMap<TwoTrees, Rc<[Difference]>>>,
}

/// The old tree and the new one.
type TwoTrees = (ObjectId, ObjectId);

impl<'a> Comparisons<'a> {
    /// Creates an empty cache.
    pub fn new(store: &'a Store) -> Comparisons<'a> {
        Comparisons { store, known: RefCell::default() }
    }

    /// Cached [`changed_between`].
    pub fn between(&self, old: ObjectId, new: ObjectId) -> Result<Rc<[Difference]>> {
        if let Some(known) = self.known.borrow().get(&(old, new)) {
            return Ok(Rc::clone(known));
        }
        let found: Rc<[Difference]> = changed_between(self.store, old, new)?.into();
        self.known.borrow_mut().insert((old, new), Rc::clone(&found));
        Ok(found)
    }
}

/// Returns the sorted paths that differ between two trees. Equal folders are not descended into.
pub fn changed_between(store: &Store, old: ObjectId, new: ObjectId) -> Result<Vec<Difference>> {
    let repo = store.repository();
    let (old, new) =
        (repo.find_tree(oid(old)).map_err(unreadable)?, repo.find_tree(oid(new)).map_err(unreadable)?);
    let diff = repo.diff_tree_to_tree(Some(&old), Some(&new), None).map_err(unreadable)?;
    let mut changed: Vec<Difference> = diff
        .deltas()
        .filter_map(|delta| {
            let path = delta.new_file().path_bytes().or(delta.old_file().path_bytes())?.to_vec();
            let comes_or_goes = !matches!(delta.status(), Delta::Modified);
            let blobs = [delta.old_file().id(), delta.new_file().id()].map(object_id);
            Some(Difference { path, comes_or_goes, blobs })
        })
        .collect();
    changed.sort();
    Ok(changed)
}

fn unreadable(error: git2::Error) -> Error {
    Error::environment("upstream's history cannot be read from the store")
        .detail(error.message().to_string())
        .hint(super::FETCH_ANEW)
}
