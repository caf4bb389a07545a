//! Handing over a patch: a work tree to resolve its conflicts in, or to edit it, its description as a folder, and a
//! message with the next command.

use std::path::Path;

use espalier_core::error::{Error, Kind, Result};
use espalier_core::next_command::{git_in, next_command, quoted_bytes};
use espalier_core::sys::git::tree::{Entry, GitTree};
use espalier_core::sys::machine::disk;
use espalier_core::sys::work_trees::conflict_tree::{self, ConflictedFile};
use espalier_core::sys::work_trees::rebase_repo::{AUTOMATIC, RebaseRepo, SIBLING};
use espalier_core::sys::work_trees::resolutions::{self, Remembered};
use espalier_core::ui;
use espalier_series::{
    ConflictReason, FileConflict, Mode, ObjectId, ObjectKind, Replayed, RepoPath, Version, printable,
};
use serde_json::json;

use super::ahead::Ahead;
use super::blame::blame;
use super::place::RebasePosition;
use super::stop::{Stop, merged_mode, versions};
use super::target::{SeriesMove, Target};
use super::{Prepared, edits_beside, package, verify};
use crate::rebase::state::{RebaseState, Scope};
use crate::report::conflict::{ChangeSince, ConflictPackage, NextCommands, PackagedSibling, WaitingRebase};
use crate::report::content::PathText;
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

/// Prepares the work tree and the description, and reports them. `state` is written first, so that a run that is killed
/// meanwhile can be repeated.
pub fn hand_over(
    target: &Target<'_>,
    repo: &RebaseRepo,
    state: &mut RebaseState,
    stop: Stop,
) -> Result<Prepared> {
    let here = RebasePosition::of(target, state)?;
    let layout = &here.series_move.context.layout;
    let home = layout.rebase(&here.series_move.home);
    let was_being_shown = state.editing || !state.conflicts.is_empty();
    state.ready = false;
    state.conflicts = stop.replayed.conflicts().map(|conflict| conflict.path.clone()).collect();
    state.editing = state.conflicts.is_empty();
    write_state(&home, state)?;
    show(&here, repo, (state.editing, was_being_shown), &stop, &home)?;
    let solved = resolutions::offer(repo, &layout.resolutions(), &here.description())?;
    let package = stop.package.map(|package| waiting_package(package, state, &here));
    let package = package.map(|package| with_recorded(package, &solved));
    if let Some(package) = &package {
        package::write(package, &home.join(PACKAGE), &layout.scratch())?;
    }
    state.ready = true;
    write_state(&home, state)?;
    let sibling = stop.sibling.as_ref().map(|sibling| &sibling.packaged);
    let error = match state.editing {
        true => to_edit_sentence(state, &here, sibling),
        false => sentence(target, state, &here, (&stop.replayed, stop.ahead, &solved, package.as_ref())),
    };
    let error = error.detail(about_sibling(&here, sibling));
    let work = Work::of(state, &solved, sibling);
    Err(with_next_steps(error.with_data("conflict", json!(package)), &here, &work))
}

/// Prepares the work tree, unless it shows the patch already, and names the automatic result.
fn show(
    here: &RebasePosition<'_, '_>,
    repo: &RebaseRepo,
    (is_edited, was_being_shown): (bool, bool),
    stop: &Stop,
    home: &Path,
) -> Result<()> {
    let files: Vec<ConflictedFile> =
        stop.replayed.conflicts().map(|conflict| conflicted_file(conflict, stop)).collect();
    let is_shown = match is_edited {
        true => conflict_tree::is_staged(repo, stop.head),
        false => conflict_tree::is_shown(repo, stop.head, &files),
    };
    if !(was_being_shown && is_shown) {
        if was_being_shown {
            match is_edited {
                true => keep_edits(here.series_move, repo, &edited_files(repo, stop), home)?,
                false => keep_edits(here.series_move, repo, &files, home)?,
            }
        }
        conflict_tree::prepare(repo, stop.head, stop.tree, &files)?;
    }
    repo.tag_sibling(stop.sibling.as_ref().and_then(|sibling| sibling.tree), stop.head)?;
    repo.tag_automatic(automatic_tree(repo, stop)?, stop.head)
}

