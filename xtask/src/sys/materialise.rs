//! A variant's final tree on disk, for CMake to build.
//!
//! Only files whose blob changed are touched, so that the next build compiles what a patch changed
//! and nothing else. Every file appears by rename: killed at any moment, each is the old or the new.
//! A file that a person edited is never overwritten.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use git2::{Index, IndexEntry, IndexTime, ObjectType, Oid};

use super::disk;
use super::store::Store;
use crate::error::{Error, Result};
use crate::ui::{Ui, Unit};

/// What a run of `materialise` did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Materialised {
    /// Files that were written, new or changed.
    pub written: usize,
    /// Files that were taken away.
    pub removed: usize,
    /// Files that were right already.
    pub kept: usize,
}

struct Wanted {
    mode: u32,
    id: Oid,
}

type Want = BTreeMap<Vec<u8>, Wanted>;

/// Makes `folder` hold exactly `tree`. `index` remembers what was written there and when.
pub fn materialise(
    store: &Store,
    tree: Oid,
    folder: &Path,
    index: &Path,
    ui: &Ui,
) -> Result<Materialised> {
    let want = wanted(store, tree)?;
    let have = open_index(index)?;
    disk::create_folder(folder)?;
    let there = files_there(folder)?;
    let plan = compare(&want, &have, folder, &there)?;
    refuse_edits(&plan, folder)?;
    carry_out(store, &want, &plan, folder, ui)?;
    remember(index, folder, &want, &have)?;
    Ok(Materialised { written: plan.write.len(), removed: plan.remove.len(), kept: plan.kept })
}

fn wanted(store: &Store, tree: Oid) -> Result<Want> {
    let files = store.files(tree)?;
    for (path, mode, _) in &files {
        if !matches!(mode, 0o100_644 | 0o100_755 | 0o120_000) {
            let name = String::from_utf8_lossy(path);
            return Err(Error::no(format!("`{name}` has mode {mode:o}: only files and links can be built")));
        }
    }
    Ok(files.into_iter().map(|(path, mode, id)| (path, Wanted { mode, id })).collect())
}

fn open_index(path: &Path) -> Result<BTreeMap<Vec<u8>, IndexEntry>> {
    // An index that cannot be read says nothing: every file is then compared by its content.
    let Ok(index) = Index::open(path) else { return Ok(BTreeMap::new()) };
    Ok(index.iter().map(|entry| (entry.path.clone(), entry)).collect())
}

/// What is on disk, without what a killed run left half-written.
fn files_there(folder: &Path) -> Result<BTreeSet<Vec<u8>>> {
    let mut there = BTreeSet::new();
    for path in disk::files_below(folder)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with(disk::TEMPORARY_PREFIX) {
            disk::remove_file(&folder.join(&path))?;
        } else {
            there.insert(to_bytes(&path));
        }
    }
    Ok(there)
}

#[derive(Default)]
struct Plan {
    write: Vec<Vec<u8>>,
    remove: Vec<Vec<u8>>,
    edited: Vec<Vec<u8>>,
    kept: usize,
}

fn compare(
    want: &Want,
    have: &BTreeMap<Vec<u8>, IndexEntry>,
    folder: &Path,
    there: &BTreeSet<Vec<u8>>,
) -> Result<Plan> {
    let mut plan = Plan::default();
    for (path, wanted) in want {
        if !there.contains(path) {
            plan.write.push(path.clone());
            continue;
        }
        let written = have.get(path);
        let id = content_id(folder, path, written)?;
        match id {
            Some(id) if id == wanted.id && mode_fits(folder, path, wanted.mode)? => plan.kept += 1,
            Some(id) if written.is_some_and(|entry| entry.id == id) || id == wanted.id => {
                plan.write.push(path.clone());
            }
            _ => plan.edited.push(path.clone()),
        }
    }
    for path in there.iter().filter(|path| !want.contains_key(*path)) {
        let written = have.get(path);
        let ours = match (content_id(folder, path, written)?, written) {
            (Some(id), Some(entry)) => entry.id == id,
            _ => false,
        };
        if ours { plan.remove.push(path.clone()) } else { plan.edited.push(path.clone()) }
    }
    Ok(plan)
}

/// The blob id of what is on disk. When size and time are what we wrote, it is what we wrote.
fn content_id(folder: &Path, path: &[u8], written: Option<&IndexEntry>) -> Result<Option<Oid>> {
    let file = folder.join(to_path(path));
    let meta = fs::symlink_metadata(&file).map_err(|error| disk::explain("look at", &file, &error))?;
    if let Some(entry) = written
        && entry.mtime == time_of(&meta)
        && u64::from(entry.file_size) == meta.len()
    {
        return Ok(Some(entry.id));
    }
    let bytes = if meta.is_symlink() {
        let target = fs::read_link(&file).map_err(|error| disk::explain("read the link", &file, &error))?;
        to_bytes(&target)
    } else {
        disk::read(&file)?
    };
    Ok(Oid::hash_object(ObjectType::Blob, &bytes).ok())
}

#[cfg(unix)]
fn mode_fits(folder: &Path, path: &[u8], mode: u32) -> Result<bool> {
    use std::os::unix::fs::PermissionsExt;
    let file = folder.join(to_path(path));
    let meta = fs::symlink_metadata(&file).map_err(|error| disk::explain("look at", &file, &error))?;
    let executable = meta.permissions().mode() & 0o100 != 0;
    Ok(meta.is_symlink() == (mode == 0o120_000) && (meta.is_symlink() || executable == (mode == 0o100_755)))
}

#[cfg(not(unix))]
fn mode_fits(_folder: &Path, _path: &[u8], _mode: u32) -> Result<bool> {
    Ok(true)
}

