//! Commits as patch files, written by git itself: one format that git, people and this tool read alike.

use std::path::Path;

use espalier_series::ObjectId;
use git2::Repository;

use super::command::git;
use crate::error::Result;
use crate::sys::machine::disk;

/// One patch file that git wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormattedPatch {
    /// `NNNN-slug.patch`, in lower case.
    pub name: String,
    /// The text.
    pub bytes: Vec<u8>,
}

/// Options that override every setting of the user's configuration that could change the text.
const FORM: [&str; 19] = [
    "--quiet",
    "--no-notes",
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

/// Formats the commits after `base` up to `tip` of the repository `git_dir` as patches numbered from `start`;
/// `scratch` is an empty folder for git to write into.
///
/// git works in an empty repository that only borrows the objects: neither configuration, attributes nor replaced
/// commits of a repository that a person works in can change the text.
pub fn format_series(
    git_dir: &Path,
    base: ObjectId,
    tip: ObjectId,
    start: usize,
    scratch: &Path,
) -> Result<Vec<FormattedPatch>> {
    let (borrower, folder) = (scratch.join("borrower.git"), scratch.join("patches"));
    borrow_objects(git_dir, &borrower)?;
    git(&borrower)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_ATTR_NOSYSTEM", "1")
        .args(["-c", "core.attributesFile=/dev/null"])
        .arg("format-patch")
        .args(FORM)
        .arg(format!("--start-number={start}"))
        .arg("--output-directory")
        .arg(&folder)
        .arg(format!("{base}..{tip}"))
        .success()?;
    let read = |file: &std::path::PathBuf| {
        let name = file.to_string_lossy().to_lowercase();
        Ok(FormattedPatch { name, bytes: disk::read(&folder.join(file))? })
    };
    // Without commits, no folder is created.
    disk::create_folder(&folder)?;
    disk::files_below(&folder)?.iter().map(read).collect()
}

/// Creates a bare repository at `to` that has no objects of its own.
fn borrow_objects(from: &Path, to: &Path) -> Result<()> {
    Repository::init_bare(to).map_err(|error| super::store::write_failed(&error))?;
    let from = std::path::absolute(from).map_err(|error| disk::explain("look at", from, &error))?;
    let objects = format!("{}\n", from.join("objects").display());
    disk::write_atomically(&to.join("objects/info/alternates"), objects.as_bytes())?;
    // Otherwise commits whose parents were left out on purpose would be reported as corruption.
    match disk::read_if_there(&from.join("shallow"))? {
        Some(shallow) => disk::write_atomically(&to.join("shallow"), &shallow),
        None => Ok(()),
    }
}
