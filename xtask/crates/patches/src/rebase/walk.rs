//! Replaying patch by patch into the repository of a rebase, until the end or a conflict.

use std::cell::OnceCell;
use std::path::Path;

use espalier_core::error::{Error, Kind, Result};
use espalier_core::sys::git::store_tree::StoreTree;
use espalier_core::sys::git::tree::GitTree;
use espalier_core::sys::project::inputs::PatchFile;
use espalier_core::sys::work_trees::rebase_repo::RebaseRepo;
use espalier_series::ObjectId;
use espalier_series::{Patch, Replay, Replayed, SameFunction, Step};

use super::Choices;
use super::ahead::Ahead;
use super::package::{self, Stopped};
use super::place::RebasePosition;
use super::sibling_stop::{self, AppliedSibling, AtSibling, Before};
use super::steps::{Decision, Shared, decide, names, notes, shared, step};
use super::stop::Stop;
use super::target::{SeriesMove, Target, read_upstream};
use crate::apply::change_tree;
use crate::generation::locked::LockedSeries;
use crate::range;
use crate::rebase::state::{DonePatch, NamedTree, RebaseState, SeriesState, places_of_upstreamed};
use crate::report::rebase::Fate;

/// Creates a repository in `folder` for the rebase of `target`. It borrows what the store has on disk; the base and
/// the target tree may exist only in memory.
pub fn create_repo(target: &Target<'_>, folder: &Path) -> Result<RebaseRepo> {
    let SeriesMove { store, stack, tip, .. } = target.named();
    let repo = RebaseRepo::create(folder)?;
    store.write_tree_to(stack.pin.tree, &repo.store)?;
    store.write_tree_to(tip.tree, &repo.store)?;
    Ok(repo)
}

/// Returns the state of a rebase in which nothing is replayed.
pub fn new_state(target: &Target<'_>, choices: Choices) -> RebaseState {
    let series_move = target.named();
    let named = |name: &str, tree: ObjectId| NamedTree { name: name.to_string(), tree: tree.to_string() };
    let variant = (series_move.stack.variant.name.as_str(), target.scope());
    let from = named(&series_move.old_name, series_move.stack.pin.tree);
    let to = named(&series_move.tip.name, series_move.tip.tree);
    let mut state = RebaseState::new(variant, from, to, series_now(target), choices);
    state.commit = series_move.tip.commit.to_string();
    state
}

/// Returns the current version of every series that moves, with nothing replayed.
pub fn series_now(target: &Target<'_>) -> Vec<SeriesState> {
    let named = |patch: &PatchFile| (patch.file.clone(), patch.sha256.clone());
    let series = |SeriesMove { stack, siblings, .. }: &SeriesMove<'_>| {
        let files = stack.files.iter().map(named).collect();
        let siblings = siblings.iter().flatten().map(|sibling| named(&sibling.file)).collect();
        SeriesState { siblings, ..SeriesState::new(&stack.variant.name, files, stack.parents) }
    };
    target.series().iter().map(series).collect()
}

/// The point at which the replay stopped.
pub enum Walked {
    /// After the last patch.
    ToTheEnd,
    /// At upstreamed patches for which no flag was given.
    Refused(NeededDecisions),
    /// At a conflict, or at a patch that the user wants to edit.
    Stopped(Box<Stop>),
}

/// The decisions needed for upstreamed patches, and the flags that express them.
pub struct NeededDecisions {
    pub error: Error,
    pub flags: String,
    /// Whether one of the patches can be edited instead.
    pub is_editable: bool,
    /// Whether a trimmed patch may keep a counter that is too low.
    pub counter_in_doubt: bool,
}

impl NeededDecisions {
    /// Returns the error with the next commands: the flags once after `if that is right` and once alone. With a counter in
    /// doubt, trimming is not the first of them: it would leave the counter wrong without another question.
    pub fn with_hints(self, if_right: &str, command: &str) -> Error {
        if self.counter_in_doubt {
            return self
                .error
                .hint(format!(
                    "a counter may be too low: stop at each patch that it has in part, and set it: {command} \
                     --edit-upstreamed"
                ))
                .hint(format!("or if upstream's value is right{if_right} {}", self.flags));
        }
        let error = self.error.hint(format!("if that is right{if_right} {}", self.flags));
        if !self.is_editable {
            return error;
        }
        error.hint(format!(
            "or stop at each of those that it has in part, and edit it: {command} --edit-upstreamed"
        ))
    }
}

