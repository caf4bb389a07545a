//! A fork as a range of commits of a repository on this machine, or at a URL.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use espalier_series::{ObjectId, lossy};

use super::import_repo::ImportRepo;
use crate::config::pins::NewSource;
use crate::config::reference::Reference;
use crate::error::{Error, Kind, Result};
use crate::sys::git::command::git;
use crate::sys::git::ids::object_id;
use crate::sys::machine::disk;
use crate::sys::machine::watched::succeeded;
use crate::sys::upstream::fetch_git::{Depth, Remote, way_out};
use crate::sys::upstream::named_commit::{
    commit_in, git_dir_of, has_sha256_ids, is_sha256, refuse_no_repository,
};
use crate::ui::Ui;

/// The location of a fork.
pub struct ForkPlace {
    /// The location as git receives it.
    from: String,
    /// The location as a path, if it is one.
    path: Option<PathBuf>,
    refs: BTreeMap<String, ObjectId>,
}

/// A commit of the fork, and the request that fetches it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForkCommitRequest {
    /// The name that the user gave.
    pub name: String,
    /// A full ref name or the commit's id.
    pub wanted: String,
}

impl ForkPlace {
    /// Asks the repository or bundle `from` for its refs. A path is relative to `root`.
    pub fn look(root: &Path, from: &str, offline: bool, ui: &Ui) -> Result<ForkPlace> {
        let is_url = from.contains("://") || from.starts_with("git@");
        if is_url && offline {
            return Err(Error::environment(format!("`{from}` was not contacted because of `--offline`"))
                .hint("name a clone on this machine: --from PATH"));
        }
        if from.starts_with('-') {
            return Err(Error::usage(format!("`{from}` is not a repository")));
        }
        let path = (!is_url).then(|| root.join(from));
        if let Some(path) = path.as_deref().filter(|path| !disk::exists(path)) {
            return Err(Error::usage(format!("there is no repository `{}`", path.display()))
                .hint("name a repository, a bundle or a URL: --from PATH|URL"));
        }
        // Canonical, without `..`: the path is written into `pins.toml`.
        let path = path.map(|path| path.canonicalize().unwrap_or(path));
        if let Some(folder) = path.as_deref().filter(|path| path.is_dir()) {
            let hint = "name a repository, a bundle or a URL: --from PATH|URL";
            refuse_no_repository(folder).map_err(|error| Error { kind: Kind::Usage, ..error }.hint(hint))?;
        }
        let from = path.as_ref().map_or(from.to_string(), |path| path.display().to_string());
        ui.status("Looking", format!("at the refs of {from}"));
        let refs = refs_of(&from)?;
        Ok(ForkPlace { from, path, refs })
    }

    /// Returns the location as `pins.toml` stores it.
    pub fn source(&self) -> NewSource {
        match &self.path {
            Some(path) => NewSource::Path(path.display().to_string()),
            None => NewSource::Git(self.from.clone()),
        }
    }

    /// Returns a natural name for the upstream: the last component, without `.git`.
    pub fn last_part(&self) -> String {
        let trimmed = self.from.trim_end_matches('/');
        let last = trimmed.rsplit(['/', ':']).next().unwrap_or(trimmed);
        last.trim_end_matches(".git").to_string()
    }

    /// Resolves `name` there: a tag, a branch, `HEAD`, an id; in a repository on this machine also with steps back,
    /// or an abbreviated id.
    pub fn find(&self, name: &str) -> Result<ForkCommitRequest> {
        let reference = Reference::parse(name)?;
        let named = |wanted: String| ForkCommitRequest { name: name.to_string(), wanted };
        let found = match self.path.as_deref().filter(|path| path.is_dir()) {
            Some(folder) => commit_in(&git_dir_of(folder), name)?.map(|id| id.to_string()),
            None => {
                let tries =
                    ["", "refs/", "refs/tags/", "refs/heads/"].map(|prefix| format!("{prefix}{name}"));
                let known = tries.into_iter().find(|full| self.refs.contains_key(full));
                known.or_else(|| reference.full_id().map(|id| id.to_string()))
            }
        };
        found.map(named).ok_or_else(|| {
            let error = Error::usage(format!("`{}` has no `{name}`", self.from));
            match self.path.as_deref().filter(|path| path.is_dir()) {
                Some(folder) => error.hint(format!("git -C {} log --oneline --all", folder.display())),
                None => error
                    .hint(format!("name a branch, a tag or a full commit id: git ls-remote {}", self.from)),
            }
        })
    }

    /// Returns the tags that point at `commit`, by name.
    pub fn tags_at(&self, commit: ObjectId) -> Vec<&str> {
        let tags = self.refs.iter().filter(|(_, id)| **id == commit);
        tags.filter_map(|(name, _)| name.strip_prefix("refs/tags/")).collect()
    }

    /// Fetches `commits` into `repo`, alone or with all of their history, and returns their ids.
    pub fn fetch(
        &self,
        repo: &ImportRepo,
        commits: &[&ForkCommitRequest],
        history: History,
        ui: &Ui,
    ) -> Result<Vec<ObjectId>> {
        let to = |at: usize| format!("refs/espalier/import/{at}");
        let wanted: Vec<String> =
            commits.iter().enumerate().map(|(at, named)| format!("+{}:{}", named.wanted, to(at))).collect();
        let names: Vec<&str> = commits.iter().map(|named| named.name.as_str()).collect();
        ui.status("Fetching", format!("{} from {}", names.join(" and "), self.from));
        let depth = if history == History::None { Depth::Commits(1) } else { Depth::Since(None) };
        let remote = match &self.path {
            None => Remote::server(&self.from, &depth),
            Some(path) if path.is_dir() => Remote::folder(path, &depth),
            Some(path) => Remote::bundle(path),
        };
        remote.fetch(repo.git_dir(), &names.join(" "), &wanted, ui)?;
        let read = |(at, named): (usize, &&ForkCommitRequest)| {
            let found = repo.repository().find_reference(&to(at)).and_then(|found| found.peel_to_commit());
            found.map(|commit| object_id(commit.id())).map_err(|_| {
                Error::environment(format!("`{}` sent no commit for `{}`", self.from, named.name))
                    .hint("if it is a shallow clone: git fetch --unshallow, there")
            })
        };
        commits.iter().enumerate().map(read).collect()
    }
}

/// The part of a commit's history that is fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum History {
    /// None.
    None,
    /// All.
    All,
}

/// Returns every ref of the repository or bundle `from` with the commit that it points at; for an annotated tag, the
/// commit that it refers to.
fn refs_of(from: &str) -> Result<BTreeMap<String, ObjectId>> {
    let nowhere = Path::new("/dev/null");
    let run = git(nowhere).args(["ls-remote", "--quiet", "--"]).arg(from).without_locks();
    let words = run.words();
    let found = run.finish()?;
    let errors: Vec<String> = found.stderr.lines().map(str::to_string).collect();
    succeeded("git", &words, found.status, &errors)
        .map_err(|error| way_out(from, &errors).into_iter().fold(error, Error::hint))?;
    let stdout = lossy(&found.stdout);
    if stdout.lines().filter_map(|line| line.split('\t').next()).any(is_sha256) {
        return Err(has_sha256_ids(from));
    }
    Ok(stdout.lines().filter_map(read_ref).collect())
}

/// git lists the target of a tag after the tag, so the target is the entry that remains in a map.
fn read_ref(line: &str) -> Option<(String, ObjectId)> {
    let (id, name) = line.split_once('\t')?;
    Some((name.trim_end_matches("^{}").to_string(), id.parse().ok()?))
}
