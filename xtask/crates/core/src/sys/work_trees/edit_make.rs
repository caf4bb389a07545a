//! Creating an edit repository: in scratch space, renamed into place when complete.

use std::path::{Path, PathBuf};

use espalier_series::ObjectId;
use git2::{Repository, RepositoryInitOptions};

use super::edit_repo::{BASE, EditRepo, MARKS, Marks, branch_of};
use crate::error::{Error, Result};
use crate::sys::git::command::{convert_nothing, git};
use crate::sys::git::store::{Store, write_failed};
use crate::sys::machine::disk;
use crate::sys::machine::owned;

/// The destination of an edit repository. It is as deep below the generated folder as a folder in `scratch`, so that
/// the relative path to the store is the same before and after the rename.
#[derive(Clone, Debug)]
pub struct EditPlace<'a> {
    /// The variant.
    pub variant: &'a str,
    /// Its folder.
    pub folder: PathBuf,
    /// Destination of the repository that was in `folder` before; nothing may be there.
    pub before: PathBuf,
    /// Scratch space on the same file system.
    pub scratch: PathBuf,
}

/// From `.git/objects` to the store, both below the generated folder.
const TO_STORE: &str = "../../../../store.git/objects\n";

/// Returns the next free place in `folder` for a repository of `variant` that is replaced, such as `paged.3`. A name
/// has no dot, so the number cannot be a part of it.
pub fn place_before(folder: &Path, variant: &str) -> PathBuf {
    let number = |path: &PathBuf| {
        let name = path.file_name()?.to_str()?;
        name.strip_prefix(variant)?.strip_prefix('.')?.parse::<u64>().ok()
    };
    let last = disk::folders_in(folder).iter().filter_map(number).max();
    folder.join(format!("{variant}.{}", last.map_or(1, |last| last.saturating_add(1))))
}

/// Creates the repository with the commits that `marks` name and everything they need. A repository already in the
/// place is moved to `place.before`.
pub fn make(store: &Store, place: &EditPlace<'_>, marks: &Marks) -> Result<EditRepo> {
    let aside = disk::scratch_folder(&place.scratch, "edit")?;
    init(aside.path(), place.variant).map_err(|error| write_failed(&error))?;
    let git_dir = aside.path().join(".git");
    disk::write_atomically(&git_dir.join("objects/info/alternates"), TO_STORE.as_bytes())?;
    convert_nothing(&git_dir)?;
    let repo = open(aside.path(), place.variant)?;
    repo.write_commit(store, marks.made).map_err(|error| disk::blame_full_disk(aside.path(), error))?;
    repo.start_at(marks)?;
    check_out(aside.path(), marks.made)?;
    move_into_place(aside, place)?;
    open(&place.folder, place.variant)
}

fn open(folder: &Path, variant: &str) -> Result<EditRepo> {
    let repo = EditRepo::open(folder, variant)?;
    repo.ok_or_else(|| Error::environment(format!("`{}` is not there any more", folder.display())))
}

fn init(folder: &Path, variant: &str) -> std::result::Result<Repository, git2::Error> {
    let branch = branch_of(variant);
    let mut options = RepositoryInitOptions::new();
    options.no_reinit(true).external_template(false).initial_head(&branch);
    let repo = Repository::init_opts(folder, &options)?;
    let mut config = repo.config()?.open_level(git2::ConfigLevel::Local)?;
    config.set_bool("core.autocrlf", false)?;
    // So that `git rebase -i` without arguments rebases this variant's own series.
    config.set_str(&format!("branch.{branch}.remote"), ".")?;
    config.set_str(&format!("branch.{branch}.merge"), &format!("{MARKS}{BASE}"))?;
    Ok(repo)
}

/// git itself writes the files: its index is the one that the user's git will read.
fn check_out(folder: &Path, tip: ObjectId) -> Result<()> {
    git(&folder.join(".git"))
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .arg(format!("--work-tree={}", folder.display()))
        .args(["read-tree", "--reset", "-u", &tip.to_string()])
        .success()
        .map(drop)
        .map_err(|error| disk::blame_full_disk(folder, error))
}

/// Keeps the previous repository: a build folder that git ignores, a commit that only the reflog has, or the state
/// before an unintended `--discard`. A kill between the two renames leaves no edit repository, and the next `edit`
/// creates it.
fn move_into_place(aside: tempfile::TempDir, place: &EditPlace<'_>) -> Result<()> {
    if disk::exists(&place.folder) {
        rename(&place.folder, &place.before)?;
    }
    rename(aside.path(), &place.folder)?;
    // It was renamed: there is nothing left to remove.
    drop(aside.keep());
    Ok(())
}

fn rename(from: &Path, to: &Path) -> Result<()> {
    to.parent().map_or(Ok(()), disk::create_folder)?;
    owned::rename(from, to)
}

#[cfg(test)]
mod tests {
    use super::place_before;

    #[test]
    fn a_replaced_repository_never_takes_the_place_of_another() {
        let folder = tempfile::tempdir().unwrap();
        let next = |variant: &str| {
            let place = place_before(folder.path(), variant);
            place.file_name().unwrap().to_str().unwrap().to_string()
        };
        assert_eq!(next("paged"), "paged.1");
        for name in ["paged", "paged.2", "paged.10", "paged.x", "paged-2.40", "other.50"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        assert_eq!([next("paged"), next("paged-2"), next("new")], ["paged.11", "paged-2.41", "new.1"]);
    }
}
