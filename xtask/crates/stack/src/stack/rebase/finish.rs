//! From new commits to a stage: patch files, `pins.toml`, `espalier.lock`, each checked.

use super::course::{Course, PinMove};
use super::in_memory::{empty_report, reverts};
use super::{Choices, Prepared};
use crate::error::{Error, Result};
use crate::plan::lock::{Lock, LockedVariant};
use crate::plan::pins::{Pins, move_pin};
use crate::plan::rebase_state::{RebaseState, SeriesState};
use crate::plan::snippet::SourceText;
use crate::report::range_diff::settled;
use crate::report::rebase::PatchMove;
use crate::series::{self, ObjectId, Patch};
use crate::stack::Stack;
use crate::stack::{apply, lock_file};
use crate::sys::git::format_patch::{FormattedPatch, format_series};
use crate::sys::machine::disk;
use crate::sys::project::inputs::PatchFile;
use crate::sys::project::stage::Stage;
use crate::sys::work_trees::rebase_repo::RebaseRepo;

/// One patch of the new series.
struct NewFile {
    file: PatchFile,
    patch: Patch,
}

/// Writes every new series, pins and lock to the stage, and says what is to happen.
pub fn prepare(target: &PinMove<'_>, repo: &RebaseRepo, state: &RebaseState) -> Result<Prepared> {
    let named = &target.named;
    let context = named.context;
    let root = repo.commit_upstream(&named.tip.name, named.tip.tree)?;
    let mut stage = Stage::begin_long(&context.layout)?;
    stage.keep_series(named.pins.series_folders())?;
    let mut moved = Vec::new();
    for (course, series) in target.series.iter().zip(&state.series) {
        let new = new_series(course, repo, series, root)?;
        let folder = course.stack.variant.patches.as_deref().unwrap_or_default();
        let files: Vec<PatchFile> = new.iter().flatten().map(|new| new.file.clone()).collect();
        stage.replace_series(folder, course.stack.own_files(), &files)?;
        moved.push((course, series, new));
    }
    stage_pins(named, &mut stage)?;
    let lock = stage_lock(named, &mut stage)?;
    let mut report = empty_report(named, locked(&lock, named)?.series_tree()?);
    for (course, series, new) in &moved {
        check_trees(repo, series, locked(&lock, course)?)?;
        report.patches.extend(own_moves(course, series, new, state.choices));
        let own = course.stack.own_patches().iter().zip(new);
        let pairs = own.filter_map(|(old, new)| Some((old, &new.as_ref()?.patch)));
        report.reverts.extend(reverts(course, pairs)?);
    }
    stage.remove_folder(format!("rebase/{}", named.stack.pin.name));
    let what = format!("the rebase of {} to {}", named.stack.variant.name, named.tip.name);
    Ok(Prepared { report, stage, what, choices: state.choices })
}

/// For each of a series' own patches what it became; nothing where it was dropped. A patch that is the same change keeps
/// its bytes, every one keeps the words of its file name.
fn new_series(
    course: &Course<'_>,
    repo: &RebaseRepo,
    state: &SeriesState,
    root: ObjectId,
) -> Result<Vec<Option<NewFile>>> {
    let commits = state.commits()?;
    let scratch = disk::scratch_folder(&course.context.layout.scratch(), "format")?;
    let tip = commits.last().copied().unwrap_or(root);
    let formatted = format_series(&repo.git_dir(), root, tip, 1, scratch.path())?;
    if formatted.len() != commits.len() {
        let what = format!("git wrote {} patches of {} commits", formatted.len(), commits.len());
        return Err(Error::surroundings(what));
    }
    let (of_parents, own) = state.done.split_at(state.parents.min(state.done.len()));
    let stays = of_parents.iter().filter(|done| done.commit.is_some()).count();
    let mut formatted = formatted.into_iter().skip(stays);
    let mut number = 0;
    let mut new = Vec::new();
    for ((old, patch), done) in course.stack.own_files().iter().zip(course.stack.own_patches()).zip(own) {
        let Some(text) = done.commit.as_ref().and_then(|_| formatted.next()) else {
            new.push(None);
            continue;
        };
        let (folder, name) = (old.folder(), old.name());
        number += 1;
        let slug = name.split_once('-').map_or("patch.patch", |(_, slug)| slug);
        new.push(Some(new_file(old, patch, &text, format!("{folder}/{number:04}-{slug}"))?));
    }
    Ok(new)
}

