//! The repository of one rebase: it borrows the store's objects and keeps the new commits to itself.

use std::path::{Path, PathBuf};

use git2::{Repository, RepositoryInitOptions};

use crate::error::{Error, Result};
use crate::series::{ObjectId, ObjectKind};
use crate::series::{Patch, authorship};
use crate::sys::git::command::convert_nothing;
use crate::sys::git::store::{Store, commit_text, commit_text_by, write_failed};
use crate::sys::machine::disk;

/// From `objects` of a work tree two folders below `target/espalier/` to the store's: a path that stays
/// right when the whole project moves.
const BORROWED: &str = "../../../../../store.git/objects\n";

/// A repository with a work tree.
pub struct RebaseRepo {
    /// Its objects, and through them the store's.
    pub store: Store,
    work: PathBuf,
}

impl RebaseRepo {
    /// Makes one at `folder/work`, where `folder` is two below `target/espalier/`. No file is checked out.
    pub fn create(folder: &Path) -> Result<RebaseRepo> {
        let work = folder.join("work");
        disk::create_folder(&work)?;
        let mut options = RepositoryInitOptions::new();
        options.external_template(false).initial_head("upstream");
        let repo = Repository::init_opts(&work, &options).map_err(|error| write_failed(&error))?;
        // What a person checks out here must be upstream's bytes, whatever they have set for themselves.
        let mut config = repo.config().map_err(|error| write_failed(&error))?;
        config.set_str("core.autocrlf", "false").map_err(|error| write_failed(&error))?;
        // What a person solves is remembered; that they looked at it is for them to say.
        config.set_str("rerere.enabled", "true").map_err(|error| write_failed(&error))?;
        config.set_str("rerere.autoUpdate", "false").map_err(|error| write_failed(&error))?;
        disk::write_atomically(&work.join(".git/objects/info/alternates"), BORROWED.as_bytes())?;
        convert_nothing(&work.join(".git"))?;
        RebaseRepo::open(folder)
    }

    /// The one at `folder/work`.
    pub fn open(folder: &Path) -> Result<RebaseRepo> {
        let work = folder.join("work");
        if !disk::exists(&work.join(".git/HEAD")) {
            return Err(Error::surroundings(format!("`{}` is no git work tree any more", work.display()))
                .hint("cargo xtask rebase --abort    # nothing in your project has changed"));
        }
        Ok(RebaseRepo { store: Store::open(&work.join(".git"))?, work })
    }

    /// The work tree.
    pub fn work(&self) -> &Path {
        &self.work
    }

    /// `.git` of the work tree.
    pub fn git_dir(&self) -> PathBuf {
        self.work.join(".git")
    }

    /// A commit without parents for upstream's tree: what the series stands on.
    pub fn commit_upstream(&self, name: &str, tree: ObjectId) -> Result<ObjectId> {
        let text = commit_text(tree, None, &format!("Upstream {name}\n\nTree: {tree}\n"));
        self.store.write(ObjectKind::Commit, text.as_bytes())
    }

    /// A patch as a commit: its author, date and message, and `tree`.
    pub fn commit_patch(&self, patch: &Patch, tree: ObjectId, parent: ObjectId) -> Result<ObjectId> {
        let author = authorship(patch).map(|author| author.ident()).map_err(|why| {
            Error::usage(format!("`{}` cannot become a commit: {why}", patch.name))
                .hint("write it anew with git: docs/patches.md says how")
        })?;
        self.store.write_tree(tree)?;
        let text = commit_text_by(&author, &tree.to_string(), Some(parent), &patch.message());
        self.store.write(ObjectKind::Commit, text.as_bytes())
    }
}
