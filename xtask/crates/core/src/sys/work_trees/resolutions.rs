//! Resolutions of conflicts, recorded and reused: git's own `rerere`, with a cache that outlives the repository of a
//! rebase.

use std::path::{Path, PathBuf};

use espalier_series::new_marker;

use super::conflict_tree::in_work;
use super::rebase_repo::RebaseRepo;
use crate::error::Result;
use crate::sys::machine::disk;
use crate::sys::machine::native_path::to_path;
use crate::sys::machine::owned;

/// git's folder for them in a repository.
const CACHE: &str = "rr-cache";
/// File, beside git's own, that records where a conflict was first met.
const ORIGIN: &str = "espalier-origin";

/// A conflict that was resolved with a recorded resolution; the result is not staged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remembered {
    /// The file.
    pub path: Vec<u8>,
    /// The place where it was resolved first.
    pub origin: String,
    /// The text of the file with the resolution.
    pub text: Vec<u8>,
}

/// Applies recorded resolutions to the conflicts in the work tree of `repo`; records for the others that they were
/// met at `here`. `home` is the persistent cache.
pub fn offer(repo: &RebaseRepo, home: &Path, here: &str) -> Result<Vec<Remembered>> {
    let cache = repo.git_dir().join(CACHE);
    // git records nothing unless this folder exists.
    disk::create_folder(&cache)?;
    // git does not report the ids of conflicts that it has resolved, so they are read before git sees any resolution,
    // also those that the repository has from the earlier stops of this rebase.
    copy(&cache, home, |_| true)?;
    remove_solutions(&cache)?;
    copy(home, &cache, |file| !is_solution(file))?;
    rerere(repo)?;
    let met = waiting(repo)?;
    copy(home, &cache, is_solution)?;
    rerere(repo)?;
    let mut solved = Vec::new();
    for (id, path) in met {
        let origin = cache.join(&id).join(ORIGIN);
        match disk::read_if_there(&origin)? {
            None => disk::write_atomically(&origin, here.as_bytes())?,
            Some(origin) => {
                let origin = espalier_series::lossy(&origin).into_owned();
                solved.extend(solved_text(repo, &path)?.map(|text| Remembered { path, origin, text }));
            }
        }
    }
    Ok(solved)
}

/// Runs `git rerere` once. The lock file of a killed run is removed: we hold the run lock.
fn rerere(repo: &RebaseRepo) -> Result<()> {
    disk::remove_file(&repo.git_dir().join("MERGE_RR.lock"))?;
    in_work(repo, &["rerere"])
}

/// Whether `file` is a resolution, by git's name for it.
fn is_solution(file: &Path) -> bool {
    file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("postimage"))
}

/// Records the user's resolutions in the work tree of `repo`.
pub fn learn(repo: &RebaseRepo, home: &Path) -> Result<()> {
    let cache = repo.git_dir().join(CACHE);
    if !disk::exists(&cache) {
        return Ok(());
    }
    rerere(repo)?;
    copy(&cache, home, |_| true)
}

fn copy(from: &Path, to: &Path, is_wanted: impl Fn(&Path) -> bool) -> Result<()> {
    // Left by a run that was killed in this function before it was finished, so this run records the same again.
    for folder in [from, to].into_iter().flat_map(disk::folders_in) {
        owned::sweep_temporary(&folder)?;
    }
    if !disk::exists(from) {
        return Ok(());
    }
    for file in disk::files_below(from)?.into_iter().filter(|file| is_wanted(file)) {
        disk::write_if_changed(&to.join(&file), &disk::read(&from.join(&file))?)?;
    }
    Ok(())
}

/// Returns the conflicts that git tracks: each with the name of its folder in the cache, and its path.
fn waiting(repo: &RebaseRepo) -> Result<Vec<(PathBuf, Vec<u8>)>> {
    let list = disk::read_if_there(&repo.git_dir().join("MERGE_RR"))?.unwrap_or_default();
    let entries = list.split(|byte| *byte == 0).filter_map(|entry| {
        let tab = entry.iter().position(|byte| *byte == b'\t')?;
        let (id, path) = entry.split_at(tab);
        // A second conflict with the same text has a suffix with a number after its id, and the same folder.
        let id = id.split(|byte| *byte == b'.').next().filter(|id| id.iter().all(u8::is_ascii_hexdigit))?;
        Some((to_path(id), path.get(1..)?.to_vec()))
    });
    Ok(entries.collect())
}

/// Returns the text of a file that has no conflict any more.
fn solved_text(repo: &RebaseRepo, path: &[u8]) -> Result<Option<Vec<u8>>> {
    let text = disk::read_if_there(&repo.work().join(to_path(path)))?;
    Ok(text.filter(|text| new_marker(path, text, &[]).is_none()))
}

/// Removes the resolutions from the cache of a repository; the persistent cache has them too.
fn remove_solutions(cache: &Path) -> Result<()> {
    let files = disk::files_below(cache)?.into_iter().filter(|file| is_solution(file));
    files.map(|file| cache.join(file)).try_for_each(|file| disk::remove_file(&file))
}
