//! A generation as it was locked: the trees that its siblings were made for. When an earlier patch changes, a sibling
//! is merged from there onto the tree that it meets now.

use std::collections::BTreeSet;

use espalier_core::config::layout::Layout;
use espalier_core::config::lock::{LockedSibling, LockedVariant};
use espalier_core::config::paths::folder;
use espalier_core::config::pins::{Pin, Pins};
use espalier_core::error::Result;
use espalier_core::sys::git::at_commit::version_where;
use espalier_core::sys::git::store::Store;
use espalier_core::sys::git::store_tree::StoreTree;
use espalier_core::sys::machine::disk;
use espalier_core::sys::project::inputs::PatchFile;
use espalier_series::{
    ObjectId, Patch, Replay, ReplayError, SameFunction, Step, Tree, TreeChange, TreeNames, Verdict,
    exact_patch,
};

use super::{Placed, place};
use crate::stack::{Generation, Sibling};
use crate::{lock_file, range};

/// Names of the two trees of the merge, as conflict markers have them.
const NAMES: TreeNames<'static> =
    TreeNames { pin: "the generation as locked", tip: "the earlier patches as they are now" };

/// The project as it is now, with the lock of the generation as it was.
pub struct Now<'n> {
    /// The folder of the project.
    pub layout: &'n Layout,
    /// Its `pins.toml`.
    pub pins: &'n Pins,
    /// The generation.
    pub generation: &'n Pin,
    /// The pin that the patches were made for.
    pub base: &'n Pin,
    /// The folders of the series, parents first.
    pub folders: Vec<&'n str>,
    /// The patches of the series, and their siblings.
    pub files: Vec<&'n PatchFile>,
}

/// The series on a generation as it was locked, exact there.
pub struct LockedSeries {
    /// The tree of the generation.
    tree: ObjectId,
    /// The patches, without those that were dropped.
    patches: Vec<Patch>,
    /// For each of them the file of the sibling that it is.
    siblings: Vec<Option<PatchFile>>,
}

/// A sibling, merged with what the earlier patches are now.
pub enum RefreshedSibling {
    /// The merge needs no decision, and was applied.
    Applied {
        /// The sibling, exact on the tree that it met.
        patch: Patch,
        /// Its changes.
        changes: Vec<TreeChange>,
    },
    /// The merge needs a decision; nothing was applied.
    Undecided(Step),
}

/// A sibling, merged onto another tree than the one that it was made for.
struct MergedSibling {
    /// The merge.
    step: Step,
    /// The sibling, exact on that tree; `None` if the merge needs a decision.
    patch: Option<Patch>,
}

/// A patch of a locked series: its file, its digest, and the sibling that took its place.
type LockedEntry<'l> = (&'l str, &'l str, Option<&'l LockedSibling>);

impl LockedSeries {
    /// Rebuilds the series from its entry in the lock. Files that have changed since are those of the history of the
    /// project. `None` if there is no such entry, or if it was made for another tree of the generation; a wrong result
    /// is harmless, because no sibling is exact on it.
    pub fn read(store: &Store, now: &Now<'_>) -> Option<LockedSeries> {
        let (entry, folders) = now.entry()?;
        let tree = now.generation.tree;
        if entry.base.parse::<ObjectId>() != Ok(tree) {
            return None;
        }
        let made_for: ObjectId = entry.made_for.as_ref()?.parse().ok()?;
        let (mut files, mut patches, mut siblings) = (Vec::new(), Vec::new(), Vec::new());
        for (path, sha256, sibling) in entries(&entry, &folders) {
            let file = now.version(path, sha256)?;
            let sibling = match sibling {
                Some(record) => Some(Sibling::new(now.version(&record.file, &record.sha256)?).ok()?),
                None => None,
            };
            patches.push(file.parse().ok()?);
            files.push(file);
            siblings.push(sibling);
        }
        let base = Pin { tree: made_for, ..now.base.clone() };
        let generation = Generation { base, files, patches, siblings };
        let placed = place(store, tree, (&generation, &now.generation.revision.to_string())).ok()?;
        let mut series = LockedSeries { tree, patches: Vec::new(), siblings: Vec::new() };
        for patch in placed {
            let exact = match (patch.result, patch.sibling) {
                (Placed::Replayed(exact), _) => exact,
                (Placed::Replaced { .. }, Some(sibling)) if !sibling.patch.is_dropped() => {
                    sibling.patch.clone()
                }
                _ => continue,
            };
            series.patches.push(exact);
            series.siblings.push(patch.sibling.map(|sibling| sibling.file.clone()));
        }
        Some(series)
    }

