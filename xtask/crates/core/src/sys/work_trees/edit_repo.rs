//! The repository in which a person edits a variant's series: real commits and files, for any git tool.
//!
//! Nothing in this module touches the user's work except [`EditRepo::set_ref`], which moves only our own refs.

use std::path::{Path, PathBuf};

use espalier_series::ObjectId;
use git2::{Repository, RepositoryState};

use super::edit_ignored::keep_out;
use crate::error::{Error, Result};
use crate::next_command::git_in;
use crate::sys::git::command::git;
use crate::sys::git::commit_text::{self, CommitText};
use crate::sys::git::ids::{object_id, oid};
use crate::sys::git::made_objects::write_made;
use crate::sys::git::store::Store;
use crate::sys::machine::{disk, owned};

/// Our refs: the commits that this tool created, and the boundaries between the pin, the parents' series and the
/// variant's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marks {
    /// The commit of the pinned tree.
    pub pin: ObjectId,
    /// The commit that the variant's own series starts from: the last one of the parents' series, or the pin's.
    pub base: ObjectId,
    /// The commit that results from the variant's series on disk, the same on every machine.
    pub series: ObjectId,
    /// Tip of the branch when it last matched the series on disk.
    pub made: ObjectId,
}

impl Marks {
    /// Returns each commit with the full name of its ref.
    pub fn refs(&self) -> [(String, ObjectId); 5] {
        let Marks { pin, base, series, made } = *self;
        // No other series is offered.
        [("pin", pin), (BASE, base), ("series", series), ("made", made), (NEXT, series)]
            .map(|(name, id)| (format!("{MARKS}{name}"), id))
    }
}

/// Prefix of our refs.
pub const MARKS: &str = "refs/espalier/edit/";

/// Name of our ref for [`Marks::base`].
pub const BASE: &str = "base";

/// Name of that ref in repositories that earlier versions created. It stays there: the settings of the branch name it.
const OLD_BASE: &str = "border";

/// An operation that a git command left unfinished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unfinished {
    /// The operation, such as `a rebase`.
    pub name: &'static str,
    /// The arguments with which git ends it.
    pub end: &'static str,
}

/// An edit repository.
pub struct EditRepo {
    repo: Repository,
    folder: PathBuf,
    branch: String,
}

/// One commit on the branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditCommit {
    /// Its id.
    pub id: ObjectId,
    /// Its tree.
    pub tree: ObjectId,
    /// Its parents.
    pub parents: Vec<ObjectId>,
    /// Tree of its first parent.
    pub parent_tree: Option<ObjectId>,
    /// The first line of its message.
    pub subject: String,
    /// Its message.
    pub message: String,
    /// Fields of author and message that are neither UTF-8 nor in a charset that the commit names.
    pub not_utf8: Vec<String>,
}

impl EditCommit {
    /// Describes the commit for messages.
    pub fn describe(&self) -> String {
        format!("{} ({})", short(self.id), self.subject)
    }
}

/// Returns the first digits of an id, as git abbreviates it.
pub fn short(id: ObjectId) -> String {
    id.to_string().chars().take(12).collect()
}

impl EditRepo {
    /// Opens the repository of `variant` at `folder`; `None` if there is none.
    pub fn open(folder: &Path, variant: &str) -> Result<Option<EditRepo>> {
        if !disk::exists(folder) {
            return Ok(None);
        }
        let repo = Repository::open(folder).map_err(|error| unreadable(folder, variant, &error))?;
        Ok(Some(EditRepo { repo, folder: folder.to_path_buf(), branch: branch_of(variant) }))
    }

    /// Returns the folder of its files.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the folder of its objects and refs.
    pub fn git_dir(&self) -> PathBuf {
        self.folder.join(".git")
    }

    /// Returns the start of a git command in this repository, for hints.
    pub fn git_words(&self) -> String {
        git_in(&self.folder.display().to_string())
    }

    /// Returns the branch that is exported.
    pub fn branch(&self) -> &str {
        &self.branch
    }

