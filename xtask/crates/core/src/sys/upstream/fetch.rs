//! Fetching the objects of a pin. Whatever the source, they are verified by the tree id.
//!
//! Every source fetches into its own quarantine repository. Only if the received tree is the pinned one are its packs
//! moved into the store; otherwise the quarantine is discarded.

use std::path::{Path, PathBuf};

use espalier_series::ObjectId;

use super::fetch_git::{Asked, Depth, Remote, Served, create_empty, served_commit};
use super::named_commit::refuse_no_repository;
use super::package;
use crate::config::layout::Layout;
use crate::config::pins::{Pin, Revision, Source, Verification};
use crate::error::{Error, Kind, Result};
use crate::sys::git::store::Store;
use crate::sys::machine::disk;
use crate::ui::Ui;

/// The context of every fetch.
#[derive(Clone, Copy)]
pub struct Fetcher<'a> {
    /// Destination of the objects.
    pub store: &'a Store,
    /// Paths of the project: scratch space, and the root for relative paths.
    pub layout: &'a Layout,
    /// The network is forbidden.
    pub offline: bool,
    /// Output for status lines and progress.
    pub ui: &'a Ui,
}

/// Origin of a pin's objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fetched {
    /// The store had them; no source was contacted.
    AlreadyThere,
    /// This source served the pinned tree.
    From(String),
}

/// Fetches `pin` into the store. A pin that is already there costs nothing; `offline` forbids the network.
pub fn fetch_pin(store: &Store, layout: &Layout, pin: &Pin, offline: bool, ui: &Ui) -> Result<Fetched> {
    if store.has_pin(pin.tree) {
        return Ok(Fetched::AlreadyThere);
    }
    let named = match &pin.revision {
        Revision::Tag(tag) => Asked::Ref(format!("refs/tags/{tag}")),
        Revision::Commit(commit) => Asked::Commit(*commit),
    };
    let wanted = CommitRequest {
        upstream: &pin.upstream,
        name: pin.revision.to_string(),
        asked: vec![named, Asked::HeadWithTree(pin.tree)],
        depth: Depth::Commits(1),
    };
    let fetcher = Fetcher { store, layout, offline, ui };
    let adopt = |arrival: &Arrival, source: &Source| {
        let commit = check_tree(&arrival.quarantine, pin, source)?;
        store.adopt(&arrival.quarantine, commit, pin.tree)
    };
    match fetcher.first_of(&pin.sources, &wanted, adopt) {
        Ok((source, ())) => Ok(Fetched::From(source)),
        Err(failures) => Err(nothing_came(pin, &failures, offline)),
    }
}

/// A wanted commit, and the requests for it.
pub(super) struct CommitRequest<'a> {
    /// The upstream's name, for people.
    pub upstream: &'a str,
    /// Name for people; a mirror finds its releases by it.
    pub name: String,
    /// Requests to a repository, in this order.
    pub asked: Vec<Asked>,
    /// Depth of the history to fetch.
    pub depth: Depth,
}

/// Data received from a source.
pub(super) struct Arrival {
    /// The repository that has the commit under [`INCOMING`](crate::sys::git::store::INCOMING).
    pub quarantine: PathBuf,
    /// The request that found it.
    pub served: Served,
}

/// The reason why a source did not serve what was wanted.
pub(super) struct Failure {
    source: String,
    /// Whether it was asked: a package is not if its table does not list what is wanted.
    was_asked: bool,
    pub(super) error: Error,
}

impl Failure {
    pub(super) fn sentence(&self) -> String {
        let words = std::iter::once(&self.error.what).chain(&self.error.details);
        format!("{}: {}", self.source, words.cloned().collect::<Vec<_>>().join("\n  "))
    }
}

/// Warns about sources that failed while another one helped. One that was not asked has not failed.
pub(super) fn warn_of(failures: &[Failure], ui: &Ui) {
    failures.iter().filter(|failure| failure.was_asked).for_each(|failure| ui.warn(failure.sentence()));
}

