//! A rebase that leaves no trace: `--dry-run`.

use espalier_core::config::overlay::Clash;
use espalier_core::error::Result;
use espalier_core::sys::git::store_tree::StoreTree;
use espalier_core::sys::git::tree::GitTree;
use espalier_core::sys::project::inputs::PatchFile;
use espalier_series::ObjectId;
use espalier_series::{FailedPatches, Patch, Replay, Replayed, SeriesProof, replayed_patch};

use super::Choices;
use super::dropped::note_losses;
use super::steps::{Decision, Shared, decide, names, notes, shared, step};
use super::target::{SeriesMove, Target, read_upstream};
use crate::apply::change_tree;
use crate::overlays::{self, PinOverlays, UpstreamTree};
use crate::proof::{self, SeriesTrees};
use crate::range;
use crate::rebase::state::{PatchInUpstream, places_of_upstreamed};
use crate::report::proof::ProvenSeries;
use crate::report::range_diff::settled;
use crate::report::rebase::{Fate, PatchMove, RebaseReport};
use crate::report::replay;
use crate::stack::Stack;

/// Result of replaying one series in memory.
pub struct Tried {
    /// The tree after its last patch.
    pub tree: ObjectId,
    /// Every patch, including those of parents.
    pub patches: Vec<PatchMove>,
    /// The own patches that need no decision, compared with what they were.
    proof: ProvenSeries,
}

/// Replays every series on the pin in memory.
pub fn run(target: &Target<'_>, choices: Choices) -> Result<RebaseReport> {
    let named = target.named();
    let mut report = empty_report(named, named.tip.tree);
    let mut trees = Vec::new();
    for series_move in target.series() {
        let tried = run_series(series_move, choices)?;
        if series_move.stack.files == named.stack.files {
            report.tree = tried.tree.to_string();
        }
        trees.push((series_move, tried.tree));
        let mut own: Vec<PatchMove> = tried.patches.into_iter().skip(series_move.stack.parents).collect();
        note_losses(series_move, &mut own)?;
        report.patches.extend(own);
        report.reverts.extend(tried.proof.reverts());
        report.proof.push(tried.proof);
    }
    report.overlays = overlay_clashes(target, &trees)?;
    Ok(report)
}

/// Returns the overlay files that the rebase would stop at when it locks the variants. `trees` are those after the
/// replay of each series.
fn overlay_clashes(target: &Target<'_>, trees: &[(&SeriesMove<'_>, ObjectId)]) -> Result<Vec<Clash>> {
    let SeriesMove { context, pins, store, stack, tip, .. } = target.named();
    let patched = |stack: &Stack| {
        let folders = pins.patch_folders(&stack.variant);
        let same = trees.iter().find(|(series, _)| pins.patch_folders(&series.stack.variant) == folders);
        same.map_or(tip.tree, |(_, tree)| *tree)
    };
    match target {
        Target::Pin(_) | Target::Generation(_) => {
            let upstream = UpstreamTree { name: &tip.name, tree: tip.tree };
            PinOverlays::read(context, pins, &stack.pin.name)?.clashes_in(store, upstream, patched)
        }
        // The stack of the target has no overlays, and its pin is another series.
        Target::Series(_) => {
            let whole = Stack::read(&context.layout, pins, &stack.variant)?;
            let name = whole.pin.revision.to_string();
            let upstream = UpstreamTree { name: &name, tree: whole.pin.tree };
            overlays::clashes_in(store, &whole, upstream, patched(&whole))
        }
    }
}

/// Replays one series with the patches of its parents. A patch with a conflict is left out, and the others are tried
/// without it.
pub fn run_series(series_move: &SeriesMove<'_>, choices: Choices) -> Result<Tried> {
    let store = series_move.store;
    let pin_tree = StoreTree::new(store, series_move.stack.pin.tree)?;
    let tip_tree =
        StoreTree::in_range(store, series_move.tip.tree, series_move.stack.pin.tree, series_move.tip.tree)?;
    let applied = range::applied_series(store, &series_move.stack.patches, &pin_tree)?;
    let upstream = read_upstream(series_move, &applied)?;
    let upstreamed = places_of_upstreamed(&upstream);
    let mut replay = Replay::new(&applied, &tip_tree, names(series_move), &upstreamed);
    let mut tree = GitTree::new(store, series_move.tip.tree)?;
    let mut failed = FailedPatches::default();
    let mut moves = Vec::new();
    let mut new_patches = Vec::new();
    let mut trees = vec![series_move.tip.tree];
    for (at, (patch, file)) in series_move.stack.patches.iter().zip(&series_move.stack.files).enumerate() {
        let step = step(series_move, &mut replay, at)?;
        let mut blocked_by = Vec::new();
        if step.replayed.has_conflict() {
            blocked_by = failed.add(patch);
        } else {
            change_tree(store, &mut tree, &step.changes)?;
        }
        trees.push(tree.write()?);
        let new = new_patch(patch, &step.replayed, &replay)?;
        let decision = match blocked_by.is_empty() {
            true => decide(&step.replayed, choices),
            false => Decision::Asks(Fate::Blocked),
        };
        let mut notes = notes(&step.replayed, &upstream, at, decision);
        let Shared { notes: more, counter_in_doubt } =
            shared(series_move, &replay, (at, &step.replayed), decision)?;
        notes.extend(more);
        // Conflicts of a blocked patch are omitted: text that it does not find may come from the patch that blocks it,
        // and upstream may not have changed it at all.
        let conflicts = step.replayed.conflicts().filter(|_| blocked_by.is_empty());
        let conflicts = conflicts.map(replay::describe_conflict).collect();
        let moved = patch_move(series_move, file, (patch, &new), (decision, choices));
        moves.push(PatchMove { notes, counter_in_doubt, conflicts, blocked_by, ..moved });
        new_patches.push(new);
    }
    let old_trees = proof::trees_of_applied(store, &series_move.stack, &applied)?;
    let proof = proof_of_tried(series_move, (&moves, &new_patches), (&old_trees, &trees, &upstream))?;
    Ok(Tried { tree: tree.write()?, patches: moves, proof })
}

