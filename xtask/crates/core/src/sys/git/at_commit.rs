//! Files of the project at one of its commits.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use super::command::git;
use crate::error::{Error, Result};
use crate::sys::machine::disk;

/// Size limit of one of the project's files, in bytes: no real one is larger.
const BYTES_LIMIT: u64 = 64 << 20;
/// Maximum number of earlier versions of a file that are read.
const VERSIONS_LIMIT: usize = 1_000;

/// Whether the last commit of the repository at `root` has `path`; false where there is no repository.
pub fn is_in_head(root: &Path, path: &str) -> bool {
    let asked = git(&root.join(".git")).args(["cat-file", "-e", &format!("HEAD:{path}")]).finish();
    asked.is_ok_and(|asked| asked.status.success())
}

/// Returns the id of the commit that `reference` names in the repository at `root`.
///
/// # Errors
///
/// There is no such commit here, or no repository.
pub fn commit_of(root: &Path, reference: &str) -> Result<String> {
    let unknown = || {
        Error::usage(format!("`{reference}` names no commit of this repository"))
            .hint("git log --oneline    # lists its commits")
    };
    if reference.starts_with('-') {
        return Err(unknown());
    }
    let wanted = format!("{reference}^{{commit}}");
    let asked = git(&root.join(".git")).args(["rev-parse", "--verify", "--quiet", &wanted]).finish()?;
    match asked.status.success() {
        true => Ok(espalier_series::lossy(&asked.stdout).trim().to_string()),
        false => Err(unknown()),
    }
}

/// Returns the newest version of the file `path` for which `is_it` holds, in the history of the last commit of the
/// repository at `root`; `None` if there is none, or no repository.
pub fn version_where(root: &Path, path: &str, is_it: impl Fn(&[u8]) -> bool) -> Option<Vec<u8>> {
    let limit = format!("--max-count={VERSIONS_LIMIT}");
    let log = git(&root.join(".git")).args(["log", "--format=%H", &limit, "HEAD", "--", path]);
    let commits = log.success().ok()?;
    espalier_series::lossy(&commits).lines().find_map(|commit| {
        let blob = format!("{commit}:{path}");
        // A commit that deletes the file has no version of it.
        let version = git(&root.join(".git")).args(["cat-file", "blob", &blob]).success().ok()?;
        is_it(&version).then_some(version)
    })
}

/// Returns the contents of `paths` at `reference` by path from the root; a folder yields everything below it. Paths
/// that the commit does not have are left out.
///
/// # Errors
///
/// The commit does not exist here.
pub fn files_at(root: &Path, reference: &str, paths: &[&str]) -> Result<BTreeMap<String, Vec<u8>>> {
    if reference.starts_with('-') {
        return Err(Error::usage(format!("`{reference}` names no commit")));
    }
    let there = git(&root.join(".git")).args(["ls-tree", "--name-only", "-z", reference, "--"]).args(paths);
    let there = espalier_series::lossy(&there.success()?).into_owned();
    // `git archive` fails on a missing path, treats an empty list as "everything", and converts line ends as a
    // checkout does.
    let there: Vec<&str> = there.split_terminator('\0').collect();
    if there.is_empty() {
        return Ok(BTreeMap::new());
    }
    let run = git(&root.join(".git")).args(["-c", "core.autocrlf=false", "archive"]);
    let run = run.args(["--format=tar", reference, "--"]);
    run.args(there).read_stdout(|stdout| {
        let damaged = |error: std::io::Error| {
            Error::environment(format!("git's archive of `{reference}` is damaged"))
                .detail(disk::reason(&error))
        };
        let mut archive = tar::Archive::new(stdout);
        let mut files = BTreeMap::new();
        for entry in archive.entries().map_err(damaged)? {
            let entry = entry.map_err(damaged)?;
            if !entry.header().entry_type().is_file() {
                continue;
            }
            let path = espalier_series::lossy(&entry.path_bytes()).into_owned();
            let mut content = Vec::new();
            entry.take(BYTES_LIMIT).read_to_end(&mut content).map_err(damaged)?;
            files.insert(path, content);
        }
        Ok(files)
    })
}

/// Returns the files of git in which the files on disk differ from the commit `reference`, by path from the root.
///
/// # Errors
///
/// The commit does not exist here.
pub fn changed_since(root: &Path, reference: &str) -> Result<Vec<String>> {
    if reference.starts_with('-') {
        return Err(Error::usage(format!("`{reference}` names no commit")));
    }
    listed(root, &["diff", "--name-only", "--no-renames", "--no-ext-diff", "-z", reference, "--"], &[])
}

/// Returns the files below `folders` that git neither has nor ignores, by path from the root.
pub fn untracked_in(root: &Path, folders: &[&str]) -> Result<Vec<String>> {
    match folders.is_empty() {
        true => Ok(Vec::new()),
        false => {
            listed(root, &["ls-files", "--others", "--exclude-standard", "--full-name", "-z", "--"], folders)
        }
    }
}

fn listed(root: &Path, words: &[&str], paths: &[&str]) -> Result<Vec<String>> {
    // git reads and prints paths relative to its current folder.
    let run = git(&root.join(".git")).arg(format!("--work-tree={}", root.display())).current_folder(root);
    let stdout = espalier_series::lossy(&run.args(words).args(paths).success()?).into_owned();
    Ok(stdout.split_terminator('\0').map(str::to_string).collect())
}
