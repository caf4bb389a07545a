//! A rebase that waits for a person: `--continue`, `--skip`, `--abort`.

use std::path::Path;

use serde_json::json;

use super::course::{Course, load_with_tip};
use super::walk::{Refusal, Walked, digests, go_on};
use super::{Choices, Prepared, conflict, finish};
use crate::context::{Context, Outcome};
use crate::error::{Error, Kind, Result};
use crate::plan::name::Name;
use crate::plan::pins::Revision;
use crate::plan::rebase_state::{DonePatch, RebaseState};
use crate::sys::git::store::Store;
use crate::sys::machine::disk;
use crate::sys::machine::ours;
use crate::sys::upstream::tip::Tip;
use crate::sys::work_trees::conflict_tree::read_resolved;
use crate::sys::work_trees::rebase_repo::RebaseRepo;
use crate::sys::work_trees::resolutions;

/// What a person decided about the patch that waits.
enum Decision {
    Solved,
    Skip,
}

/// Goes on with what a person has solved and staged. The caller holds the run lock.
pub fn resume(context: &Context, variant: Option<&str>, choices: Choices) -> Result<Prepared> {
    with_state(context, variant, choices, &Decision::Solved)
}

/// Drops the patch that waits, and goes on. The caller holds the run lock.
pub fn skip(context: &Context, variant: Option<&str>, choices: Choices) -> Result<Prepared> {
    with_state(context, variant, choices, &Decision::Skip)
}

/// Forgets a rebase: what was solved in its work tree goes with it.
pub fn abort(context: &Context, variant: Option<&str>) -> Result<Outcome> {
    let pins = context.pins()?;
    let name = &pins.variant(variant)?.name;
    let home = context.layout.rebase(name);
    if !disk::exists(&home) {
        return Err(none_waits(context, name));
    }
    remember_solutions(context, &home);
    // Away in one step: a half-removed folder would look like a rebase that waits.
    let away = disk::scratch_folder(&context.layout.scratch(), "aborted")?;
    ours::rename(&home, &away.path().join("rebase"))?;
    let text = format!("aborted the rebase of {name}; patches, pins.toml and espalier.lock are unchanged");
    Ok(Outcome::ok(text, json!({ "variant": name, "aborted": true })))
}

/// What was solved before is of use the next time. That it cannot be kept is no reason to keep the rebase.
fn remember_solutions(context: &Context, home: &Path) {
    let Ok(repo) = RebaseRepo::open(home) else { return };
    if let Err(error) = resolutions::learn(&repo, &context.layout.resolutions()) {
        context.ui.warn(format!("could not record how its conflicts were resolved: {error}"));
    }
}

/// Two rebases of one variant at a time would overwrite each other.
pub fn refuse_waiting(context: &Context, variant: &Name) -> Result<()> {
    let home = context.layout.rebase(variant);
    if !disk::exists(&home) {
        return Ok(());
    }
    let to = conflict::read_state(&home)?.map(|state| format!(" to {}", state.to.name)).unwrap_or_default();
    let what = format!("a rebase of {variant}{to} is still in progress");
    Err(Error::new(Kind::Conflict, what)
        .hint("continue it: cargo xtask rebase --continue")
        .hint("or abort it; nothing in your project has changed: cargo xtask rebase --abort"))
}

fn none_waits(context: &Context, variant: &str) -> Error {
    let error = Error::usage(format!("no rebase of {variant} is in progress"));
    let waiting = disk::folders_in(&context.layout.rebases());
    let names = waiting.iter().filter_map(|folder| folder.file_name()).map(|name| name.to_string_lossy());
    names.fold(error, |error, name| error.hint(format!("one of {name} does: --variant {name}")))
}

