//! The overlay in an edit repository: the tree there can be built completely, and no commit contains the overlay.
//!
//! Each file is a link to the project's own, so that both are edited together, and the repository never has a stale
//! copy. `.git/info/exclude` keeps the links out of commits.

use std::collections::BTreeSet;
use std::path::Path;

use super::edit_ignored::{LINKED, exclude};
use super::edit_repo::EditRepo;
use crate::config::overlay::OverlayFile;
use crate::error::Result;
use crate::sys::machine::disk;

/// Links `overlays`, whose files are below `root`, into the work tree of `repo`, and removes links to files that no
/// overlay has any more. Returns the paths at which the user has put something else, which stays.
pub fn link(repo: &EditRepo, root: &Path, overlays: &[OverlayFile]) -> Result<Vec<String>> {
    let linked = repo.git_dir().join(LINKED);
    let before = disk::read_if_there(&linked)?.unwrap_or_default();
    let before = espalier_series::lossy(&before).into_owned();
    let now: BTreeSet<&str> = overlays.iter().map(|file| file.path.as_str()).collect();
    for gone in before.lines().filter(|path| !now.contains(path)) {
        let path = repo.folder().join(gone);
        if path.is_symlink() {
            disk::remove_file(&path)?;
        }
    }
    if overlays.is_empty() && before.is_empty() {
        return Ok(Vec::new());
    }
    exclude(&repo.git_dir(), &now)?;
    let mut paths: Vec<&str> = now.into_iter().collect();
    paths.push("");
    disk::write_if_changed(&linked, paths.join("\n").as_bytes())?;
    let mut others = Vec::new();
    for file in overlays {
        let path = repo.folder().join(&file.path);
        if disk::read_if_there(&path).ok().flatten().as_deref() == Some(&file.bytes) {
            continue;
        }
        if disk::exists(&path) && !path.is_symlink() {
            others.push(file.path.clone());
            continue;
        }
        path.parent().map_or(Ok(()), disk::create_folder)?;
        if path.is_symlink() {
            disk::remove_file(&path)?;
        }
        make_link(&path, &root.join(&file.from), root)?;
    }
    Ok(others)
}

/// Creates a relative link, so that the project can be moved.
#[cfg(unix)]
fn make_link(path: &Path, target: &Path, root: &Path) -> Result<()> {
    let inside = path.parent().and_then(|folder| folder.strip_prefix(root).ok());
    let from_root = target.strip_prefix(root).unwrap_or(target);
    let target = match inside {
        Some(inside) => inside.components().map(|_| "..").collect::<std::path::PathBuf>().join(from_root),
        None => target.to_path_buf(),
    };
    std::os::unix::fs::symlink(target, path).map_err(|error| disk::explain("link", path, &error))
}

/// On this platform links require a privilege that few users have.
#[cfg(not(unix))]
fn make_link(path: &Path, target: &Path, _root: &Path) -> Result<()> {
    disk::copy(target, path)
}
