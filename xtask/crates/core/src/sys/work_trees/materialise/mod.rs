//! A variant's final tree on disk, for CMake to build.
//!
//! Only files whose blob changed are touched, so that the next build recompiles only what a patch changed. Every file
//! appears by rename: after a kill at any moment, each is the old or the new one. A file that a person edited is
//! never overwritten.

mod edits;
mod files;
mod index;
mod on_disk;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use edits::{refuse_edits, report_restored};
use espalier_series::ObjectId;
use espalier_series::printable;
use files::{remove, write};
use git2::IndexEntry;
use index::{index_entry, open_index, write_index};
use on_disk::{files_there, look};

use crate::error::{Error, Result};
use crate::sys::git::ids::{object_id, oid};
use crate::sys::git::store::Store;
use crate::sys::git::tree_object::{Entry, id_of_files};
use crate::sys::machine::native_path::to_path;
use crate::sys::machine::{disk, owned};
use crate::ui::{Ui, Unit};

/// Result of a run of `materialise`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Materialised {
    /// Number of files that were written, new or changed.
    pub written: usize,
    /// Number of files that were removed.
    pub removed: usize,
    /// Number of files that were up to date.
    pub kept: usize,
}

struct WantedFile {
    mode: u32,
    id: ObjectId,
}

type Want = BTreeMap<Vec<u8>, WantedFile>;

/// The destination of a tree, and the record of its state.
#[derive(Clone, Debug)]
pub struct TreeDestination {
    /// The folder that holds the files.
    pub folder: PathBuf,
    /// A git index that records which blob was written where, and when.
    pub index: PathBuf,
}

/// Makes the folder hold exactly `tree`. `load` fetches the objects of `tree` into the store; it is called only if
/// something has to be written.
pub fn materialise(
    store: &Store,
    tree: ObjectId,
    place: &TreeDestination,
    load: impl Fn() -> Result<()>,
    ui: &Ui,
) -> Result<Materialised> {
    let TreeDestination { folder, index } = place;
    let have = open_index(index)?;
    let want = match remembered(place, tree, &have)? {
        Some(want) => want,
        None => {
            load()?;
            let (want, submodules) = wanted(store, tree)?;
            make_empty(folder, &submodules, ui)?;
            want
        }
    };
    disk::create_folder(folder)?;
    owned::demand(folder)?;
    let there = files_there(folder)?;
    let plan = compare(&want, &Ours { have: &have, pending: &place.pending()? }, folder, &there)?;
    refuse_edits(&plan, folder)?;
    report_restored(&plan, &have, &there, ui);
    if !plan.write.is_empty() {
        load()?;
    }
    place.announce(&plan, &want)?;
    carry_out(store, &want, &plan, folder, ui)?;
    remember(place, tree, &want, &have, &plan)?;
    disk::remove_file(&place.pending_file())?;
    Ok(Materialised { written: plan.write.len(), removed: plan.remove.len(), kept: plan.kept })
}

/// Whether the folder holds exactly `tree`, unmodified; changes nothing.
pub fn is_current(tree: ObjectId, place: &TreeDestination) -> Result<bool> {
    let have = open_index(&place.index)?;
    let want = remembered(place, tree, &have)?.filter(|_| disk::exists(&place.folder));
    let Some(want) = want else { return Ok(false) };
    let ours = Ours { have: &have, pending: &place.pending()? };
    let plan = compare(&want, &ours, &place.folder, &files_there(&place.folder)?)?;
    Ok(plan.write.is_empty() && plan.remove.is_empty() && plan.edited.is_empty())
}

/// Whether a person has changed, added or removed a file since it was written; changes nothing.
pub fn has_edits(place: &TreeDestination) -> Result<bool> {
    let have = open_index(&place.index)?;
    let there = files_there(&place.folder)?;
    for path in &there {
        let Some(written) = have.get(path) else { return Ok(true) };
        if look(&place.folder, path, Some(written))?.id != object_id(written.id) {
            return Ok(true);
        }
    }
    Ok(there.len() != have.len())
}

/// Returns the id of the subtree at `path` of the tree that was written last; `None` if it has no such folder.
pub fn tree_below(place: &TreeDestination, path: &str) -> Result<Option<ObjectId>> {
    let below = |(name, entry): (&Vec<u8>, &IndexEntry)| {
        let name = name.strip_prefix(path.as_bytes())?.strip_prefix(b"/")?.to_vec();
        Some((name, Entry { mode: entry.mode, id: object_id(entry.id) }))
    };
    let files: Vec<_> = open_index(&place.index)?.iter().filter_map(below).collect();
    Ok((!files.is_empty()).then(|| id_of_files(&files)))
}

impl TreeDestination {
    /// Returns the file that names the tree of the index; written after the index, removed before anything changes.
    fn tree_file(&self) -> PathBuf {
        self.index.with_extension("tree")
    }

    /// Returns the file with the blobs that runs were about to write and that the index does not have yet.
    fn pending_file(&self) -> PathBuf {
        self.index.with_extension("pending")
    }

    fn pending(&self) -> Result<BTreeSet<ObjectId>> {
        let text = disk::read_if_there(&self.pending_file())?.unwrap_or_default();
        Ok(espalier_series::lossy(&text).lines().filter_map(|line| line.parse::<ObjectId>().ok()).collect())
    }

    /// Written before the first file changes: after a kill, files that we wrote are then not mistaken for a person's
    /// edits.
    fn announce(&self, plan: &Plan, want: &Want) -> Result<()> {
        if plan.write.is_empty() {
            return Ok(());
        }
        let mut ids = self.pending()?;
        ids.extend(plan.write.iter().filter_map(|path| want.get(path)).map(|wanted| wanted.id));
        let lines: String = ids.iter().map(|id| format!("{id}\n")).collect();
        disk::write_atomically(&self.pending_file(), lines.as_bytes())
    }
}