    /// Applies `sibling`, which is not exact any more, to the tree of `replay` in the place of its patch, merged with
    /// the present earlier patches. `None` if there is no base to merge from, or if the merge is not exact. `same` are
    /// functions that a person has taken as the same.
    ///
    /// # Errors
    ///
    /// When a tree cannot be read.
    pub fn refresh(
        &self,
        store: &Store,
        sibling: &Sibling,
        replay: &mut Replay<'_>,
        same: &[SameFunction],
    ) -> Result<Option<RefreshedSibling>> {
        let Some(merged) = self.merge(store, sibling, replay.tree(), same)? else { return Ok(None) };
        let Some(patch) = merged.patch else { return Ok(Some(RefreshedSibling::Undecided(merged.step))) };
        Ok(match replay.apply_instead(&patch)? {
            Verdict::Exact(changes) => Some(RefreshedSibling::Applied { patch, changes }),
            Verdict::Drifted(_) | Verdict::Replayed(_) => None,
        })
    }

    /// Merges `sibling` from the tree that it was made for onto the tree `onto`, by the same rules as a patch on
    /// another upstream tree; `None` if it is not exact on the locked series, so that there is no base to merge from.
    fn merge(
        &self,
        store: &Store,
        sibling: &Sibling,
        onto: &dyn Tree,
        same: &[SameFunction],
    ) -> Result<Option<MergedSibling>> {
        let Some(at) = self.position(&sibling.file) else { return Ok(None) };
        let mut patches = self.patches.get(..at).unwrap_or_default().to_vec();
        patches.push(sibling.patch.clone());
        let tree = StoreTree::new(store, self.tree)?;
        let applied = range::applied_series(store, &patches, &tree)?;
        let nothing = BTreeSet::new();
        let replay = Replay::new(&applied, onto, NAMES, &nothing);
        let mut replay = replay.with_upstream(&tree).with_same_functions(same);
        let step = match replay.step(at) {
            Ok(step) => step,
            Err(ReplayError::Tree(error)) => return Err(error.into()),
            Err(ReplayError::NotExact | ReplayError::NoSuchPatch) => return Ok(None),
        };
        let patch = match step.replayed.needs_decision() {
            true => None,
            false => Some(exact_patch(&sibling.patch, &step.replayed, &replay)?),
        };
        Ok(Some(MergedSibling { step, patch }))
    }

    /// Returns the index of a sibling: as it was locked, or by its path if it was edited since.
    fn position(&self, file: &PatchFile) -> Option<usize> {
        let find = |is_it: &dyn Fn(&PatchFile) -> bool| {
            self.siblings.iter().position(|sibling| sibling.as_ref().is_some_and(is_it))
        };
        find(&|sibling| sibling.sha256 == file.sha256).or_else(|| find(&|sibling| sibling.file == file.file))
    }
}

impl<'n> Now<'n> {
    /// Returns the locked entry of a variant on the generation that has the series, and the folders of that variant.
    fn entry(&self) -> Option<(LockedVariant, Vec<&'n str>)> {
        let mut lock = lock_file::read_in(self.layout).ok()??;
        let pins: &'n Pins = self.pins;
        let variants = pins.patched_on(&self.generation.name);
        let folders = variants.map(|variant| (variant, pins.patch_folders(variant)));
        let mut with_series = folders.filter(|(_, folders)| folders.starts_with(&self.folders));
        with_series
            .find_map(|(variant, folders)| Some((lock.variants.remove(variant.name.as_str())?, folders)))
    }

    /// Returns the version of a file with this digest, or the present one if that is not known any more.
    fn version(&self, path: &str, sha256: &str) -> Option<PatchFile> {
        let is_it = |bytes: &[u8]| disk::sha256(bytes) == sha256;
        let there = self.files.iter().find(|file| file.sha256 == sha256).map(|file| file.bytes.clone());
        let bytes = there
            .or_else(|| version_where(self.layout.root(), path, is_it))
            .or_else(|| Some(self.files.iter().find(|file| file.file == path)?.bytes.clone()))?;
        Some(PatchFile::new(path.to_string(), bytes))
    }
}

/// Returns the patches of a locked series in order, with those that were dropped.
fn entries<'l>(entry: &'l LockedVariant, folders: &[&str]) -> Vec<LockedEntry<'l>> {
    let mut entries: Vec<LockedEntry<'l>> = Vec::new();
    for patch in &entry.patches {
        if entry.siblings.iter().all(|sibling| sibling.file != patch.file) {
            entries.push((patch.file.as_str(), patch.sha256.as_str(), None));
        }
    }
    for sibling in &entry.siblings {
        entries.push((sibling.patch.as_str(), sibling.patch_sha256.as_str(), Some(sibling)));
    }
    let series = |path: &str| folders.iter().position(|name| *name == folder(path));
    entries.sort_by_key(|(path, _, _)| (series(path), *path));
    entries
}