impl Fetcher<'_> {
    /// Tries `sources` in order; returns the first whose objects `adopt` accepted, with the result of `adopt`. The
    /// failures of those before it are warnings. Packages that do not list what is wanted are skipped. If all fail, the
    /// caller reports them, in its error, the skipped ones too.
    pub(super) fn first_of<T>(
        self,
        sources: &[Source],
        wanted: &CommitRequest<'_>,
        adopt: impl Fn(&Arrival, &Source) -> Result<T>,
    ) -> std::result::Result<(String, T), Vec<Failure>> {
        let mut failures: Vec<Failure> = Vec::new();
        for source in sources {
            let name = source.describe(&wanted.name);
            if let Some(error) = package::unlisted(source, &wanted.name) {
                failures.push(Failure { source: name, was_asked: false, error });
                continue;
            }
            self.ui.status("Fetching", format!("{} {} from {name}", wanted.upstream, wanted.name));
            match self.try_source(source, wanted, &adopt) {
                Ok(adopted) => {
                    warn_of(&failures, self.ui);
                    return Ok((name, adopted));
                }
                Err(error) => failures.push(Failure { source: name, was_asked: true, error }),
            }
        }
        Err(failures)
    }

    fn try_source<T>(
        self,
        source: &Source,
        wanted: &CommitRequest<'_>,
        adopt: impl Fn(&Arrival, &Source) -> Result<T>,
    ) -> Result<T> {
        let scratch = disk::scratch_folder(&self.layout.scratch(), "fetch")?;
        let fetched = self.into_quarantine(scratch.path(), source, wanted);
        // Programs report a full disk in many ways, or not at all, so the disk itself is checked.
        fetched
            .and_then(|arrival| adopt(&arrival, source))
            .map_err(|error| disk::blame_full_disk(scratch.path(), error))
    }

    fn into_quarantine(self, scratch: &Path, source: &Source, wanted: &CommitRequest<'_>) -> Result<Arrival> {
        let repo = scratch.join("quarantine.git");
        create_empty(&repo)?;
        let served = match source {
            Source::Git { .. } | Source::Package(_) if self.offline => {
                return Err(Error::environment("not tried because of `--offline`"));
            }
            Source::Git { url } => Remote::server(url, &wanted.depth).serve(&repo, &wanted.asked, self.ui)?,
            Source::Package(package) => {
                let (remote, asked) = package::unpack(scratch, package, &wanted.name, self.ui)?;
                remote.serve(&repo, &[asked], self.ui)?;
                Served::Release
            }
            Source::Path { path } => {
                self.remote_at(path, &wanted.depth)?.serve(&repo, &wanted.asked, self.ui)?
            }
        };
        Ok(Arrival { quarantine: repo, served })
    }

    fn remote_at(self, path: &str, depth: &Depth) -> Result<Remote> {
        let path = self.layout.root().join(path);
        match path.is_dir() {
            true => refuse_no_repository(&path).map(|()| Remote::folder(&path, depth)),
            false if disk::exists(&path) => Ok(Remote::bundle(&path)),
            false => Err(Error::environment(format!("`{}` is not there", self.layout.show(&path)))),
        }
    }
}

fn nothing_came(pin: &Pin, failures: &[Failure], offline: bool) -> Error {
    let lied = failures.iter().any(|failure| failure.error.kind == Kind::No);
    let kind = if lied { Kind::No } else { Kind::Environment };
    let what = format!("no source served the pin `{}` ({} {})", pin.name, pin.upstream, pin.revision);
    let mut error = Error::new(kind, what).detail(format!("expected tree {}", pin.tree));
    for failure in failures {
        error = error.detail(failure.sentence());
    }
    for hint in failures.iter().flat_map(|failure| &failure.error.hints) {
        if !error.hints.contains(hint) {
            error = error.hint(hint.clone());
        }
    }
    if is_no_tag(pin, failures) {
        error = error.hint(format!(
            "if `{}` is a branch, pin its commit: `commit = ID` in place of `tag`; in a clone, `git log --all \
             --format='%H %T' | grep {}` names it",
            pin.revision, pin.tree
        ));
    }
    if offline {
        return error.hint("run once without `--offline`, or give a copy: cargo xtask fetch --from PATH");
    }
    error.hint("or use a local repository or bundle: cargo xtask fetch --from PATH")
}

/// Whether a source was asked for the tag and does not have it.
fn is_no_tag(pin: &Pin, failures: &[Failure]) -> bool {
    let is_missing = |failure: &Failure| failure.error.what.contains("couldn't find remote ref");
    matches!(pin.revision, Revision::Tag(_)) && failures.iter().any(is_missing)
}

/// Verifies that the received tree is the pinned one: the only check that matters.
fn check_tree(quarantine: &Path, pin: &Pin, source: &Source) -> Result<ObjectId> {
    let (commit, served) = served_commit(quarantine)?;
    if served == pin.tree {
        return Ok(commit);
    }
    let error = not_pinned(served, pin, source);
    let look = format!(
        "git rev-parse {}^{{tree}}    # in a clone that you trust: which of the two is right?",
        pin.revision
    );
    if pin.revision == Revision::Commit(commit) {
        // A commit id authenticates its tree, so a mismatch here means that the pin itself is wrong.
        return Err(error
            .detail(format!("`commit` and `tree` of `[pins.{}]` do not belong together", pin.name))
            .hint(look));
    }
    let name = source.describe(&pin.revision.to_string());
    Err(error
        .hint(look)
        .hint(format!("if the pin is right, do not trust this source: remove `{name}` from `pins.toml`")))
}

fn not_pinned(served: ObjectId, pin: &Pin, source: &Source) -> Error {
    let error = Error::no(format!("served tree {served}, the pin says {}", pin.tree));
    match source.verification() {
        Verification::Verified => error,
        Verification::Unverified => error.detail(
            "that is the tree of unpacked files: the package may lack some files of the release, or change them",
        ),
    }
}
