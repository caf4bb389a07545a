//! A rebase that requires manual action: `--continue`, `--skip`, `--abort`.

use std::collections::BTreeSet;
use std::path::Path;

use espalier_core::config::pins::{Pins, Revision, Variant};
use espalier_core::context::{Context, Outcome};
use espalier_core::error::{Error, Kind, Result};
use espalier_core::sys::git::store::Store;
use espalier_core::sys::git::unverified::verification_of;
use espalier_core::sys::machine::disk;
use espalier_core::sys::machine::owned;
use espalier_core::sys::upstream::tip::Tip;
use espalier_core::sys::work_trees::conflict_tree::{Resolved, read_resolved};
use espalier_core::sys::work_trees::rebase_repo::RebaseRepo;
use espalier_core::sys::work_trees::resolutions;
use espalier_series::{ObjectId, Patch, SameFunction, printable};
use serde_json::json;

use super::allowed_edits::AllowedEdits;
use super::edits_beside::EditBeside;
use super::new_series::{new_series, prove_replayed};
use super::place::RebasePosition;
use super::stop::Stop;
use super::target::{PinMove, SeriesMove, Target, load_with_tip};
use super::walk::{Walked, go_on, series_now, stop_again};
use super::{
    Prepared, Wishes, allowed_edits, checks, conflict, edit_stops, edits_beside, finish, on_generation,
    parent, same_functions, verify,
};
use crate::generation::edit_command;
use crate::rebase::state::{DonePatch, RebaseState, Scope, SeriesState};
use crate::report::proof::ProvenSeries;

/// The user's decision about the patch at which the rebase waits.
enum Decision {
    /// It is resolved; these edits beside the conflict are meant.
    Solved(AllowedEdits),
    Skip,
}

/// Continues with what the user has resolved and staged; `allowed` are accepted edits beside the conflict. The caller
/// holds the run lock.
pub fn resume(
    context: &Context,
    variant: Option<&str>,
    wishes: Wishes<'_>,
    allowed: AllowedEdits,
) -> Result<Prepared> {
    with_state(context, variant, wishes, &Decision::Solved(allowed))
}

/// Drops the patch at which the rebase waits, and continues. The caller holds the run lock.
pub fn skip(context: &Context, variant: Option<&str>, wishes: Wishes<'_>) -> Result<Prepared> {
    with_state(context, variant, wishes, &Decision::Skip)
}

/// Abandons a rebase: resolutions in its work tree are removed with it.
pub fn abort(context: &Context, variant: Option<&str>) -> Result<Outcome> {
    let pins = context.pins()?;
    let variant = pins.variant(variant)?;
    let name = &variant.name;
    let home = context.layout.rebase(&variant.pin);
    if !disk::exists(&home) {
        return Err(none_waits(context, variant));
    }
    // A record that cannot be read must not prevent it.
    let state = conflict::read_state(&home);
    let refused = state.iter().flatten().find(|state| state.refused);
    match refused.map(|state| check_again(context, &pins, state, &home)) {
        Some(Err(_)) => context.ui.warn("the resolution that `--continue` refused is not recorded"),
        _ => remember_solutions(context, &home),
    }
    let (scope, named) = match state {
        Ok(Some(state)) => (state.scope, state.variant),
        _ => (Scope::Pin, name.to_string()),
    };
    // Renamed first, atomically: a half-removed folder would look like a rebase in progress.
    let away = disk::scratch_folder(&context.layout.scratch(), "aborted")?;
    owned::rename(&home, &away.path().join("rebase"))?;
    let what = scope.describe(&variant.pin, &named);
    let text = format!("aborted {what}; patches, pins.toml and espalier.lock are unchanged");
    Ok(Outcome::ok(text, json!({ "variant": name, "aborted": true })))
}

/// Returns the proof of a rebase that waits: of the patches that are done, each compared with what it was. The caller
/// holds the run lock.
pub fn prove_done(context: &Context, variant: Option<&str>) -> Result<Vec<ProvenSeries>> {
    let pins = context.pins()?;
    let variant = pins.variant(variant)?;
    let home = context.layout.rebase(&variant.pin);
    let state = conflict::read_state(&home)?.ok_or_else(|| none_waits(context, variant))?;
    let store = Store::open(&context.layout.store())?;
    let target = target_of(context, &pins, &store, &state)?;
    let repo = RebaseRepo::open(&home)?;
    let begun = target.series().iter().zip(&state.series);
    let begun = begun.filter(|(_, series)| series.position() > series.parents);
    begun.map(|(series_move, series)| prove_done_of(series_move, &repo, series)).collect()
}