/// Replays the rest of `state`, series by series; every patch that was replayed is recorded as a commit in `repo` and
/// in `state`.
pub fn go_on(target: &Target<'_>, repo: &RebaseRepo, state: &mut RebaseState) -> Result<Walked> {
    let (choices, edit, same) = (state.choices, state.edit.clone(), state.same_functions.clone());
    let mut refused = Vec::new();
    for (place, series_move) in target.series().iter().enumerate() {
        state.inherit(place);
        let Some(series) = state.series.get_mut(place).filter(|series| !series.is_complete()) else {
            continue;
        };
        let decisions = Decisions { choices, edit: &edit, same: &same };
        if let Some(stop) = go_on_with_series(series_move, repo, (series, &decisions), &mut refused)? {
            return Ok(Walked::Stopped(Box::new(stop)));
        }
    }
    Ok(match refused.is_empty() {
        true => Walked::ToTheEnd,
        false => Walked::Refused(upstream_has(target, &refused)),
    })
}

/// Replays again the patch at which `state` waits: the stop as it was handed over, from the same inputs. Nothing in the
/// work tree has an effect on it.
pub fn stop_again(here: &RebasePosition<'_, '_>, repo: &RebaseRepo, state: &RebaseState) -> Result<Stop> {
    let beyond = || Error::environment("the record of the rebase goes beyond the series");
    let mut series = state.series.get(here.series).cloned().ok_or_else(beyond)?;
    let same = &state.same_functions;
    let decisions = Decisions { choices: state.choices, edit: &state.edit, same };
    with_replay(here.series_move, repo, (&mut series, same), |_, Start { mut replay, mut tree, head }| {
        let may_edit = decisions.may_edit(here.file);
        let locked = OnceCell::new();
        let before = Before { replay: &mut replay, tree: &mut tree, head, same, locked: &locked, may_edit };
        match sibling_stop::apply(here.series_move, &repo.store, before, here.at)? {
            AtSibling::Stopped(stop) => return Ok(*stop),
            AtSibling::Applied(_) => return Err(merges_now(here.file)),
            AtSibling::Unused => {}
        }
        let step = step(here.series_move, &mut replay, here.at)?;
        change_tree(&repo.store, &mut tree, &step.changes)?;
        let replayed = to_edit(&replay, here.at, &step, decisions.choices)?.unwrap_or(step.replayed);
        let tree = tree.write()?;
        repo.store.write_tree(tree)?;
        Ok(Stop::new(replayed, &replay, (head, tree), may_edit))
    })
}

/// Returns the error for a stop at a sibling that has become one without a conflict.
fn merges_now(file: &str) -> Error {
    let what = format!("the sibling of {file} merges by itself now: the lock or the history has changed");
    Error::new(Kind::Conflict, what)
        .hint("cargo xtask rebase --abort    # nothing in your project has changed")
}

/// The decisions of the user for the rest of a rebase.
struct Decisions<'w> {
    choices: Choices,
    /// Files of the patches to stop at.
    edit: &'w [String],
    /// Functions that are taken as the same.
    same: &'w [SameFunction],
}

impl Decisions<'_> {
    /// Whether the user wants to edit the patch `file`.
    fn may_edit(&self, file: &str) -> bool {
        self.edit.iter().any(|named| named == file)
    }
}

/// A series as its next patch finds it.
struct Start<'r> {
    replay: Replay<'r>,
    tree: GitTree<'r>,
    /// The commit of `tree`.
    head: ObjectId,
}

