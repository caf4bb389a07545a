//! Upstream commits other than the pin: a tip to examine, a release to move to.
//!
//! They come from the pin's sources, or from a named repository, and stay in the store under
//! `refs/espalier/upstream/`. A tag and a commit id are immutable and are fetched once; a branch moves and is fetched
//! each time, unless the network is forbidden.

use espalier_series::ObjectId;

use super::fetch::{Arrival, CommitRequest, Failure, Fetcher, warn_of};
use super::fetch_git::{Asked, Depth, Served, is_cut_off};
use super::short_id;
use crate::config::pins::{Pin, Revision, Source, TagName, Verification};
use crate::config::reference::Reference;
use crate::error::{Error, Kind, Result};
use crate::next_command::quoted;
use crate::sys::git::unverified::verification_of;

/// One upstream commit that is in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tip {
    /// The name by which it was requested: a tag, a branch, a commit id.
    pub name: String,
    /// The revision for a pin: its tag if it was requested by one, otherwise the commit.
    pub revision: Revision,
    /// The commit.
    pub commit: ObjectId,
    /// Its tree.
    pub tree: ObjectId,
    /// Whether the tree id is known to be upstream's.
    pub verification: Verification,
}

/// A request for a commit.
#[derive(Clone, Debug)]
pub struct Ask<'a> {
    /// The pin whose upstream is asked.
    pub pin: &'a Pin,
    /// Tag, branch or commit id, optionally followed by steps back.
    pub reference: &'a str,
    /// A repository, bundle or URL to use instead of the pin's sources.
    pub from: Option<&'a str>,
    /// Whether the commits since the pin are fetched too.
    pub history: bool,
}

/// Fetches the commit into the store.
///
/// # Errors
///
/// When no source has it, each with its reason. That is an environment error: it says nothing about any patch. An
/// ambiguous abbreviated id is a usage error.
pub fn resolve(fetcher: Fetcher<'_>, ask: &Ask<'_>) -> Result<Tip> {
    let reference = reference_of(ask)?;
    let search = Search { fetcher, ask, reference: &reference };
    if let Some(tip) = search.already_there() {
        return tip;
    }
    let sources = match ask.from {
        Some(from) => vec![named_source(from)?],
        None => ask.pin.sources.clone(),
    };
    let wanted = CommitRequest {
        upstream: &ask.pin.upstream,
        name: reference.release().to_string(),
        asked: vec![Asked::Reference(reference.clone())],
        depth: if ask.history { Depth::Since(tag_of(ask.pin)) } else { Depth::Commits(reference.depth()) },
    };
    match fetcher.first_of(&sources, &wanted, |arrival, source| search.adopt(arrival, source)) {
        Ok((_, tip)) => Ok(tip),
        Err(failures) => match search.fetched_before() {
            Some(tip) => {
                warn_of(&failures, fetcher.ui);
                tip
            }
            None => Err(no_source_has(ask, failures)),
        },
    }
}

/// Parses the reference. An abbreviated id of a commit that a source of the pin lists becomes the full one: a package
/// is found by that alone.
fn reference_of(ask: &Ask<'_>) -> Result<Reference> {
    let typed = Reference::parse(ask.reference)?;
    let short = typed.short_id().filter(|short| short.len() >= SURE_DIGITS && ask.from.is_none());
    match short.and_then(|short| ask.pin.listed_commit(short)) {
        Some(commit) => typed.stepping_from(commit),
        None => Ok(typed),
    }
}

fn no_source_has(ask: &Ask<'_>, failures: Vec<Failure>) -> Error {
    if let Some(mistake) = failures.iter().find(|failure| failure.error.kind == Kind::Usage) {
        return mistake.error.clone();
    }
    let what = format!("no source has `{}` of {}", ask.reference, ask.pin.upstream);
    let mut reported = Error::environment(what);
    for failure in failures {
        reported = reported.detail(failure.sentence());
        reported.hints.extend(failure.error.hints);
    }
    reported.hint("name a repository or a bundle that has it: --from PATH")
}

fn tag_of(pin: &Pin) -> Option<TagName> {
    match &pin.revision {
        Revision::Tag(tag) => Some(tag.clone()),
        Revision::Commit(_) => None,
    }
}

/// An abbreviated id with at least this many digits that exists in the store's history, or that a source lists, is
/// assumed not to be a tag's name by coincidence.
const SURE_DIGITS: usize = 7;

/// The commit to search for, and the sources.
#[derive(Clone, Copy)]
struct Search<'a> {
    fetcher: Fetcher<'a>,
    ask: &'a Ask<'a>,
    reference: &'a Reference,
}

