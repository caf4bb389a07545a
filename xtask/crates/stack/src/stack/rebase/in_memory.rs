//! A rebase without a trace: `--dry-run`.

use super::Choices;
use super::course::{Course, read_upstream};
use super::steps::{Verdict, names, notes, step, verdict};
use crate::error::Result;
use crate::plan::rebase_state::places_of_taken;
use crate::report::range_diff::settled;
use crate::report::rebase::{self as report, Fate, PatchMove, RebaseReport};
use crate::report::replay;
use crate::report::silent_revert::{Bases, silent_reverts};
use crate::series::ObjectId;
use crate::series::{Patch, Replay, Replayed, replayed_patch};
use crate::stack::apply::change_tree;
use crate::stack::range;
use crate::sys::git::store_tree::StoreTree;
use crate::sys::git::tree::GitTree;
use crate::sys::project::inputs::PatchFile;

/// The whole series in memory. A patch with a conflict is left out, and the rest are tried without it.
pub fn run(course: &Course<'_>, choices: Choices) -> Result<RebaseReport> {
    let store = course.store;
    let pin_tree = StoreTree::new(store, course.stack.pin.tree)?;
    let tip_tree = StoreTree::on_way(store, course.tip.tree, course.stack.pin.tree, course.tip.tree)?;
    let origin = range::origin(store, &course.stack.patches, &pin_tree)?;
    let upstream = read_upstream(course, &origin)?;
    let taken = places_of_taken(&upstream);
    let mut replay = Replay::new(&origin, &tip_tree, names(course), &taken);
    let mut tree = GitTree::new(store, course.tip.tree)?;
    let mut moves = Vec::new();
    let mut new_patches = Vec::new();
    for (at, (patch, file)) in course.stack.patches.iter().zip(&course.stack.files).enumerate() {
        let step = step(course, &mut replay, at)?;
        if !step.replayed.has_conflict() {
            change_tree(store, &mut tree, &step.changes)?;
        }
        let new = new_patch(patch, &step.replayed, &replay)?;
        let verdict = verdict(&step.replayed, choices);
        let notes = notes(&step.replayed, &upstream, at, verdict);
        let conflicts = step.replayed.conflicts().map(replay::describe_conflict).collect();
        moves.push(PatchMove { notes, conflicts, ..patch_move(file, (patch, &new), verdict, choices) });
        new_patches.push(new);
    }
    let pairs = course.stack.patches.iter().zip(&new_patches).zip(&moves);
    let stays = pairs.filter(|(_, moved)| moved.fate.goes_by_itself()).map(|(pair, _)| pair);
    let reverts = reverts(course, stays)?;
    let report = empty_report(course, tree.write()?);
    Ok(RebaseReport { patches: moves, reverts, ..report })
}

/// Of a patch with conflicts there is no new one yet.
fn new_patch(patch: &Patch, replayed: &Replayed, replay: &Replay<'_>) -> Result<Patch> {
    match replayed.has_conflict() {
        true => Ok(patch.clone()),
        false => Ok(replayed_patch(patch, replayed, replay)?),
    }
}

fn patch_move(
    file: &PatchFile,
    (old, new): (&Patch, &Patch),
    verdict: Verdict,
    choices: Choices,
) -> PatchMove {
    let becomes = |new| settled(old, new, choices.no_range_diff);
    let (fate, range_diff) = match verdict {
        Verdict::Stays => becomes(Some(new)),
        Verdict::Dropped => becomes(None),
        Verdict::Asks(Fate::PartlyUpstreamed) => (Fate::PartlyUpstreamed, becomes(Some(new)).1),
        Verdict::Asks(fate) => (fate, None),
    };
    PatchMove {
        file: file.file.clone(),
        new_file: None,
        subject: old.subject.clone(),
        fate,
        notes: Vec::new(),
        conflicts: Vec::new(),
        range_diff,
    }
}

/// The report without its patches.
pub fn empty_report(course: &Course<'_>, tree: ObjectId) -> RebaseReport {
    RebaseReport {
        variant: course.stack.variant.name.to_string(),
        upstream: course.stack.pin.upstream.clone(),
        from: report::place(&course.old_name, course.stack.pin.tree),
        to: report::place(&course.tip.name, course.tip.tree),
        tree: tree.to_string(),
        patches: Vec::new(),
        reverts: Vec::new(),
        written: false,
    }
}

/// What new patches undo of upstream's work between the two trees.
pub fn reverts<'p>(
    course: &Course<'_>,
    pairs: impl Iterator<Item = (&'p Patch, &'p Patch)>,
) -> Result<Vec<report::Revert>> {
    let old = StoreTree::new(course.store, course.stack.pin.tree)?;
    let new = StoreTree::new(course.store, course.tip.tree)?;
    Ok(silent_reverts(pairs, &Bases { old: &old, new: &new })?)
}