fn with_state(
    context: &Context,
    variant: Option<&str>,
    choices: Choices,
    decision: &Decision,
) -> Result<Prepared> {
    let pins = context.pins()?;
    let variant = pins.variant(variant)?;
    let home = context.layout.rebase(&variant.name);
    let mut state = conflict::read_state(&home)?.ok_or_else(|| none_waits(context, &variant.name))?;
    state.choices = state.choices.and(choices);
    let store = Store::open(&context.layout.store())?;
    let course = course_of(context, &pins, &store, &state)?;
    let repo = RebaseRepo::open(&home)?;
    if state.ready {
        let done = match decision {
            Decision::Solved => solved(&course, &repo, &state)?,
            Decision::Skip => skipped(&course, &state)?,
        };
        state.done.push(done);
        state.ready = false;
        state.conflicts.clear();
        conflict::write_state(&home, &state)?;
    }
    let walked = go_on(&course, &repo, &mut state);
    match walked? {
        Walked::ToTheEnd => {
            conflict::write_state(&home, &state)?;
            finish::prepare(&course, &repo, &state)
        }
        Walked::Refused(Refusal { error, flags }) => {
            conflict::write_state(&home, &state)?;
            Err(error
                .hint(format!("if that is right: cargo xtask rebase --continue {flags}"))
                .hint("or abort the rebase; nothing has changed: cargo xtask rebase --abort"))
        }
        Walked::Conflict(stop) => conflict::hand_over(&course, &repo, &mut state, *stop),
    }
}

/// The course as it was at the start. What was replayed already belongs to exactly that series and pin.
fn course_of<'a>(
    context: &'a Context,
    pins: &'a crate::plan::pins::Pins,
    store: &'a Store,
    state: &RebaseState,
) -> Result<Course<'a>> {
    let name = state.to.name.clone();
    let revision = Revision::parse(&name).ok_or_else(|| {
        Error::surroundings(format!("the record of the rebase goes to `{name}`, which is no name"))
    })?;
    let tip = Tip { name, revision, commit: state.tip_commit()?, tree: state.tip_tree()? };
    let end = [("--to", Some(state.to.name.as_str()))];
    let course = load_with_tip(context, pins, store, (Some(&state.variant), &end), |_| Ok(tip))?;
    let is_same = course.stack.pin.tree.to_string() == state.from.tree && digests(&course) == state.series;
    if !is_same {
        return Err(Error::new(Kind::Conflict, "the series or its pin was changed since the rebase began")
            .detail(changed_files(&course, state))
            .hint("put it back, then: cargo xtask rebase --continue")
            .hint("or abort the rebase; nothing in your project has changed: cargo xtask rebase --abort"));
    }
    Ok(course)
}

fn changed_files(course: &Course<'_>, state: &RebaseState) -> String {
    let now = digests(course);
    let then = state.series.iter();
    let gone = then.filter(|known| !now.contains(known)).map(|(file, _)| file.as_str());
    let new = now.iter().filter(|known| !state.series.contains(known)).map(|(file, _)| file.as_str());
    let mut files: Vec<&str> = gone.chain(new).collect();
    files.sort_unstable();
    files.dedup();
    files.join("\n")
}

fn solved(course: &Course<'_>, repo: &RebaseRepo, state: &RebaseState) -> Result<DonePatch> {
    let layout = &course.context.layout;
    let shown_as = layout.show(repo.work());
    let resolved = read_resolved(repo, &state.conflicts, &shown_as)?;
    let root = repo.commit_upstream(&course.tip.name, course.tip.tree)?;
    let head = state.commits()?.last().copied().unwrap_or(root);
    let (patch, file) = at_position(course, state)?;
    if repo.store.tree_of(head)? == resolved.tree {
        return Err(Error::new(Kind::Conflict, format!("nothing is left of {file}"))
            .hint("if that is right: cargo xtask rebase --skip")
            .hint(format!(
                "if not, make its change in {shown_as}, `git add` it, then: cargo xtask rebase --continue"
            )));
    }
    for path in &resolved.untracked {
        course.context.ui.warn(format!("`{path}` is not known to git and is no part of the patch"));
    }
    resolutions::learn(repo, &layout.resolutions())?;
    let commit = repo.commit_patch(patch, resolved.tree, head)?;
    let notes = vec!["its conflicts were resolved by hand".to_string()];
    Ok(DonePatch { file, commit: Some(commit.to_string()), by_hand: true, notes })
}

fn skipped(course: &Course<'_>, state: &RebaseState) -> Result<DonePatch> {
    let (_, file) = at_position(course, state)?;
    Ok(DonePatch { file, commit: None, by_hand: true, notes: vec!["skipped by hand".to_string()] })
}

fn at_position<'c>(
    course: &'c Course<'_>,
    state: &RebaseState,
) -> Result<(&'c crate::series::Patch, String)> {
    let at = state.position();
    let found = course.stack.patches.get(at).zip(course.stack.files.get(at));
    let found = found.map(|(patch, file)| (patch, file.file.clone()));
    found.ok_or_else(|| Error::surroundings("the record of the rebase goes beyond the series"))
}
