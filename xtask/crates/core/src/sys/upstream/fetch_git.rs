//! `git fetch` of one commit into a quarantine repository, by ref, id or name.

use std::path::{Path, PathBuf};

use espalier_series::ObjectId;
use git2::{Repository, RepositoryOpenFlags};

use super::named_commit::{NamedTarget, find_in_folder, has_sha256_ids, is_ambiguous, unreadable};
use super::short_id;
use crate::config::pins::TagName;
use crate::config::reference::{Reference, Step};
use crate::error::{Error, Kind as ErrorKind, Result};
use crate::next_command::quoted;
use crate::sys::git::command::git;
use crate::sys::git::ids::{object_id, oid};
use crate::sys::git::store::INCOMING;
use crate::sys::machine::disk;
use crate::sys::machine::watched::{Download, PATIENCE, succeeded};
use crate::ui::{Ui, Unit};

/// One way to request a commit from a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::sys) enum Asked {
    /// By the full name of a ref.
    Ref(String),
    /// By its id; if a remote does not serve commits by id, through its branches and tags.
    Commit(ObjectId),
    /// By the reference that a user typed.
    Reference(Reference),
    /// HEAD, if it has this tree. Only for repositories on this machine: a copy of one release often has no tag, or
    /// another commit.
    HeadWithTree(ObjectId),
}

/// The request by which a commit was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::sys) enum Served {
    /// A ref, by its full name.
    Ref(String),
    /// Its id, an ancestor of a ref or id, or HEAD.
    Commit,
    /// A package's name for one of its revisions, as in `pins.toml`.
    Release,
}

/// Depth of the history to fetch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::sys) enum Depth {
    /// This many commits, including the commit itself.
    Commits(usize),
    /// Everything that this tag does not have; everything if there is no tag to exclude.
    Since(Option<TagName>),
}

/// The source of a `git fetch`, and the depth of the history.
pub(in crate::sys) struct Remote {
    url: String,
    depth: Depth,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Server,
    Bundle,
    Folder(PathBuf),
}

impl Remote {
    /// Creates the remote of a URL.
    pub fn server(url: &str, depth: &Depth) -> Remote {
        Remote { url: url.to_string(), depth: depth.clone(), kind: Kind::Server }
    }

    /// Creates the remote of a repository on this machine: cheap to read completely, and it may lack the tag.
    pub fn folder(path: &Path, depth: &Depth) -> Remote {
        let depth = match depth {
            Depth::Commits(count) => Depth::Commits(*count),
            Depth::Since(_) => Depth::Since(None),
        };
        Remote { url: path.display().to_string(), depth, kind: Kind::Folder(path.to_path_buf()) }
    }

    /// Creates the remote of a bundle, which cannot be fetched shallow.
    pub fn bundle(path: &Path) -> Remote {
        Remote { url: path.display().to_string(), depth: Depth::Since(None), kind: Kind::Bundle }
    }

    /// Fetches the first of `asked` that the remote has, to [`INCOMING`] in `repo`; returns what found it.
    pub fn serve(&self, repo: &Path, asked: &[Asked], ui: &Ui) -> Result<Served> {
        let mut last: Option<Error> = None;
        for asked in asked {
            let done = match asked {
                Asked::Ref(name) => self.serve_ref(repo, name, ui),
                Asked::Commit(commit) => self.serve_commit(repo, *commit, ui),
                Asked::Reference(reference) => self.serve_reference(repo, reference, ui),
                Asked::HeadWithTree(_) if self.kind == Kind::Server => continue,
                Asked::HeadWithTree(tree) => self.serve_head(repo, *tree, ui),
            };
            let Err(error) = done else { return done };
            last = Some(match (last, asked) {
                // That HEAD has another tree explains nothing by itself.
                (Some(first), Asked::HeadWithTree(_)) if first.what == error.what => first,
                (Some(first), Asked::HeadWithTree(_)) => first.detail(error.what),
                _ => error,
            });
        }
        Err(last.unwrap_or_else(|| Error::environment("nothing to fetch")))
    }

    fn serve_ref(&self, repo: &Path, name: &str, ui: &Ui) -> Result<Served> {
        self.fetch(repo, name, &[format!("{name}:{INCOMING}")], ui)?;
        Ok(Served::Ref(name.to_string()))
    }

    /// Fetches a commit by id. A server may refuse an id that is not the tip of a branch or a tag, with any message;
    /// on any failure, branches and tags are fetched, one of which may lead to the commit.
    fn serve_commit(&self, repo: &Path, commit: ObjectId, ui: &Ui) -> Result<Served> {
        let name = commit.to_string();
        if self.fetch(repo, &name, &[format!("{name}:{INCOMING}")], ui).is_err() {
            self.fetch_all(repo, ui)?;
            set_incoming(repo, commit).map_err(|_| {
                Error::environment("it has no such commit: no branch or tag there leads to it")
            })?;
        }
        Ok(Served::Commit)
    }

