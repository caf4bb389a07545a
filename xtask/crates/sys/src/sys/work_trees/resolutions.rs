//! Conflicts that a person solved once, so that nobody has to solve them again: git's own `rerere`, whose memory outlives
//! the repository of a rebase.

use std::path::{Path, PathBuf};

use super::conflict_tree::in_work;
use super::rebase_repo::RebaseRepo;
use crate::error::Result;
use crate::series::{first_marker, printable};
use crate::sys::machine::disk;
use crate::sys::machine::native_path::to_path;
use crate::sys::machine::ours;

/// Where git keeps them in a repository.
const CACHE: &str = "rr-cache";
/// The file, beside git's own, that says where a conflict was met first.
const ORIGIN: &str = "espalier-origin";

/// A conflict that was solved before, and now is again: the file has the same solution, and nobody staged it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remembered {
    /// The file, safe to print.
    pub path: String,
    /// Where it was solved.
    pub origin: String,
}

/// Solves the conflicts in the work tree of `repo` that were solved before; remembers of the others that they were
/// met at `here`. `home` is the memory.
pub fn offer(repo: &RebaseRepo, home: &Path, here: &str) -> Result<Vec<Remembered>> {
    let cache = repo.git_dir().join(CACHE);
    // Without this folder git remembers nothing.
    disk::create_folder(&cache)?;
    // Of what it has solved git does not say which conflict it was: so it is asked before it knows any solution.
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
            Some(origin) if is_solved(repo, &path)? => {
                let origin = crate::series::lossy(&origin).into_owned();
                solved.push(Remembered { path: printable(&path), origin });
            }
            Some(_) => {}
        }
    }
    Ok(solved)
}

/// One round of git's own. The lock that a killed one left is taken away: the run lock is ours.
fn rerere(repo: &RebaseRepo) -> Result<()> {
    disk::remove_file(&repo.git_dir().join("MERGE_RR.lock"))?;
    in_work(repo, &["rerere"])
}

/// What git calls a solution.
fn is_solution(file: &Path) -> bool {
    file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("postimage"))
}

/// Remembers what a person has solved in the work tree of `repo`.
pub fn learn(repo: &RebaseRepo, home: &Path) -> Result<()> {
    let cache = repo.git_dir().join(CACHE);
    if !disk::exists(&cache) {
        return Ok(());
    }
    rerere(repo)?;
    copy(&cache, home, |_| true)
}

fn copy(from: &Path, to: &Path, is_wanted: impl Fn(&Path) -> bool) -> Result<()> {
    // Left by a run that was killed in here; it did not get any further, so this one comes by again.
    for folder in disk::folders_in(to) {
        ours::sweep_temporary(&folder)?;
    }
    if !disk::exists(from) {
        return Ok(());
    }
    for file in disk::files_below(from)?.into_iter().filter(|file| is_wanted(file)) {
        disk::write_if_changed(&to.join(&file), &disk::read(&from.join(&file))?)?;
    }
    Ok(())
}

/// The conflicts that git watches: each with the name of its folder in the cache, and its path.
fn waiting(repo: &RebaseRepo) -> Result<Vec<(PathBuf, Vec<u8>)>> {
    let list = disk::read_if_there(&repo.git_dir().join("MERGE_RR"))?.unwrap_or_default();
    let entries = list.split(|byte| *byte == 0).filter_map(|entry| {
        let tab = entry.iter().position(|byte| *byte == b'\t')?;
        let (id, path) = entry.split_at(tab);
        // A second conflict with the same text has a number behind its id, and the same folder.
        let id = id.split(|byte| *byte == b'.').next().filter(|id| id.iter().all(u8::is_ascii_hexdigit))?;
        Some((to_path(id), path.get(1..)?.to_vec()))
    });
    Ok(entries.collect())
}

fn is_solved(repo: &RebaseRepo, path: &[u8]) -> Result<bool> {
    let text = disk::read_if_there(&repo.work().join(to_path(path)))?;
    Ok(text.is_some_and(|text| first_marker(&text).is_none()))
}
