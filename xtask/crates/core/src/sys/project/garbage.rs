//! Inventory of `target/espalier/` and `target/toolchains/`, and removal of entries.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::config::layout::{Layout, UNDO};
use crate::error::Result;
use crate::plan::gc::{GeneratedFile, LEFTOVERS, LISTED, TOOLCHAINS, is_replaced_edit};
use crate::sys::machine::{disk, owned};
use crate::sys::project::long_stage;

/// Returns every entry in these folders that may be removed; a link to elsewhere, or an unknown name, is not ours.
#[must_use]
pub fn look(layout: &Layout) -> Vec<GeneratedFile> {
    let generated = layout.generated();
    let whole = LEFTOVERS.iter().chain([&UNDO]).filter_map(|name| found(&generated, "", name));
    let listed = LISTED.iter().map(|name| (*name, generated.join(name)));
    let listed = listed.chain([(TOOLCHAINS, layout.toolchains())]).flat_map(|(name, folder)| {
        names_in(&folder).into_iter().filter_map(move |entry| found(&folder, name, &entry))
    });
    // The files beside a tree that record its state are removed together with it.
    whole.chain(listed).filter(|one| one.folder != "trees" || !one.name.contains('.')).collect()
}

/// Returns the total size of both folders in bytes.
#[must_use]
pub fn bytes(layout: &Layout) -> u64 {
    disk::size_below(&layout.generated()) + disk::size_below(&layout.toolchains())
}

/// Removes `found`. A kill leaves it in place, or parts of it in scratch space, which the next run sweeps. The caller
/// holds the run lock.
pub fn remove(layout: &Layout, found: &GeneratedFile) -> Result<()> {
    let path = place(layout, found);
    let scratch = match found.folder.as_str() {
        TOOLCHAINS => layout.toolchains().join("tmp"),
        _ => layout.scratch(),
    };
    if path == scratch {
        return owned::remove_folder(&path);
    }
    if path.is_file() {
        owned::demand(&path)?;
        return disk::remove_file(&path);
    }
    let aside = disk::scratch_folder(&scratch, "gc")?;
    owned::rename(&path, &aside.path().join("gone"))?;
    if found.folder == "trees" {
        for extension in ["index", "tree", "pending"] {
            disk::remove_file(&path.with_extension(extension))?;
        }
    }
    owned::remove_folder(aside.path())
}

/// Returns the folder of an operation in progress that borrows the store's objects without a ref in the store; `None`
/// if there is none. Edit repositories that are garbage do not count.
#[must_use]
pub fn borrower(layout: &Layout) -> Option<PathBuf> {
    let before = layout.edits_before();
    let name = |folder: &PathBuf| folder.file_name().map(|name| name.to_string_lossy().into_owned());
    let is_garbage = |folder: &PathBuf| {
        folder.starts_with(&before) && name(folder).is_some_and(|name| is_replaced_edit(&name))
    };
    let repositories = [layout.generated().join("edit"), before.clone(), layout.rebases()];
    let all = repositories.iter().flat_map(|folder| disk::folders_in(folder));
    let mut all = all.filter(|folder| !is_garbage(folder));
    let pending = || Some(layout.pending()).filter(|folder| disk::exists(folder));
    all.next().or_else(|| long_stage::owned(layout)).or_else(pending)
}

/// Returns the path of `found`.
#[must_use]
pub fn place(layout: &Layout, found: &GeneratedFile) -> PathBuf {
    match found.folder.as_str() {
        TOOLCHAINS => layout.toolchains().join(&found.name),
        folder => layout.generated().join(folder).join(&found.name),
    }
}

fn found(parent: &Path, folder: &str, name: &str) -> Option<GeneratedFile> {
    let path = parent.join(name);
    let meta = std::fs::symlink_metadata(&path).ok()?;
    let bytes = if meta.is_dir() { disk::size_below(&path) } else { meta.len() };
    let found =
        || GeneratedFile { folder: folder.into(), name: name.into(), bytes, idle_days: idle_days(&path) };
    (!meta.is_symlink() && owned::is_ours(&path)).then(found)
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// Returns the full days since `path`, or an entry directly in it, was last written to.
fn idle_days(path: &Path) -> u64 {
    let time = |path: &Path| std::fs::symlink_metadata(path).and_then(|meta| meta.modified()).ok();
    let inside = names_in(path).into_iter().filter_map(|name| time(&path.join(name)));
    let newest = inside.chain(time(path)).max();
    let since = newest.and_then(|newest| SystemTime::now().duration_since(newest).ok());
    since.map_or(0, |since| since.as_secs() / (24 * 60 * 60))
}