/// Returns the tree of the automatic result, with the markers in the files that have them.
fn automatic_tree(repo: &RebaseRepo, stop: &Stop) -> Result<ObjectId> {
    let mut tree = GitTree::new(&repo.store, stop.tree)?;
    for conflict in stop.replayed.conflicts().filter(|conflict| !conflict.hunks.is_empty()) {
        let Some(marked) = &conflict.marked else { continue };
        let id = repo.store.write(ObjectKind::Blob, marked)?;
        let mode = merged_mode(conflict).unwrap_or(Mode::File).as_git_mode();
        tree.set(conflict.path.as_bytes(), Some(Entry { mode, id }))?;
    }
    tree.write()
}

/// Removes the description of a patch that is done. `home` is the folder of the rebase.
pub fn remove_package(home: &Path) -> Result<()> {
    package::remove(&home.join(PACKAGE))
}

/// Returns the package with the rebase that waits.
fn waiting_package(
    package: ConflictPackage,
    state: &RebaseState,
    here: &RebasePosition<'_, '_>,
) -> ConflictPackage {
    let SeriesMove { context, home, .. } = here.series_move;
    let home = context.layout.rebase(home);
    let (done, of) = state.progress();
    let next = NextCommands {
        go_on: ui::hint("cargo xtask rebase --continue"),
        skip: ui::hint("cargo xtask rebase --skip"),
        abort: ui::hint("cargo xtask rebase --abort"),
        check: ui::hint(&check_command(state)),
    };
    let shown = |folder: &str| context.layout.show(&home.join(folder));
    let rebase = WaitingRebase { done, of, work: shown("work"), folder: shown(PACKAGE), next };
    ConflictPackage { rebase: Some(rebase), ..package }
}

/// Returns the command that builds and tests the result of a rebase, which only applies patches.
fn check_command(state: &RebaseState) -> String {
    match state.scope {
        Scope::Pin => "cargo xtask sync --since HEAD".to_string(),
        Scope::Series | Scope::Generation => next_command("build", &[("--variant", Some(&state.variant))]),
    }
}

/// Returns the package with the files that a recorded resolution has resolved: they have no markers any more.
fn with_recorded(mut package: ConflictPackage, solved: &[Remembered]) -> ConflictPackage {
    for Remembered { path, origin, .. } in solved {
        let path = PathText::from(path.as_slice());
        for file in package.files.iter_mut().filter(|file| file.path == path) {
            file.recorded = Some(origin.clone());
        }
        for hunk in package.hunks.iter_mut().filter(|hunk| hunk.path == path) {
            hunk.marked = None;
        }
    }
    package
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
    here: &RebasePosition<'_, '_>,
    (replayed, ahead, solved, package): (&Replayed, Option<Ahead>, &[Remembered], Option<&ConflictPackage>),
) -> Error {
    let SeriesMove { stack, tip, .. } = here.series_move;
    let is_to_edit =
        |conflict: &FileConflict| matches!(conflict.reason, ConflictReason::SharedChanges { .. });
    let (file, upstream, tip) = (here.file, &stack.pin.upstream, &tip.name);
    let sibling = package.and_then(|package| package.sibling.as_ref());
    let why = match (sibling, replayed.conflicts().all(is_to_edit)) {
        (Some(sibling), _) if sibling.outdated => {
            format!("{} does not merge with the earlier patches as they are now", sibling.file)
        }
        (Some(sibling), _) => {
            format!("the change of {file} does not merge with {} automatically", sibling.file)
        }
        (None, true) => format!("{file} is to be edited: {upstream} {tip} has a part of it"),
        (None, false) => format!("{file} does not apply to {upstream} {tip} automatically"),
    };
    let remembered = solved.iter().map(|remembered| describe_remembered(replayed, remembered));
    // The package knows more of the lines than the conflict alone does.
    let described: Vec<String> = match package {
        Some(package) => package.files.iter().map(|file| file.description.clone()).collect(),
        None => replayed.conflicts().map(describe_conflict).collect(),
    };
    let is_upstreams = !package.is_some_and(ConflictPackage::is_by_earlier);
    let details = described.into_iter().chain(here.notes.iter().cloned());
    let details = details.chain(blame(target, here, (ahead, is_upstreams))).chain(remembered);
    details.fold(Error::new(Kind::Conflict, format!("{why} ({})", progress(state))), Error::detail)
}

