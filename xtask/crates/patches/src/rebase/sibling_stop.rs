//! A patch that has a sibling on the generation. The sibling is applied in its place, merged with what earlier patches
//! have become since. At a stop the work starts from the sibling, and the change that the patch has got since then is
//! merged into it.

use std::cell::OnceCell;
use std::collections::BTreeSet;

use espalier_core::config::lock::LockedSibling;
use espalier_core::config::paths::file_name;
use espalier_core::error::Result;
use espalier_core::sys::git::at_commit::version_where;
use espalier_core::sys::git::store::Store;
use espalier_core::sys::git::store_tree::StoreTree;
use espalier_core::sys::git::tree::GitTree;
use espalier_core::sys::machine::disk;
use espalier_series::{
    Change, Content, FileMode, FilePatch, FileSide, MergeKind, Mode, ObjectId, Patch, Replay, Replayed,
    ReplayedFile, RepoPath, SameFunction, Step, Tree, TreeChange, TreeEntry, TreeNames, Verdict, Version,
    hunks_between, parse,
};

use super::on_generation::locked_series;
use super::stop::{Stop, StopSibling};
use super::target::SeriesMove;
use crate::apply::{change_tree, trees_after};
use crate::generation::locked::{LockedSeries, RefreshedSibling};
use crate::range;
use crate::report::conflict::{ChangeSince, PackagedSibling};
use crate::report::range_diff::range_diff;
use crate::stack::Sibling;

/// A series as the patch at which it stops finds it.
pub struct Before<'b, 'r, 's> {
    pub replay: &'b mut Replay<'r>,
    pub tree: &'b mut GitTree<'s>,
    /// The commit of `tree`.
    pub head: ObjectId,
    /// Functions that a person has taken as the same.
    pub same: &'b [SameFunction],
    /// The generation as it was locked, once a sibling has needed it.
    pub locked: &'b OnceCell<Option<LockedSeries>>,
    /// Whether the user asked to stop at the patch.
    pub may_edit: bool,
}

/// The result for a patch that may have a sibling.
pub enum AtSibling {
    /// It has none that can be used: the patch itself is replayed.
    Unused,
    /// Its sibling takes its place.
    Applied(Box<AppliedSibling>),
    /// A person works on the sibling.
    Stopped(Box<Stop>),
}

/// A sibling that is exact on the tree that it meets.
pub struct AppliedSibling {
    /// The sibling, as it is exact.
    pub patch: Patch,
    /// Its changes.
    pub changes: Vec<TreeChange>,
    /// Whether it was merged with what the earlier patches are now.
    pub is_merged: bool,
}

/// Applies the sibling of the patch at `at`, or stops with it in the work tree. One that is not exact any more is
/// merged with what the earlier patches are now, and that merge is in the work tree if it needs a decision. A sibling
/// is not used if it is not known what it was made for, and at a stop not if it drops the patch.
pub fn apply(
    series_move: &SeriesMove<'_>,
    store: &Store,
    before: Before<'_, '_, '_>,
    at: usize,
) -> Result<AtSibling> {
    let there = series_move.sibling(at).zip(series_move.stack.patches.get(at));
    let Some((sibling, patch)) =
        there.filter(|(sibling, _)| !(before.may_edit && sibling.patch.is_dropped()))
    else {
        return Ok(AtSibling::Unused);
    };
    if let Verdict::Exact(changes) = before.replay.apply_instead(&sibling.patch)? {
        let applied = AppliedSibling { patch: sibling.patch.clone(), changes, is_merged: false };
        return at_applied(series_move, store, before, (at, sibling, patch), applied);
    }
    let locked = before.locked.get_or_init(|| locked_series(series_move, store));
    let refreshed = match locked {
        Some(locked) => locked.refresh(store, sibling, before.replay, before.same)?,
        None => None,
    };
    match refreshed {
        None => Ok(AtSibling::Unused),
        Some(RefreshedSibling::Undecided(step)) => {
            let stop = stop_in_merge(series_move, store, before, (sibling, patch), step)?;
            Ok(AtSibling::Stopped(Box::new(stop)))
        }
        Some(RefreshedSibling::Applied { patch: merged, changes }) => {
            let applied = AppliedSibling { patch: merged, changes, is_merged: true };
            at_applied(series_move, store, before, (at, sibling, patch), applied)
        }
    }
}

/// Stops with an applied sibling if the user asked for it.
fn at_applied(
    series_move: &SeriesMove<'_>,
    store: &Store,
    before: Before<'_, '_, '_>,
    which: (usize, &Sibling, &Patch),
    applied: AppliedSibling,
) -> Result<AtSibling> {
    if !before.may_edit {
        return Ok(AtSibling::Applied(Box::new(applied)));
    }
    let stop = stop_to_edit(series_move, store, before, which, &applied.changes)?;
    Ok(AtSibling::Stopped(Box::new(stop)))
}