    fn serve_head(&self, repo: &Path, tree: ObjectId, ui: &Ui) -> Result<Served> {
        self.fetch(repo, "HEAD", &[format!("HEAD:{INCOMING}")], ui)?;
        match served_commit(repo)? {
            (_, served) if served == tree => Ok(Served::Commit),
            (_, served) => Err(Error::environment(format!("its HEAD is something else: tree {served}"))),
        }
    }

    /// A repository on this machine resolves the reference itself; any other remote is asked for the name, and its
    /// history is then walked.
    fn serve_reference(&self, repo: &Path, reference: &Reference, ui: &Ui) -> Result<Served> {
        if let Kind::Folder(folder) = &self.kind {
            return match find_in_folder(folder, reference)? {
                NamedTarget::Tag(name) => self.serve_ref(repo, &name, ui),
                NamedTarget::Commit(commit) => self.serve_commit(repo, commit, ui),
            };
        }
        let served = self.serve_name(repo, reference, ui)?;
        if reference.steps.is_empty() {
            return Ok(served);
        }
        if step_back(repo, &reference.steps).is_err() {
            // The commit may be in the part of the history that was left out.
            self.whole().serve_name(repo, reference, ui)?;
            step_back(repo, &reference.steps).map_err(|_| {
                Error::environment(format!("its history does not reach back to `{reference}`"))
            })?;
        }
        Ok(Served::Commit)
    }

    /// Tries a tag, then a branch, then an abbreviated id.
    fn serve_name(&self, repo: &Path, reference: &Reference, ui: &Ui) -> Result<Served> {
        let name = reference.name();
        if let Some(commit) = reference.full_id() {
            return self.serve_commit(repo, commit, ui);
        }
        if name == "HEAD" || name.starts_with("refs/") {
            return self.serve_ref(repo, name, ui);
        }
        let as_tag = self.serve_ref(repo, &format!("refs/tags/{name}"), ui);
        // A repository that can serve nothing at all gets no second request.
        let is_hopeless = as_tag.as_ref().is_err_and(|error| error.kind == ErrorKind::Usage);
        let named = match is_hopeless {
            true => return as_tag,
            false => as_tag.or_else(|_| self.serve_ref(repo, &format!("refs/heads/{name}"), ui)),
        };
        match (named, reference.short_id()) {
            (Err(_), Some(short)) => self.serve_short_id(repo, short, ui),
            (named, _) => named,
        }
    }

    /// No server resolves an abbreviated id, so all refs are fetched and searched.
    fn serve_short_id(&self, repo: &Path, short: &str, ui: &Ui) -> Result<Served> {
        self.fetch_all(repo, ui)?;
        let found = Repository::open_bare(repo).and_then(|opened| short_id::find(&opened, "refs/*", short));
        match found.map_err(unreadable)? {
            Ok(Some(commit)) => set_incoming(repo, commit).map(|()| Served::Commit).map_err(unreadable),
            Ok(None) => Err(Error::environment(format!("it has no tag, branch or commit `{short}`"))),
            Err(ambiguous) => Err(is_ambiguous(&ambiguous)),
        }
    }

    fn fetch_all(&self, repo: &Path, ui: &Ui) -> Result<()> {
        let refs = ["heads", "tags"].map(|kind| format!("refs/{kind}/*:refs/espalier/all/{kind}/*"));
        self.whole().fetch(repo, "all branches and tags", &refs, ui)
    }

    fn whole(&self) -> Remote {
        Remote { url: self.url.clone(), depth: Depth::Since(None), kind: self.kind.clone() }
    }

    /// Runs one `git fetch` of `refspecs`; `name` is for people. If the remote cannot exclude what the tag has, or
    /// nothing is left because the commit is older than the tag, the commit is fetched without history.
    pub fn fetch(&self, repo: &Path, name: &str, refspecs: &[String], ui: &Ui) -> Result<()> {
        let mut log = Vec::new();
        let fetched = self.fetch_to(&self.depth, repo, name, refspecs, ui, &mut log);
        let is_about_depth = log.iter().any(|line| line.contains("shallow"));
        if fetched.is_ok() || !(is_about_depth && matches!(self.depth, Depth::Since(Some(_)))) {
            return fetched;
        }
        self.fetch_to(&Depth::Commits(1), repo, name, refspecs, ui, &mut Vec::new())
    }