/// Compares the done patches of one series with what they were.
fn prove_done_of(
    series_move: &SeriesMove<'_>,
    repo: &RebaseRepo,
    state: &SeriesState,
) -> Result<ProvenSeries> {
    let new = new_series(series_move, repo, state)?;
    let patches: Vec<Option<&Patch>> = new.iter().map(|new| new.as_ref().map(|new| &new.patch)).collect();
    let mut proof = prove_replayed(series_move, repo, state, (&patches, false))?;
    let own = series_move.stack.own_patches().iter().enumerate();
    let dropped = own.filter_map(|(at, patch)| {
        let sibling = series_move.sibling(series_move.stack.parents + at)?;
        Some((patch.name.clone(), sibling.patch.dropped_because()?.to_string()))
    });
    proof.account_for_dropped(&dropped.collect::<Vec<_>>());
    Ok(proof)
}

/// Checks what is staged as `--continue` without `--allow-edits` would.
fn check_again(context: &Context, pins: &Pins, state: &RebaseState, home: &Path) -> Result<()> {
    let store = Store::open(&context.layout.store())?;
    let target = target_of(context, pins, &store, state)?;
    let repo = RebaseRepo::open(home)?;
    let here = RebasePosition::of(&target, state)?;
    let stop = stop_again(&here, &repo, state)?;
    let resolved = read_staged(&here, &repo, (state, &stop))?;
    accept(&here, &repo, (state, &stop, &resolved), &AllowedEdits::Nothing).map(drop)
}

/// Records resolutions for the next time. A failure to do so must not prevent the abort.
fn remember_solutions(context: &Context, home: &Path) {
    let Ok(repo) = RebaseRepo::open(home) else { return };
    if let Err(error) = resolutions::learn(&repo, &context.layout.resolutions()) {
        context.ui.warn(format!("could not record how its conflicts were resolved: {error}"));
    }
}

/// Refuses a second rebase of the same pin: the two would overwrite each other.
pub fn refuse_waiting(context: &Context, variant: &Variant) -> Result<()> {
    let home = context.layout.rebase(&variant.pin);
    if !disk::exists(&home) {
        return Ok(());
    }
    let state = conflict::read_state(&home)?;
    let name = state.as_ref().map_or(variant.name.as_str(), |state| &state.variant);
    let to = state.as_ref().map(|state| format!(" to {}", state.to.name)).unwrap_or_default();
    let what = format!("a rebase of {name}{to} is still in progress");
    Err(Error::new(Kind::Conflict, what)
        .hint("continue it: cargo xtask rebase --continue")
        .hint("or abort it; nothing in your project has changed: cargo xtask rebase --abort"))
}

fn none_waits(context: &Context, variant: &Variant) -> Error {
    let name = &variant.name;
    let error = Error::usage(format!("no rebase of {name} is in progress"));
    let waiting = disk::folders_in(&context.layout.rebases());
    let names = waiting.iter().filter_map(|folder| Some(conflict::read_state(folder).ok()??.variant));
    let error = names.fold(error, |error, name| error.hint(format!("one of {name} is: --variant {name}")));
    // A generation does not move.
    let to = if variant.like.is_some() { "" } else { "--to REF " };
    error.hint(format!("begin one: cargo xtask rebase {to}--variant {name}"))
}

fn with_state(
    context: &Context,
    variant: Option<&str>,
    wishes: Wishes<'_>,
    decision: &Decision,
) -> Result<Prepared> {
    let pins = context.pins()?;
    let variant = pins.variant(variant)?;
    let home = context.layout.rebase(&variant.pin);
    let waiting = conflict::read_state(&home)?.ok_or_else(|| none_waits(context, variant))?;
    let mut state = waiting.clone();
    state.choices = state.choices.and(wishes.choices);
    let store = Store::open(&context.layout.store())?;
    let target = target_of(context, &pins, &store, &state)?;
    state.edit.extend(edit_stops(&target, wishes.edit, &state.series)?);
    let repo = RebaseRepo::open(&home)?;
    if state.ready {
        leave_stop(&target, &repo, (&home, &waiting, &mut state), decision)?;
    }
    let walked = go_on(&target, &repo, &mut state)?;
    conclude(&target, &repo, (&home, &mut state), walked)
}

