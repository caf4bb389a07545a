//! Makes a repository of copied objects serve one complete commit.

use std::collections::HashSet;
use std::path::Path;

use espalier_series::{ObjectId, lossy};
use git2::{Commit, ObjectType, Oid, Repository};

use super::copy::Names;
use crate::error::{Error, Result};
use crate::sys::git::ids::{object_id, oid};
use crate::sys::git::tree_object;
use crate::sys::machine::disk;
use crate::sys::upstream::fetch_git::set_incoming;

/// Points [`INCOMING`](crate::sys::git::store::INCOMING) of the repository `repo` to the commit of `revision`, after
/// checking that all of its files are there. Its parents are left out.
pub(super) fn offer(repo: &Path, names: &Names, revision: &str) -> Result<()> {
    let repository = Repository::open_bare(repo).map_err(|error| unreadable(&error))?;
    let commit = commit_of(&repository, names, revision)?;
    refuse_incomplete(&repository, commit.tree_id())?;
    let id = object_id(commit.id());
    if commit.parent_count() > 0 {
        // git would otherwise report a commit without its parents as corrupt.
        disk::write_atomically(&repo.join("shallow"), format!("{id}\n").as_bytes())?;
    }
    set_incoming(repo, id).map_err(|error| unreadable(&error))
}

/// Returns the commit of `revision`: an id names it; a tag is read from the repository, or is the name that `pins.toml`
/// has for the commit that is checked out.
fn commit_of<'a>(repository: &'a Repository, names: &Names, revision: &str) -> Result<Commit<'a>> {
    let named: Option<ObjectId> = revision.parse().ok();
    let id = named.or(names.tag).or(names.head).ok_or_else(|| {
        Error::environment(format!(
            "HEAD of the repository in the package is not a commit id, and it has no tag `{revision}`"
        ))
        .hint("list the full id of the commit in `versions` in `pins.toml`, and pin that")
    })?;
    let found = repository.find_object(oid(id), None).and_then(|object| object.peel_to_commit());
    found.map_err(|error| {
        Error::environment(format!("the repository in the package has no commit {id}"))
            .detail(error.message().to_string())
    })
}

/// Longest path in a tree: nested folders could otherwise make the paths of this check as long as memory allows.
const PATH_LIMIT: usize = 4096;

/// Returns an error that names the first object below the tree `root` that is missing.
fn refuse_incomplete(repository: &Repository, root: Oid) -> Result<()> {
    let odb = repository.odb().map_err(|error| unreadable(&error))?;
    // A folder that occurs twice is checked once: otherwise ten folders within each other, each ten times, would take
    // for ever.
    let mut known = HashSet::from([root]);
    let mut open = vec![(Vec::new(), root)];
    while let Some((folder, id)) = open.pop() {
        let tree = repository.find_tree(id).map_err(|_| lacks("tree", id, &folder))?;
        for entry in tree.iter() {
            let path = tree_object::join(&folder, entry.name_bytes());
            if path.len() > PATH_LIMIT {
                return Err(Error::no(format!(
                    "the commit in the package has a path of {} bytes",
                    path.len()
                )));
            }
            match entry.kind() {
                Some(ObjectType::Tree) if known.insert(entry.id()) => open.push((path, entry.id())),
                // The second is a submodule, which is in another repository.
                Some(ObjectType::Tree | ObjectType::Commit) => {}
                _ if odb.exists(entry.id()) => {}
                _ => return Err(lacks("blob", entry.id(), &path)),
            }
        }
    }
    Ok(())
}

fn lacks(kind: &str, id: Oid, path: &[u8]) -> Error {
    Error::environment("the repository in the package is incomplete")
        .detail(format!("it lacks the {kind} {id} of `{}`", lossy(path)))
}

fn unreadable(error: &git2::Error) -> Error {
    Error::environment("the objects of the package cannot be read").detail(error.message().to_string())
}
