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
use crate::plan::pins::{Pin, Source};
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
    let wanted = Wanted {
        upstream: &pin.upstream,
        tag: &pin.tag,
        refs: vec![format!("refs/tags/{}", pin.tag)],
        or_head: true,
        depth: Depth::One,
    };
    let fetcher = Fetcher { store, layout, offline, ui };
    let adopt = |quarantine: &Path, source: &Source| {
        check_tree(quarantine, pin, source)?;
        store.adopt(quarantine, pin.tree)
    };
    match fetcher.first_of(&pin.sources, &wanted, adopt) {
        Ok(source) => Ok(Fetched::From(source)),
        Err(failures) => Err(nothing_came(pin, &failures, offline)),
    }
}

/// One commit that is wanted.
pub(super) struct Wanted<'a> {
    /// The upstream's name, for people.
    pub upstream: &'a str,
    /// What people call it; a mirror knows its releases by this.
    pub tag: &'a str,
    /// What a repository is asked for, in this order.
    pub refs: Vec<String>,
    /// Whether a path without those may serve its HEAD: only where a tree id decides afterwards.
    pub or_head: bool,
    /// How much of its history.
    pub depth: Depth,
}

/// How much of a commit's history is fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Depth {
    /// None.
    One,
    /// All of it but what the tag has too, when the other side knows the tag.
    Since(String),
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
    /// Tries `sources` in order; gives the one whose objects `adopt` took over.
    pub(super) fn first_of(
        self,
        sources: &[Source],
        wanted: &Wanted<'_>,
        adopt: impl Fn(&Path, &Source) -> Result<()>,
    ) -> std::result::Result<String, Vec<Failure>> {
        let mut failures = Vec::new();
        for source in sources {
            let name = source.describe(wanted.tag);
            self.ui.status("Fetching", format!("{} {} from {name}", wanted.upstream, wanted.tag));
            match self.try_source(source, wanted, &adopt) {
                Ok(()) => return Ok(name),
                Err(error) => {
                    let failure = Failure { source: name, error };
                    self.ui.warn(failure.sentence());
                    failures.push(failure);
                }
            }
        }
        Err(failures)
    }

    fn try_source(
        self,
        source: &Source,
        wanted: &Wanted<'_>,
        adopt: impl Fn(&Path, &Source) -> Result<()>,
    ) -> Result<()> {
        let scratch = disk::scratch_folder(&self.layout.scratch(), "fetch")?;
        let fetched = self.into_quarantine(scratch.path(), source, wanted);
        // Programs word a full disk in many ways, and some do not at all: the disk itself is asked.
        fetched
            .and_then(|quarantine| adopt(&quarantine, source))
            .map_err(|error| disk::blame_full_disk(scratch.path(), error))
    }

    fn into_quarantine(self, scratch: &Path, source: &Source, wanted: &Wanted<'_>) -> Result<PathBuf> {
        let repo = scratch.join("quarantine.git");
        git(&repo).args(["init", "--quiet", "--bare", "--template="]).arg(&repo).success()?;
        match source {
            Source::Git { .. } | Source::Npm { .. } if self.offline => {
                return Err(Error::surroundings("not tried: `--offline` forbids the network"));
            }
            Source::Git { url } => fetch_git(&repo, url, &wanted.refs, &wanted.depth, self.ui)?,
            Source::Npm { package, versions, member, bytes } => {
                let version = versions
                    .get(wanted.tag)
                    .ok_or_else(|| Error::surroundings(format!("this mirror has no `{}`", wanted.tag)))?;
                let bundle = fetch_npm(scratch, package, version, member, *bytes, self.ui)?;
                self.fetch_bundle(&repo, &bundle, &["HEAD".to_string()])?;
            }
            Source::Path { path } => self.fetch_path(&repo, path, wanted)?,
        }
        Ok(repo)
    }

    fn fetch_path(self, repo: &Path, path: &str, wanted: &Wanted<'_>) -> Result<()> {
        let path = self.layout.root().join(path);
        if !disk::exists(&path) {
            return Err(Error::surroundings(format!("`{}` is not there", self.layout.show(&path))));
        }
        let head = wanted.or_head.then(|| "HEAD".to_string());
        let refs: Vec<String> = wanted.refs.iter().cloned().chain(head).collect();
        if path.is_dir() {
            // A repository at hand is cheap to read whole, and may not know the tag.
            let depth = if wanted.depth == Depth::One { Depth::One } else { Depth::Since(String::new()) };
            fetch_git(repo, &path.display().to_string(), &refs, &depth, self.ui)
        } else {
            self.fetch_bundle(repo, &path, &refs)
        }
    }

    /// A bundle cannot be fetched shallow.
    fn fetch_bundle(self, repo: &Path, bundle: &Path, refs: &[String]) -> Result<()> {
        fetch_git(repo, &bundle.display().to_string(), refs, &Depth::Since(String::new()), self.ui)
    }
}

