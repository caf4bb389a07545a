//! A series on a generation: replayed from the pin that it was made for, like a move of that pin, and written as siblings
//! of the patches whose replay needed a decision.

use std::collections::BTreeSet;

use espalier_core::config::lock::Lock;
use espalier_core::config::pins::{Pins, Variant};
use espalier_core::context::{Context, Outcome};
use espalier_core::error::{Error, Kind, Result};
use espalier_core::sys::git::store::Store;
use espalier_core::sys::git::store_tree::StoreTree;
use espalier_core::sys::git::unverified::verification_of_pin;
use espalier_core::sys::project::inputs::{PatchFile, SeriesFiles, read_folder};
use espalier_core::sys::project::stage::Stage;
use espalier_core::sys::upstream::tip::Tip;
use espalier_core::sys::work_trees::rebase_repo::RebaseRepo;
use espalier_series::{
    ObjectId, PLACEHOLDER, Patch, PatchClass, Replay, TreeChange, Verdict, change_text, dropped_sibling,
    is_same_change,
};
use serde_json::json;

use super::Prepared;
use super::in_memory::empty_report;
use super::new_series::{check_trees, formatted, locked, prove_replayed};
use super::steps::names;
use super::target::{PinMove, SeriesMove, Target, onto};
use crate::generation::locked::{LockedSeries, Now};
use crate::generation::{
    GenerationPatch, Placed, describe_blocked, describe_waiting, gives_by_itself, place_as_rebase,
};
use crate::rebase::state::{Choices, DonePatch, RebaseState, SeriesState};
use crate::report::proof::ProvenSeries;
use crate::report::range_diff::settled;
use crate::report::rebase::{Fate, PatchMove};
use crate::stack::{Sibling, Stack};
use crate::{apply, lock_file, range};

/// Returns the replay of every series that is used on the generation of `variant`.
///
/// # Errors
///
/// The variant is not on a generation, or one of the two pins cannot be fetched.
pub fn load<'a>(
    context: &'a Context,
    pins: &'a Pins,
    store: &'a Store,
    variant: &'a Variant,
) -> Result<Target<'a>> {
    let not_there = || Error::usage(format!("`{}` is not on a generation", variant.name));
    let generation = pins.generation_of(variant).ok_or_else(not_there)?;
    Stack::read(&context.layout, pins, variant)?.fetch(context, store)?;
    let (revision, tree) = (generation.pin.revision.clone(), generation.pin.tree);
    let verification = verification_of_pin(store, tree);
    // Upstream's history is not read: what a patch becomes must not depend on the commits that a machine has.
    let tip = Tip { name: revision.to_string(), revision, commit: ObjectId::ZERO, tree, verification };
    let series_move = |like: &Variant| -> Result<SeriesMove<'a>> {
        let stack = Stack::read(&context.layout, pins, like)?;
        let siblings = stack.siblings_in(&context.layout, pins, &generation.pin.name)?;
        let series_move = onto(context, pins, store, stack, tip.clone());
        Ok(SeriesMove { home: generation.pin.name.clone(), siblings, ..series_move })
    };
    let series = pins.series_like(&generation.base.name, &generation.pin.name).into_iter().map(series_move);
    let series = series.collect::<Result<Vec<_>>>()?;
    let mut named = series_move(generation.like)?;
    named.stack.variant = variant.clone();
    Ok(Target::Generation(PinMove { named, series }))
}

/// Returns the files of the patches whose siblings were made for other versions of them: the rebase stops at each.
pub fn behind(target: &Target<'_>) -> Vec<String> {
    let both = target.series().iter().flat_map(|series| series.stack.files.iter().zip(&series.siblings));
    let is_behind =
        |sibling: &Option<Sibling>| sibling.as_ref().is_some_and(|sibling| sibling.behind.is_some());
    both.filter(|(_, sibling)| is_behind(sibling)).map(|(file, _)| file.file.clone()).collect()
}

