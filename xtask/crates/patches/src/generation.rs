//! A series on a generation: patches are replayed from the pin that they were made for, and siblings take the place of
//! those that cannot be, or that have to do something else there.

pub mod locked;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use espalier_core::config::lock::LockedSibling;
use espalier_core::config::paths::patch_number;
use espalier_core::config::pins::short_name;
use espalier_core::error::{Error, Result};
use espalier_core::next_command::next_command;
use espalier_core::sys::git::store::Store;
use espalier_core::sys::git::store_tree::StoreTree;
use espalier_core::sys::project::inputs::{PatchFile, find_patch};
use espalier_series::{
    FailedPatches, ObjectId, Patch, PatchClass, Replay, ReplayError, Step, TreeChange, TreeNames, Verdict,
    exact_patch,
};

use self::locked::{LockedSeries, RefreshedSibling};
use super::range;
use crate::report::replay::describe_conflict;
use crate::stack::{Generation, Sibling, Stack};

/// Maximum number of patches that an error names in its first line.
const NAMED: usize = 3;

/// One patch on a generation.
pub struct GenerationPatch<'s> {
    /// The file of the patch.
    pub file: &'s PatchFile,
    /// The sibling that takes its place.
    pub sibling: Option<&'s Sibling>,
    /// The result.
    pub result: Placed,
}

/// The result of placing one patch on a generation.
pub enum Placed {
    /// It was replayed: the same change, exact there.
    Replayed(Patch),
    /// Its sibling is exact.
    Replaced {
        /// Whether the replay of the patch itself would give the same tree.
        is_same: bool,
    },
    /// Its sibling is not exact any more, and merges with what the earlier patches are now: the sibling, exact there.
    /// A rebase writes it; every other command refuses the old one.
    Refreshed(Patch),
    /// Its sibling is exact, and was made for another version of the patch: a person has to look at both.
    Behind,
    /// A person has to decide.
    Waits {
        /// The class of the patch, or of its sibling, which is not exact.
        class: PatchClass,
        /// The reasons.
        why: Vec<String>,
    },
}

impl Placed {
    /// Whether a person has to decide about it.
    pub fn waits(&self) -> bool {
        match self {
            Placed::Waits { class, .. } => *class != PatchClass::Blocked,
            Placed::Behind => true,
            Placed::Replayed(_) | Placed::Replaced { .. } | Placed::Refreshed(_) => false,
        }
    }

    /// Whether it cannot be judged before the decision about an earlier one.
    pub fn is_blocked(&self) -> bool {
        matches!(self, Placed::Waits { class: PatchClass::Blocked, .. })
    }
}

/// Returns `stack` with exact patches: on a generation those without a sibling are replayed; any other stack is exact
/// already. Both pins are in the store.
///
/// # Errors
///
/// A patch cannot be replayed without a decision, a sibling is not exact, or one is behind its patch; all of them are
/// named.
pub fn placed<'s>(store: &Store, stack: &'s Stack) -> Result<Cow<'s, Stack>> {
    let Some(generation) = &stack.generation else { return Ok(Cow::Borrowed(stack)) };
    let placed = place(store, stack.pin.tree, (generation, &stack.pin.revision.to_string()))?;
    refuse_waiting(stack, &placed)?;
    let patches = placed.into_iter().filter_map(|patch| match (patch.result, patch.sibling) {
        (Placed::Replayed(patch), _) => Some(patch),
        (_, Some(sibling)) if !sibling.patch.is_dropped() => Some(sibling.patch.clone()),
        _ => None,
    });
    Ok(Cow::Owned(Stack { patches: patches.collect(), ..stack.clone() }))
}

/// Places every patch of a series on `tree`, which is called `name`. One that waits changes nothing there, and the
/// others are tried without it.
pub fn place<'s>(
    store: &Store,
    tree: ObjectId,
    generation: (&'s Generation, &str),
) -> Result<Vec<GenerationPatch<'s>>> {
    place_as_rebase(store, tree, generation, None)
}

/// As [`place`], and siblings that are not exact any more are refreshed as a rebase does it; `locked` is the
/// generation as it was locked.
pub fn place_as_rebase<'s>(
    store: &Store,
    tree: ObjectId,
    (generation, name): (&'s Generation, &str),
    locked: Option<&LockedSeries>,
) -> Result<Vec<GenerationPatch<'s>>> {
    let Generation { base, files, patches, siblings } = generation;
    let base_tree = StoreTree::new(store, base.tree)?;
    let new_tree = StoreTree::in_range(store, tree, base.tree, tree)?;
    let applied = range::applied_series(store, patches, &base_tree)?;
    let base_name = base.revision.to_string();
    let names = TreeNames { pin: short_name(&base_name), tip: short_name(name) };
    let nothing = BTreeSet::new();
    let mut placing = Placing {
        replay: Replay::new(&applied, &new_tree, names, &nothing),
        failed: FailedPatches::default(),
        store,
        locked,
    };
    let mut placed = Vec::with_capacity(patches.len());
    for (at, ((file, patch), sibling)) in files.iter().zip(patches).zip(siblings).enumerate() {
        let sibling = sibling.as_ref();
        let result = match sibling {
            Some(sibling) => placing.sibling(at, patch, sibling)?,
            None => placing.patch(at, patch, file)?,
        };
        placed.push(GenerationPatch { file, sibling, result });
    }
    Ok(placed)
}

