//! Files of the project as one of its commits has them.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use super::command::git;
use crate::error::{Error, Result};
use crate::sys::machine::disk;

/// The most that a file of ours may have, in bytes: what is larger is none.
const BYTES_LIMIT: u64 = 64 << 20;

/// Whether the last commit of the repository at `root` has `path`; no where there is no repository.
pub fn is_in_head(root: &Path, path: &str) -> bool {
    let asked = git(&root.join(".git")).args(["cat-file", "-e", &format!("HEAD:{path}")]).finish();
    asked.is_ok_and(|asked| asked.status.success())
}

/// The contents of `paths` at `reference`, of a folder all that is below it, by the path from the root. What the commit
/// does not have is left out.
///
/// # Errors
///
/// The commit is not here.
pub fn files_at(root: &Path, reference: &str, paths: &[&str]) -> Result<BTreeMap<String, Vec<u8>>> {
    if reference.starts_with('-') {
        return Err(Error::usage(format!("`{reference}` names no commit")));
    }
    let there = git(&root.join(".git")).args(["ls-tree", "--name-only", "-z", reference, "--"]).args(paths);
    let there = crate::series::lossy(&there.success()?).into_owned();
    // `git archive` refuses a path that is not there, takes none for all, and converts line ends as a checkout does.
    let there: Vec<&str> = there.split_terminator('\0').collect();
    if there.is_empty() {
        return Ok(BTreeMap::new());
    }
    let run = git(&root.join(".git")).args(["-c", "core.autocrlf=false", "archive"]);
    let run = run.args(["--format=tar", reference, "--"]);
    run.args(there).read_stdout(|stdout| {
        let damaged = |error: std::io::Error| {
            Error::surroundings(format!("git's archive of `{reference}` is damaged"))
                .detail(disk::reason(&error))
        };
        let mut archive = tar::Archive::new(stdout);
        let mut files = BTreeMap::new();
        for entry in archive.entries().map_err(damaged)? {
            let entry = entry.map_err(damaged)?;
            if !entry.header().entry_type().is_file() {
                continue;
            }
            let path = crate::series::lossy(&entry.path_bytes()).into_owned();
            let mut content = Vec::new();
            entry.take(BYTES_LIMIT).read_to_end(&mut content).map_err(damaged)?;
            files.insert(path, content);
        }
        Ok(files)
    })
}
