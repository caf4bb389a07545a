//! Replaying patch by patch: in memory only, or into the repository of a rebase.

use git2::Oid;

use super::course::Course;
use super::{Choices, Prepared, conflict, finish};
use crate::cmd::apply;
use crate::error::{Error, Result};
use crate::plan::rebase_state::{DonePatch, NamedTree, RebaseState};
use crate::report::rebase::{self as report, PatchMove, RebaseReport};
use crate::series::{
    Followed, Patch, Replay, ReplayError, Replayed, Step, TreeChange, TreeNames, Way, replayed_patch,
};
use crate::sys::git_tree::{Entry, GitTree};
use crate::sys::rebase_repo::RebaseRepo;
use crate::sys::store::Store;
use crate::sys::store_tree::StoreTree;
use crate::sys::{arrivals, disk};

/// The whole series in memory. A patch with a conflict is left out, and the rest are tried without it.
pub fn in_memory(course: &Course<'_>, choices: Choices) -> Result<RebaseReport> {
    let store = course.store;
    let pin_tree = StoreTree::new(store, course.pin.tree)?;
    let tip_tree = StoreTree::new(store, course.tip.tree)?;
    let find = || arrivals(store, course);
    let mut replay = Replay::new(&pin_tree, &tip_tree, names(course), &find);
    let mut moves = Vec::new();
    let mut new_patches = Vec::new();
    let mut tree = GitTree::new(store, course.tip.tree)?;
    for (patch, file) in course.patches.iter().zip(&course.inputs.patches) {
        let step = step(course, &mut replay, patch)?;
        let has_conflict = step.replayed.has_conflict();
        if !has_conflict {
            add(store, &mut tree, &step.changes)?;
        }
        // Of a patch with conflicts there is no new one yet.
        let new = match has_conflict {
            true => patch.clone(),
            false => replayed_patch(patch, &step.replayed, &replay).map_err(unreadable)?,
        };
        let notes = notes_on(&step.replayed);
        let fate = match () {
            () if has_conflict => report::Fate::Conflict,
            () if step.replayed.is_upstreamed() => report::Fate::Upstreamed,
            () if step.replayed.is_partly_upstreamed() => report::Fate::PartlyUpstreamed,
            () if step.replayed.has_the_same_hunks() => report::Fate::Unchanged,
            () => report::fate(patch, &new),
        };
        let conflicts = step.replayed.conflicts().map(conflict::describe).collect();
        let shown = !choices.no_range_diff && fate.has_range_diff();
        let range_diff = if shown { report::range_diff(patch, &new) } else { None };
        moves.push(PatchMove {
            file: file.file.clone(),
            new_file: None,
            subject: patch.subject.clone(),
            fate,
            notes,
            conflicts,
            range_diff,
        });
        new_patches.push(new);
    }
    let pairs = course.patches.iter().zip(&new_patches).zip(&moves);
    let changed = pairs.filter(|(_, moved)| moved.fate.has_range_diff()).map(|(pair, _)| pair);
    let reverts = reverts(course, changed)?;
    let mut report = empty_report(course, tree.write()?);
    report.patches = moves;
    report.reverts = reverts;
    Ok(report)
}

/// The report without its patches.
pub fn empty_report(course: &Course<'_>, tree: Oid) -> RebaseReport {
    RebaseReport {
        variant: course.variant.name.clone(),
        upstream: course.pin.upstream.clone(),
        from: report::place(&course.pin.tag, course.pin.tree),
        to: report::place(&course.tip.name, course.tip.tree),
        tree: tree.to_string(),
        patches: Vec::new(),
        reverts: Vec::new(),
        written: false,
    }
}

/// Lines that new patches delete and upstream added, read from the two trees.
pub fn reverts<'p>(
    course: &Course<'_>,
    pairs: impl Iterator<Item = (&'p Patch, &'p Patch)>,
) -> Result<Vec<report::Revert>> {
    let old = StoreTree::new(course.store, course.pin.tree)?;
    let new = StoreTree::new(course.store, course.tip.tree)?;
    report::silent_reverts(pairs, &old, &new).map_err(unreadable)
}