/// Stops with the sibling in the work tree, as `changes` make it, and with the change of its patch merged into it.
fn stop_to_edit(
    series_move: &SeriesMove<'_>,
    store: &Store,
    before: Before<'_, '_, '_>,
    (at, sibling, patch): (usize, &Sibling, &Patch),
    changes: &[TreeChange],
) -> Result<Stop> {
    let Before { replay, tree, head, same, .. } = before;
    let mut files = files_of(changes, &StoreTree::new(store, tree.write()?)?)?;
    change_tree(store, tree, changes)?;
    let with_sibling = tree.write()?;
    let carried = carry(series_move, (store, with_sibling), (at, sibling), same)?;
    let mut packaged = PackagedSibling {
        file: sibling.file.file.clone(),
        outdated: false,
        change: ChangeSince::None,
        difference: carried.old.as_ref().and_then(|old| range_diff(old, patch)),
    };
    if sibling.behind.is_some() {
        packaged.change = if carried.step.is_some() { ChangeSince::Merged } else { ChangeSince::ByHand };
    }
    if let Some(step) = carried.step {
        change_tree(store, tree, &step.changes)?;
        let merged: BTreeSet<RepoPath> = step.replayed.files.iter().filter_map(path_of).collect();
        files.retain(|file| path_of(file).is_none_or(|path| !merged.contains(&path)));
        files = [step.replayed.files, files].concat();
    }
    let tree = tree.write()?;
    // On disk, because git shows them in the work tree.
    [with_sibling, tree].into_iter().try_for_each(|tree| store.write_tree(tree))?;
    let stop = Stop::new(Replayed { patch: patch.name.clone(), files }, replay, (head, tree), true);
    Ok(Stop {
        sibling: Some(StopSibling { packaged, tree: Some(with_sibling), paths: paths(patch) }),
        ..stop
    })
}

/// Stops with the merge of the sibling and of what the earlier patches are now in the work tree.
fn stop_in_merge(
    series_move: &SeriesMove<'_>,
    store: &Store,
    before: Before<'_, '_, '_>,
    (sibling, patch): (&Sibling, &Patch),
    step: Step,
) -> Result<Stop> {
    let Before { replay, tree, head, may_edit, .. } = before;
    let old = sibling.behind.as_ref().and_then(|record| earlier_version(series_move, record));
    let packaged = PackagedSibling {
        file: sibling.file.file.clone(),
        outdated: true,
        change: if sibling.behind.is_some() { ChangeSince::ByHand } else { ChangeSince::None },
        difference: old.as_ref().and_then(|old| range_diff(old, patch)),
    };
    change_tree(store, tree, &step.changes)?;
    // Later patches are judged on it: after a refused patch the rebase does not stop here.
    replay.apply_step(&step);
    let tree = tree.write()?;
    store.write_tree(tree)?;
    // Without a conflict, the earlier patches have a part of the sibling: what is left is to be edited.
    let may_edit = may_edit || !step.replayed.has_conflict();
    let replayed = Replayed { patch: patch.name.clone(), files: step.replayed.files };
    let stop = Stop::new(replayed, replay, (head, tree), may_edit);
    Ok(Stop { sibling: Some(StopSibling { packaged, tree: None, paths: paths(patch) }), ..stop })
}

/// Returns the paths of a patch.
fn paths(patch: &Patch) -> Vec<RepoPath> {
    patch.files.iter().flat_map(|file| file.paths()).cloned().collect()
}

/// Returns the files that `changes` write or delete, as files of a patch that is exact on the tree `before`.
fn files_of(changes: &[TreeChange], before: &StoreTree<'_>) -> Result<Vec<ReplayedFile>> {
    let mut files = Vec::new();
    for change in changes {
        let version = |mode: Mode, id: ObjectId| Version { path: change.path.clone(), mode, id };
        let old = before.entry(change.path.as_bytes())?;
        files.push(ReplayedFile {
            before: old.map(|entry| version(entry.mode, entry.id)),
            after: change.new.as_ref().map(|file| version(Mode::from(file.mode), file.id)),
            merge_kind: MergeKind::Unchanged,
            followed: None,
            hunks: Vec::new(),
        });
    }
    Ok(files)
}

/// Returns the path of a file, also of one in conflict.
fn path_of(file: &ReplayedFile) -> Option<RepoPath> {
    if let MergeKind::Conflict(conflict) = &file.merge_kind {
        return Some(conflict.path.clone());
    }
    file.after.as_ref().or(file.before.as_ref()).map(|version| version.path.clone())
}

/// The change that a patch has got since its sibling was made for it.
#[derive(Default)]
struct Carried {
    /// The patch as it was; `None` if it has not changed, or if its earlier version is not known.
    old: Option<Patch>,
    /// The change, merged into the sibling; `None` if there is nothing to merge, or if it cannot be merged.
    step: Option<Step>,
}