    fn fetch_to(
        &self,
        depth: &Depth,
        repo: &Path,
        name: &str,
        refspecs: &[String],
        ui: &Ui,
        log: &mut Vec<String>,
    ) -> Result<()> {
        let mut run =
            git(repo).args(["fetch", "--progress", "--no-tags", "--force", "--no-write-fetch-head"]);
        if matches!(self.kind, Kind::Folder(_)) {
            // Without it git takes nothing from a shallow clone, and exits with 0.
            run = run.arg("--update-shallow");
        }
        match depth {
            Depth::Commits(count) => run = run.arg(format!("--depth={count}")),
            Depth::Since(Some(tag)) => run = run.arg(format!("--shallow-exclude={tag}")),
            Depth::Since(None) if disk::exists(&repo.join("shallow")) => run = run.arg("--unshallow"),
            Depth::Since(None) => {}
        }
        let run = run.arg("--").arg(&self.url).args(refspecs);
        let words = run.words();
        let progress = &mut ui.progress(&format!("{} {name}", self.url), None, Unit::Bytes);
        let git = Download { program: "git", folder: repo, patience: PATIENCE, progress, speech: git_words };
        let status = git.run(run, log)?;
        succeeded("git", &words, status, log).map_err(|error| match &self.kind {
            _ if log.iter().any(|line| line.contains(OTHER_IDS)) => has_sha256_ids(&self.url),
            Kind::Folder(folder) if log.iter().any(|line| line.contains(LAZY)) => is_partial(folder),
            Kind::Bundle if is_sha256_bundle(Path::new(&self.url)) => has_sha256_ids(&self.url),
            Kind::Server => way_out(&self.url, log).into_iter().fold(error, Error::hint),
            Kind::Bundle | Kind::Folder(_) => error,
        })
    }
}

/// Whether the header of a bundle declares SHA-256 ids.
fn is_sha256_bundle(path: &Path) -> bool {
    let bundle = disk::read(path).unwrap_or_default();
    let mut head = bundle.split(|byte| *byte == b'\n').take(16);
    head.any(|line| line == b"@object-format=sha256")
}

/// git's message for a repository with another kind of ids.
const OTHER_IDS: &str = "mismatched algorithms";

/// git's message for a repository that lacks the objects that its filter excluded.
const LAZY: &str = "promisor remote";

/// Returns the error for a partial clone, which cannot serve a complete commit.
fn is_partial(folder: &Path) -> Error {
    let what =
        format!("`{}` is a partial clone: it lacks the objects that its filter excluded", folder.display());
    let folder = quoted(&folder.display().to_string());
    Error::environment(what).hint(format!(
        "complete it, then run the same command again: git -C {folder} fetch --refetch --no-filter"
    ))
}

/// Reduces git's output to messages: its counters ("Receiving objects: 12% (...)") are progress. A `%` alone is not a
/// counter: URLs contain it too.
fn git_words(line: &str) -> Option<String> {
    let bare = line.trim_start_matches("remote: ").trim_start();
    let counts = ["Enumerating objects:", "Counting objects:", "Compressing objects:", "Receiving objects:"];
    let is_count = counts.iter().any(|count| bare.starts_with(count))
        || ["Resolving deltas:", "Unpacking objects:", "Total "].iter().any(|count| bare.starts_with(count))
        || bare.contains("% (");
    let is_advice =
        line.starts_with("Please make sure you have the correct") || line == "and the repository exists.";
    (!is_count && !is_advice).then(|| line.to_string())
}

/// Returns a hint for a server that served nothing; `None` if git's own message has to suffice.
pub(in crate::sys) fn way_out(url: &str, log: &[String]) -> Option<String> {
    let text = log.join("\n").to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|words| text.contains(words));
    let alone = format!("git ls-remote {}", quoted(url));
    // The server may close the connection after this, which is not a failure of its own.
    if has(&["couldn't find remote ref"]) {
        return None;
    }
    if has(&[
        "authentication failed",
        "could not read username",
        "permission denied",
        "terminal prompts disabled",
    ]) {
        Some(format!("it wants a login: set up a key or a credential helper, then try it alone: {alone}"))
    } else if has(&[
        "could not resolve",
        "failed to connect",
        "couldn't connect",
        "timed out",
        "refused",
        "unreachable",
    ]) {
        Some(format!("check the address, the network and the proxy, then try it alone: {alone}"))
    } else if has(&[
        "early eof",
        "bad pack header",
        "rpc failed",
        "unexpected disconnect",
        "hung up unexpectedly",
        "connection reset",
    ]) {
        Some(
            "the server closed the connection: run the same command again, or use another source".to_string(),
        )
    } else if has(&["not found", "does not appear to be a git repository", "does not exist"]) {
        Some(format!("check the address: {alone}"))
    } else {
        None
    }
}

