//! The project root, the current folder, and the fallback for a project that cannot be written.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::{Path, PathBuf};

use crate::config::layout::Layout;
use crate::error::{Error, Result};
use crate::next_command::quoted;
use crate::sys::machine::disk::{
    create_folder, exists, explain, files_below, files_in, folders_in, read, read_if_there, scratch_folder,
    sha256, write_atomically,
};
use crate::sys::machine::owned;

/// Returns the current folder.
pub fn here() -> Result<PathBuf> {
    std::env::current_dir().map_err(|error| explain("look at", Path::new("."), &error))
}

/// Makes a path relative to the current folder absolute, because commands resolve relative paths against the root;
/// keeps a URL. It never fails: clap takes parsers of arguments that return a `Result`.
pub fn absolute(path: &str) -> std::result::Result<String, Infallible> {
    if path.contains("://") || path.starts_with("git@") {
        return Ok(path.to_string());
    }
    Ok(std::path::absolute(path).map_or_else(|_| path.to_string(), |path| path.display().to_string()))
}

/// As [`absolute`], as a path.
pub fn absolute_path(path: &str) -> std::result::Result<PathBuf, Infallible> {
    absolute(path).map(PathBuf::from)
}

/// Returns a temporary folder for generated files if the project cannot be written, as in another user's checkout;
/// `None` otherwise. Objects of the project's store are read from there; new ones are written to the temporary folder
/// and are removed with it.
pub fn generated_elsewhere(layout: &Layout) -> Result<Option<tempfile::TempDir>> {
    let folder = layout.generated();
    let nearest = folder.ancestors().find(|folder| exists(folder)).unwrap_or(Path::new("/"));
    if is_writable(nearest) {
        return Ok(None);
    }
    let elsewhere = scratch_folder(&std::env::temp_dir(), "espalier")?;
    let place = layout.generating_in(elsewhere.path().join("espalier"));
    owned::claim(&place)?;
    if exists(&layout.store()) {
        read_store_from(&layout.store(), &place.store())?;
    }
    Ok(Some(elsewhere))
}

/// Creates a store at `new` with the content of the one at `old`: refs are copied, objects are borrowed.
fn read_store_from(old: &Path, new: &Path) -> Result<()> {
    let names = ["HEAD", "config", "packed-refs", "shallow"].map(PathBuf::from).into_iter();
    let refs = if exists(&old.join("refs")) { files_below(&old.join("refs"))? } else { Vec::new() };
    for name in names.chain(refs.iter().map(|name| Path::new("refs").join(name))) {
        if let Some(bytes) = read_if_there(&old.join(&name))? {
            write_atomically(&new.join(&name), &bytes)?;
        }
    }
    // libgit2 searches for packs only if their folder exists when it opens a store.
    create_folder(&new.join("objects/pack"))?;
    let objects = format!("{}\n", old.join("objects").display());
    write_atomically(&new.join("objects/info/alternates"), objects.as_bytes())
}

#[cfg(unix)]
fn is_writable(folder: &Path) -> bool {
    rustix::fs::access(folder, rustix::fs::Access::WRITE_OK).is_ok()
}

#[cfg(not(unix))]
fn is_writable(_folder: &Path) -> bool {
    true
}

/// Returns the folder that has `pins.toml`: the named one, otherwise the nearest one from here upwards.
pub fn project_root(named: Option<&Path>) -> Result<PathBuf> {
    let here = named.map_or_else(here, |path| Ok(path.to_path_buf()))?;
    if !here.is_dir() {
        return Err(Error::usage(format!("there is no folder `{}`", here.display()))
            .hint("name the folder that has `pins.toml`: --root DIR")
            .hint(format!(
                "or, for a new project, create it: mkdir -p {}",
                quoted(&here.display().to_string())
            )));
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

/// Returns the digest of each file of the project, except those that git and cargo keep there, by its path with `/`
/// between names. A link counts as its target, and a broken link as an empty file.
pub fn digests(root: &Path) -> Result<BTreeMap<String, String>> {
    let mut files: Vec<PathBuf> = files_in(root)?.into_iter().map(PathBuf::from).collect();
    for folder in folders_in(root) {
        let name = folder.file_name().map(PathBuf::from).unwrap_or_default();
        if name != Path::new(".git") && name != Path::new("target") {
            files.extend(files_below(&folder)?.into_iter().map(|file| name.join(file)));
        }
    }
    let digest = |file: PathBuf| {
        let whole = root.join(&file);
        let bytes = if whole.is_file() { read(&whole)? } else { Vec::new() };
        let names: Vec<_> = file.iter().map(|name| name.to_string_lossy()).collect();
        Ok((names.join("/"), sha256(&bytes)))
    };
    files.into_iter().map(digest).collect()
}