/// Prepares the replay of the rest of one series, and passes it to `work`.
fn with_replay<T>(
    series_move: &SeriesMove<'_>,
    repo: &RebaseRepo,
    (state, same): (&mut SeriesState, &[SameFunction]),
    work: impl FnOnce(&mut SeriesState, Start<'_>) -> Result<T>,
) -> Result<T> {
    let store = &repo.store;
    let root = repo.commit_upstream(&series_move.tip.name, series_move.tip.tree)?;
    let head = state.commits()?.last().copied().unwrap_or(root);
    let start = store.tree_of(head)?;
    let pin_tree = StoreTree::new(store, series_move.stack.pin.tree)?;
    let start_tree = StoreTree::in_range(store, start, series_move.stack.pin.tree, series_move.tip.tree)?;
    let applied = range::applied_series(store, &series_move.stack.patches, &pin_tree)?;
    if state.position() <= state.parents && state.upstream.is_empty() {
        state.upstream = read_upstream(series_move, &applied)?;
    }
    let upstreamed = places_of_upstreamed(&state.upstream);
    let tip_tree = StoreTree::new(store, series_move.tip.tree)?;
    let replay = Replay::new(&applied, &start_tree, names(series_move), &upstreamed);
    let replay = replay.with_upstream(&tip_tree).with_same_functions(same);
    work(state, Start { replay, tree: GitTree::new(store, start)?, head })
}

/// Replays the rest of one series; returns where it stops.
fn go_on_with_series(
    series_move: &SeriesMove<'_>,
    repo: &RebaseRepo,
    (state, decisions): (&mut SeriesState, &Decisions<'_>),
    refused: &mut Vec<Refused>,
) -> Result<Option<Stop>> {
    with_replay(series_move, repo, (state, decisions.same), |state, Start { mut replay, tree, head }| {
        let (store, behind, choices) = (&repo.store, state.position(), decisions.choices);
        let locked = OnceCell::new();
        let mut walk = Walk { series_move, repo, state, choices, tree, head, refused, locked };
        let files = series_move.stack.patches.iter().zip(&series_move.stack.files).enumerate().skip(behind);
        for (at, (patch, file)) in files {
            let may_edit = at >= walk.state.parents && decisions.may_edit(&file.file);
            let stops = may_edit && walk.refused.is_empty();
            match walk.at_sibling(at, &file.file, &mut replay, (stops, decisions.same))? {
                AtSibling::Stopped(stop) if walk.refused.is_empty() => {
                    return described(series_move, &mut replay, (at, &walk.state.done), *stop).map(Some);
                }
                AtSibling::Stopped(_) | AtSibling::Applied(_) => continue,
                AtSibling::Unused => {}
            }
            let step = step(series_move, &mut replay, at)?;
            change_tree(store, &mut walk.tree, &step.changes)?;
            let edited = to_edit(&replay, at, &step, choices)?;
            let stays = decide(&step.replayed, choices) == Decision::Stays;
            if !(edited.as_ref().unwrap_or(&step.replayed).has_conflict() || may_edit && stays) {
                walk.take((at, patch), &file.file, (&step, &replay))?;
            } else if walk.refused.is_empty() {
                let tree = walk.tree.write()?;
                // On disk, because git shows it in the work tree.
                store.write_tree(tree)?;
                let replayed = edited.unwrap_or(step.replayed);
                let stop = Stop::new(replayed, &replay, (walk.head, tree), may_edit);
                return described(series_move, &mut replay, (at, &walk.state.done), stop).map(Some);
            }
        }
        Ok(None)
    })
}

/// Returns the stop at the patch at `at` with its description, and with the rest of its series as far as that is known.
fn described(
    series_move: &SeriesMove<'_>,
    replay: &mut Replay<'_>,
    (at, done): (usize, &[DonePatch]),
    stop: Stop,
) -> Result<Stop> {
    let sibling = stop.sibling.as_ref().map(|sibling| &sibling.packaged);
    let stopped = Stopped { series_move, replay: &*replay, at, replayed: &stop.replayed, sibling, done };
    let package = package::build(&stopped)?;
    // An addition: the stop itself is reported without it too.
    let ahead = Ahead::of_rest(series_move, replay, at).ok();
    Ok(Stop { package: Some(package), ahead, ..stop })
}

/// Returns the patch at `at` with its upstreamed parts as conflicts, if the user asked to edit those.
fn to_edit(replay: &Replay<'_>, at: usize, step: &Step, choices: Choices) -> Result<Option<Replayed>> {
    let asks = matches!(decide(&step.replayed, choices), Decision::Asks(Fate::PartlyUpstreamed));
    match asks && choices.edit_upstreamed {
        true => Ok(Some(replay.by_hand(at, &step.replayed)?)),
        false => Ok(None),
    }
}

/// State of the replay of one series.
struct Walk<'w> {
    series_move: &'w SeriesMove<'w>,
    repo: &'w RebaseRepo,
    state: &'w mut SeriesState,
    choices: Choices,
    tree: GitTree<'w>,
    head: ObjectId,
    refused: &'w mut Vec<Refused>,
    /// The generation as it was locked, once a sibling has needed it.
    locked: OnceCell<Option<LockedSeries>>,
}

/// A patch that is upstreamed, completely or in part, and for which no flag was given.
struct Refused {
    file: String,
    fate: Fate,
    notes: Vec<String>,
    counter_in_doubt: bool,
}

impl Walk<'_> {
    /// Records a patch without conflicts. After the first refused one, in any series, the rest are only examined.
    fn take(
        &mut self,
        (at, patch): (usize, &Patch),
        file: &str,
        (step, replay): (&Step, &Replay<'_>),
    ) -> Result<()> {
        let decision = decide(&step.replayed, self.choices);
        let mut notes = notes(&step.replayed, &self.state.upstream, at, decision);
        let Shared { notes: more, counter_in_doubt } =
            shared(self.series_move, replay, (at, &step.replayed), decision)?;
        notes.extend(more);
        if let Decision::Asks(fate) = decision {
            // A parent's patch is reported with its own series.
            if at >= self.state.parents {
                self.refused.push(Refused { file: file.to_string(), fate, notes, counter_in_doubt });
            }
            return Ok(());
        }
        if !self.refused.is_empty() {
            return Ok(());
        }
        let drops = decision == Decision::Dropped;
        if drops {
            self.series_move.context.ui.status("Dropping", file);
        } else {
            self.head = self.repo.commit_patch(patch, self.tree.write()?, self.head)?;
        }
        let commit = (!drops).then(|| self.head.to_string());
        let file = file.to_string();
        self.state.done.push(DonePatch { file, commit, by_hand: false, notes, counter_in_doubt });
        Ok(())
    }
}

impl Walk<'_> {
    /// Takes the sibling of the patch at `at`, if it has one that can be used, or stops with it; `stops` tells whether
    /// the user asked for that.
    fn at_sibling(
        &mut self,
        at: usize,
        file: &str,
        replay: &mut Replay<'_>,
        (stops, same): (bool, &[SameFunction]),
    ) -> Result<AtSibling> {
        let (series_move, head, locked) = (self.series_move, self.head, &self.locked);
        let before = Before { replay, tree: &mut self.tree, head, same, locked, may_edit: stops };
        let found = sibling_stop::apply(series_move, &self.repo.store, before, at)?;
        let Some(sibling) = series_move.sibling(at) else { return Ok(found) };
        let name = &sibling.file.file;
        match &found {
            AtSibling::Applied(applied) => self.take_sibling(file, name, applied)?,
            AtSibling::Unused if !sibling.patch.is_dropped() => {
                let what = format!("{name} is not exact any more; its patch is replayed instead");
                series_move.context.ui.warn(what);
            }
            AtSibling::Unused | AtSibling::Stopped(_) => {}
        }
        Ok(found)
    }

    /// Records the sibling `name` in the place of the patch `file`.
    fn take_sibling(&mut self, file: &str, name: &str, applied: &AppliedSibling) -> Result<()> {
        change_tree(&self.repo.store, &mut self.tree, &applied.changes)?;
        if !self.refused.is_empty() {
            return Ok(());
        }
        let is_dropped = applied.patch.is_dropped();
        if !is_dropped {
            self.head = self.repo.commit_patch(&applied.patch, self.tree.write()?, self.head)?;
        }
        let note = match applied.is_merged {
            true => {
                self.series_move.context.ui.status("Refreshing", name);
                format!("as in {name}, refreshed: merged with what earlier patches have become")
            }
            false => format!("as in {name}"),
        };
        let commit = (!is_dropped).then(|| self.head.to_string());
        let (file, notes) = (file.to_string(), vec![note]);
        self.state.done.push(DonePatch { file, commit, by_hand: false, notes, counter_in_doubt: false });
        Ok(())
    }
}