/// Whether two lists of changes give the same tree.
fn give_same_tree(left: &[TreeChange], right: &[TreeChange]) -> bool {
    let by_path = |changes: &[TreeChange]| -> BTreeMap<Vec<u8>, Option<(u32, ObjectId)>> {
        let result = |change: &TreeChange| change.new.as_ref().map(|file| (file.mode.as_git_mode(), file.id));
        changes.iter().map(|change| (change.path.as_bytes().to_vec(), result(change))).collect()
    };
    by_path(left) == by_path(right)
}

/// Whether replaying the patch gives the tree that `changes` give, without a decision.
pub fn gives_by_itself(step: &Step, changes: &[TreeChange]) -> bool {
    !step.replayed.needs_decision() && give_same_tree(&step.changes, changes)
}

/// Returns the error for a patch that is not exact on its own base.
pub fn not_exact(error: ReplayError, file: &PatchFile) -> Error {
    match error {
        ReplayError::Tree(error) => error.into(),
        ReplayError::NotExact | ReplayError::NoSuchPatch => {
            Error::no(format!("{} is not exact on the pin that it was made for", file.file))
                .hint("`cargo xtask apply --check` of the variant that has it says why")
        }
    }
}

/// The series, as far as it is placed.
struct Placing<'r> {
    replay: Replay<'r>,
    failed: FailedPatches,
    store: &'r Store,
    locked: Option<&'r LockedSeries>,
}

impl Placing<'_> {
    fn patch(&mut self, at: usize, patch: &Patch, file: &PatchFile) -> Result<Placed> {
        let Step { replayed, .. } = self.replay.step(at).map_err(|error| not_exact(error, file))?;
        let class = replayed.class();
        if replayed.has_conflict() {
            let why = replayed.conflicts().map(describe_conflict).collect();
            return Ok(self.fails(patch, class, why));
        }
        match replayed.needs_decision() {
            true => Ok(Placed::Waits { class, why: Vec::new() }),
            false => Ok(Placed::Replayed(exact_patch(patch, &replayed, &self.replay)?)),
        }
    }

    fn sibling(&mut self, at: usize, patch: &Patch, sibling: &Sibling) -> Result<Placed> {
        // The comparison with the patch is an addition: the sibling is exact without it.
        let alone = self.replay.try_step(at).ok();
        match self.replay.apply_instead(&sibling.patch)? {
            Verdict::Exact(changes) => {
                let is_same = alone.is_some_and(|step| gives_by_itself(&step, &changes));
                // One that is not needed goes, whatever it was made for.
                Ok(match sibling.behind.is_some() && !is_same {
                    true => Placed::Behind,
                    false => Placed::Replaced { is_same },
                })
            }
            Verdict::Drifted(drift) => match self.refresh(sibling)? {
                Some(_) if sibling.behind.is_some() => Ok(Placed::Behind),
                Some(refreshed) => Ok(Placed::Refreshed(refreshed)),
                None => {
                    let why = vec![drift.to_string()];
                    Ok(self.fails(patch, drift.class, why))
                }
            },
            Verdict::Replayed(step) => Ok(self.fails(patch, step.replayed.class(), Vec::new())),
        }
    }

    /// Applies a sibling that is not exact any more, merged with what the earlier patches are now, and returns it;
    /// `None` if that needs a decision, or if it is not known what the sibling was made for.
    fn refresh(&mut self, sibling: &Sibling) -> Result<Option<Patch>> {
        let Some(locked) = self.locked else { return Ok(None) };
        Ok(match locked.refresh(self.store, sibling, &mut self.replay, &[])? {
            Some(RefreshedSibling::Applied { patch, .. }) => Some(patch),
            Some(RefreshedSibling::Undecided(_)) | None => None,
        })
    }

    /// Returns the result of a patch that changes nothing here, which may block later ones.
    fn fails(&mut self, patch: &Patch, class: PatchClass, why: Vec<String>) -> Placed {
        let blocked_by = self.failed.add(patch);
        match blocked_by.is_empty() {
            true => Placed::Waits { class, why },
            false => {
                let why = vec![format!("it needs {} first", blocked_by.join(", "))];
                Placed::Waits { class: PatchClass::Blocked, why }
            }
        }
    }
}