fn new_file(old: &PatchFile, patch: &Patch, text: &FormattedPatch, path: String) -> Result<NewFile> {
    let fresh = PatchFile::new(path, text.bytes.clone());
    let parsed = fresh.parse()?;
    let words = |patch: &Patch| (patch.author.clone(), patch.date.clone(), patch.message());
    if words(&parsed) != words(patch) {
        return Err(Error::surroundings(format!("the message of {} did not survive as a commit", old.file)));
    }
    Ok(match series::is_same_change(patch, &parsed) {
        true => NewFile { file: PatchFile::new(fresh.file, old.bytes.clone()), patch: patch.clone() },
        false => NewFile { file: fresh, patch: parsed },
    })
}

fn stage_pins(course: &Course<'_>, stage: &mut Stage) -> Result<()> {
    let layout = &course.context.layout;
    let text = disk::read_text(&layout.pins())?;
    let source = SourceText { name: "pins.toml", text: &text };
    let moved = move_pin(source, &course.stack.pin.name, &course.tip.revision, course.tip.tree)?;
    stage.write("pins.toml", moved.as_bytes())
}

/// The lock of the staged project. Variants on other pins have not changed: their entries stay.
fn stage_lock(course: &Course<'_>, stage: &mut Stage) -> Result<Lock> {
    let context = course.context;
    let staged = context.staged(stage);
    let pins: Pins = staged.pins()?;
    course.store.mark_pin(course.tip.tree)?;
    let mut new = lock_file::read(context)?.unwrap_or_default();
    new.variants.retain(|name, _| pins.variants.contains_key(name.as_str()));
    for variant in pins.variants.values().filter(|variant| variant.pin == course.stack.variant.pin) {
        let stack = Stack::read(&staged.layout, &pins, variant)?;
        let applied = apply::apply_stack(course.store, &stack)?;
        new.variants.insert(variant.name.to_string(), applied.locked);
    }
    stage.write("espalier.lock", Lock::render(&new).as_bytes())?;
    Ok(new)
}

/// What the new lock says of the variant of `course`.
fn locked<'l>(lock: &'l Lock, course: &Course<'_>) -> Result<&'l LockedVariant> {
    let missing = || Error::surroundings("the new lock has no entry of the variant");
    lock.variants.get(course.stack.variant.name.as_str()).ok_or_else(missing)
}

/// Ids decide: applied strictly to the new pin, the new patches must give the trees that the replay gave.
fn check_trees(repo: &RebaseRepo, state: &SeriesState, locked: &LockedVariant) -> Result<()> {
    for (commit, patch) in state.commits()?.into_iter().zip(&locked.patches) {
        let replayed = repo.store.tree_of(commit)?.to_string();
        if replayed != patch.tree {
            let what = format!("{} gives a different tree than its replay; nothing was written", patch.file);
            return Err(
                Error::surroundings(what).detail(format!("replayed {replayed}\napplied  {}", patch.tree))
            );
        }
    }
    Ok(())
}

fn own_moves(
    course: &Course<'_>,
    state: &SeriesState,
    new: &[Option<NewFile>],
    choices: Choices,
) -> Vec<PatchMove> {
    let series = course.stack.variant.name.to_string();
    let own = course.stack.own_files().iter().zip(course.stack.own_patches());
    let rows = own.zip(state.done.iter().skip(course.stack.parents)).zip(new);
    let moves = rows.map(|(((file, old), done), new)| {
        let new = new.as_ref();
        let (fate, range_diff) = settled(old, new.map(|new| &new.patch), choices.no_range_diff);
        PatchMove {
            series: series.clone(),
            file: file.file.clone(),
            new_file: new.map(|new| new.file.file.clone()),
            subject: old.subject.clone(),
            fate,
            notes: done.notes.clone(),
            conflicts: Vec::new(),
            blocked_by: Vec::new(),
            range_diff,
        }
    });
    moves.collect()
}
