//! Converting new commits to a stage: patch files, `pins.toml`, `espalier.lock`, each verified.

use espalier_core::config::lock::Lock;
use espalier_core::config::pins::{Pins, move_pin, short_name};
use espalier_core::config::snippet::SourceText;
use espalier_core::error::Result;
use espalier_core::next_command::next_command;
use espalier_core::sys::machine::disk;
use espalier_core::sys::project::stage::Stage;
use espalier_core::sys::work_trees::rebase_repo::RebaseRepo;

use super::dropped::note_losses;
use super::in_memory::empty_report;
use super::new_series::{NewFile, check_trees, locked, new_series, prove_new_series, replace_series};
use super::target::{SeriesMove, Target};
use super::{Choices, Prepared, descendants, on_generation};
use crate::rebase::state::{RebaseState, SeriesState};
use crate::report::range_diff::settled;
use crate::report::rebase::{Fate, PatchMove, RebaseReport};
use crate::stack::Stack;
use crate::{apply, lock_file};

/// The commands after a rebase. A series that was rebased onto the one that it extends has moved no pin.
const PROVE: &str = "cargo xtask prove HEAD    # what each patch changes, compared with the last commit";
const SYNC: &str =
    "cargo xtask sync --since HEAD    # all checks, with builds and gates, and the report of the move";
const UNDO: &str = "cargo xtask undo    # if the move was a mistake; before any other change";

/// Writes the result to the stage, and describes the change: of a generation its siblings, of any other target every new
/// series, pins and lock.
pub fn prepare(target: &Target<'_>, repo: &RebaseRepo, state: &RebaseState) -> Result<Prepared> {
    match target {
        Target::Pin(_) => prepare_series(target, repo, state, (stage_moved, &[PROVE, SYNC, UNDO])),
        Target::Series(series_move) => {
            let variant = &series_move.stack.variant.name;
            let build = next_command("build", &[("--variant", Some(variant.as_str()))]);
            let build = format!("{build}    # the rebase has compiled nothing");
            prepare_series(target, repo, state, (stage_entry, &[PROVE, build.as_str(), UNDO]))
        }
        Target::Generation(_) => on_generation::finish(target, repo, state),
    }
}

