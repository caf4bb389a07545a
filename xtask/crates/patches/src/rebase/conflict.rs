//! Handing over a conflict: a work tree to resolve it in, and a message with the next command.

use std::path::Path;

use espalier_core::error::{Error, Kind, Result};
use espalier_core::next_command::git_in;
use espalier_core::sys::machine::disk;
use espalier_core::sys::work_trees::conflict_tree::{self, ConflictedFile};
use espalier_core::sys::work_trees::rebase_repo::RebaseRepo;
use espalier_core::sys::work_trees::resolutions::{self, Remembered};
use espalier_series::ObjectId;
use espalier_series::{ConflictReason, FileConflict, Replay, Replayed, Version};

use super::Prepared;
use super::blame::blame;
use super::place::Place;
use super::target::{SeriesMove, Target};
use crate::rebase::state::RebaseState;
use crate::report::replay::describe_conflict;

/// Returns the state of the rebase in `folder`, if there is one.
pub fn read_state(folder: &Path) -> Result<Option<RebaseState>> {
    let text = disk::read_if_there(&folder.join("state.json"))?;
    text.map(|text| RebaseState::parse(&text)).transpose()
}

/// Saves the state of the rebase in `folder`.
pub fn write_state(folder: &Path, state: &RebaseState) -> Result<()> {
    disk::write_atomically(&folder.join("state.json"), &state.render())
}

/// A patch with conflicts, and everything needed to show them.
pub struct Stop {
    pub replayed: Replayed,
    /// The commit that it was replayed on.
    pub head: ObjectId,
    /// The tree with the patch's files that had no conflict.
    pub tree: ObjectId,
    /// Blobs that the conflicts refer to, by id.
    pub blobs: Vec<(ObjectId, Vec<u8>)>,
}

impl Stop {
    /// Creates the stop of a patch at `head`; `tree` has its other files.
    pub fn new(replayed: Replayed, replay: &Replay<'_>, (head, tree): (ObjectId, ObjectId)) -> Stop {
        let mut blobs = Vec::new();
        for version in replayed.conflicts().flat_map(versions).flatten() {
            if let Ok(content) = replay.blob(version.id) {
                blobs.push((version.id, content.into_owned()));
            }
        }
        Stop { replayed, head, tree, blobs }
    }
}

/// Base, ours, theirs.
fn versions(conflict: &FileConflict) -> [Option<&Version>; 3] {
    [conflict.base.as_ref(), conflict.ours.as_ref(), conflict.theirs.as_ref()]
}

/// Prepares the work tree, and reports it. `state` is written first, so that a run that is killed meanwhile can be
/// repeated.
pub fn hand_over(
    target: &Target<'_>,
    repo: &RebaseRepo,
    state: &mut RebaseState,
    stop: Stop,
) -> Result<Prepared> {
    let here = Place::of(target, state)?;
    let layout = &here.series_move.context.layout;
    let home = layout.rebase(&here.series_move.stack.pin.name);
    let was_being_shown = !state.conflicts.is_empty();
    state.ready = false;
    state.conflicts = stop.replayed.conflicts().map(|conflict| conflict.path.clone()).collect();
    write_state(&home, state)?;
    let files: Vec<ConflictedFile> =
        stop.replayed.conflicts().map(|conflict| conflicted_file(conflict, &stop)).collect();
    if !(was_being_shown && conflict_tree::is_shown(repo, stop.head, &files)) {
        if was_being_shown {
            keep_edits(here.series_move, repo, &files, &home)?;
        }
        conflict_tree::prepare(repo, stop.head, stop.tree, &files)?;
    }
    let solved = resolutions::offer(repo, &layout.resolutions(), &here.description())?;
    state.ready = true;
    write_state(&home, state)?;
    Err(sentence(target, state, &here, (&stop.replayed, &solved)))
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
    }
}

/// Returns the error that says which patch has conflicts, why, and how to continue.
fn sentence(
    target: &Target<'_>,
    state: &RebaseState,
    here: &Place<'_, '_>,
    (replayed, solved): (&Replayed, &[Remembered]),
) -> Error {
    let SeriesMove { context, stack, tip, .. } = here.series_move;
    let work = context.layout.show(&context.layout.rebase(&stack.pin.name).join("work"));
    let (done, all) = state.progress();
    let is_to_edit =
        |conflict: &FileConflict| matches!(conflict.reason, ConflictReason::SharedChanges { .. });
    let (file, upstream, tip) = (here.file, &stack.pin.upstream, &tip.name);
    let why = match replayed.conflicts().all(is_to_edit) {
        true => format!("{file} is to be edited: {upstream} {tip} has a part of it"),
        false => format!("{file} does not apply to {upstream} {tip} automatically"),
    };
    let what = format!("{why} ({done} of {all} patches done)");
    let remembered = solved.iter().map(|Remembered { path, origin }| {
        format!("{path}: resolved as when {origin}; not staged yet: review it first")
    });
    let details = replayed.conflicts().map(describe_conflict).chain(here.notes.iter().cloned());
    let details = details.chain(blame(target, here)).chain(remembered);
    let error = details.fold(Error::new(Kind::Conflict, what), Error::detail);
    error
        .hint(format!("{} status    # git diff and git mergetool work there too", git_in(&work)))
        .hint("resolve it, `git add` the files, then: cargo xtask rebase --continue")
        .hint("or drop this patch: cargo xtask rebase --skip")
        .hint("or abort the rebase; nothing has changed: cargo xtask rebase --abort")
}
