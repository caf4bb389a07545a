//! The repository of one import: bare, in scratch space, removed with the run. It borrows the store's objects; what
//! was fetched from elsewhere, and what was derived from it, stays in this repository.

use std::path::{Path, PathBuf};

use espalier_series::{ObjectId, ObjectKind};
use git2::Repository;
use tempfile::TempDir;

use crate::error::Result;
use crate::sys::git::command::git;
use crate::sys::git::made_objects::write_made;
use crate::sys::git::store::{Store, commit_text_by, write_failed};
use crate::sys::machine::disk;
use crate::sys::machine::process::Run;

/// The repository.
pub struct ImportRepo {
    /// Its objects, and through them those of the project's store.
    pub store: Store,
    git_dir: PathBuf,
    _folder: TempDir,
}

impl ImportRepo {
    /// Creates a repository below `scratch` that borrows from `store`.
    pub fn create(scratch: &Path, store: &Store) -> Result<ImportRepo> {
        let folder = disk::scratch_folder(scratch, "import")?;
        let git_dir = folder.path().join("import.git");
        Repository::init_bare(&git_dir).map_err(|error| write_failed(&error))?;
        let borrowed = std::path::absolute(store.path().join("objects"))
            .map_err(|error| disk::explain("look at", store.path(), &error))?;
        let borrowed = format!("{}\n", borrowed.display());
        disk::write_atomically(&git_dir.join("objects/info/alternates"), borrowed.as_bytes())?;
        Ok(ImportRepo { store: Store::open(&git_dir)?, git_dir, _folder: folder })
    }

    /// Returns the folder of its objects and refs.
    pub fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    /// Creates a folder beside it for the output of one step.
    pub fn scratch(&self, purpose: &str) -> Result<TempDir> {
        disk::scratch_folder(self.git_dir.parent().unwrap_or(&self.git_dir), purpose)
    }

    /// Returns a git command here that ignores all user configuration: the result must not depend on the machine.
    pub(super) fn git(&self) -> Run {
        git(&self.git_dir).env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null")
    }

    /// Returns the repository, for what only libgit2 reads well.
    pub(super) fn repository(&self) -> &Repository {
        self.store.repository()
    }

    /// Writes a commit that was created in the memory of `store`, with every object that it needs.
    pub fn take_over(&self, store: &Store, commit: ObjectId) -> Result<()> {
        let odb = self.repository().odb().map_err(|error| write_failed(&error))?;
        write_made(store, commit, &odb)
    }

    /// Writes a commit on `parent`; `author` is the author line of a commit object without its key.
    pub fn commit(&self, author: &str, tree: ObjectId, parent: ObjectId, message: &str) -> Result<ObjectId> {
        self.store.write_tree(tree)?;
        let text = commit_text_by(author, &tree.to_string(), Some(parent), message);
        self.store.write(ObjectKind::Commit, text.as_bytes())
    }
}
