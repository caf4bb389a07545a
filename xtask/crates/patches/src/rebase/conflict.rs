//! Handing over a patch: a work tree to resolve its conflicts in, or to edit it, its description as a folder, and a
//! message with the next command.

use std::path::Path;

use espalier_core::error::{Error, Kind, Result};
use espalier_core::next_command::git_in;
use espalier_core::sys::machine::disk;
use espalier_core::sys::work_trees::conflict_tree::{self, ConflictedFile};
use espalier_core::sys::work_trees::rebase_repo::RebaseRepo;
use espalier_core::sys::work_trees::resolutions::{self, Remembered};
use espalier_core::ui;
use espalier_series::ObjectId;
use espalier_series::{ConflictReason, FileConflict, Mode, Replay, Replayed, Version};
use serde_json::json;

use super::Prepared;
use super::blame::blame;
use super::package;
use super::place::Place;
use super::target::{SeriesMove, Target};
use crate::rebase::state::RebaseState;
use crate::report::conflict::{ConflictPackage, NextCommands, WaitingRebase};
use crate::report::replay::describe_conflict;

/// Folder of the description, beside that of the work tree.
const PACKAGE: &str = "conflict";

/// Returns the state of the rebase in `folder`, if there is one.
pub fn read_state(folder: &Path) -> Result<Option<RebaseState>> {
    let text = disk::read_if_there(&folder.join("state.json"))?;
    text.map(|text| RebaseState::parse(&text)).transpose()
}

/// Saves the state of the rebase in `folder`.
pub fn write_state(folder: &Path, state: &RebaseState) -> Result<()> {
    disk::write_atomically(&folder.join("state.json"), &state.render())
}

/// A patch with conflicts, or one to edit, and everything needed to show it.
pub struct Stop {
    pub replayed: Replayed,
    /// The commit that it was replayed on.
    pub head: ObjectId,
    /// The automatic result: the tree with the patch's files that had no conflict.
    pub tree: ObjectId,
    /// Whether the user asked to edit the patch here.
    pub may_edit: bool,
    /// Its description; `None` when a stop is only looked at again.
    pub package: Option<ConflictPackage>,
    /// Blobs that the conflicts refer to, by id.
    blobs: Vec<(ObjectId, Vec<u8>)>,
}

impl Stop {
    /// Creates the stop of a patch at `head`; `tree` has its other files.
    pub fn new(
        replayed: Replayed,
        replay: &Replay<'_>,
        (head, tree): (ObjectId, ObjectId),
        may_edit: bool,
    ) -> Stop {
        let mut blobs = Vec::new();
        for version in replayed.conflicts().flat_map(versions).flatten() {
            if let Ok(content) = replay.blob(version.id) {
                blobs.push((version.id, content.into_owned()));
            }
        }
        Stop { replayed, head, tree, may_edit, package: None, blobs }
    }
}

/// Returns the mode of a merged file: the patch's, unless upstream changed it.
pub fn merged_mode(conflict: &FileConflict) -> Option<Mode> {
    let [base, ours, theirs] = versions(conflict).map(|version| version.map(|version| version.mode));
    if ours == base { theirs.or(ours) } else { ours.or(theirs) }
}

/// Base, ours, theirs.
fn versions(conflict: &FileConflict) -> [Option<&Version>; 3] {
    [conflict.base.as_ref(), conflict.ours.as_ref(), conflict.theirs.as_ref()]
}

/// Prepares the work tree and the description, and reports them. `state` is written first, so that a run that is killed
/// meanwhile can be repeated.
pub fn hand_over(
    target: &Target<'_>,
    repo: &RebaseRepo,
    state: &mut RebaseState,
    stop: Stop,
) -> Result<Prepared> {
    let here = Place::of(target, state)?;
    let layout = &here.series_move.context.layout;
    let home = layout.rebase(&here.series_move.stack.pin.name);
    let was_being_shown = state.editing || !state.conflicts.is_empty();
    state.ready = false;
    state.conflicts = stop.replayed.conflicts().map(|conflict| conflict.path.clone()).collect();
    state.editing = state.conflicts.is_empty();
    write_state(&home, state)?;
    let files: Vec<ConflictedFile> =
        stop.replayed.conflicts().map(|conflict| conflicted_file(conflict, &stop)).collect();
    let is_shown = match state.editing {
        true => conflict_tree::is_staged(repo, stop.head),
        false => conflict_tree::is_shown(repo, stop.head, &files),
    };
    if !(was_being_shown && is_shown) {
        if was_being_shown {
            match state.editing {
                true => keep_edits(here.series_move, repo, &edited_files(repo, &stop), &home)?,
                false => keep_edits(here.series_move, repo, &files, &home)?,
            }
        }
        conflict_tree::prepare(repo, stop.head, stop.tree, &files)?;
    }
    let solved = resolutions::offer(repo, &layout.resolutions(), &here.description())?;
    let package = stop.package.map(|package| waiting_package(package, state, &here));
    if let Some(package) = &package {
        package::write(package, &home.join(PACKAGE), &layout.scratch())?;
    }
    state.ready = true;
    write_state(&home, state)?;
    let error = match state.editing {
        true => to_edit_sentence(state, &here),
        false => sentence(target, state, &here, (&stop.replayed, &solved)),
    };
    Err(with_next_steps(error.with_data("conflict", json!(package)), &here, state.editing))
}

/// Removes the description of a patch that is done. `home` is the folder of the rebase.
pub fn remove_package(home: &Path) -> Result<()> {
    package::remove(&home.join(PACKAGE))
}