/// Carries out the decision about the patch at which the rebase waits, in `state`; it waits as `waiting` says.
fn leave_stop(
    target: &Target<'_>,
    repo: &RebaseRepo,
    (home, waiting, state): (&Path, &RebaseState, &mut RebaseState),
    decision: &Decision,
) -> Result<()> {
    let here = RebasePosition::of(target, state)?;
    let Solved { done, same, beside } = match decision {
        // The patch was handed over before the present choices were made.
        Decision::Solved(allowed) => solved(&here, repo, waiting, allowed)?,
        Decision::Skip => Solved { done: skipped(&here), same: Vec::new(), beside: Vec::new() },
    };
    state.same_functions.extend(same);
    let series = state.series.get_mut(here.series).ok_or_else(beyond)?;
    series.done.push(done.clone());
    state.leave_stop();
    conflict::write_state(home, state)?;
    conflict::remove_package(home)?;
    confirm(&here, waiting, (&done, &beside));
    Ok(())
}

/// Prepares the result after the last patch; otherwise reports why the replay stopped.
fn conclude(
    target: &Target<'_>,
    repo: &RebaseRepo,
    (home, state): (&Path, &mut RebaseState),
    walked: Walked,
) -> Result<Prepared> {
    match walked {
        Walked::ToTheEnd => {
            conflict::write_state(home, state)?;
            finish::prepare(target, repo, state)
        }
        Walked::Refused(refusal) => {
            conflict::write_state(home, state)?;
            // A killed run may have left it.
            conflict::remove_package(home)?;
            let command = "cargo xtask rebase --continue";
            let error = refusal.with_hints(&format!(": {command}"), command);
            Err(error.hint("or abort the rebase; nothing has changed: cargo xtask rebase --abort"))
        }
        Walked::Stopped(stop) => conflict::hand_over(target, repo, state, *stop),
    }
}

/// Restores the target as it was at the start. What was already replayed belongs to exactly those series and those
/// two trees.
fn target_of<'a>(
    context: &'a Context,
    pins: &'a Pins,
    store: &'a Store,
    state: &RebaseState,
) -> Result<Target<'a>> {
    let target = match state.scope {
        Scope::Pin => Target::Pin(pin_move(context, pins, store, state)?),
        Scope::Series => {
            let child = pins.variant(Some(&state.variant))?;
            parent::reload(context, pins, store, (child, state.old_tree()?))?
        }
        Scope::Generation => on_generation::load(context, pins, store, pins.variant(Some(&state.variant))?)?,
    };
    let now = series_now(&target);
    let (series_move, then) = (target.named(), (state.old_tree()?, state.tip_tree()?));
    if (series_move.stack.pin.tree, series_move.tip.tree) != then || what_was_there(&state.series) != now {
        return Err(Error::new(Kind::Conflict, changed_since(state.scope))
            .detail(changed_files(&now, &state.series))
            .hint("put it back, then: cargo xtask rebase --continue")
            .hint("or abort the rebase; nothing in your project has changed: cargo xtask rebase --abort"));
    }
    Ok(target)
}

fn changed_since(scope: Scope) -> &'static str {
    match scope {
        Scope::Pin => "the series or its pin was changed since the rebase began",
        Scope::Series => "the series or what it extends was changed since the rebase began",
        Scope::Generation => "the series, a sibling or one of the pins was changed since the rebase began",
    }
}