fn upstream_has(target: &Target<'_>, refused: &[Refused]) -> NeededDecisions {
    let series_move = target.named();
    let patches: usize = target.series().iter().map(|series| series.stack.own_patches().len()).sum();
    let what = format!(
        "{} {} has what {} of {} patches do; nothing was written",
        series_move.stack.pin.upstream,
        series_move.tip.name,
        refused.len(),
        patches
    );
    let mut error = Error::new(Kind::Conflict, what);
    for Refused { file, fate, notes, .. } in refused {
        let class = fate.describe();
        let lines = notes.iter().flat_map(|note| note.lines());
        let notes: String = lines.map(|line| format!("\n  {line}")).collect();
        error = error.detail(format!("{file}: {class}{notes}"));
    }
    let is_needed = |fate: Fate| refused.iter().any(|refused| refused.fate == fate);
    let flags = [(Fate::Upstreamed, "--drop-upstreamed"), (Fate::PartlyUpstreamed, "--trim-upstreamed")];
    let flags: Vec<&str> = flags.iter().filter(|(fate, _)| is_needed(*fate)).map(|(_, flag)| *flag).collect();
    NeededDecisions {
        error,
        flags: flags.join(" "),
        is_editable: is_needed(Fate::PartlyUpstreamed),
        counter_in_doubt: refused.iter().any(|refused| refused.counter_in_doubt),
    }
}