/// Returns the package with the rebase that waits.
fn waiting_package(package: ConflictPackage, state: &RebaseState, here: &Place<'_, '_>) -> ConflictPackage {
    let SeriesMove { context, stack, .. } = here.series_move;
    let home = context.layout.rebase(&stack.pin.name);
    let (done, of) = state.progress();
    let next = NextCommands {
        go_on: ui::hint("cargo xtask rebase --continue"),
        skip: ui::hint("cargo xtask rebase --skip"),
        abort: ui::hint("cargo xtask rebase --abort"),
    };
    let shown = |folder: &str| context.layout.show(&home.join(folder));
    let rebase = WaitingRebase { done, of, work: shown("work"), folder: shown(PACKAGE), next };
    ConflictPackage { rebase: Some(rebase), ..package }
}

/// Saves edits: a run was killed while it showed this conflict, and a person may have begun to resolve it since.
fn keep_edits(
    series_move: &SeriesMove<'_>,
    repo: &RebaseRepo,
    files: &[ConflictedFile],
    home: &Path,
) -> Result<()> {
    for copy in conflict_tree::keep_edits(repo, files, &home.join("kept"))? {
        let shown = series_move.context.layout.show(&copy);
        series_move
            .context
            .ui
            .warn(format!("an earlier run was cut short here; what you wrote is kept in {shown}"));
    }
    Ok(())
}

/// Returns the files of a patch that is shown to be edited, with the contents that the tool may have written.
fn edited_files(repo: &RebaseRepo, stop: &Stop) -> Vec<ConflictedFile> {
    let stage = |version: &Version| {
        let content = repo.store.read(version.id).map(|content| content.to_vec()).unwrap_or_default();
        (version.mode.as_git_mode(), version.id, content)
    };
    let files = stop.replayed.files.iter().filter_map(|file| {
        let path = file.after.as_ref().or(file.before.as_ref())?.path.clone();
        let stages = [file.before.as_ref().map(stage), file.after.as_ref().map(stage), None];
        Some(ConflictedFile { path, stages, text: None, is_executable: false })
    });
    files.collect()
}

fn conflicted_file(conflict: &FileConflict, stop: &Stop) -> ConflictedFile {
    let content = |version: &Version| {
        let blob = stop.blobs.iter().find(|(id, _)| *id == version.id);
        blob.map(|(_, bytes)| bytes.clone()).unwrap_or_default()
    };
    let stage = |version: Option<&Version>| {
        version.map(|version| (version.mode.as_git_mode(), version.id, content(version)))
    };
    let is_gone =
        matches!(conflict.reason, ConflictReason::FileGone { .. } | ConflictReason::FolderMoved { .. });
    // As git does: a file that upstream deleted, or whose folder it moved, appears as the patch would leave it.
    let theirs = conflict.theirs.as_ref().filter(|_| is_gone).map(content);
    ConflictedFile {
        path: conflict.path.clone(),
        stages: versions(conflict).map(stage),
        text: conflict.marked.clone().or(theirs),
        is_executable: merged_mode(conflict) == Some(Mode::Executable),
    }
}

/// Returns the error that says which patch has conflicts, and why.
fn sentence(
    target: &Target<'_>,
    state: &RebaseState,
    here: &Place<'_, '_>,
    (replayed, solved): (&Replayed, &[Remembered]),
) -> Error {
    let SeriesMove { stack, tip, .. } = here.series_move;
    let is_to_edit =
        |conflict: &FileConflict| matches!(conflict.reason, ConflictReason::SharedChanges { .. });
    let (file, upstream, tip) = (here.file, &stack.pin.upstream, &tip.name);
    let why = match replayed.conflicts().all(is_to_edit) {
        true => format!("{file} is to be edited: {upstream} {tip} has a part of it"),
        false => format!("{file} does not apply to {upstream} {tip} automatically"),
    };
    let remembered = solved.iter().map(|Remembered { path, origin }| {
        format!("{path}: resolved as when {origin}; not staged yet: review it first")
    });
    let details = replayed.conflicts().map(describe_conflict).chain(here.notes.iter().cloned());
    let details = details.chain(blame(target, here)).chain(remembered);
    details.fold(Error::new(Kind::Conflict, format!("{why} ({})", progress(state))), Error::detail)
}

/// Returns the error that says which patch waits to be edited.
fn to_edit_sentence(state: &RebaseState, here: &Place<'_, '_>) -> Error {
    let what = format!("{} applies, and waits to be edited ({})", here.file, progress(state));
    let mut paths: Vec<String> =
        here.patch.files.iter().flat_map(|file| file.paths()).map(ToString::to_string).collect();
    paths.dedup();
    Error::new(Kind::Conflict, what).detail(paths.join("\n"))
}

fn progress(state: &RebaseState) -> String {
    let (done, all) = state.progress();
    format!("{done} of {all} patches done")
}

/// Adds the place of the description, and the next commands.
fn with_next_steps(error: Error, here: &Place<'_, '_>, is_edited: bool) -> Error {
    let SeriesMove { context, stack, .. } = here.series_move;
    let home = context.layout.rebase(&stack.pin.name);
    let work = context.layout.show(&home.join("work"));
    let package = context.layout.show(&home.join(PACKAGE));
    let error = error
        .detail(format!("described for people and programs in {package}"))
        .hint(format!("{} status    # git diff and git mergetool work there too", git_in(&work)));
    let error = match is_edited {
        true => error.hint("edit its files, `git add` them, then: cargo xtask rebase --continue"),
        false => error.hint("resolve it, `git add` the files, then: cargo xtask rebase --continue"),
    };
    error
        .hint("or drop this patch: cargo xtask rebase --skip")
        .hint("or abort the rebase; nothing has changed: cargo xtask rebase --abort")
}
