//! Removal of generated files: only files that really lie below a folder with this tool's mark are ever removed.
//!
//! Folders below `target/espalier/` are removed and renamed without confirmation. A link in the path, or a folder
//! that a person put in such a place, must not lead to the loss of someone else's files.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::disk;
use crate::config::layout::Layout;
use crate::error::{Error, Result};

/// The mark. It doubles as an ignore file: git ignores the folder also in a project that has no `.gitignore`.
const MARK: &str = ".gitignore";

const MARK_TEXT: &str =
    "# Made by cargo xtask: all in here is generated, and is taken away without a question.\n*\n";

/// Creates the folder of everything that is generated, with the mark; marks a folder that already exists.
///
/// # Errors
///
/// When a link in the path leads to a folder outside of the project that is not empty and has no mark.
pub fn claim(layout: &Layout) -> Result<()> {
    let folder = layout.generated();
    disk::create_folder(&folder)?;
    claim_if(is_in_place(layout, &folder) || is_as_good_as_empty(&folder), &folder)
}

/// Creates the folder of the toolchains, with the mark.
///
/// # Errors
///
/// When the folder exists, is not empty and has no mark.
pub fn claim_toolchains(layout: &Layout) -> Result<()> {
    let folder = layout.toolchains();
    disk::create_folder(&folder)?;
    claim_if(is_as_good_as_empty(&folder), &folder)
}

/// Marks a scratch folder that a run has just created.
///
/// # Errors
///
/// When the folder is not empty, or the mark cannot be written.
pub fn claim_scratch(folder: &Path) -> Result<()> {
    claim_if(is_as_good_as_empty(folder), folder)
}

fn claim_if(may_be_ours: bool, folder: &Path) -> Result<()> {
    if is_marked(folder) {
        return Ok(());
    }
    if !may_be_ours {
        return Err(not_ours(folder));
    }
    let written = disk::write_atomically(&folder.join(MARK), MARK_TEXT.as_bytes());
    // Another run may have been faster, and removed the temporary file that this one was writing.
    written.or_else(|error| if is_marked(folder) { Ok(()) } else { Err(error) })
}

/// Whether `folder` is the project's own generated folder, which was ours before marks existed.
fn is_in_place(layout: &Layout, folder: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    real(folder).is_some() && real(folder) == real(layout.root()).map(|root| Layout::new(root).generated())
}

/// Whether the folder is empty, or holds only what a run left that was killed before it wrote the mark, or that
/// predates marks.
fn is_as_good_as_empty(folder: &Path) -> bool {
    let Ok(entries) = fs::read_dir(folder) else { return false };
    let names: Vec<_> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.iter().any(|name| name == "run.lock") || names.iter().all(|name| disk::is_temporary(name))
}

/// Returns an error unless `path` really is, or lies below, a folder with the mark.
pub fn demand(path: &Path) -> Result<()> {
    if is_ours(path) { Ok(()) } else { Err(not_ours(path)) }
}

/// Whether `path` really is, or lies below, a folder with the mark.
pub fn is_ours(path: &Path) -> bool {
    path.canonicalize().is_ok_and(|real| real.ancestors().any(is_marked))
}

fn is_marked(folder: &Path) -> bool {
    let mark = folder.join(MARK);
    // The type is checked before the content is read: folders above ours belong to other people.
    let is_file = fs::symlink_metadata(&mark).is_ok_and(|meta| meta.is_file());
    is_file && fs::read(&mark).is_ok_and(|text| text == MARK_TEXT.as_bytes())
}

fn not_ours(path: &Path) -> Error {
    let real = path.canonicalize().unwrap_or_else(|_| PathBuf::from(path));
    Error::environment(format!("`{}` was not created by this tool; left alone", path.display()))
        .detail(format!(
            "it resolves to `{}`, and neither it nor a parent folder has this tool's marker file `{MARK}`",
            real.display()
        ))
        .hint("remove the link, or move the folder elsewhere, then run the same command again")
}

/// Maximum time for which [`remove_folder`] waits for another program to stop writing.
const WRITERS_LIMIT: Duration = Duration::from_secs(5);

