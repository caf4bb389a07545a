//! Commits as patch files, written by git itself: the one form that git, people and we read alike.

use std::path::Path;

use git2::Oid;

use super::disk;
use super::git::git;
use crate::error::Result;

/// One patch file that git wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormattedPatch {
    /// `NNNN-slug.patch`, in lower case.
    pub name: String,
    /// The text.
    pub bytes: Vec<u8>,
}

/// Every way in which a person's configuration could change the text is closed.
const FORM: [&str; 18] = [
    "--quiet",
    "--full-index",
    "--zero-commit",
    "--no-signature",
    "--no-numbered",
    "--binary",
    "--no-cover-letter",
    "--no-attach",
    "--no-thread",
    "--no-base",
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--diff-algorithm=myers",
    "--unified=3",
    "--find-renames=50%",
    "--src-prefix=a/",
    "--dst-prefix=b/",
];

/// The commits after `base` up to `tip` of the repository `git_dir`, numbered from `start`; `scratch` is
/// an empty folder for git to write into.
pub fn format_series(
    git_dir: &Path,
    base: Oid,
    tip: Oid,
    start: usize,
    scratch: &Path,
) -> Result<Vec<FormattedPatch>> {
    git(git_dir)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .arg("format-patch")
        .args(FORM)
        .arg(format!("--start-number={start}"))
        .arg("--output-directory")
        .arg(scratch)
        .arg(format!("{base}..{tip}"))
        .success()?;
    let read = |file: &std::path::PathBuf| {
        let name = file.to_string_lossy().to_lowercase();
        Ok(FormattedPatch { name, bytes: disk::read(&scratch.join(file))? })
    };
    disk::files_below(scratch)?.iter().map(read).collect()
}