fn nothing_came(pin: &Pin, failures: &[Failure], offline: bool) -> Error {
    let lied = failures.iter().any(|failure| failure.error.kind == Kind::No);
    let kind = if lied { Kind::No } else { Kind::Surroundings };
    let what = format!("no source served the pin `{}` ({} {})", pin.name, pin.upstream, pin.tag);
    let mut error = Error::new(kind, what).detail(format!("expected tree {}", pin.tree));
    for failure in failures {
        error = error.detail(failure.sentence());
    }
    for hint in failures.iter().flat_map(|failure| &failure.error.hints) {
        if !error.hints.contains(hint) {
            error = error.hint(hint.clone());
        }
    }
    if offline {
        return error.hint("run once without `--offline`, or give a copy: cargo xtask fetch --from PATH");
    }
    error.hint("if a copy is at hand, a repository or a bundle: cargo xtask fetch --from PATH")
}

/// Fetches the first of `wanted` that the other side has.
fn fetch_git(repo: &Path, from: &str, wanted: &[String], depth: &Depth, ui: &Ui) -> Result<()> {
    let mut last = None;
    for name in wanted {
        match fetch_ref(repo, from, name, depth, ui) {
            Ok(()) => return Ok(()),
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or_else(|| Error::surroundings("nothing to fetch")))
}

fn fetch_ref(repo: &Path, from: &str, name: &str, depth: &Depth, ui: &Ui) -> Result<()> {
    let mut run = git(repo).args(["fetch", "--progress", "--no-tags", "--force", "--no-write-fetch-head"]);
    match depth {
        Depth::One => run = run.args(["--depth", "1"]),
        Depth::Since(tag) if !tag.is_empty() => run = run.arg(format!("--shallow-exclude={tag}")),
        Depth::Since(_) => {}
    }
    let run = run.arg("--").arg(from).arg(format!("{name}:{INCOMING}"));
    let mut progress = ui.progress(&format!("{from} {name}"), None, Unit::Bytes);
    let mut said = Vec::new();
    watch_growth(run, repo, &mut progress, |line| {
        // Git's own counts ("Receiving objects: 12% (...)") are progress, everything else is speech.
        if !line.contains('%') {
            said.push(line.trim_start_matches("fatal: ").trim_start_matches("error: ").to_string());
        }
    })
    .map_err(|error| with_words("git", error, &said))
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
    let served = served_tree(quarantine).map_err(|error| {
        Error::surroundings("what came is not a commit").detail(error.message().to_string())
    })?;
    if served == pin.tree {
        return Ok(());
    }
    Err(Error::no(format!("served tree {served}, the pin says {}", pin.tree))
        .hint(format!(
            "if `{}` should be tree {served}, write it in `pins.toml`: tree = \"{served}\"",
            pin.tag
        ))
        .hint(format!(
            "if the pin is right, do not trust this source: remove `{}` from `pins.toml`",
            source.describe(&pin.tag)
        )))
}

fn served_tree(quarantine: &Path) -> std::result::Result<Oid, git2::Error> {
    let repo = Repository::open_bare(quarantine)?;
    let commit = repo.find_reference(INCOMING)?.peel_to_commit()?;
    Ok(commit.tree_id())
}
