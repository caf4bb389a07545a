//! Where the project is, where the person stands, and what to do when it cannot be written.

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::plan::layout::Layout;
use crate::sys::machine::disk::{exists, explain, scratch_folder};
use crate::sys::machine::ours;

/// The folder in which the person stands.
pub fn here() -> Result<PathBuf> {
    std::env::current_dir().map_err(|error| explain("look at", Path::new("."), &error))
}

/// Where what is generated can be when the project cannot be written, as in a checkout of somebody else's. What the
/// project has already is read from there.
pub fn generated_elsewhere(layout: &Layout) -> Result<Option<tempfile::TempDir>> {
    let folder = layout.generated();
    let nearest = folder.ancestors().find(|folder| exists(folder)).unwrap_or(Path::new("/"));
    if is_writable(nearest) {
        return Ok(None);
    }
    let elsewhere = scratch_folder(&std::env::temp_dir(), "espalier")?;
    let place = layout.generating_in(elsewhere.path().join("espalier"));
    ours::claim(&place)?;
    #[cfg(unix)]
    if exists(&layout.store()) {
        let place = place.store();
        std::os::unix::fs::symlink(layout.store(), &place)
            .map_err(|error| explain("link", &place, &error))?;
    }
    Ok(Some(elsewhere))
}

#[cfg(unix)]
fn is_writable(folder: &Path) -> bool {
    rustix::fs::access(folder, rustix::fs::Access::WRITE_OK).is_ok()
}

#[cfg(not(unix))]
fn is_writable(_folder: &Path) -> bool {
    true
}

/// The folder that has `pins.toml`: the one that was named, else the nearest one from here upwards.
pub fn project_root(named: Option<&Path>) -> Result<PathBuf> {
    let here = named.map_or_else(here, |path| Ok(path.to_path_buf()))?;
    if !here.is_dir() {
        return Err(Error::usage(format!("there is no folder `{}`", here.display()))
            .hint("name the folder that has `pins.toml`: --root DIR"));
    }
    let here = here.canonicalize().map_err(|error| explain("look at", &here, &error))?;
    if here.to_str().is_none() {
        return Err(Error::usage(format!("the path `{}` is not UTF-8", here.display()))
            .detail("git's library, CMake and pip are given paths as text")
            .hint("move the project, or give the folder another name"));
    }
    let found = here.ancestors().find(|folder| exists(&folder.join("pins.toml")));
    match (named, found) {
        (None, Some(root)) => Ok(root.to_path_buf()),
        _ => Ok(here),
    }
}
