//! The repository of one rebase: it borrows the store's objects and keeps the new commits.

use std::path::{Path, PathBuf};

use espalier_series::{ObjectId, ObjectKind};
use espalier_series::{Patch, authorship};
use git2::{Repository, RepositoryInitOptions};

use crate::error::{Error, Result};
use crate::sys::git::command::convert_nothing;
use crate::sys::git::store::{Store, commit_text, commit_text_by, write_failed};
use crate::sys::machine::{disk, owned};

/// Path from `objects` of a work tree two folders below `target/espalier/` to the store's: relative, so that it stays
/// valid when the whole project is moved.
const BORROWED: &str = "../../../../../store.git/objects\n";

/// Name of the tag of the automatic result of the patch at which the rebase waits: `git checkout automatic -- FILE`
/// restores a file as it was handed over.
pub const AUTOMATIC: &str = "automatic";

/// Name of the tag of the sibling from which the work on its patch starts: `git diff sibling` shows the change that was
/// merged into it.
pub const SIBLING: &str = "sibling";

/// A repository with a work tree.
pub struct RebaseRepo {
    /// Its objects, and through them the store's.
    pub store: Store,
    work: PathBuf,
}

impl RebaseRepo {
    /// Creates a repository at `folder/work`, where `folder` is two levels below `target/espalier/`. No file is
    /// checked out.
    pub fn create(folder: &Path) -> Result<RebaseRepo> {
        let work = folder.join("work");
        disk::create_folder(&work)?;
        let mut options = RepositoryInitOptions::new();
        options.external_template(false).initial_head("upstream");
        let repo = Repository::init_opts(&work, &options).map_err(|error| write_failed(&error))?;
        // Files that are checked out here must have upstream's bytes, whatever the user's configuration says.
        let mut config = repo.config().map_err(|error| write_failed(&error))?;
        config.set_str("core.autocrlf", "false").map_err(|error| write_failed(&error))?;
        // git records the user's resolutions, but does not stage them by itself: reviewing them is up to the user.
        config.set_str("rerere.enabled", "true").map_err(|error| write_failed(&error))?;
        config.set_str("rerere.autoUpdate", "false").map_err(|error| write_failed(&error))?;
        disk::write_atomically(&work.join(".git/objects/info/alternates"), BORROWED.as_bytes())?;
        convert_nothing(&work.join(".git"))?;
        RebaseRepo::open(folder)
    }

    /// Opens the repository at `folder/work`.
    pub fn open(folder: &Path) -> Result<RebaseRepo> {
        let work = folder.join("work");
        if !disk::exists(&work.join(".git/HEAD")) {
            return Err(Error::environment(format!("`{}` is no longer a git work tree", work.display()))
                .hint("cargo xtask rebase --abort    # nothing in your project has changed"));
        }
        Ok(RebaseRepo { store: Store::open(&work.join(".git"))?, work })
    }

    /// Returns the work tree.
    pub fn work(&self) -> &Path {
        &self.work
    }

    /// Returns `.git` of the work tree.
    pub fn git_dir(&self) -> PathBuf {
        self.work.join(".git")
    }

    /// Writes a commit without parents for upstream's tree: the base of the series.
    pub fn commit_upstream(&self, name: &str, tree: ObjectId) -> Result<ObjectId> {
        let text = commit_text(tree, None, &format!("Upstream {name}\n\nTree: {tree}\n"));
        self.store.write(ObjectKind::Commit, text.as_bytes())
    }

    /// Writes a patch as a commit: its author, date and message, and `tree`.
    pub fn commit_patch(&self, patch: &Patch, tree: ObjectId, parent: ObjectId) -> Result<ObjectId> {
        let author = authorship(patch).map(|author| author.ident()).map_err(|why| {
            Error::usage(format!("`{}` cannot become a commit: {why}", patch.name))
                .hint("write it again with git: docs/guides/change-a-patch.md says how")
        })?;
        self.store.write_tree(tree)?;
        let text = commit_text_by(&author, &tree.to_string(), Some(parent), &patch.message());
        self.store.write(ObjectKind::Commit, text.as_bytes())
    }

    /// Writes `tree`, the automatic result of a patch on top of `head`, as a commit, and moves the tag [`AUTOMATIC`] to
    /// it.
    pub fn tag_automatic(&self, tree: ObjectId, head: ObjectId) -> Result<()> {
        self.tag(AUTOMATIC, (tree, head), "The automatic result\n")
    }

    /// Writes `tree`, that of the sibling of a patch on top of `head`, as a commit, and moves the tag [`SIBLING`] to
    /// it; `None` removes the tag.
    pub fn tag_sibling(&self, tree: Option<ObjectId>, head: ObjectId) -> Result<()> {
        match tree {
            Some(tree) => self.tag(SIBLING, (tree, head), "The sibling\n"),
            None => disk::remove_file(&self.git_dir().join("refs/tags").join(SIBLING)),
        }
    }

    fn tag(&self, name: &str, (tree, head): (ObjectId, ObjectId), message: &str) -> Result<()> {
        self.store.write_tree(tree)?;
        let text = commit_text(tree, Some(head), message);
        let commit = self.store.write(ObjectKind::Commit, text.as_bytes())?;
        let tags = self.git_dir().join("refs/tags");
        // Left by a run that was killed in this function; we hold the run lock. A program that is killed while it holds
        // git's own lock of the tag would be in the way of the next run, so the file is replaced without it.
        owned::sweep_temporary(&tags)?;
        disk::write_atomically(&tags.join(name), format!("{commit}\n").as_bytes())
    }
}