/// Removes the folder with its content; a missing one is not an error. The downloads of a killed run, which hold no
/// lock, may still write there for a moment: what they add is removed as well.
pub fn remove_folder(path: &Path) -> Result<()> {
    if !disk::exists(path) {
        return Ok(());
    }
    demand(path)?;
    let begin = Instant::now();
    loop {
        match fs::remove_dir_all(path).map_err(|error| (error.kind(), error)) {
            Ok(()) | Err((io::ErrorKind::NotFound, _)) => return Ok(()),
            Err((io::ErrorKind::DirectoryNotEmpty, _)) if begin.elapsed() < WRITERS_LIMIT => {
                std::thread::sleep(Duration::from_millis(20));
            }
            Err((_, error)) => return Err(disk::explain("remove", path, &error)),
        }
    }
}

/// Renames one of our files or folders within one file system: all or nothing.
pub fn rename(from: &Path, to: &Path) -> Result<()> {
    demand(from)?;
    fs::rename(from, to).map_err(|error| disk::explain("move into place", to, &error))
}

/// Removes every file directly in `folder` whose name is `unwanted`, and every such folder that is ours; a missing
/// `folder` is not an error.
pub fn sweep(folder: &Path, unwanted: impl Fn(&str) -> bool) -> Result<()> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
    for entry in entries.flatten().filter(|entry| entry.file_name().to_str().is_some_and(&unwanted)) {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && !is_ours(&path) => {}
            Ok(kind) if kind.is_dir() => remove_folder(&path)?,
            _ => disk::remove_file(&path)?,
        }
    }
    Ok(())
}

/// Removes the temporary files that a killed run left directly in `folder`. The caller holds the run lock.
pub fn sweep_temporary(folder: &Path) -> Result<()> {
    sweep(folder, disk::is_temporary)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_lies_below_our_mark_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(folder.path().join("project"));
        let precious = folder.path().join("precious");
        disk::write_atomically(&precious.join("file"), b"mine").unwrap();
        claim(&layout).unwrap();
        disk::write_atomically(&layout.scratch().join("a/b"), b"x").unwrap();
        remove_folder(&layout.scratch()).unwrap();
        assert!(!disk::exists(&layout.scratch()));
        remove_folder(&layout.scratch()).unwrap();
        for path in [precious.clone(), layout.root().to_path_buf()] {
            assert!(remove_folder(&path).is_err() && rename(&path, &layout.scratch()).is_err());
        }
        assert!(disk::exists(&precious.join("file")));
    }

    #[test]
    fn a_folder_into_which_a_program_still_writes_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(folder.path().join("project"));
        claim(&layout).unwrap();
        let scratch = layout.scratch();
        disk::create_folder(&scratch).unwrap();
        let begin = Instant::now();
        std::thread::scope(|threads| {
            threads.spawn(|| {
                let is_late = || begin.elapsed() > Duration::from_millis(300);
                (0..)
                    .take_while(|_| !is_late())
                    .all(|at| fs::write(scratch.join(at.to_string()), "x").is_ok())
            });
            remove_folder(&scratch).unwrap();
        });
        assert!(!disk::exists(&scratch));
    }

    #[cfg(unix)]
    #[test]
    fn a_link_does_not_make_a_folder_ours() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(folder.path().join("project"));
        let precious = folder.path().join("precious");
        disk::write_atomically(&precious.join("espalier/tmp/file"), b"mine").unwrap();
        claim(&layout).unwrap();
        std::os::unix::fs::symlink(precious.join("espalier"), layout.scratch()).unwrap();
        assert!(remove_folder(&layout.scratch()).is_err());
        assert!(remove_folder(&layout.scratch().join("tmp")).is_err());
        let other = Layout::new(folder.path().join("other"));
        disk::create_folder(other.root()).unwrap();
        std::os::unix::fs::symlink(&precious, other.root().join("target")).unwrap();
        assert!(claim(&other).unwrap_err().to_string().contains("was not created by this tool"));
        assert!(disk::exists(&precious.join("espalier/tmp/file")));
        fs::remove_dir_all(precious.join("espalier")).unwrap();
        claim(&other).unwrap();
    }
}
