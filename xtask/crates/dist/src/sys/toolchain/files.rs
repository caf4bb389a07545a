//! Files of a toolchain, modified in the scratch folder in which it is assembled.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::Path;

use espalier_core::error::Result;
use espalier_core::sys::machine::disk;

/// Returns the names of the entries directly in `folder`.
pub(super) fn entries_in(folder: &Path) -> Result<Vec<OsString>> {
    let fail = |error: io::Error| disk::explain("list", folder, &error);
    let entries = fs::read_dir(folder).map_err(fail)?;
    entries.map(|entry| entry.map(|entry| entry.file_name())).collect::<io::Result<_>>().map_err(fail)
}

/// Copies a file with its mode; creates its folder.
pub(super) fn copy(from: &Path, to: &Path) -> Result<()> {
    make_folder_of(to)?;
    fs::copy(from, to).map(drop).map_err(|error| disk::explain("copy", from, &error))
}

/// Creates the symbolic link `link` to `target`, which is relative to the link's folder; creates that folder.
pub(super) fn make_link(target: &Path, link: &Path) -> Result<()> {
    make_folder_of(link)?;
    #[cfg(unix)]
    let made = std::os::unix::fs::symlink(target, link);
    #[cfg(windows)]
    let made = std::os::windows::fs::symlink_file(target, link);
    made.map_err(|error| disk::explain("create the link", link, &error))
}

/// Creates the folder that contains `path`.
pub(super) fn make_folder_of(path: &Path) -> Result<()> {
    disk::create_folder(path.parent().unwrap_or(Path::new(".")))
}