/// Writes the new lock to the stage.
type StageLock = fn(&SeriesMove<'_>, &mut Stage) -> Result<Lock>;

fn prepare_series(
    target: &Target<'_>,
    repo: &RebaseRepo,
    state: &RebaseState,
    (stage_lock, next): (StageLock, &[&str]),
) -> Result<Prepared> {
    let named = target.named();
    let context = named.context;
    let mut stage = Stage::begin_long(&context.layout)?;
    stage.keep_series(named.pins.series_folders())?;
    let mut moved = Vec::new();
    for (series_move, series) in target.series().iter().zip(&state.series) {
        let new = new_series(series_move, repo, series)?;
        replace_series(series_move, &mut stage, &new)?;
        moved.push((series_move, series, new));
    }
    let lock = stage_lock(named, &mut stage)?;
    let mut report = empty_report(named, locked(&lock, named)?.series_tree()?);
    for (series_move, series, new) in &moved {
        let locked = locked(&lock, series_move)?;
        check_trees(repo, series, locked)?;
        let mut moves = own_moves(series_move, series, new, state.choices);
        note_losses(series_move, &mut moves)?;
        report.patches.extend(moves);
        let proof = prove_new_series(series_move, new, locked, &series.upstream)?;
        report.reverts.extend(proof.reverts());
        report.proof.push(proof);
    }
    report.next = next_commands(&report, next);
    stage.remove_folder(format!("rebase/{}", named.home));
    let what = describe(target, &report);
    Ok(Prepared { report, stage, what, choices: state.choices })
}

/// Returns the next commands; `moved` are those after a move.
fn next_commands(report: &RebaseReport, moved: &[&str]) -> Vec<String> {
    let is_edited = report.count(|fate| fate != Fate::Unchanged) > 0;
    let next: &[&str] = match report.is_there() {
        false => moved,
        true if is_edited => &[PROVE, UNDO],
        true => &[],
    };
    next.iter().map(ToString::to_string).collect()
}

/// Describes the change for people.
fn describe(target: &Target<'_>, report: &RebaseReport) -> String {
    let named = target.named();
    let (variant, to) = (&named.stack.variant.name, short_name(&named.tip.name));
    match report.is_there() {
        true => format!("the edit of {variant} on {to}"),
        false => format!("{} to {to}", target.scope().describe(&named.home, variant)),
    }
}

/// Moves the pin, and returns the lock of the staged project.
fn stage_moved(series_move: &SeriesMove<'_>, stage: &mut Stage) -> Result<Lock> {
    stage_pins(series_move, stage)?;
    stage_lock(series_move, stage)
}

fn stage_pins(series_move: &SeriesMove<'_>, stage: &mut Stage) -> Result<()> {
    let layout = &series_move.context.layout;
    let text = disk::read_text(&layout.pins())?;
    let source = SourceText { name: "pins.toml", text: &text };
    let moved =
        move_pin(source, &series_move.stack.pin.name, &series_move.tip.revision, series_move.tip.tree)?;
    stage.write("pins.toml", moved.as_bytes())
}

/// Returns the lock of the staged project. Variants on other pins have not changed: their entries stay.
fn stage_lock(series_move: &SeriesMove<'_>, stage: &mut Stage) -> Result<Lock> {
    let context = series_move.context;
    let staged = context.staged(stage);
    let pins: Pins = staged.pins()?;
    series_move.store.mark_pin(series_move.tip.commit, series_move.tip.tree)?;
    let mut new = lock_file::read(context)?.unwrap_or_default();
    new.variants.retain(|name, _| pins.variants.contains_key(name.as_str()));
    for variant in pins.variants_on(&series_move.stack.variant.pin) {
        let stack = Stack::read(&staged.layout, &pins, variant)?;
        let applied = apply::apply_stack(series_move.store, &stack)?;
        apply::keep_base(series_move.store, variant, &applied.locked)?;
        new.variants.insert(variant.name.to_string(), applied.locked);
    }
    for generation in pins.generations(&series_move.stack.variant.pin) {
        for variant in pins.variants_on(&generation.name) {
            let stack = Stack::read(&staged.layout, &pins, variant)?;
            let locked = apply::locked_on_generation(context, series_move.store, &stack);
            new.variants.extend(locked.map(|locked| (variant.name.to_string(), locked)));
        }
    }
    stage.write("espalier.lock", Lock::render(&new).as_bytes())?;
    Ok(new)
}

/// Returns the lock of the staged project, in which one series is replaced. The pins have not changed.
fn stage_entry(series_move: &SeriesMove<'_>, stage: &mut Stage) -> Result<Lock> {
    let SeriesMove { context, pins, store, .. } = *series_move;
    let variant = &series_move.stack.variant;
    let stack = Stack::read(&stage.layout(), pins, variant)?;
    let locked = apply::apply_stack(store, &stack)?.locked;
    descendants::stage(context, stage, (store, pins), variant, &locked)
}

fn own_moves(
    series_move: &SeriesMove<'_>,
    state: &SeriesState,
    new: &[Option<NewFile>],
    choices: Choices,
) -> Vec<PatchMove> {
    let series = series_move.stack.variant.name.as_str();
    let own = series_move.stack.own_files().iter().zip(series_move.stack.own_patches());
    let rows = own.zip(state.done.iter().skip(series_move.stack.parents)).zip(new);
    let moves = rows.map(|(((file, old), done), new)| {
        let new = new.as_ref();
        let becomes = settled(old, new.map(|new| &new.patch), choices.no_range_diff);
        PatchMove {
            new_file: new.map(|new| new.file.file.clone()),
            notes: done.notes.clone(),
            counter_in_doubt: done.counter_in_doubt,
            ..PatchMove::new(series, (&file.file, &old.subject), becomes)
        }
    });
    moves.collect()
}