/// Compares the own patches that need no decision with what they were. `old_trees` are those after each patch as it was,
/// `trees` the new ones: the base, and that after each patch.
fn proof_of_tried(
    series_move: &SeriesMove<'_>,
    (moves, new_patches): (&[PatchMove], &[Patch]),
    (old_trees, trees, upstream): (&[ObjectId], &[ObjectId], &[PatchInUpstream]),
) -> Result<ProvenSeries> {
    let SeriesMove { store, stack, .. } = series_move;
    let mut old = SeriesTrees::own_of(stack, old_trees);
    let base = trees.get(stack.parents).copied().unwrap_or(series_move.tip.tree);
    let after = trees.get(stack.parents + 1..).unwrap_or_default();
    let own = new_patches.get(stack.parents..).unwrap_or_default();
    let mut new = SeriesTrees::in_order((series_move.tip.tree, base), own, after);
    let fates: Vec<Fate> = moves.iter().skip(stack.parents).map(|moved| moved.fate).collect();
    old.keep(&fates, |fate| fate.goes_by_itself() || fate == Fate::Dropped);
    new.keep(&fates, Fate::goes_by_itself);
    let new = new.with_overlays(stack.own_overlays());
    let is_whole = old.patches.len() == fates.len();
    let proof = proof::prove(store, &old, &new, is_whole)?;
    Ok(proven(series_move, (old.base, new.base), proof, upstream))
}

/// Returns the new patch; a patch with conflicts has no new version yet.
fn new_patch(patch: &Patch, replayed: &Replayed, replay: &Replay<'_>) -> Result<Patch> {
    match replayed.has_conflict() {
        true => Ok(patch.clone()),
        false => Ok(replayed_patch(patch, replayed, replay)?),
    }
}

fn patch_move(
    series_move: &SeriesMove<'_>,
    file: &PatchFile,
    (old, new): (&Patch, &Patch),
    (decision, choices): (Decision, Choices),
) -> PatchMove {
    let becomes = |new| settled(old, new, choices.no_range_diff);
    let outcome = match decision {
        Decision::Stays => becomes(Some(new)),
        Decision::Dropped => becomes(None),
        Decision::Asks(Fate::PartlyUpstreamed) => (Fate::PartlyUpstreamed, becomes(Some(new)).1),
        Decision::Asks(fate) => (fate, None),
    };
    PatchMove::new(series_move.stack.variant.name.as_str(), (&file.file, &old.subject), outcome)
}

/// Returns the report without its patches.
pub fn empty_report(series_move: &SeriesMove<'_>, tree: ObjectId) -> RebaseReport {
    RebaseReport {
        variant: series_move.stack.variant.name.to_string(),
        generation: None,
        upstream: series_move.stack.pin.upstream.clone(),
        from: series_move.old_base(series_move.stack.pin.tree),
        to: series_move.new_base(series_move.tip.tree),
        tree: tree.to_string(),
        patches: Vec::new(),
        reverts: Vec::new(),
        proof: Vec::new(),
        stale: Vec::new(),
        overlays: Vec::new(),
        references: Vec::new(),
        written: false,
        next: Vec::new(),
    }
}

/// Returns the proof of a series with the names of its bases; patches that upstream's commits contain may be dropped.
pub fn proven(
    series_move: &SeriesMove<'_>,
    (old, new): (ObjectId, ObjectId),
    proof: SeriesProof,
    upstream: &[PatchInUpstream],
) -> ProvenSeries {
    let stack = &series_move.stack;
    let own = stack.patches.iter().zip(upstream).skip(stack.parents);
    let upstreamed = own.filter(|(_, there)| there.upstreamed);
    let dropped: Vec<(String, String)> =
        upstreamed.map(|(patch, there)| (patch.name.clone(), there.notes.join("; "))).collect();
    let mut proven = ProvenSeries {
        variant: stack.variant.name.to_string(),
        old: series_move.old_base(old),
        new: series_move.new_base(new),
        proof,
    };
    proven.account_for_dropped(&dropped);
    proven
}