fn refuse_edits(plan: &Plan, folder: &Path) -> Result<()> {
    if plan.edited.is_empty() {
        return Ok(());
    }
    let shown: Vec<String> =
        plan.edited.iter().take(10).map(|path| String::from_utf8_lossy(path).into_owned()).collect();
    let more = plan.edited.len().saturating_sub(shown.len());
    let more = if more > 0 { format!("\nand {more} more") } else { String::new() };
    Err(Error::new(
        crate::error::Kind::Conflict,
        format!("`{}` has changes that are in no patch; nothing was touched", folder.display()),
    )
    .detail(format!("{}{more}", shown.join("\n")))
    .hint("keep them: copy the files away, or turn them into a patch (docs/patches.md)")
    .hint("throw them away: cargo xtask apply --discard-edits"))
}

fn carry_out(store: &Store, want: &Want, plan: &Plan, folder: &Path, ui: &Ui) -> Result<()> {
    let total = u64::try_from(plan.write.len()).ok();
    let mut progress = ui.progress("writing files", total, Unit::Steps);
    for path in &plan.remove {
        remove(folder, path)?;
    }
    for (done, path) in (0u64..).zip(&plan.write) {
        if let Some(wanted) = want.get(path) {
            write(store, folder, path, wanted)?;
        }
        progress.set(done + 1);
    }
    Ok(())
}

/// Takes the file away, and the folders that it leaves empty.
fn remove(folder: &Path, path: &[u8]) -> Result<()> {
    let file = folder.join(to_path(path));
    disk::remove_file(&file)?;
    let mut parent = file.parent();
    while let Some(empty) = parent.filter(|parent| *parent != folder) {
        if fs::remove_dir(empty).is_err() {
            break;
        }
        parent = empty.parent();
    }
    Ok(())
}

fn write(store: &Store, folder: &Path, path: &[u8], wanted: &Wanted) -> Result<()> {
    let file = folder.join(to_path(path));
    let bytes = store.blob(wanted.id)?;
    if wanted.mode == 0o120_000 {
        return write_link(&file, &bytes);
    }
    disk::write_atomically(&file, &bytes)?;
    set_mode(&file, wanted.mode)
}

#[cfg(unix)]
fn set_mode(file: &Path, mode: u32) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(file, fs::Permissions::from_mode(mode & 0o777))
        .map_err(|error| disk::explain("set the mode of", file, &error))
}

#[cfg(not(unix))]
fn set_mode(_file: &Path, _mode: u32) -> Result<()> {
    Ok(())
}

#[cfg(unix)]
fn write_link(file: &Path, target: &[u8]) -> Result<()> {
    if let Some(parent) = file.parent() {
        disk::create_folder(parent)?;
    }
    disk::remove_file(file)?;
    std::os::unix::fs::symlink(to_path(target), file).map_err(|error| disk::explain("link", file, &error))
}

#[cfg(not(unix))]
fn write_link(file: &Path, _target: &[u8]) -> Result<()> {
    Err(Error::surroundings(format!("`{}` is a link, which this system cannot make", file.display())))
}

/// Writes the index anew when anything in it changed; last, so that it never claims what is not there.
fn remember(path: &Path, folder: &Path, want: &Want, have: &BTreeMap<Vec<u8>, IndexEntry>) -> Result<()> {
    let mut entries = Vec::with_capacity(want.len());
    for (name, wanted) in want {
        entries.push(index_entry(folder, name, wanted)?);
    }
    let same = entries.len() == have.len()
        && entries.iter().zip(have.values()).all(|(new, old)| {
            new.path == old.path && new.id == old.id && new.mtime == old.mtime && new.file_size == old.file_size
        });
    if same { Ok(()) } else { write_index(path, &entries) }
}

fn write_index(path: &Path, entries: &[IndexEntry]) -> Result<()> {
    let fail = |error: git2::Error| super::store::write_failed(&error);
    let mut index = Index::open(path).map_err(fail)?;
    index.clear().map_err(fail)?;
    for entry in entries {
        index.add(entry).map_err(fail)?;
    }
    index.write().map_err(fail)
}

fn index_entry(folder: &Path, path: &[u8], wanted: &Wanted) -> Result<IndexEntry> {
    let file = folder.join(to_path(path));
    let meta = fs::symlink_metadata(&file).map_err(|error| disk::explain("look at", &file, &error))?;
    Ok(IndexEntry {
        ctime: IndexTime::new(0, 0),
        mtime: time_of(&meta),
        dev: 0,
        ino: 0,
        mode: wanted.mode,
        uid: 0,
        gid: 0,
        file_size: u32::try_from(meta.len()).unwrap_or(u32::MAX),
        id: wanted.id,
        flags: 0,
        flags_extended: 0,
        path: path.to_vec(),
    })
}

fn time_of(meta: &fs::Metadata) -> IndexTime {
    let since = meta.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    IndexTime::new(i32::try_from(since.as_secs()).unwrap_or(i32::MAX), since.subsec_nanos())
}

#[cfg(unix)]
fn to_path(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}

#[cfg(not(unix))]
fn to_path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(String::from_utf8_lossy(bytes).into_owned())
}

#[cfg(unix)]
fn to_bytes(path: &Path) -> Vec<u8> {
    use std::os::unix::ffi::OsStrExt;
    path.as_os_str().as_bytes().to_vec()
}

#[cfg(not(unix))]
fn to_bytes(path: &Path) -> Vec<u8> {
    path.to_string_lossy().replace('\\', "/").into_bytes()
}

/// Forgets what was materialised and takes it away, edits included. Asked for by name only.
pub fn discard(folder: &Path, index: &Path) -> Result<()> {
    disk::remove_file(index)?;
    disk::remove_folder(folder)
}
