//! Patches that were made elsewhere: a folder, an mbox, a quilt series, one diff. All of it is hostile.

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::series::{PATCH_SIZE_LIMIT, QuiltEntry, read_quilt_series};
use crate::sys::machine::disk;

/// What a path turned out to hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatchFiles {
    /// Files, in the order in which they apply.
    Files(Vec<PathBuf>, Vec<String>),
    /// A quilt series, and the folder that its names are relative to.
    Quilt(PathBuf, Vec<QuiltEntry>),
}

/// Looks at `path`: a file, a folder of patches, or one that quilt keeps.
pub fn find(path: &Path) -> Result<PatchFiles> {
    if !disk::exists(path) {
        return Err(Error::usage(format!("there is no `{}`", path.display()))
            .hint("name a folder of patches, an mbox, a quilt series or a diff")
            .hint("or commits of a fork: cargo xtask import --from REPO BASE..TIP"));
    }
    if !path.is_dir() {
        return Ok(PatchFiles::Files(vec![path.to_path_buf()], Vec::new()));
    }
    for below in ["", "patches", "debian/patches"] {
        let folder = path.join(below);
        if folder.join("series").is_file() {
            return quilt(folder);
        }
    }
    let (files, others): (Vec<PathBuf>, Vec<PathBuf>) =
        files_in(path)?.into_iter().partition(|file| is_patch(file));
    let names = others.iter().filter_map(|file| file.file_name());
    Ok(PatchFiles::Files(files, names.map(|name| name.to_string_lossy().into_owned()).collect()))
}

fn quilt(folder: PathBuf) -> Result<PatchFiles> {
    let series = folder.join("series");
    let text = String::from_utf8(read(&series)?)
        .map_err(|_| Error::usage(format!("`{}` is not UTF-8 text", series.display())))?;
    match read_quilt_series(&text) {
        Ok(entries) => Ok(PatchFiles::Quilt(folder, entries)),
        Err(wrong) => Err(Error::usage(format!("`{}` cannot be followed", series.display()))
            .detail(wrong.join("\n"))
            .hint("correct these lines, then run the same command again")),
    }
}

/// Those directly in `folder`, by name.
fn files_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let fail = |error: std::io::Error| disk::explain("list", folder, &error);
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        if !entry.file_type().map_err(fail)?.is_dir() {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}

fn is_patch(file: &Path) -> bool {
    let endings = ["patch", "diff", "eml", "mbox", "mbx"];
    file.extension().is_some_and(|ending| endings.iter().any(|known| ending.eq_ignore_ascii_case(known)))
}

/// The most bytes of one file: an mbox may hold many patches.
const FILE_LIMIT: u64 = 8 * PATCH_SIZE_LIMIT as u64;

/// The content of a plain file. A link, a pipe or a device is refused: what lies behind it is no patch.
pub fn read(file: &Path) -> Result<Vec<u8>> {
    let meta = std::fs::symlink_metadata(file).map_err(|error| disk::explain("read", file, &error))?;
    if !meta.is_file() {
        return Err(Error::usage(format!("`{}` is not a plain file", file.display()))
            .hint("put the file itself in its place"));
    }
    if meta.len() > FILE_LIMIT {
        return Err(Error::usage(format!("`{}` has {} bytes", file.display(), meta.len()))
            .hint(format!("{FILE_LIMIT} are the most that one file of patches may have")));
    }
    disk::read(file)
}