/// The files that we wrote: recorded in the index, or announced by a killed run.
struct Ours<'a> {
    have: &'a BTreeMap<Vec<u8>, IndexEntry>,
    pending: &'a BTreeSet<ObjectId>,
}

impl Ours<'_> {
    fn has(&self, path: &[u8], id: ObjectId) -> bool {
        self.have.get(path).is_some_and(|entry| entry.id == oid(id)) || self.pending.contains(&id)
    }
}

/// If `tree` was written last, the index has its files, and no object is needed.
fn remembered(
    place: &TreeDestination,
    tree: ObjectId,
    have: &BTreeMap<Vec<u8>, IndexEntry>,
) -> Result<Option<Want>> {
    let text = disk::read_if_there(&place.tree_file())?;
    if have.is_empty() || text.as_deref() != Some(tree.to_string().as_bytes()) {
        return Ok(None);
    }
    let want = have
        .iter()
        .map(|(path, entry)| (path.clone(), WantedFile { mode: entry.mode, id: object_id(entry.id) }));
    Ok(Some(want.collect()))
}

/// Returns the files and links of `tree`, and the paths of its submodules.
fn wanted(store: &Store, tree: ObjectId) -> Result<(Want, Vec<Vec<u8>>)> {
    let (mut want, mut submodules) = (Want::new(), Vec::new());
    for (path, mode, id) in store.files(tree)? {
        match mode {
            0o100_644 | 0o100_755 | 0o120_000 => drop(want.insert(path, WantedFile { mode, id })),
            SUBMODULE => submodules.push(path),
            _ => {
                let name = printable(&path);
                let what = format!("`{name}` has mode {mode:o}: only files and links can be built");
                return Err(Error::no(what).hint("look at what the pin is: git ls-tree -r of its tree"));
            }
        }
    }
    Ok((want, submodules))
}

/// Mode of a submodule: a commit of another repository, whose objects are not part of the pin.
const SUBMODULE: u32 = 0o160_000;

/// Creates an empty folder for each submodule, as git does on a checkout without `--recurse-submodules`.
fn make_empty(folder: &Path, submodules: &[Vec<u8>], ui: &Ui) -> Result<()> {
    if submodules.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = submodules.iter().map(|path| printable(path)).collect();
    ui.status("Skipping", format!("submodules: {} (left empty)", names.join(", ")));
    submodules.iter().try_for_each(|path| disk::create_folder(&folder.join(to_path(path))))
}

#[derive(Default)]
struct Plan {
    write: Vec<Vec<u8>>,
    remove: Vec<Vec<u8>>,
    edited: Vec<Vec<u8>>,
    kept: usize,
    /// Files of `write` whose content is ours and whose mode differs.
    remoded: Vec<Vec<u8>>,
    /// Number of files that are correct but whose time differs from the index.
    retimed: usize,
}

impl Plan {
    fn is_quiet(&self) -> bool {
        self.write.is_empty() && self.remove.is_empty() && self.retimed == 0
    }
}

fn compare(want: &Want, ours: &Ours<'_>, folder: &Path, there: &BTreeSet<Vec<u8>>) -> Result<Plan> {
    let mut plan = Plan::default();
    for (path, wanted) in want {
        if !there.contains(path) {
            plan.write.push(path.clone());
            continue;
        }
        let found = look(folder, path, ours.have.get(path))?;
        if found.id == wanted.id && found.mode == wanted.mode {
            plan.kept += 1;
            plan.retimed += usize::from(!found.as_written);
        } else if found.id == wanted.id || ours.has(path, found.id) {
            if ours.have.get(path).is_some_and(|entry| entry.id == oid(found.id) && entry.mode != found.mode)
            {
                plan.remoded.push(path.clone());
            }
            plan.write.push(path.clone());
        } else {
            plan.edited.push(path.clone());
        }
    }
    for path in there.iter().filter(|path| !want.contains_key(*path)) {
        let found = look(folder, path, ours.have.get(path))?;
        if ours.has(path, found.id) { plan.remove.push(path.clone()) } else { plan.edited.push(path.clone()) }
    }
    Ok(plan)
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

/// Rewrites the index if a file was touched or its time differs; as the last step, so that the index never lists files
/// that were not written.
fn remember(
    place: &TreeDestination,
    tree: ObjectId,
    want: &Want,
    have: &BTreeMap<Vec<u8>, IndexEntry>,
    plan: &Plan,
) -> Result<()> {
    let tree = tree.to_string();
    let same_tree = disk::read_if_there(&place.tree_file())?.as_deref() == Some(tree.as_bytes());
    if same_tree && plan.is_quiet() && have.len() == want.len() {
        return Ok(());
    }
    let entries: Result<Vec<IndexEntry>> =
        want.iter().map(|(name, wanted)| index_entry(&place.folder, name, wanted)).collect();
    write_index(&place.index, &entries?)?;
    disk::write_atomically(&place.tree_file(), tree.as_bytes())
}

/// Removes a person's changes and additions; unmodified files stay. Only on explicit request.
pub fn discard_edits(place: &TreeDestination) -> Result<()> {
    let have = open_index(&place.index)?;
    if !disk::exists(&place.folder) {
        return Ok(());
    }
    owned::demand(&place.folder)?;
    for path in files_there(&place.folder)? {
        let written = have.get(&path);
        let found = look(&place.folder, &path, written)?;
        if written.is_none_or(|entry| entry.id != oid(found.id)) {
            remove(&place.folder, &path)?;
        }
    }
    Ok(())
}