/// Goes `steps` back from the received commit.
fn step_back(repo: &Path, steps: &[Step]) -> std::result::Result<(), git2::Error> {
    let opened = Repository::open_bare(repo)?;
    let mut commit = opened.find_reference(INCOMING)?.peel_to_commit()?;
    for step in steps {
        match step {
            Step::FirstParents(count) => {
                for _ in 0..*count {
                    commit = commit.parent(0)?;
                }
            }
            Step::Parent(number) => commit = commit.parent(number - 1)?,
        }
    }
    set_incoming(repo, object_id(commit.id()))
}

/// Creates an empty bare repository, without the hooks of the user's template.
pub(in crate::sys) fn create_empty(repo: &Path) -> Result<()> {
    git(repo).args(["init", "--quiet", "--bare", "--template="]).arg(repo).success().map(drop)
}

/// Points [`INCOMING`] to a commit.
pub(in crate::sys) fn set_incoming(repo: &Path, commit: ObjectId) -> std::result::Result<(), git2::Error> {
    let repo = Repository::open_bare(repo)?;
    repo.find_commit(oid(commit))?;
    repo.reference(INCOMING, oid(commit), true, "espalier").map(drop)
}

/// Returns the received commit and its tree.
pub(in crate::sys) fn served_commit(quarantine: &Path) -> Result<(ObjectId, ObjectId)> {
    let commit = Repository::open_bare(quarantine).and_then(|repo| {
        let commit = repo.find_reference(INCOMING)?.peel_to_commit()?;
        Ok((object_id(commit.id()), object_id(commit.tree_id())))
    });
    commit.map_err(|error| {
        Error::environment("the fetched object is not a commit").detail(error.message().to_string())
    })
}

/// Whether the received history ends before it reaches `tree`, the pin's, although it has more than one commit: those
/// that it has must not be taken for all commits since the pin. Only a shallow clone sends such a history.
pub(in crate::sys) fn is_cut_off(quarantine: &Path, tree: ObjectId) -> Result<bool> {
    if !disk::exists(&quarantine.join("shallow")) {
        return Ok(false);
    }
    reaches_or_is_alone(quarantine, tree).map(|is_fine| !is_fine).map_err(unreadable)
}

fn reaches_or_is_alone(quarantine: &Path, tree: ObjectId) -> std::result::Result<bool, git2::Error> {
    // `open_bare` does not read the list of commits whose parents are missing.
    let flags = RepositoryOpenFlags::BARE | RepositoryOpenFlags::NO_SEARCH;
    let repo = Repository::open_ext(quarantine, flags, std::iter::empty::<&Path>())?;
    let mut walk = repo.revwalk()?;
    walk.push_ref(INCOMING)?;
    let mut commits = 0;
    for id in walk {
        commits += 1;
        if repo.find_commit(id?)?.tree_id() == oid(tree) {
            return Ok(true);
        }
    }
    Ok(commits < 2)
}

#[cfg(test)]
mod tests {
    use super::{git_words, way_out};

    #[test]
    fn counts_are_no_words() {
        for line in [
            "remote: Enumerating objects: 11, done.",
            "remote: Counting objects:  12% (1/8)",
            "Receiving objects: 100% (11/11), done.",
            "remote: Total 11 (delta 0), reused 0 (delta 0), pack-reused 0",
            "Updating files:  50% (1/2)",
        ] {
            assert_eq!(git_words(line), None, "{line}");
        }
        for line in ["fatal: early EOF", "fatal: repository 'https://x.org/a%20b' not found", "remote: no"] {
            assert_eq!(git_words(line).as_deref(), Some(line));
        }
    }

    #[test]
    fn the_hint_depends_on_the_cause() {
        let way = |line: &str| way_out("https://x.org/a b", &[line.to_string()]).unwrap_or_default();
        assert_eq!(
            way("fatal: unable to access: Could not resolve host: x.org"),
            "check the address, the network and the proxy, then try it alone: git ls-remote 'https://x.org/a b'"
        );
        assert!(way("fatal: could not read Username for x: terminal prompts disabled").contains("login"));
        assert!(way("fatal: repository 'x' not found").starts_with("check the address: git ls-remote"));
        assert!(way("fatal: early EOF").starts_with("the server closed the connection"));
        assert_eq!(way("fatal: couldn't find remote ref refs/tags/v9"), "");
        assert_eq!(way("fatal: couldn't find remote ref x\nfatal: the remote end hung up unexpectedly"), "");
    }
}