    /// Returns the operation that a git command left unfinished.
    pub fn unfinished(&self) -> Option<Unfinished> {
        let (name, end) = match self.repo.state() {
            RepositoryState::Clean => return None,
            RepositoryState::Merge => ("a merge", "merge --continue    # or --abort"),
            RepositoryState::Revert | RepositoryState::RevertSequence => {
                ("a revert", "revert --continue    # or --abort")
            }
            RepositoryState::CherryPick | RepositoryState::CherryPickSequence => {
                ("a cherry-pick", "cherry-pick --continue    # or --abort")
            }
            // It changes nothing that could be continued or aborted.
            RepositoryState::Bisect => ("a bisect", "bisect reset"),
            RepositoryState::Rebase
            | RepositoryState::RebaseInteractive
            | RepositoryState::RebaseMerge
            | RepositoryState::ApplyMailboxOrRebase => ("a rebase", "rebase --continue    # or --abort"),
            RepositoryState::ApplyMailbox => ("an am", "am --continue    # or --abort"),
        };
        Some(Unfinished { name, end })
    }

    /// Returns what is checked out instead of the exported branch; `None` if the branch is.
    pub fn elsewhere(&self) -> Option<String> {
        let head = self.repo.find_reference("HEAD").ok();
        let target = head.as_ref().and_then(|head| head.symbolic_target().ok().flatten());
        let ours = format!("refs/heads/{}", self.branch);
        if target == Some(ours.as_str()) {
            return None;
        }
        let name = target.map_or("no branch", |name| name.strip_prefix("refs/heads/").unwrap_or(name));
        Some(name.to_string())
    }

    /// Returns the last commit of the branch; `None` if the branch was deleted.
    pub fn tip(&self) -> Option<ObjectId> {
        self.ref_target(&format!("refs/heads/{}", self.branch))
    }

    /// Returns our refs; `None` if one of them is missing.
    pub fn marks(&self) -> Option<Marks> {
        Some(Marks {
            pin: self.mark("pin")?,
            base: self.mark(BASE)?,
            series: self.mark("series")?,
            made: self.mark("made")?,
        })
    }

    /// Returns the commit that a ref points to, given by its full name; `None` if there is no such ref.
    pub fn ref_target(&self, name: &str) -> Option<ObjectId> {
        self.repo.refname_to_id(&self.stored(name)).ok().map(object_id)
    }

    /// Returns the name under which this repository has a ref, given by its full name. A record of a change, which an
    /// undo reads, may have either name of the base.
    fn stored(&self, name: &str) -> String {
        match name.strip_prefix(MARKS) {
            Some(BASE | OLD_BASE) => format!("{MARKS}{}", self.base_name()),
            _ => name.to_string(),
        }
    }