/// As [`load`]; `None` if there is nothing to do: every patch is there, no sibling is behind its patch, and none is
/// there without need.
pub fn load_if_needed<'a>(
    context: &'a Context,
    pins: &'a Pins,
    store: &'a Store,
    variant: &'a Variant,
) -> Result<Option<Target<'a>>> {
    let target = load(context, pins, store, variant)?;
    for other in pins.patched_on(&variant.pin) {
        let stack = Stack::read(&context.layout, pins, other)?;
        let is_settled = |patch: &GenerationPatch<'_>| {
            !matches!(
                patch.result,
                Placed::Waits { .. } | Placed::Behind | Placed::Replaced { is_same: true }
            )
        };
        if !placed_patches(store, &stack, None)?.iter().all(is_settled) {
            return Ok(Some(target));
        }
    }
    Ok(None)
}

fn placed_patches<'s>(
    store: &Store,
    stack: &'s Stack,
    locked: Option<&LockedSeries>,
) -> Result<Vec<GenerationPatch<'s>>> {
    let Stack { pin, .. } = stack;
    match &stack.generation {
        Some(generation) => place_as_rebase(store, pin.tree, (generation, &pin.revision.to_string()), locked),
        None => Ok(Vec::new()),
    }
}

/// Returns the series as it was locked on the generation on which `series_move` replays it.
pub fn locked_series(series_move: &SeriesMove<'_>, store: &Store) -> Option<LockedSeries> {
    let SeriesMove { context, pins, stack, home, siblings, .. } = series_move;
    let files = stack.files.iter().chain(siblings.iter().flatten().map(|sibling| &sibling.file));
    let now = Now {
        layout: &context.layout,
        pins,
        generation: pins.pins.get(home)?,
        base: &stack.pin,
        folders: pins.patch_folders(&stack.variant),
        files: files.collect(),
    };
    LockedSeries::read(store, &now)
}

/// As [`locked_series`], for the stack of a variant on the generation.
fn locked_stack(context: &Context, pins: &Pins, store: &Store, stack: &Stack) -> Option<LockedSeries> {
    let generation = stack.generation.as_ref()?;
    let siblings = generation.siblings.iter().flatten().map(|sibling| &sibling.file);
    let now = Now {
        layout: &context.layout,
        pins,
        generation: &stack.pin,
        base: &generation.base,
        folders: pins.patch_folders(&stack.variant),
        files: generation.files.iter().chain(siblings).collect(),
    };
    LockedSeries::read(store, &now)
}

/// Reports how the patches of `variant` are on its generation; exits with 4 if any of them needs manual action, and is
/// not decided by `choices`.
pub fn dry_run(
    context: &Context,
    pins: &Pins,
    store: &Store,
    (variant, choices): (&Variant, Choices),
) -> Result<Outcome> {
    let stack = Stack::read(&context.layout, pins, variant)?;
    stack.fetch(context, store)?;
    let locked = locked_stack(context, pins, store, &stack);
    let placed = placed_patches(store, &stack, locked.as_ref())?;
    let is_open = |patch: &&GenerationPatch<'_>| decided(patch, choices).is_none();
    let waiting: Vec<String> = placed.iter().filter(is_open).filter_map(describe_waiting).collect();
    let count = |is_so: fn(&Placed) -> bool| placed.iter().filter(|patch| is_so(&patch.result)).count();
    let alone = count(|result| matches!(result, Placed::Replayed(_)));
    let replaced = count(|result| matches!(result, Placed::Replaced { .. }));
    let refreshed = match count(|result| matches!(result, Placed::Refreshed(_))) {
        0 => String::new(),
        count => format!(", {count} by siblings that are refreshed"),
    };
    let mut lines = vec![format!(
        "{}: {alone} of {} patches apply to {} {} by themselves, {replaced} are replaced by siblings{refreshed}, {} \
         wait{}",
        variant.name,
        placed.len(),
        stack.pin.upstream,
        stack.pin.revision,
        count(Placed::waits),
        describe_blocked(&placed)
    )];
    lines.extend(describe_decided(&placed, choices));
    lines.extend(waiting.iter().map(|text| format!("  {}", text.replace('\n', "\n  "))));
    let flags = choices.flags();
    let has_work = !(waiting.is_empty() && refreshed.is_empty());
    let next = has_work.then(|| format!("cargo xtask rebase --variant {}{flags}", variant.name));
    let effect =
        if waiting.is_empty() { "refreshes siblings" } else { "stops at each that needs a decision" };
    lines.extend(next.iter().map(|next| format!("next: {next}    # it {effect}")));
    let patches: Vec<_> = placed.iter().map(|patch| patch_json(patch, choices)).collect();
    let json = json!({
        "variant": variant.name, "generation": stack.pin.name, "patches": patches, "next": next, "written": false
    });
    let code = if waiting.is_empty() { 0 } else { Kind::Conflict.exit_code() };
    Ok(Outcome { text: lines.join("\n"), json, code })
}