/// Describes a file with a recorded resolution, and the edits beside the conflict that came with it.
fn describe_remembered(replayed: &Replayed, remembered: &Remembered) -> String {
    let Remembered { path, origin, text } = remembered;
    let what = format!("{}: resolved as when {origin}; not staged yet: review it first", printable(path));
    let mut conflicts = replayed.conflicts().filter(|conflict| !conflict.hunks.is_empty());
    let conflict = conflicts.find(|conflict| conflict.path.as_bytes() == path.as_slice());
    let beside = conflict.map(|conflict| verify::edits_of_text(conflict, text)).unwrap_or_default();
    if beside.is_empty() {
        return what;
    }
    let edits = edits_beside::listed(&beside).join("\n    ");
    format!(
        "{what}\n  it also edits lines outside the conflict, which only `--allow-edits` accepts:\n    {edits}"
    )
}

/// Returns the error that says which patch waits to be edited.
fn to_edit_sentence(
    state: &RebaseState,
    here: &RebasePosition<'_, '_>,
    sibling: Option<&PackagedSibling>,
) -> Error {
    let what = match sibling {
        Some(sibling) => format!("{} waits to be edited ({})", sibling.file, progress(state)),
        None => format!("{} applies, and waits to be edited ({})", here.file, progress(state)),
    };
    let patch = sibling.and(here.series_move.sibling(here.at)).map_or(here.patch, |sibling| &sibling.patch);
    let mut paths: Vec<String> =
        patch.files.iter().flat_map(|file| file.paths()).map(ToString::to_string).collect();
    paths.dedup();
    Error::new(Kind::Conflict, what).detail(paths.join("\n"))
}

/// Describes the sibling of the patch: what the work tree has of it, or that it drops the patch; empty if there is
/// none.
fn about_sibling(here: &RebasePosition<'_, '_>, sibling: Option<&PackagedSibling>) -> String {
    let there = here.series_move.sibling(here.at);
    let reason = there.and_then(|there| Some((there, there.patch.dropped_because()?)));
    match (sibling, reason) {
        (Some(sibling), _) => sibling.describe(here.file),
        (None, Some((there, reason))) => format!("{} drops it here: {reason}", there.file.file),
        (None, None) => String::new(),
    }
}

fn progress(state: &RebaseState) -> String {
    let (done, all) = state.progress();
    format!("{done} of {all} patches done")
}

/// The work on a patch that was handed over.
struct Work {
    /// The action of the user.
    action: &'static str,
    /// The files that a recorded resolution has resolved already.
    recorded: Vec<Vec<u8>>,
    /// Whether the change of the patch is merged into its sibling.
    is_merged: bool,
}

impl Work {
    fn of(state: &RebaseState, solved: &[Remembered], sibling: Option<&PackagedSibling>) -> Work {
        let is_merged = sibling.is_some_and(|sibling| sibling.change == ChangeSince::Merged);
        let recorded: Vec<Vec<u8>> = solved.iter().map(|remembered| remembered.path.clone()).collect();
        let is_recorded = |path: &RepoPath| recorded.iter().any(|file| file.as_slice() == path.as_bytes());
        let action = match state.editing {
            true if is_merged => "review it",
            true => "edit it",
            false if state.conflicts.iter().all(is_recorded) => "review it",
            false => "resolve it",
        };
        Work { action, recorded, is_merged }
    }
}

/// Adds the place of the description, and the next commands.
fn with_next_steps(error: Error, here: &RebasePosition<'_, '_>, work: &Work) -> Error {
    let SeriesMove { context, home, .. } = here.series_move;
    let home = context.layout.rebase(home);
    let git = git_in(&context.layout.show(&home.join("work")));
    let package = context.layout.show(&home.join(PACKAGE));
    let error = error
        .detail(format!("described for people and programs in {package}"))
        .hint(format!("{git} status    # git diff and git mergetool work there too"));
    let error = match work.is_merged {
        true => error.hint(format!("see the change that was merged into the sibling: {git} diff {SIBLING}")),
        false => error,
    };
    let action = work.action;
    let error = error.hint(format!("{action}, `git add` the files, then: cargo xtask rebase --continue"));
    let names: Vec<String> = work.recorded.iter().map(|path| quoted_bytes(path)).collect();
    let error = match names.is_empty() {
        true => error,
        false => {
            error.hint(format!("or get the conflict back: {git} checkout {AUTOMATIC} -- {}", names.join(" ")))
        }
    };
    error
        .hint("or drop this patch: cargo xtask rebase --skip")
        .hint("or abort the rebase; nothing has changed: cargo xtask rebase --abort")
}