    /// Returns the name of the ref for [`Marks::base`] in this repository, below [`MARKS`].
    pub fn base_name(&self) -> &'static str {
        let is_old = self.repo.refname_to_id(&format!("{MARKS}{OLD_BASE}")).is_ok();
        if is_old { OLD_BASE } else { BASE }
    }

    /// Whether the repository has a commit, reachable or not.
    pub fn has_commit(&self, id: ObjectId) -> bool {
        self.repo.find_commit(oid(id)).is_ok()
    }

    /// Moves one of our refs, given by its full name.
    pub fn set_ref(&self, name: &str, id: ObjectId) -> Result<()> {
        let set = self.repo.reference(&self.stored(name), oid(id), true, "espalier");
        set.map(drop).map_err(|error| crate::sys::git::store::write_failed(&error))
    }

    /// Sets all marks.
    pub fn set_marks(&self, marks: &Marks) -> Result<()> {
        marks.refs().iter().try_for_each(|(name, id)| self.set_ref(name, *id))
    }

    /// Writes the series on disk, whose last commit is `series`, as `espalier/edit/next`: `git rebase` can then move
    /// the user's commits onto it.
    pub fn offer_series(&self, store: &Store, series: ObjectId) -> Result<()> {
        self.write_commit(store, series)?;
        self.set_ref(&format!("{MARKS}{NEXT}"), series)
    }

    /// Returns the commit that the user's own commits follow: the last series that was offered, if they were rebased
    /// onto it, or the one that the repository was created from.
    pub fn base_of_own(&self) -> Option<ObjectId> {
        let next = self.mark(NEXT).filter(|next| self.is_rebased_onto(*next));
        next.or_else(|| self.mark("made"))
    }

    /// Whether the branch still contains `commit`.
    pub fn has(&self, commit: ObjectId) -> bool {
        self.tip().is_some_and(|tip| self.contains(tip, commit))
    }

    /// Whether the branch was rebased onto `series`, which was offered. That the branch contains it is not enough: it
    /// also contains a series that only lost its last patches, together with the commits of those.
    pub fn is_rebased_onto(&self, series: ObjectId) -> bool {
        let Some(made) = self.mark("made") else { return false };
        self.mark(NEXT) == Some(series)
            && self.has(series)
            && (self.contains(series, made) || !self.has(made))
    }

    /// Whether `ancestor` is `commit` or one of its ancestors.
    fn contains(&self, commit: ObjectId, ancestor: ObjectId) -> bool {
        commit == ancestor || self.repo.graph_descendant_of(oid(commit), oid(ancestor)).unwrap_or(false)
    }

    fn mark(&self, name: &str) -> Option<ObjectId> {
        self.ref_target(&format!("{MARKS}{name}"))
    }

    /// Writes a commit that was created in memory, with every object that it needs and the store does not have on
    /// disk.
    pub fn write_commit(&self, store: &Store, commit: ObjectId) -> Result<()> {
        let odb = self.repo.odb().map_err(|error| crate::sys::git::store::write_failed(&error))?;
        write_made(store, commit, &odb)
    }

    /// Points the branch at `marks.made`, and sets the marks.
    pub(super) fn start_at(&self, marks: &Marks) -> Result<()> {
        let branch = format!("refs/heads/{}", self.branch);
        self.set_ref(&branch, marks.made)?;
        self.set_marks(marks)
    }

    /// Returns refs that the user created: branches, tags, the stash.
    pub fn own_refs(&self) -> Result<Vec<String>> {
        let fail = |error: git2::Error| Error::environment(error.message().to_string());
        let mut found = Vec::new();
        for name in self.repo.references().map_err(fail)?.names() {
            let name = name.map_err(fail)?;
            if !name.starts_with(MARKS) && name != format!("refs/heads/{}", self.branch) {
                found.push(name.strip_prefix("refs/").unwrap_or(name).to_string());
            }
        }
        Ok(found)
    }

    /// Returns files that differ from the last commit, in the index or on disk, or are untracked, as far as the user
    /// has not hidden them from git: see [`super::edit_hidden`]. Runs git, which reads every format of its index.
    pub fn changed_files(&self) -> Result<Vec<String>> {
        keep_out(&self.git_dir())?;
        let stdout = self
            .git()
            .args(COMPARE_FULLY.iter().flat_map(|setting| ["-c", *setting]))
            .args(["status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=normal"])
            .arg("--ignore-submodules=none")
            .success()?;
        let lines = stdout.split(|byte| *byte == 0).filter(|line| line.len() > 3);
        Ok(lines.map(|line| espalier_series::lossy(&line[3..]).into_owned()).collect())
    }

    /// Returns the commits from the one after `base` to `tip`, oldest first, along first parents. If `base` is not on
    /// that path, it stops early, at a commit that does not have exactly one parent.
    pub fn commits_between(&self, base: ObjectId, tip: ObjectId) -> Result<Vec<EditCommit>> {
        let mut commits = Vec::new();
        let mut at = tip;
        while at != base {
            let commit = self.read_commit(at)?;
            let next = if commit.parents.len() == 1 { commit.parents.first().copied() } else { None };
            commits.push(commit);
            match next {
                Some(parent) => at = parent,
                None => break,
            }
        }
        commits.reverse();
        Ok(commits)
    }

    fn read_commit(&self, id: ObjectId) -> Result<EditCommit> {
        let fail = |error: git2::Error| {
            Error::environment(format!("the commit {id} of the edit repository cannot be read"))
                .detail(error.message().to_string())
        };
        let commit = self.repo.find_commit(oid(id)).map_err(fail)?;
        let CommitText { message, not_utf8, .. } = commit_text::read(|| self.git(), &commit)?;
        Ok(EditCommit {
            id,
            tree: object_id(commit.tree_id()),
            parents: commit.parent_ids().map(object_id).collect(),
            parent_tree: commit.parent(0).ok().map(|parent| object_id(parent.tree_id())),
            subject: message.trim_start().lines().next().unwrap_or_default().trim().to_string(),
            message,
            not_utf8,
        })
    }

    /// Sets, or clears, the message that `git commit` proposes in this repository only. The file is written in
    /// `scratch`, on the same file system, and renamed into place.
    pub fn offer_message(&self, scratch: &Path, message: Option<&str>) -> Result<()> {
        let path = self.git_dir().join(OFFERED);
        if let Some(message) = message {
            let aside = disk::scratch_folder(scratch, "offer")?;
            let whole = aside.path().join(OFFERED);
            disk::write_atomically(&whole, message.as_bytes())?;
            owned::rename(&whole, &path)?;
            let value = format!(".git/{OFFERED}");
            return self.change_settings(scratch, |config| config.set_str("commit.template", &value));
        }
        if disk::exists(&path) {
            self.change_settings(scratch, |config| match config.remove("commit.template") {
                // The user may have removed the setting already.
                Err(error) if error.code() != git2::ErrorCode::NotFound => Err(error),
                _ => Ok(()),
            })?;
            disk::remove_file(&path)?;
        }
        Ok(())
    }

    /// Changes a copy of the settings, which then replaces them. If they were changed in place, a killed run would
    /// leave git's lock file, and no git could change a setting here from then on.
    fn change_settings(
        &self,
        scratch: &Path,
        change: impl FnOnce(&mut git2::Config) -> std::result::Result<(), git2::Error>,
    ) -> Result<()> {
        let settings = self.git_dir().join("config");
        let aside = disk::scratch_folder(scratch, "settings")?;
        let copy = aside.path().join("config");
        disk::write_atomically(&copy, &disk::read(&settings)?)?;
        let changed = git2::Config::open(&copy).and_then(|mut config| change(&mut config));
        changed.map_err(|error| crate::sys::git::store::write_failed(&error))?;
        owned::rename(&copy, &settings)
    }

    /// Returns a `git` command on this repository, in its work tree: in a folder of it, git would list only that one.
    pub(super) fn git(&self) -> crate::sys::machine::process::Run {
        git(&self.git_dir())
            .current_folder(&self.folder)
            .arg(format!("--work-tree={}", self.folder.display()))
    }
}

/// Name of our ref with the series that the user's commits can be rebased onto.
const NEXT: &str = "next";

/// Settings that override those of the repository with which `git status` takes a changed file for an unchanged one.
const COMPARE_FULLY: [&str; 4] =
    ["core.checkStat=default", "core.ignoreStat=false", "core.trustctime=true", "core.untrackedCache=false"];

const OFFERED: &str = "espalier-commit-template";

/// Returns the branch on which `variant` is edited.
pub fn branch_of(variant: &str) -> String {
    format!("edit/{variant}")
}

fn unreadable(folder: &Path, variant: &str, error: &git2::Error) -> Error {
    Error::environment(format!("`{}` is not a git repository that can be read", folder.display()))
        .detail(error.message().to_string())
        .hint("move it elsewhere, if anything in it is needed")
        .hint(format!("discard it: cargo xtask edit {variant} --discard"))
}