impl Search<'_> {
    /// Moves the received objects into the store and records the commit.
    fn adopt(self, arrival: &Arrival, source: &Source) -> Result<Tip> {
        if let (Source::Path { path }, true) = (source, self.ask.history)
            && is_cut_off(&arrival.quarantine, self.ask.pin.tree)?
        {
            return Err(self.cut_off(path));
        }
        let store = self.fetcher.store;
        let commit = store.adopt_commit(&arrival.quarantine)?;
        let named = match &arrival.served {
            // The names in `versions` are upstream's.
            Served::Release => Revision::parse(self.reference.release()),
            Served::Ref(name) => self.reference.as_tag(name),
            Served::Commit => None,
        };
        let revision = named.unwrap_or(Revision::Commit(commit));
        store.remember(&self.store_name(self.ask.history, matches!(revision, Revision::Tag(_))), commit)?;
        self.tip(commit, revision)
    }

    /// Returns the error for a shallow clone at `path` that has some of the commits since the pin, and not all.
    fn cut_off(self, path: &str) -> Error {
        let pin = &self.ask.pin.revision;
        let what = format!("it is a shallow clone whose history does not reach back to {pin}");
        let path = self.fetcher.layout.root().join(path).display().to_string();
        let error =
            Error::environment(what).hint(format!("complete it: git -C {} fetch --unshallow", quoted(&path)));
        if !self.reference.steps.is_empty() || self.reference.full_id().is_some() {
            return error;
        }
        let (name, url) = (quoted(self.reference.name()), quoted(&format!("file://{path}")));
        error.hint(format!(
            "or use its newest commit alone: git clone --bare --depth 1 --branch {name} {url} alone.git, then: --from \
             alone.git"
        ))
    }

    fn tip(self, commit: ObjectId, revision: Revision) -> Result<Tip> {
        let store = self.fetcher.store;
        let tree = store.tree_of(commit)?;
        let verification = verification_of(store, commit, tree);
        Ok(Tip { name: self.ask.reference.to_string(), revision, commit, tree, verification })
    }

    /// Returns a tag or commit that was fetched before, with at least the depth that is wanted now.
    fn already_there(self) -> Option<Result<Tip>> {
        let Search { fetcher: Fetcher { store, .. }, ask, .. } = self;
        if self.is_pin() && store.has_pin(ask.pin.tree) {
            let commit = store.pin_commit(ask.pin.tree).ok()?;
            return Some(self.tip(commit, ask.pin.revision.clone()));
        }
        if ask.from.is_some() {
            return None;
        }
        let remembered = || {
            // A commit that was fetched with its history also serves a request without.
            self.remembered(ask.history).or_else(|| self.remembered(true))
        };
        let fixed = if self.is_fixed() { remembered() } else { None };
        fixed.or_else(|| self.known_commit())
    }

    fn is_pin(self) -> bool {
        self.reference.release() == self.ask.pin.revision.to_string()
    }

    /// Whether the name is immutable: a full id, or a release that a package is listed with.
    fn is_fixed(self) -> bool {
        let release = self.reference.release();
        let is_release = |source: &Source| matches!(source, Source::Package(_)) && source.may_have(release);
        self.reference.full_id().is_some() || self.is_pin() || self.ask.pin.sources.iter().any(is_release)
    }

    /// Returns the commit fetched last time, recorded as a tag or not.
    fn remembered(self, history: bool) -> Option<Result<Tip>> {
        let store = self.fetcher.store;
        if let Some(commit) = store.remembered(&self.store_name(history, true)) {
            return Some(self.tip(commit, Revision::parse(self.reference.release())?));
        }
        let commit = store.remembered(&self.store_name(history, false))?;
        // The commit of a package may be one that was made of the files of the commit that its table lists.
        let named = Revision::parse(self.reference.release());
        let named = named.filter(|revision| matches!(revision, Revision::Commit(_)));
        Some(self.tip(commit, named.unwrap_or(Revision::Commit(commit))))
    }

    /// Returns a full or abbreviated id from the history that was fetched with another tip.
    fn known_commit(self) -> Option<Result<Tip>> {
        let id = self.reference.full_id().map(|id| id.to_string());
        let digits =
            id.as_deref().or(self.reference.short_id().filter(|short| short.len() >= SURE_DIGITS))?;
        let histories = format!("refs/espalier/upstream/{}/history/*", spell(&self.ask.pin.upstream));
        let found = short_id::find(self.fetcher.store.repository(), &histories, digits).ok()?;
        let commit = found.ok()?.filter(|_| self.reference.steps.is_empty())?;
        Some(self.tip(commit, Revision::Commit(commit)))
    }

    /// Without a network, returns the commit fetched last time, and reports that it may be outdated.
    fn fetched_before(self) -> Option<Result<Tip>> {
        let found = self.remembered(self.ask.history).filter(|_| self.fetcher.offline)?;
        if let Ok(tip) = &found {
            let words = format!("`{}` is {}, as of the last fetch", self.ask.reference, tip.commit);
            self.fetcher.ui.warn(words);
        }
        Some(found)
    }

    /// Returns the name under which it is recorded. With and without history are separate entries.
    fn store_name(self, history: bool, is_tag: bool) -> String {
        let depth = if history { "history" } else { "commit" };
        let kind = if is_tag { "/tag" } else { "" };
        format!("{}/{depth}{kind}/{}", spell(&self.ask.pin.upstream), spell(&self.reference.to_string()))
    }
}

/// Escapes a name for use in a ref: characters that git may reject are written as their code.
fn spell(name: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let spell = |byte: u8| if is_plain(byte) { char::from(byte).to_string() } else { format!(".{byte:02x}") };
    format!("_{}", name.bytes().map(spell).collect::<String>())
}

fn named_source(from: &str) -> Result<Source> {
    if from.contains("://") || from.starts_with("git@") {
        Source::git(from).map_err(|why| Error::usage(format!("`--from {from}` is not {why}")))
    } else {
        Ok(Source::Path { path: from.to_string() })
    }
}
