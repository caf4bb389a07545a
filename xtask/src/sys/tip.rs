//! Upstream commits other than the pin: a tip to look at, a release to move to.
//!
//! They come from the pin's sources, or from a repository that is named, and stay in the store under
//! `refs/espalier/upstream/`. A tag and a commit id mean the same for ever and are fetched once; a branch
//! moves and is fetched each time, unless the network is forbidden.

use std::path::Path;

use git2::Oid;

use super::disk;
use super::fetch::{Arrival, Asked, Depth, Fetcher, Wanted};
use super::git::git;
use crate::error::{Error, Result};
use crate::plan::pins::{Pin, Revision, Source, TagName, full_id};

/// One upstream commit that is in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tip {
    /// What it was asked for by: a tag, a branch, a commit id.
    pub name: String,
    /// What a pin would call it: its tag when it was asked for by one, or else the commit.
    pub revision: Revision,
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
    if let Some(tip) = already_there(fetcher, ask) {
        return tip;
    }
    let sources = match ask.from {
        Some(from) => vec![named_source(from)],
        None => ask.pin.sources.clone(),
    };
    let wanted = Wanted {
        upstream: &ask.pin.upstream,
        name: ask.reference.to_string(),
        asked: ways_to_ask(fetcher, ask)?,
        depth: if ask.history { Depth::Since(tag_of(ask.pin)) } else { Depth::One },
    };
    match fetcher.first_of(&sources, &wanted, |arrival, _| adopt(fetcher, ask, arrival)) {
        Ok((_, tip)) => Ok(tip),
        Err(failures) => fetched_before(fetcher, ask).unwrap_or_else(|| {
            let what = format!("no source has `{}` of {}", ask.reference, ask.pin.upstream);
            let told = failures
                .iter()
                .fold(Error::surroundings(what), |error, failure| error.detail(failure.sentence()));
            Err(told.hint("name a repository or a bundle that has it: --from PATH"))
        }),
    }
}

/// What came, taken into the store and remembered.
fn adopt(fetcher: Fetcher<'_>, ask: &Ask<'_>, arrival: &Arrival) -> Result<Tip> {
    let commit = fetcher.store.adopt_commit(&arrival.quarantine)?;
    let tag = match &arrival.asked {
        // A mirror calls its releases as upstream does.
        None => Revision::parse(ask.reference),
        Some(Asked::Ref(name)) => name.strip_prefix("refs/tags/").and_then(Revision::parse).filter(is_tag),
        Some(_) => None,
    };
    let revision = tag.unwrap_or(Revision::Commit(commit));
    fetcher.store.remember(&store_name(ask, is_tag(&revision)), commit)?;
    tip(fetcher, ask, commit, revision)
}

fn is_tag(revision: &Revision) -> bool {
    matches!(revision, Revision::Tag(_))
}

fn tag_of(pin: &Pin) -> Option<TagName> {
    match &pin.revision {
        Revision::Tag(tag) => Some(tag.clone()),
        Revision::Commit(_) => None,
    }
}

fn tip(fetcher: Fetcher<'_>, ask: &Ask<'_>, commit: Oid, revision: Revision) -> Result<Tip> {
    Ok(Tip { name: ask.reference.to_string(), revision, commit, tree: fetcher.store.tree_of(commit)? })
}

/// A tag or commit that was fetched before, as deep as it is wanted now.
fn already_there(fetcher: Fetcher<'_>, ask: &Ask<'_>) -> Option<Result<Tip>> {
    let is_pin = ask.reference == ask.pin.revision.to_string();
    if is_pin && fetcher.store.has_pin(ask.pin.tree) {
        let commit = fetcher.store.pin_commit(ask.pin.tree).ok()?;
        return Some(tip(fetcher, ask, commit, ask.pin.revision.clone()));
    }
    let moves = ask.from.is_some() || !is_fixed(ask);
    if moves {
        return None;
    }
    // One that came with its history will do where none is wanted.
    let deeper = Ask { history: true, ..ask.clone() };
    remembered(fetcher, ask).or_else(|| remembered(fetcher, &deeper).filter(|_| !ask.history))
}