/// Restores a pin move to the tip that the record names.
fn pin_move<'a>(
    context: &'a Context,
    pins: &'a Pins,
    store: &'a Store,
    state: &RebaseState,
) -> Result<PinMove<'a>> {
    let name = state.to.name.clone();
    let revision = Revision::parse(&name).ok_or_else(|| {
        Error::environment(format!("the record of the rebase goes to `{name}`, which is not a name"))
    })?;
    let (commit, tree) = (state.tip_commit()?, state.tip_tree()?);
    let tip = Tip { name, revision, commit, tree, verification: verification_of(store, commit, tree) };
    load_with_tip(context, pins, store, pins.variant(Some(&state.variant))?, |_| Ok(tip))
}

/// Returns the series without the patches that were replayed.
fn what_was_there(series: &[SeriesState]) -> Vec<SeriesState> {
    let untouched = |one: &SeriesState| {
        let siblings = one.siblings.clone();
        SeriesState { siblings, ..SeriesState::new(&one.variant, one.files.clone(), one.parents) }
    };
    series.iter().map(untouched).collect()
}

fn changed_files(now: &[SeriesState], then: &[SeriesState]) -> String {
    let files = |series: &[SeriesState]| -> BTreeSet<(String, String)> {
        series.iter().flat_map(|one| one.files.iter().chain(&one.siblings).cloned()).collect()
    };
    let (now, then) = (files(now), files(then));
    let changed: BTreeSet<&str> = now.symmetric_difference(&then).map(|(file, _)| file.as_str()).collect();
    changed.into_iter().collect::<Vec<_>>().join("\n")
}

/// A patch about which the user has decided.
struct Solved {
    /// The patch as it was resolved.
    done: DonePatch,
    /// The functions that were taken as the same.
    same: Vec<SameFunction>,
    /// The accepted edits beside the conflict.
    beside: Vec<EditBeside>,
}

/// Returns the patch as it was resolved.
fn solved(
    here: &RebasePosition<'_, '_>,
    repo: &RebaseRepo,
    state: &RebaseState,
    allowed: &AllowedEdits,
) -> Result<Solved> {
    let layout = &here.series_move.context.layout;
    let stop = stop_again(here, repo, state)?;
    let resolved = read_staged(here, repo, (state, &stop))?;
    let accepted = accept(here, repo, (state, &stop, &resolved), allowed);
    if accepted.is_err() && !state.refused {
        // For `--abort`, which records resolutions too.
        let home = layout.rebase(&here.series_move.home);
        conflict::write_state(&home, &RebaseState { refused: true, ..state.clone() })?;
    }
    let Accepted { commit, patch, beside } = accepted?;
    // After every check: git records the resolution of a conflict once, so a refused one would be offered for ever.
    resolutions::learn(repo, &layout.resolutions())?;
    checks::note_gone_words(here, &patch);
    for path in &resolved.untracked {
        here.series_move
            .context
            .ui
            .warn(format!("`{path}` is not known to git and is not part of the patch"));
    }
    let how = if state.editing { "it was edited by hand" } else { "its conflicts were resolved by hand" };
    let listed = edits_beside::listed(&beside).into_iter().map(|edit| format!("edited beside them: {edit}"));
    let notes = std::iter::once(how.to_string()).chain(listed).collect();
    let same = same_functions::accepted(&stop.replayed, &repo.store, resolved.tree)?;
    let (file, commit) = (here.file.to_string(), Some(commit.to_string()));
    let done = DonePatch { file, commit, by_hand: true, notes, counter_in_doubt: false };
    Ok(Solved { done, same, beside })
}

/// Returns what is staged in the work tree.
fn read_staged(
    here: &RebasePosition<'_, '_>,
    repo: &RebaseRepo,
    (state, stop): (&RebaseState, &Stop),
) -> Result<Resolved> {
    let shown_as = here.series_move.context.layout.show(repo.work());
    let texts = stop.merged_texts();
    read_resolved(repo, (&state.conflicts, &texts), |path| may_change(here, state, path), &shown_as)
}

/// A resolution that has passed every check.
struct Accepted {
    /// The commit of the patch.
    commit: ObjectId,
    patch: Patch,
    /// The edits beside the conflict, which were allowed.
    beside: Vec<EditBeside>,
}

