//! Upstream commits other than the pin: a tip to look at, a release to move to.
//!
//! They come from the pin's sources, or from a repository that is named, and stay in the store under
//! `refs/espalier/upstream/`. A tag and a commit id mean the same for ever and are fetched once; a branch
//! moves and is fetched each time, unless the network is forbidden.

use std::path::Path;

use git2::Oid;

use super::disk;
use super::fetch::{Depth, Fetcher, Wanted};
use super::git::git;
use crate::error::{Error, Result};
use crate::plan::pins::{Pin, Source};

/// One upstream commit that is in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tip {
    /// What it was asked for by: a tag, a branch, a commit id.
    pub name: String,
    /// The commit.
    pub commit: Oid,
    /// Its tree.
    pub tree: Oid,
}

/// Which commit is wanted.
#[derive(Clone, Debug)]
pub struct Ask<'a> {
    /// The pin whose upstream it is.
    pub pin: &'a Pin,
    /// Tag, branch or full commit id; with a repository on this machine anything that git understands.
    pub reference: &'a str,
    /// A repository, bundle or URL to ask instead of the pin's sources.
    pub from: Option<&'a str>,
    /// Whether the commits since the pin are wanted too.
    pub history: bool,
}

/// Brings the commit into the store.
///
/// # Errors
///
/// When no source has it, each with its reason. That is the surroundings failing: it says nothing about
/// any patch.
pub fn resolve(fetcher: Fetcher<'_>, ask: &Ask<'_>) -> Result<Tip> {
    if let Some(commit) = already_there(fetcher, ask) {
        return tip(fetcher, ask, commit);
    }
    let sources = match ask.from {
        Some(from) => vec![named_source(from)],
        None => ask.pin.sources.clone(),
    };
    let wanted = Wanted {
        upstream: &ask.pin.upstream,
        tag: ask.reference,
        refs: names_to_ask_for(fetcher, ask)?,
        or_head: false,
        depth: if ask.history { Depth::Since(ask.pin.tag.clone()) } else { Depth::One },
    };
    let name = store_name(ask);
    let fetched = fetcher
        .first_of(&sources, &wanted, |quarantine, _| fetcher.store.adopt_commit(quarantine, &name).map(drop));
    if let Err(failures) = fetched {
        return fetched_before(fetcher, ask).unwrap_or_else(|| {
            let what = format!("no source has `{}` of {}", ask.reference, ask.pin.upstream);
            let told = failures
                .iter()
                .fold(Error::surroundings(what), |error, failure| error.detail(failure.sentence()));
            Err(told.hint("name a repository or a bundle that has it: --from PATH"))
        });
    }
    let commit =
        fetcher.store.remembered(&name).ok_or_else(|| Error::surroundings("the fetched commit vanished"))?;
    tip(fetcher, ask, commit)
}

fn tip(fetcher: Fetcher<'_>, ask: &Ask<'_>, commit: Oid) -> Result<Tip> {
    Ok(Tip { name: ask.reference.to_string(), commit, tree: fetcher.store.tree_of(commit)? })
}

/// A tag or commit that was fetched before, as deep as it is wanted now.
fn already_there(fetcher: Fetcher<'_>, ask: &Ask<'_>) -> Option<Oid> {
    if ask.reference == ask.pin.tag && !ask.history && fetcher.store.has_pin(ask.pin.tree) {
        return fetcher.store.pin_commit(ask.pin.tree).ok();
    }
    let moves = ask.from.is_some() || !is_fixed(ask);
    if moves {
        return None;
    }
    // One that came with its history will do where none is wanted.
    let deeper = store_name(&Ask { history: true, ..ask.clone() });
    fetcher
        .store
        .remembered(&store_name(ask))
        .or_else(|| fetcher.store.remembered(&deeper).filter(|_| !ask.history))
}

/// A name that means the same commit for ever: a full id, or a release that a mirror knows.
fn is_fixed(ask: &Ask<'_>) -> bool {
    let is_release = |source: &Source| match source {
        Source::Npm { versions, .. } => versions.contains_key(ask.reference),
        _ => false,
    };
    is_commit_id(ask.reference) || ask.reference == ask.pin.tag || ask.pin.sources.iter().any(is_release)
}

/// Without a network, what came last time is better than nothing, and said to be old.
fn fetched_before(fetcher: Fetcher<'_>, ask: &Ask<'_>) -> Option<Result<Tip>> {
    let commit = fetcher.store.remembered(&store_name(ask)).filter(|_| fetcher.offline)?;
    fetcher.ui.warn(format!("`{}` is {commit}, as it was fetched last", ask.reference));
    Some(tip(fetcher, ask, commit))
}

fn is_commit_id(reference: &str) -> bool {
    reference.len() == 40 && reference.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Where it is remembered. One that came with its history is another one than the same without.
fn store_name(ask: &Ask<'_>) -> String {
    let depth = if ask.history { "history" } else { "commit" };
    format!("{}/{depth}/{}", spell(&ask.pin.upstream), spell(ask.reference))
}

/// A name that any ref may have: what git might not like is written as its number.
fn spell(name: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let spell = |byte: u8| if is_plain(byte) { char::from(byte).to_string() } else { format!(".{byte:02x}") };
    format!("_{}", name.bytes().map(spell).collect::<String>())
}

fn named_source(from: &str) -> Source {
    if from.contains("://") || from.starts_with("git@") {
        Source::Git { url: from.to_string() }
    } else {
        Source::Path { path: from.to_string() }
    }
}

/// Full names, so that no other ref is taken by accident.
fn names_to_ask_for(fetcher: Fetcher<'_>, ask: &Ask<'_>) -> Result<Vec<String>> {
    let reference = ask.reference;
    if is_commit_id(reference) || reference == "HEAD" || reference.starts_with("refs/") {
        return Ok(vec![reference.to_string()]);
    }
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/".contains(&byte);
    let names = vec![format!("refs/tags/{reference}"), format!("refs/heads/{reference}")];
    match ask.from.map(|from| fetcher.layout.root().join(from)) {
        Some(repository) if repository.is_dir() => Ok(vec![commit_in(&repository, reference)?]),
        _ if reference.starts_with('-') || !reference.bytes().all(is_plain) => {
            Err(Error::usage(format!("`{reference}` is not a tag, a branch or a full commit id")))
        }
        _ => Ok(names),
    }
}

/// The commit that a repository on this machine calls `reference`.
fn commit_in(repository: &Path, reference: &str) -> Result<String> {
    let inside = repository.join(".git");
    let git_dir = if disk::exists(&inside) { inside } else { repository.to_path_buf() };
    let run = git(&git_dir).args(["rev-parse", "--verify", "--quiet", "--end-of-options"]);
    let found = run.arg(format!("{reference}^{{commit}}")).finish()?;
    let id = String::from_utf8_lossy(&found.stdout).trim().to_string();
    if found.status.success() && is_commit_id(&id) {
        return Ok(id);
    }
    Err(Error::usage(format!("`{}` has no `{reference}`", repository.display()))
        .hint(format!("git -C {} log --oneline --all", repository.display())))
}
