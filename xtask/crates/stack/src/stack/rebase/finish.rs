//! From new commits to a stage: patch files, `pins.toml`, `espalier.lock`, each checked.

use super::course::Course;
use super::in_memory::{empty_report, reverts};
use super::{Choices, Prepared};
use crate::error::{Error, Result};
use crate::plan::lock::{Lock, LockedVariant};
use crate::plan::pins::{Pins, move_pin};
use crate::plan::rebase_state::{DonePatch, RebaseState};
use crate::plan::snippet::SourceText;
use crate::report::range_diff::settled;
use crate::report::rebase::{self as report, PatchMove};
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

/// Writes the new series, pins and lock to the stage, and says what is to happen.
pub fn prepare(course: &Course<'_>, repo: &RebaseRepo, state: &RebaseState) -> Result<Prepared> {
    let context = course.context;
    let root = repo.commit_upstream(&course.tip.name, course.tip.tree)?;
    let new = new_series(course, repo, state, root)?;
    let mut stage = Stage::begin_long(&context.layout)?;
    stage.keep_series(course.pins.series_folders())?;
    for folder in
        course.pins.stack(&course.stack.variant).iter().filter_map(|variant| variant.patches.as_ref())
    {
        let old = course.stack.files.iter().filter(|file| file.folder() == folder);
        let new = new.iter().flatten().map(|new| &new.file).filter(|file| file.folder() == folder);
        stage.replace_series(folder, &old.cloned().collect::<Vec<_>>(), &new.cloned().collect::<Vec<_>>())?;
    }
    stage_pins(course, &mut stage)?;
    let locked = stage_lock(course, &mut stage)?;
    check_trees(repo, state, &locked)?;
    let report = describe(course, state, &new, &locked)?;
    stage.remove_folder(format!("rebase/{}", course.stack.variant.name));
    let what = format!("the rebase of {} to {}", course.stack.variant.name, course.tip.name);
    Ok(Prepared { report, stage, what, choices: state.choices })
}

/// For each old patch what it became; nothing where it was dropped. A patch that is the same change keeps
/// its bytes, every one keeps the words of its file name.
fn new_series(
    course: &Course<'_>,
    repo: &RebaseRepo,
    state: &RebaseState,
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
    let mut formatted = formatted.into_iter();
    let mut numbers = std::collections::HashMap::new();
    let mut new = Vec::new();
    for ((old, patch), done) in course.stack.files.iter().zip(&course.stack.patches).zip(&state.done) {
        let Some(text) = done.commit.as_ref().and_then(|_| formatted.next()) else {
            new.push(None);
            continue;
        };
        let (folder, name) = (old.folder(), old.name());
        let number: &mut usize = numbers.entry(folder.to_string()).or_default();
        *number += 1;
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
fn stage_lock(course: &Course<'_>, stage: &mut Stage) -> Result<LockedVariant> {
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
    let missing = || Error::surroundings("the new lock has no entry of the variant");
    new.variants.get(course.stack.variant.name.as_str()).cloned().ok_or_else(missing)
}

/// Ids decide: applied strictly to the new pin, the new patches must give the trees that the replay gave.
fn check_trees(repo: &RebaseRepo, state: &RebaseState, locked: &LockedVariant) -> Result<()> {
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

fn describe(
    course: &Course<'_>,
    state: &RebaseState,
    new: &[Option<NewFile>],
    locked: &LockedVariant,
) -> Result<report::RebaseReport> {
    let mut report = empty_report(course, locked.series_tree()?);
    let rows = course.stack.files.iter().zip(&course.stack.patches).zip(&state.done).zip(new);
    report.patches = rows
        .map(|(((file, old), done), new)| patch_move((file, old), done, new.as_ref(), state.choices))
        .collect();
    let pairs =
        course.stack.patches.iter().zip(new).filter_map(|(old, new)| Some((old, &new.as_ref()?.patch)));
    report.reverts = reverts(course, pairs)?;
    Ok(report)
}

fn patch_move(
    (file, old): (&PatchFile, &Patch),
    done: &DonePatch,
    new: Option<&NewFile>,
    choices: Choices,
) -> PatchMove {
    let (fate, range_diff) = settled(old, new.map(|new| &new.patch), choices.no_range_diff);
    PatchMove {
        file: file.file.clone(),
        new_file: new.map(|new| new.file.file.clone()),
        subject: old.subject.clone(),
        fate,
        notes: done.notes.clone(),
        conflicts: Vec::new(),
        range_diff,
    }
}