/// What came last time, and whether it was a tag.
fn remembered(fetcher: Fetcher<'_>, ask: &Ask<'_>) -> Option<Result<Tip>> {
    let found = |is_tag: bool| fetcher.store.remembered(&store_name(ask, is_tag));
    let as_tag = found(true).and_then(|commit| {
        let name = ask.reference.strip_prefix("refs/tags/").unwrap_or(ask.reference);
        Some((commit, Revision::parse(name)?))
    });
    let (commit, revision) =
        as_tag.or_else(|| found(false).map(|commit| (commit, Revision::Commit(commit))))?;
    Some(tip(fetcher, ask, commit, revision))
}

/// A name that means the same commit for ever: a full id, or a release that a mirror knows.
fn is_fixed(ask: &Ask<'_>) -> bool {
    let is_release = |source: &Source| match source {
        Source::Npm { versions, .. } => versions.contains_key(ask.reference),
        _ => false,
    };
    let is_pin = ask.reference == ask.pin.revision.to_string();
    full_id(ask.reference).is_some() || is_pin || ask.pin.sources.iter().any(is_release)
}

/// Without a network, what came last time is better than nothing, and said to be old.
fn fetched_before(fetcher: Fetcher<'_>, ask: &Ask<'_>) -> Option<Result<Tip>> {
    let found = remembered(fetcher, ask).filter(|_| fetcher.offline)?;
    if let Ok(tip) = &found {
        fetcher.ui.warn(format!("`{}` is {}, as it was fetched last", ask.reference, tip.commit));
    }
    Some(found)
}

/// Where it is remembered. One that came with its history is another one than the same without.
fn store_name(ask: &Ask<'_>, is_tag: bool) -> String {
    let depth = if ask.history { "history" } else { "commit" };
    let kind = if is_tag { "/tag" } else { "" };
    format!("{}/{depth}{kind}/{}", spell(&ask.pin.upstream), spell(ask.reference))
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
fn ways_to_ask(fetcher: Fetcher<'_>, ask: &Ask<'_>) -> Result<Vec<Asked>> {
    let reference = ask.reference;
    if let Some(commit) = full_id(reference) {
        return Ok(vec![Asked::Commit(commit)]);
    }
    if reference == "HEAD" || reference.starts_with("refs/") {
        return Ok(vec![Asked::Ref(reference.to_string())]);
    }
    let names = [format!("refs/tags/{reference}"), format!("refs/heads/{reference}")].map(Asked::Ref);
    match ask.from.map(|from| fetcher.layout.root().join(from)) {
        Some(repository) if repository.is_dir() => Ok(vec![way_into(&repository, reference)?]),
        _ if reference.starts_with('-') || Revision::parse(reference).is_none() => {
            Err(Error::usage(format!("`{reference}` is not a tag, a branch or a full commit id")))
        }
        _ => Ok(names.to_vec()),
    }
}

/// How a repository on this machine is asked for what it calls `reference`.
fn way_into(repository: &Path, reference: &str) -> Result<Asked> {
    let tag = format!("refs/tags/{reference}");
    if Revision::parse(reference).is_some() && commit_in(repository, &tag)?.is_some() {
        return Ok(Asked::Ref(tag));
    }
    commit_in(repository, reference)?.map(Asked::Commit).ok_or_else(|| {
        Error::usage(format!("`{}` has no `{reference}`", repository.display()))
            .hint(format!("git -C {} log --oneline --all", repository.display()))
    })
}

/// The commit that a repository on this machine calls `name`.
fn commit_in(repository: &Path, name: &str) -> Result<Option<Oid>> {
    let inside = repository.join(".git");
    let git_dir = if disk::exists(&inside) { inside } else { repository.to_path_buf() };
    let run = git(&git_dir).args(["rev-parse", "--verify", "--quiet", "--end-of-options"]);
    let found = run.arg(format!("{name}^{{commit}}")).finish()?;
    Ok(full_id(String::from_utf8_lossy(&found.stdout).trim()).filter(|_| found.status.success()))
}