/// A rebase from its beginning, in a repository under the scratch folder: only a conflict makes it stay.
pub fn start(course: &Course<'_>, choices: Choices) -> Result<Prepared> {
    let layout = &course.context.layout;
    let scratch = disk::scratch_folder(&layout.scratch(), "rebase")?;
    let repo = RebaseRepo::create(scratch.path())?;
    let mut state = new_state(course, choices);
    match go_on(course, &repo, &mut state)? {
        Walked::ToTheEnd => finish::prepare(course, &repo, &state),
        Walked::Refused(error) => Err(error),
        Walked::Conflict(stop) => {
            conflict::write_state(scratch.path(), &state)?;
            let home = layout.rebase(&course.variant.name);
            if let Some(parent) = home.parent() {
                disk::create_folder(parent)?;
            }
            drop(repo);
            disk::rename(&scratch.keep(), &home)?;
            conflict::hand_over(course, &RebaseRepo::open(&home)?, &mut state, *stop)
        }
    }
}

fn new_state(course: &Course<'_>, choices: Choices) -> RebaseState {
    let named = |name: &str, tree: Oid| NamedTree { name: name.to_string(), tree: tree.to_string() };
    let from = named(&course.pin.tag, course.pin.tree);
    let to = named(&course.tip.name, course.tip.tree);
    let mut state = RebaseState::new(&course.variant.name, from, to, digests(course));
    state.drop_upstreamed = choices.drop_upstreamed;
    state.trim_upstreamed = choices.trim_upstreamed;
    state
}

/// The series as it is now: file and sha256.
pub fn digests(course: &Course<'_>) -> Vec<(String, String)> {
    course.inputs.patches.iter().map(|patch| (patch.file.clone(), patch.sha256.clone())).collect()
}

/// Where walking stopped.
pub enum Walked {
    /// After the last patch.
    ToTheEnd,
    /// At patches that upstream has, about which nothing was said.
    Refused(Error),
    /// At a conflict.
    Conflict(Box<Stop>),
}

/// A patch with conflicts, and all that is needed to show them.
pub struct Stop {
    pub replayed: Replayed,
    /// The commit that it was to go on.
    pub head: Oid,
    /// The tree with those of its files that had no conflict.
    pub tree: Oid,
    /// The blobs that the conflicts name, by id.
    pub blobs: Vec<(Oid, Vec<u8>)>,
}

/// Replays what is left of `state`; every patch that went well is a commit in `repo` and in `state.done`.
pub fn go_on(course: &Course<'_>, repo: &RebaseRepo, state: &mut RebaseState) -> Result<Walked> {
    let store = &repo.store;
    let root = repo.commit_upstream(&course.tip.name, course.tip.tree)?;
    let mut head = state.last_commit().unwrap_or(root);
    let start = store.tree_of(head)?;
    let pin_tree = StoreTree::new(store, course.pin.tree)?;
    let start_tree = StoreTree::new(store, start)?;
    let find = || arrivals(store, course);
    let mut replay = Replay::new(&pin_tree, &start_tree, names(course), &find);
    let mut tree = GitTree::new(store, start)?;
    let mut refused = Vec::new();
    let behind = state.position();
    for patch in course.patches.iter().take(behind) {
        replay.pass(patch).map_err(|error| not_replayed(course, error))?;
    }
    for (patch, file) in course.patches.iter().zip(&course.inputs.patches).skip(behind) {
        let step = step(course, &mut replay, patch)?;
        add(store, &mut tree, &step.changes)?;
        if step.replayed.has_conflict() {
            if !refused.is_empty() {
                break;
            }
            let blobs = conflict::blobs(&step.replayed, &replay).map_err(unreadable)?;
            let tree = tree.write()?;
            return Ok(Walked::Conflict(Box::new(Stop { replayed: step.replayed, head, tree, blobs })));
        }
        let drops = step.replayed.is_upstreamed();
        let trims = step.replayed.is_partly_upstreamed();
        if (drops && !state.drop_upstreamed) || (trims && !state.trim_upstreamed) {
            refused.push((file.file.clone(), drops, notes_on(&step.replayed)));
        }
        if !refused.is_empty() {
            continue;
        }
        let mut notes = notes_on(&step.replayed);
        if drops {
            notes.push(DROPPED_UPSTREAMED.to_string());
        } else {
            head = repo.commit_patch(patch, tree.write()?, head)?;
        }
        let commit = (!drops).then(|| head.to_string());
        state.done.push(DonePatch { file: file.file.clone(), commit, by_hand: false, notes });
    }
    Ok(match refused.is_empty() {
        true => Walked::ToTheEnd,
        false => Walked::Refused(upstream_has(course, &refused)),
    })
}