/// Merges the change of the patch at `at` into the tree `with_sibling`.
fn carry(
    series_move: &SeriesMove<'_>,
    (store, with_sibling): (&Store, ObjectId),
    (at, sibling): (usize, &Sibling),
    same: &[SameFunction],
) -> Result<Carried> {
    let patches = &series_move.stack.patches;
    let Some((record, patch)) = sibling.behind.as_ref().zip(patches.get(at)) else {
        return Ok(Carried::default());
    };
    let Some(old) = earlier_version(series_move, record) else { return Ok(Carried::default()) };
    let base = series_move.stack.pin.tree;
    let trees = trees_after(store, base, patches.get(..=at).unwrap_or_default())?;
    let below = at.checked_sub(1).and_then(|before| trees.get(before)).copied().unwrap_or(base);
    let now = trees.last().copied().unwrap_or(base);
    // An earlier patch of the series may have changed with it: then nothing says what the old one makes of that.
    let then = trees_after(store, below, std::slice::from_ref(&old)).ok();
    let step = match then.and_then(|trees| trees.last().copied()) {
        Some(then) => {
            let onto = (with_sibling, sibling.file.name());
            merge(store, (&[&old, patch], [then, now]), onto, same)?
        }
        None => None,
    };
    Ok(Carried { old: Some(old), step })
}

/// Returns the version of the patch that the sibling was made for, from the history of the project.
fn earlier_version(series_move: &SeriesMove<'_>, record: &LockedSibling) -> Option<Patch> {
    let root = series_move.context.layout.root();
    let is_it = |bytes: &[u8]| disk::sha256(bytes) == record.patch_sha256;
    let bytes = version_where(root, &record.patch, is_it)?;
    parse(file_name(&record.patch), &bytes).ok()
}

/// Merges the change between two versions of a patch, which give the trees `then` and `now` on the same base, into the
/// tree `onto`, which is called `name`; `None` if that is not a change of text files.
fn merge(
    store: &Store,
    (versions, [then, now]): (&[&Patch; 2], [ObjectId; 2]),
    (onto, name): (ObjectId, &str),
    same: &[SameFunction],
) -> Result<Option<Step>> {
    let [then, now] = [StoreTree::new(store, then)?, StoreTree::new(store, now)?];
    let Some(change) = change_between(store, versions, [&then, &now])? else { return Ok(None) };
    let patches = [change];
    let onto = StoreTree::new(store, onto)?;
    let applied = range::applied_series(store, &patches, &then)?;
    let nothing = BTreeSet::new();
    let names = TreeNames { pin: "the patch as locked", tip: name };
    let mut replay = Replay::new(&applied, &onto, names, &nothing).with_same_functions(same);
    Ok(replay.step(0).ok())
}

/// Returns the change from the tree `then` to `now` in the files of two versions of a patch, as a patch; `None` if one
/// of the files is not text.
fn change_between(
    store: &Store,
    versions: &[&Patch; 2],
    [then, now]: [&StoreTree<'_>; 2],
) -> Result<Option<Patch>> {
    let files = versions.iter().flat_map(|patch| &patch.files);
    let paths: BTreeSet<&RepoPath> = files.flat_map(|file| file.paths()).collect();
    let mut files = Vec::new();
    for path in paths {
        let entries = [then.entry(path.as_bytes())?, now.entry(path.as_bytes())?];
        if entries[0] == entries[1] {
            continue;
        }
        match file_between(store, path, entries)? {
            Some(file) => files.push(file),
            None => return Ok(None),
        }
    }
    let [_, patch] = versions;
    // The name is a label of conflict markers.
    let name = format!("the change of {}", patch.name);
    Ok(Some(Patch { name, files, ..(*patch).clone() }))
}

/// Returns the change of one file; `None` if it is not text.
fn file_between(
    store: &Store,
    path: &RepoPath,
    entries: [Option<TreeEntry>; 2],
) -> Result<Option<FilePatch>> {
    let text = |entry: &Option<TreeEntry>| match entry {
        Some(entry) => store.read(entry.id).map(|bytes| bytes.to_vec()),
        None => Ok(Vec::new()),
    };
    let is_file = |entry: &Option<TreeEntry>| {
        entry.as_ref().is_none_or(|entry| FileMode::of_entry(entry.mode).is_some())
    };
    if !entries.iter().all(is_file) {
        return Ok(None);
    }
    let [old, new] = [text(&entries[0])?, text(&entries[1])?];
    if old.contains(&0) || new.contains(&0) {
        return Ok(None);
    }
    let hunks = hunks_between(&old, &new);
    let change = match &entries {
        [None, _] => Change::Create,
        [_, None] => Change::Delete,
        _ => Change::Modify,
    };
    let side = |entry: TreeEntry| {
        let (path, id) = (path.clone(), Some(entry.id));
        FileSide { path, mode: FileMode::of_entry(entry.mode), id }
    };
    let [old, new] = entries.map(|entry| entry.map(side));
    let content = if hunks.is_empty() { Content::Unchanged } else { Content::Text(hunks) };
    Ok(Some(FilePatch { change, old, new, content, line: 0 }))
}