/// Returns the decision of `choices` about a patch that waits, as `--drop-upstreamed` and `--trim-upstreamed` make it. A
/// sibling that is not exact is left to a person.
fn decided(patch: &GenerationPatch<'_>, choices: Choices) -> Option<&'static str> {
    let Placed::Waits { class, .. } = &patch.result else { return None };
    match class {
        _ if patch.sibling.is_some() => None,
        PatchClass::Upstreamed if choices.drop_upstreamed => Some("dropped"),
        PatchClass::PartlyUpstreamed if choices.trim_upstreamed => Some("trimmed"),
        _ => None,
    }
}

/// Returns one line for each patch that `choices` decide about.
fn describe_decided(placed: &[GenerationPatch<'_>], choices: Choices) -> Vec<String> {
    let line = |patch: &GenerationPatch<'_>| {
        decided(patch, choices).map(|what| format!("  {}: {what}, upstream has it", patch.file.file))
    };
    placed.iter().filter_map(line).collect()
}

fn patch_json(patch: &GenerationPatch<'_>, choices: Choices) -> serde_json::Value {
    let by_itself = match patch.result {
        Placed::Replayed(_) => "replayed",
        Placed::Replaced { .. } if patch.sibling.is_some_and(|sibling| sibling.patch.is_dropped()) => {
            "dropped"
        }
        Placed::Replaced { .. } => "replaced",
        Placed::Refreshed(_) => "refreshed",
        Placed::Waits { .. } if patch.result.is_blocked() => "blocked",
        Placed::Waits { .. } | Placed::Behind => "waits",
    };
    let result = decided(patch, choices).unwrap_or(by_itself);
    let sibling = patch.sibling.map(|sibling| &sibling.file.file);
    json!({ "file": patch.file.file, "sibling": sibling, "result": result, "why": describe_waiting(patch) })
}

/// The result for one patch of a series.
struct New {
    /// The patch on the generation; `None` if it is dropped there.
    patch: Option<Patch>,
    /// The sibling; `None` if the patch itself gives the same tree.
    sibling: Option<Sibling>,
}

/// Writes the siblings that are needed, and the lock, to the stage, and describes the change.
pub fn finish(target: &Target<'_>, repo: &RebaseRepo, state: &RebaseState) -> Result<Prepared> {
    let named = target.named();
    let mut stage = Stage::begin_long(&named.context.layout)?;
    stage.keep_series(named.pins.series_folders())?;
    let mut all = Vec::new();
    for (series_move, series) in target.series().iter().zip(&state.series) {
        let new = new_siblings(series_move, repo, series)?;
        stage_siblings(series_move, &mut stage, &new)?;
        all.push((series_move, series, new));
    }
    let lock = stage_lock(named, &mut stage, &state.edit)?;
    let mut report = empty_report(named, locked(&lock, named)?.series_tree()?);
    report.generation = Some(named.home.to_string());
    for (series_move, series, new) in &all {
        check(series_move, repo, series, &lock)?;
        report.patches.extend(moves(series_move, series, new, state.choices));
        let proof = prove(series_move, repo, series, new)?;
        report.reverts.extend(proof.reverts());
        report.proof.push(proof);
    }
    report.next = next_commands(named, all.iter().flat_map(|(_, _, new)| new));
    stage.remove_folder(format!("rebase/{}", named.home));
    let what = target.scope().describe(&named.home, &named.stack.variant.name);
    Ok(Prepared { report, stage, what, choices: state.choices })
}

/// Returns the result for each of the series' own patches.
fn new_siblings(series_move: &SeriesMove<'_>, repo: &RebaseRepo, state: &SeriesState) -> Result<Vec<New>> {
    let SeriesMove { store, stack, tip, .. } = series_move;
    let base_tree = StoreTree::new(store, stack.pin.tree)?;
    let tip_tree = StoreTree::in_range(store, tip.tree, stack.pin.tree, tip.tree)?;
    let applied = range::applied_series(store, &stack.patches, &base_tree)?;
    let nothing = BTreeSet::new();
    let mut replay = Replay::new(&applied, &tip_tree, names(series_move), &nothing);
    let texts = formatted(series_move, repo, state)?;
    let mut new = Vec::new();
    for (at, (done, text)) in state.done.iter().zip(texts).enumerate() {
        let Some((file, patch)) = stack.files.get(at).zip(stack.patches.get(at)) else { continue };
        let is_dropped = text.is_none();
        let bytes = text.map_or_else(|| dropped_sibling(patch, &reason(done)), |text| text.bytes);
        let path = file.sibling_in(&series_move.home).ok_or_else(|| not_exact(file))?;
        let made = Sibling::new(PatchFile::new(path, bytes))?;
        // A patch that cannot be replayed at all needs one.
        let alone = replay.try_step(at).ok();
        let found = apply_sibling(&mut replay, series_move.sibling(at), made)?;
        let (sibling, changes) = found.ok_or_else(|| not_exact(file))?;
        let is_needed = !alone.is_some_and(|step| gives_by_itself(&step, &changes));
        let patch = (!is_dropped).then(|| sibling.patch.clone());
        let sibling = is_needed.then_some(sibling);
        new.push(New { patch, sibling });
    }
    Ok(new.split_off(state.parents.min(new.len())))
}

/// Returns the reason of a patch that is dropped.
fn reason(done: &DonePatch) -> String {
    match done.by_hand {
        // The user has to give it: lint refuses this one.
        true => PLACEHOLDER.to_string(),
        false => done.notes.join("; "),
    }
}

/// Applies the sibling that is there if it is `made`, so that its bytes and its reason stay, or else `made`. Returns the
/// applied one with its changes; `None` if it is not exact.
fn apply_sibling(
    replay: &mut Replay<'_>,
    there: Option<&Sibling>,
    made: Sibling,
) -> Result<Option<(Sibling, Vec<TreeChange>)>> {
    let is_same = |there: &&Sibling| match made.patch.is_dropped() {
        true => there.patch.is_dropped(),
        false => is_same_change(&there.patch, &made.patch),
    };
    // One that was edited by hand can name the blobs of the right result, and have other lines.
    for sibling in there.filter(is_same).into_iter().chain([&made]) {
        if let Verdict::Exact(changes) = replay.apply_instead(&sibling.patch)? {
            return Ok(Some((sibling.clone(), changes)));
        }
    }
    Ok(None)
}

fn not_exact(file: &PatchFile) -> Error {
    Error::environment(format!(
        "the sibling of {} is not exact on its own tree; nothing was written",
        file.file
    ))
    .hint("this is a bug in this tool; please report it")
}

/// Stages the siblings of one series; those of other generations stay.
fn stage_siblings(series_move: &SeriesMove<'_>, stage: &mut Stage, new: &[New]) -> Result<()> {
    let SeriesMove { context, stack, home, .. } = series_move;
    let Some(folder) = stack.variant.patches.as_deref() else { return Ok(()) };
    let there = read_folder(&context.layout, folder)?;
    let SeriesFiles { patches, siblings } = SeriesFiles::of(there.clone());
    let of_others = siblings.into_iter().filter(|file| file.generation().as_deref() != Some(home.as_str()));
    let made = new.iter().filter_map(|new| Some(new.sibling.as_ref()?.file.clone()));
    let files: Vec<PatchFile> = patches.into_iter().chain(of_others).chain(made).collect();
    stage.replace_folder(folder, &there, &files)
}

/// Returns the lock of the staged project, with the new entries of the variants on the generation. The rebase has
/// stopped at the patches `reviewed`, so their siblings are locked with them as they are.
fn stage_lock(named: &SeriesMove<'_>, stage: &mut Stage, reviewed: &[String]) -> Result<Lock> {
    let SeriesMove { context, pins, store, home, .. } = named;
    let layout = stage.layout();
    let mut new = lock_file::read(context)?.unwrap_or_default();
    for variant in pins.variants_on(home) {
        let stack = Stack::read(&layout, pins, variant)?.with_reviewed(reviewed);
        new.variants.insert(variant.name.to_string(), apply::apply_stack(store, &stack)?.locked);
    }
    stage.write("espalier.lock", new.render().as_bytes())?;
    Ok(new)
}

/// Verifies by id: applied on the generation, the series has to give the trees of the replay.
fn check(series_move: &SeriesMove<'_>, repo: &RebaseRepo, state: &SeriesState, lock: &Lock) -> Result<()> {
    let SeriesMove { pins, stack, home, .. } = series_move;
    let folders = pins.patch_folders(&stack.variant);
    // A series that only others extend is checked with those.
    let mut variants = pins.patched_on(home);
    let variant = variants.find(|variant| pins.patch_folders(variant) == folders);
    match variant.and_then(|variant| lock.variants.get(variant.name.as_str())) {
        Some(locked) => check_trees(repo, state, locked),
        None => Ok(()),
    }
}

fn prove(
    series_move: &SeriesMove<'_>,
    repo: &RebaseRepo,
    state: &SeriesState,
    new: &[New],
) -> Result<ProvenSeries> {
    let patches: Vec<Option<&Patch>> = new.iter().map(|new| new.patch.as_ref()).collect();
    let mut proof = prove_replayed(series_move, repo, state, (&patches, true))?;
    let own = series_move.stack.own_patches().iter().zip(new);
    let dropped = own.filter_map(|(patch, new)| {
        let reason = new.sibling.as_ref()?.patch.dropped_because()?;
        Some((patch.name.clone(), reason.to_string()))
    });
    proof.account_for_dropped(&dropped.collect::<Vec<_>>());
    Ok(proof)
}

fn moves(series_move: &SeriesMove<'_>, state: &SeriesState, new: &[New], choices: Choices) -> Vec<PatchMove> {
    let stack = &series_move.stack;
    let own = stack.own_files().iter().zip(stack.own_patches());
    let rows = own.zip(state.done.iter().skip(stack.parents)).zip(new).enumerate();
    let moves = rows.map(|(at, (((file, old), done), new))| {
        // A sibling that was there differs from its patch as before, also with other blobs and line numbers.
        let is_same = |there: &Sibling, new: &Sibling| {
            there == new || change_text(&there.patch) == change_text(&new.patch)
        };
        let there = series_move.sibling(stack.parents + at);
        let is_known = there.zip(new.sibling.as_ref()).is_some_and(|(there, new)| is_same(there, new));
        let (fate, range_diff) = settled(old, new.patch.as_ref(), choices.no_range_diff || is_known);
        let now = new.sibling.as_ref().map_or(file, |sibling| &sibling.file);
        let fate = if new.patch.is_none() { Fate::Dropped } else { fate };
        PatchMove {
            new_file: Some(now.file.clone()),
            notes: done.notes.clone(),
            counter_in_doubt: done.counter_in_doubt,
            ..PatchMove::new(stack.variant.name.as_str(), (&file.file, &old.subject), (fate, range_diff))
        }
    });
    moves.collect()
}

/// Returns the commands after the siblings are written.
fn next_commands<'n>(named: &SeriesMove<'_>, new: impl Iterator<Item = &'n New>) -> Vec<String> {
    let variant = &named.stack.variant.name;
    let siblings = new.filter_map(|new| new.sibling.as_ref());
    let unfilled = siblings.filter(|sibling| sibling.patch.dropped_because() == Some(PLACEHOLDER));
    let unfilled = unfilled.map(|sibling| format!("give the reason in {}", sibling.file.file));
    let commands = [
        format!(
            "cargo xtask prove --variant {variant} --generation {}    # what each patch changes on both pins",
            named.home
        ),
        "cargo xtask undo    # if this was a mistake; before any other change".to_string(),
    ];
    unfilled.chain(commands).collect()
}
