//! A rebase without a trace: `--dry-run`.

use git2::Oid;

use super::course::Course;
use super::steps::{add, arrivals_of, names, notes_on, step, unreadable};
use super::{Choices, conflict};
use crate::error::Result;
use crate::report::rebase::{self as report, Fate, PatchMove, RebaseReport};
use crate::series::{Patch, Replay, Replayed, replayed_patch};
use crate::sys::git_tree::GitTree;
use crate::sys::inputs::PatchFile;
use crate::sys::store_tree::StoreTree;

/// The whole series in memory. A patch with a conflict is left out, and the rest are tried without it.
pub fn run(course: &Course<'_>, choices: Choices) -> Result<RebaseReport> {
    let store = course.store;
    let pin_tree = StoreTree::new(store, course.pin.tree)?;
    let tip_tree = StoreTree::new(store, course.tip.tree)?;
    let find = || arrivals_of(store, course);
    let mut replay = Replay::new(&pin_tree, &tip_tree, names(course), &find);
    let mut tree = GitTree::new(store, course.tip.tree)?;
    let mut moves = Vec::new();
    let mut new_patches = Vec::new();
    for (patch, file) in course.patches.iter().zip(&course.inputs.patches) {
        let step = step(course, &mut replay, patch)?;
        if !step.replayed.has_conflict() {
            add(store, &mut tree, &step.changes)?;
        }
        let new = new_patch(patch, &step.replayed, &replay)?;
        moves.push(patch_move(file, (patch, &new), &step.replayed, choices));
        new_patches.push(new);
    }
    let pairs = course.patches.iter().zip(&new_patches).zip(&moves);
    let changed = pairs.filter(|(_, moved)| moved.fate.has_range_diff()).map(|(pair, _)| pair);
    let reverts = reverts(course, changed)?;
    let report = empty_report(course, tree.write()?);
    Ok(RebaseReport { patches: moves, reverts, ..report })
}

/// Of a patch with conflicts there is no new one yet.
fn new_patch(patch: &Patch, replayed: &Replayed, replay: &Replay<'_>) -> Result<Patch> {
    match replayed.has_conflict() {
        true => Ok(patch.clone()),
        false => replayed_patch(patch, replayed, replay).map_err(unreadable),
    }
}

fn patch_move(
    file: &PatchFile,
    (old, new): (&Patch, &Patch),
    replayed: &Replayed,
    choices: Choices,
) -> PatchMove {
    let fate = match () {
        () if replayed.has_conflict() => Fate::Conflict,
        () if replayed.is_upstreamed() => Fate::Upstreamed,
        () if replayed.is_partly_upstreamed() => Fate::PartlyUpstreamed,
        () if replayed.has_the_same_hunks() => Fate::Unchanged,
        () => report::fate(old, new),
    };
    let shown = !choices.no_range_diff && fate.has_range_diff();
    PatchMove {
        file: file.file.clone(),
        new_file: None,
        subject: old.subject.clone(),
        fate,
        notes: notes_on(replayed),
        conflicts: replayed.conflicts().map(conflict::describe).collect(),
        range_diff: if shown { report::range_diff(old, new) } else { None },
    }
}

/// The report without its patches.
pub fn empty_report(course: &Course<'_>, tree: Oid) -> RebaseReport {
    RebaseReport {
        variant: course.variant.name.clone(),
        upstream: course.pin.upstream.clone(),
        from: report::place(&course.pin.tag, course.pin.tree),
        to: report::place(&course.tip.name, course.tip.tree),
        tree: tree.to_string(),
        patches: Vec::new(),
        reverts: Vec::new(),
        written: false,
    }
}

/// Lines that new patches delete and upstream added, read from the two trees.
pub fn reverts<'p>(
    course: &Course<'_>,
    pairs: impl Iterator<Item = (&'p Patch, &'p Patch)>,
) -> Result<Vec<report::Revert>> {
    let old = StoreTree::new(course.store, course.pin.tree)?;
    let new = StoreTree::new(course.store, course.tip.tree)?;
    report::silent_reverts(pairs, &old, &new).map_err(unreadable)
}
