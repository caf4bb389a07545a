//! Lookup of an abbreviated commit id: only among the commits reachable from the refs of a repository.

use espalier_series::ObjectId;
use git2::Repository;

use crate::sys::git::ids::{object_id, oid};

/// An abbreviated id that several commits share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ambiguous {
    /// The shared prefix.
    pub short: String,
    /// Each of them: the start of its id, its day and its subject.
    pub candidates: Vec<String>,
}

/// Returns the only commit whose id begins with `short`; `None` if there is none.
pub(super) fn find(
    repo: &Repository,
    refs: &str,
    short: &str,
) -> Result<Result<Option<ObjectId>, Ambiguous>, git2::Error> {
    let short = short.to_ascii_lowercase();
    let mut walk = repo.revwalk()?;
    walk.push_glob(refs)?;
    let mut found = Vec::new();
    for id in walk {
        let id = id?;
        if id.to_string().starts_with(&short) {
            found.push(id);
        }
    }
    match found[..] {
        [] => Ok(Ok(None)),
        [one] => Ok(Ok(Some(object_id(one)))),
        _ => {
            let candidates =
                found.iter().map(|id| describe(repo, object_id(*id))).collect::<Result<_, _>>()?;
            Ok(Err(Ambiguous { short, candidates }))
        }
    }
}

fn describe(repo: &Repository, id: ObjectId) -> Result<String, git2::Error> {
    let commit = repo.find_commit(oid(id))?;
    let subject = crate::sys::git::ids::text(commit.summary_bytes());
    Ok(format!("{} {subject}", id.to_string().get(..12).unwrap_or_default()))
}