/// Checks a resolution; `allowed` are accepted edits beside the conflict.
fn accept(
    here: &RebasePosition<'_, '_>,
    repo: &RebaseRepo,
    (state, stop, resolved): (&RebaseState, &Stop, &Resolved),
    allowed: &AllowedEdits,
) -> Result<Accepted> {
    let (file, shown_as) = (here.file, here.series_move.context.layout.show(repo.work()));
    let beside = verify::edits_beside(stop, repo, resolved.tree)?;
    allowed_edits::refuse(&beside, allowed, (file, &shown_as), &edit_later(here, state))?;
    if repo.store.tree_of(stop.head)? == resolved.tree {
        return Err(Error::new(Kind::Conflict, format!("nothing is left of {file}"))
            .hint("if that is right: cargo xtask rebase --skip")
            .hint(format!(
                "if not, make its change in {shown_as}, `git add` it, then: cargo xtask rebase --continue"
            )));
    }
    // A sibling keeps its own message.
    let sibling = stop.sibling.as_ref().and(here.series_move.sibling(here.at));
    let patch = sibling.map_or(here.patch, |sibling| &sibling.patch);
    let commit = repo.commit_patch(patch, resolved.tree, stop.head)?;
    let patch = checks::recheck(here, repo, (stop.head, commit))?;
    Ok(Accepted { commit, patch, beside })
}

/// Returns the way to make another change of the patch after the rebase: on a generation in its sibling.
fn edit_later(here: &RebasePosition<'_, '_>, state: &RebaseState) -> String {
    if state.scope != Scope::Generation {
        return "in a patch of its own or in this one: cargo xtask edit".to_string();
    }
    let SeriesMove { pins, stack, home, .. } = here.series_move;
    let folders = pins.patch_folders(&stack.variant);
    let has_it = |variant: &&Variant| pins.patch_folders(variant).starts_with(&folders);
    let variants: Vec<&Variant> = pins.patched_on(home).filter(has_it).collect();
    let named = variants.iter().find(|variant| variant.name.as_str() == state.variant);
    let command = match named.or(variants.first()) {
        Some(variant) if pins.patch_folders(variant) == folders => {
            edit_command(&variant.name, &stack.files, here.file)
        }
        // It has more series, in which the number may be that of another patch.
        Some(variant) => edit_command(&variant.name, &[], here.file),
        None => edit_command(&state.variant, &[], here.file),
    };
    format!("in the sibling: {command}")
}

/// Whether the file may be changed: it is in conflict, or in a patch that the user asked to edit.
fn may_change(here: &RebasePosition<'_, '_>, state: &RebaseState, path: &[u8]) -> bool {
    let is_in_conflict = state.conflicts.iter().any(|conflict| conflict.as_bytes() == path);
    let is_edited = state.editing || state.edit.iter().any(|file| file == here.file);
    let sibling = here.series_move.sibling(here.at).map(|sibling| &sibling.patch);
    let files = std::iter::once(here.patch).chain(sibling).flat_map(|patch| &patch.files);
    let mut of_patch = files.flat_map(|file| file.paths());
    is_in_conflict || is_edited && of_patch.any(|changed| changed.as_bytes() == path)
}

/// Confirms the decision about the patch at which the rebase waited, with every file that was resolved or edited.
fn confirm(here: &RebasePosition<'_, '_>, state: &RebaseState, (done, beside): (&DonePatch, &[EditBeside])) {
    let ui = &here.series_move.context.ui;
    let resolved = state.conflicts.iter().map(|path| path.as_bytes());
    let paths: BTreeSet<&[u8]> = resolved.chain(beside.iter().map(EditBeside::path)).collect();
    let files = match paths.first() {
        None => String::new(),
        Some(one) if paths.len() == 1 => format!(": {}", printable(one)),
        Some(_) => format!(": {} files", paths.len()),
    };
    let verb = match (&done.commit, state.editing) {
        (None, _) => "Dropped",
        (Some(_), true) => "Edited",
        (Some(_), false) => "Resolved",
    };
    ui.status(verb, format!("{}{files}", done.file));
}

fn skipped(here: &RebasePosition<'_, '_>) -> DonePatch {
    let notes = vec!["skipped by hand".to_string()];
    let file = here.file.to_string();
    DonePatch { file, commit: None, by_hand: true, notes, counter_in_doubt: false }
}

fn beyond() -> Error {
    Error::environment("the record of the rebase goes beyond the series")
}