/// Refuses a series of which patches wait for a decision.
fn refuse_waiting(stack: &Stack, placed: &[GenerationPatch<'_>]) -> Result<()> {
    let files = |is_it: fn(&Placed) -> bool| {
        let found = placed.iter().filter(|patch| is_it(&patch.result));
        found.map(|patch| patch.file).collect::<Vec<_>>()
    };
    // A blocked one is never alone.
    let needs = files(|result| result.waits() && !matches!(result, Placed::Behind));
    let behind = files(|result| matches!(result, Placed::Behind));
    let error = match (needs.is_empty(), behind.is_empty()) {
        (true, true) => return Ok(()),
        (false, _) => needs_siblings(stack, &needs, placed),
        (true, false) => stale_siblings(stack, &behind, placed.len()),
    };
    let undecided = placed.iter().filter(|patch| !patch.result.is_blocked());
    Err(undecided.filter_map(describe_waiting).fold(error, Error::detail))
}

/// Returns the error for a generation on which the patches `files` do not apply.
fn needs_siblings(stack: &Stack, files: &[&PatchFile], placed: &[GenerationPatch<'_>]) -> Error {
    let Stack { variant, pin, .. } = stack;
    let (of, blocked) = (placed.len(), describe_blocked(placed));
    let what = format!(
        "the generation {} needs siblings: {} of {of} patches do not apply to {} {} by themselves{blocked}: {}",
        pin.name,
        files.len(),
        pin.upstream,
        short_name(&pin.revision.to_string()),
        listed(files),
    );
    let command = rebase_command(&variant.name);
    // One that is there is not exact any more.
    let is_there =
        |patch: &GenerationPatch<'_>| patch.sibling.is_some() && matches!(patch.result, Placed::Waits { .. });
    if placed.iter().any(is_there) {
        return Error::no(what).hint(format!(
            "refresh or make them: {command}    # it refreshes the siblings that merge, and stops at the others"
        ));
    }
    let then = if blocked.is_empty() { "" } else { ", and where one that depends on them needs a decision" };
    Error::no(what).hint(format!("make them: {command}    # it stops at each of these patches{then}"))
}

/// Returns the error for a generation with siblings that were made for other versions of the patches `files`.
fn stale_siblings(stack: &Stack, files: &[&PatchFile], of: usize) -> Error {
    let Stack { variant, pin, .. } = stack;
    let what = format!(
        "the generation {} is stale: {} of {of} patches have changed since their siblings were made: {}",
        pin.name,
        files.len(),
        listed(files),
    );
    Error::no(what).hint(format!(
        "bring the changes to the siblings: {}    # it stops at each of these patches, and refreshes other siblings",
        rebase_command(&variant.name)
    ))
}

/// Returns the command that brings all siblings on the generation of `variant` up to date: it refreshes those that
/// merge, and stops at the others, and at each that is behind its patch.
pub fn rebase_command(variant: &str) -> String {
    next_command("rebase", &[("--variant", Some(variant))])
}

/// Returns the names of the first files, and the number of the others.
fn listed(files: &[&PatchFile]) -> String {
    let names: Vec<&str> = files.iter().take(NAMED).map(|file| file.name()).collect();
    match files.len().saturating_sub(NAMED) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

/// Returns the command that stops at the patch `file` on the generation of `variant`, whose patches are `files`: to
/// make, change or review its sibling.
pub fn edit_command(variant: &str, files: &[PatchFile], file: &str) -> String {
    let number = patch_number(file);
    // Each series counts from 0001.
    let is_it = |found: &PatchFile| found.file == file;
    let is_number_enough = find_patch(files, number).and_then(|at| files.get(at)).is_some_and(is_it);
    let edit = if is_number_enough { number } else { file };
    next_command("rebase", &[("--variant", Some(variant)), ("--edit", Some(edit))])
}

/// Returns `, 61 depend on them`, the number of patches that cannot be judged before those that wait; empty if there is
/// none.
pub fn describe_blocked(placed: &[GenerationPatch<'_>]) -> String {
    match placed.iter().filter(|patch| patch.result.is_blocked()).count() {
        0 => String::new(),
        1 => ", 1 depends on them".to_string(),
        count => format!(", {count} depend on them"),
    }
}

/// Describes a patch that waits: its file, its class and the reasons; `None` if it does not.
pub fn describe_waiting(patch: &GenerationPatch<'_>) -> Option<String> {
    let file = patch.sibling.map_or(&patch.file.file, |sibling| &sibling.file.file);
    match &patch.result {
        Placed::Waits { class, why } => {
            let lines = why.iter().flat_map(|why| why.lines()).map(|line| format!("\n  {line}"));
            let exact = if patch.sibling.is_some() { " (a sibling has to be exact)" } else { "" };
            Some(format!("{file}: {}{exact}{}", class.describe(), lines.collect::<String>()))
        }
        Placed::Behind => Some(format!("{file}: it was made for another version of {}", patch.file.file)),
        Placed::Replayed(_) | Placed::Replaced { .. } | Placed::Refreshed(_) => None,
    }
}

/// Returns the siblings of a stack for the lock.
pub fn locked_siblings(stack: &Stack) -> Vec<LockedSibling> {
    let Some(generation) = &stack.generation else { return Vec::new() };
    let both = generation.files.iter().zip(&generation.siblings);
    let both = both.zip(&generation.patches);
    both.filter_map(|((file, sibling), patch)| Some(sibling.as_ref()?.locked(file, patch))).collect()
}