/// Why a patch is not there any more.
pub const DROPPED_UPSTREAMED: &str = "upstream has all of it";

fn upstream_has(course: &Course<'_>, refused: &[(String, bool, Vec<String>)]) -> Error {
    let what = format!(
        "{} {} has what {} of {} patches do; nothing was written",
        course.pin.upstream,
        course.tip.name,
        refused.len(),
        course.patches.len()
    );
    let mut error = Error::new(crate::error::Kind::Conflict, what);
    for (file, whole, notes) in refused {
        let class = if *whole { "upstreamed" } else { "partly upstreamed" };
        let notes: String = notes.iter().map(|note| format!("\n  {note}")).collect();
        error = error.detail(format!("{file}: {class}{notes}"));
    }
    let flags: Vec<&str> = [(true, "--drop-upstreamed"), (false, "--trim-upstreamed")]
        .iter()
        .filter(|(whole, _)| refused.iter().any(|(_, is_whole, _)| is_whole == whole))
        .map(|(_, flag)| *flag)
        .collect();
    error.hint(format!("if that is right, add: {}", flags.join(" ")))
}

fn names<'a>(course: &'a Course<'_>) -> TreeNames<'a> {
    TreeNames { pin: &course.pin.tag, tip: &course.tip.name }
}

fn arrivals(
    store: &Store,
    course: &Course<'_>,
) -> std::result::Result<Vec<crate::series::Arrival>, crate::series::TreeError> {
    arrivals::between(store, course.pin.tree, course.tip.tree)
        .map_err(|error| crate::series::TreeError { message: error.to_string() })
}

fn step(course: &Course<'_>, replay: &mut Replay<'_>, patch: &Patch) -> Result<Step> {
    replay.step(patch).map_err(|error| not_replayed(course, error))
}

/// A series that is not exact at its own pin cannot be moved; `apply` says all about it.
fn not_replayed(course: &Course<'_>, error: ReplayError) -> Error {
    match error {
        ReplayError::Tree(error) => unreadable(error),
        ReplayError::NotExact(drift) => {
            match apply::apply_inputs(course.store, course.variant, course.pin, &course.inputs) {
                Err(error) => error.hint("a series is moved only from a pin on which it is exact"),
                Ok(_) => Error::no(drift.to_string()),
            }
        }
    }
}

/// A tree that cannot be read is the surroundings failing.
pub fn unreadable(error: crate::series::TreeError) -> Error {
    Error::surroundings(error.message)
}

/// Puts the changes of a patch into `tree`, and their new blobs into the store's memory.
pub fn add(store: &Store, tree: &mut GitTree<'_>, changes: &[TreeChange]) -> Result<()> {
    for change in changes {
        let entry = change.new.as_ref().map(|file| {
            if let Some(content) = &file.content {
                store.keep(file.id, std::sync::Arc::clone(content));
            }
            Entry { mode: file.mode.as_git_mode(), id: file.id }
        });
        tree.set(change.path.as_bytes(), entry)?;
    }
    Ok(())
}

/// What a person should know about a patch that went well.
pub fn notes_on(replayed: &Replayed) -> Vec<String> {
    let mut notes = Vec::new();
    for file in &replayed.files {
        if let Some(Followed { from, to, percent }) = &file.followed {
            let how = if *percent == 100 {
                "the same content".into()
            } else {
                format!("{percent} % of its lines are the same")
            };
            notes.push(format!("{from} is followed to {to} ({how})"));
        }
        let path = file.after.as_ref().or(file.before.as_ref()).map(|version| version.path.to_string());
        let path = path.unwrap_or_default();
        match &file.way {
            Way::AlreadyThere => notes.push(format!("{path}: upstream has all of the change")),
            Way::PartlyThere { lines, of } => {
                notes.push(format!("{path}: upstream has {lines} of {of} changed lines"));
            }
            Way::AsItWas | Way::Placed | Way::Merged | Way::Conflict(_) => {}
        }
    }
    notes
}
