//! Converting new commits to patch files, and verifying that the files yield the trees of the commits.

use espalier_core::config::lock::{Lock, LockedVariant};
use espalier_core::error::{Error, Result};
use espalier_core::sys::git::format_patch::{FormattedPatch, format_series};
use espalier_core::sys::machine::disk;
use espalier_core::sys::project::inputs::PatchFile;
use espalier_core::sys::project::stage::Stage;
use espalier_core::sys::work_trees::rebase_repo::RebaseRepo;
use espalier_series as series;
use espalier_series::{ObjectId, Patch};

use super::in_memory::proven;
use super::target::SeriesMove;
use crate::proof::{self, SeriesTrees};
use crate::rebase::state::{PatchInUpstream, SeriesState, read_id};
use crate::report::proof::ProvenSeries;

/// One patch of the new series.
pub struct NewFile {
    pub file: PatchFile,
    pub patch: Patch,
}

/// Returns the new version of each of a series' own patches; `None` for dropped ones. A patch with the same change
/// keeps its bytes, and every patch keeps the words of its file name. On a generation it keeps its number too, because
/// the dropped ones stay at the pin.
pub fn new_series(
    series_move: &SeriesMove<'_>,
    repo: &RebaseRepo,
    state: &SeriesState,
) -> Result<Vec<Option<NewFile>>> {
    let stack = &series_move.stack;
    let formatted = formatted(series_move, repo, state)?.into_iter().enumerate().skip(stack.parents);
    let mut number = 0;
    let mut new = Vec::new();
    for ((old, patch), (at, text)) in stack.own_files().iter().zip(stack.own_patches()).zip(formatted) {
        let Some(text) = text else {
            new.push(None);
            continue;
        };
        let (folder, name) = (old.folder(), old.name());
        number += 1;
        let slug = name.split_once('-').map_or("patch.patch", |(_, slug)| slug);
        let path = match series_move.siblings.is_empty() {
            true => format!("{folder}/{number:04}-{slug}"),
            false => old.file.clone(),
        };
        let sibling = series_move.sibling(at).map(|sibling| &sibling.patch);
        new.push(Some(new_file(old, (patch, sibling), &text, path)?));
    }
    Ok(new)
}

/// Returns the text of each replayed patch, including those of parents, as git writes it; `None` for dropped ones.
pub fn formatted(
    series_move: &SeriesMove<'_>,
    repo: &RebaseRepo,
    state: &SeriesState,
) -> Result<Vec<Option<FormattedPatch>>> {
    let root = repo.commit_upstream(&series_move.tip.name, series_move.tip.tree)?;
    let commits = state.commits()?;
    let scratch = disk::scratch_folder(&series_move.context.layout.scratch(), "format")?;
    let tip = commits.last().copied().unwrap_or(root);
    let formatted = format_series(&repo.git_dir(), root, tip, 1, scratch.path())?;
    if formatted.len() != commits.len() {
        let what = format!("git wrote {} patches of {} commits", formatted.len(), commits.len());
        return Err(Error::environment(what));
    }
    let mut formatted = formatted.into_iter();
    Ok(state.done.iter().map(|done| done.commit.as_ref().and_then(|_| formatted.next())).collect())
}

/// Returns the file of a patch, whose commit has the words of `patch` or of its sibling.
fn new_file(
    old: &PatchFile,
    (patch, sibling): (&Patch, Option<&Patch>),
    text: &FormattedPatch,
    path: String,
) -> Result<NewFile> {
    let fresh = PatchFile::new(path, text.bytes.clone());
    let parsed = fresh.parse()?;
    let words = |patch: &Patch| (patch.author.clone(), patch.date.clone(), patch.message());
    if !std::iter::once(patch).chain(sibling).any(|patch| words(&parsed) == words(patch)) {
        return Err(Error::environment(format!("the message of {} did not survive as a commit", old.file)));
    }
    Ok(match series::is_same_change(patch, &parsed) {
        true => NewFile { file: PatchFile::new(fresh.file, old.bytes.clone()), patch: patch.clone() },
        false => NewFile { file: fresh, patch: parsed },
    })
}

/// Verifies by id: applied strictly, the new patches must yield the trees of the replay. They are the last patches of
/// `locked`.
pub fn check_trees(repo: &RebaseRepo, state: &SeriesState, locked: &LockedVariant) -> Result<()> {
    let commits = state.commits()?;
    let below = locked.patches.len().saturating_sub(commits.len());
    for (commit, patch) in commits.into_iter().zip(locked.patches.iter().skip(below)) {
        let replayed = repo.store.tree_of(commit)?.to_string();
        if replayed != patch.tree {
            let what = format!("{} gives a different tree than its replay; nothing was written", patch.file);
            return Err(
                Error::environment(what).detail(format!("replayed {replayed}\napplied  {}", patch.tree))
            );
        }
    }
    Ok(())
}

/// Stages the new series as replacement of the one that `series_move` read.
pub fn replace_series(
    series_move: &SeriesMove<'_>,
    stage: &mut Stage,
    new: &[Option<NewFile>],
) -> Result<()> {
    let folder = series_move.stack.variant.patches.as_deref().unwrap_or_default();
    let files: Vec<PatchFile> = new.iter().flatten().map(|new| new.file.clone()).collect();
    stage.replace_series(folder, series_move.stack.own_files(), &files)
}

/// Compares a series with its new version, whose patches are the last of `locked`.
pub fn prove_new_series(
    series_move: &SeriesMove<'_>,
    new: &[Option<NewFile>],
    locked: &LockedVariant,
    upstream: &[PatchInUpstream],
) -> Result<ProvenSeries> {
    let SeriesMove { store, stack, tip, .. } = series_move;
    let patches: Vec<&Patch> = new.iter().flatten().map(|new| &new.patch).collect();
    let trees = locked.patches.iter().map(|patch| id_of(&patch.tree)).collect::<Result<Vec<_>>>()?;
    let (below, own) = trees.split_at(trees.len().saturating_sub(patches.len()));
    let base = below.last().copied().unwrap_or(tip.tree);
    let old = SeriesTrees::own_of(stack, &proof::trees_of(store, stack)?);
    let new = SeriesTrees::in_order((tip.tree, base), patches, own).with_overlays(stack.own_overlays());
    let proof = proof::prove(store, &old, &new, true)?;
    Ok(proven(series_move, (old.base, new.base), proof, upstream))
}

/// Compares the patches of a series that are replayed so far with what they were; `new` are those of the series itself,
/// and `is_whole` tells whether these are all.
pub fn prove_replayed(
    series_move: &SeriesMove<'_>,
    repo: &RebaseRepo,
    state: &SeriesState,
    (new, is_whole): (&[Option<&Patch>], bool),
) -> Result<ProvenSeries> {
    let SeriesMove { stack, tip, .. } = series_move;
    let mut after: Vec<ObjectId> = Vec::with_capacity(state.done.len());
    for done in &state.done {
        let before = after.last().copied().unwrap_or(tip.tree);
        let commit = done.commit.as_deref().map(read_id).transpose()?;
        after.push(commit.map(|commit| repo.store.tree_of(commit)).transpose()?.unwrap_or(before));
    }
    let (below, own) = after.split_at(state.parents.min(after.len()));
    let base = below.last().copied().unwrap_or(tip.tree);
    // The trees after the patches that are left out are those before them.
    let stays: Vec<ObjectId> =
        own.iter().zip(new).filter(|(_, new)| new.is_some()).map(|(tree, _)| *tree).collect();
    let new = SeriesTrees::in_order((tip.tree, base), new.iter().flatten().copied(), &stays);
    let new = new.with_overlays(stack.own_overlays());
    let mut old = SeriesTrees::own_of(stack, &proof::trees_of(&repo.store, stack)?);
    old.patches.truncate(own.len());
    let proof = proof::prove(&repo.store, &old, &new, is_whole)?;
    Ok(proven(series_move, (old.base, new.base), proof, &state.upstream))
}

fn id_of(text: &str) -> Result<ObjectId> {
    text.parse()
        .map_err(|_| Error::environment(format!("the new lock has `{text}`, which is not an object id")))
}

/// Returns each patch of the series that `series_move` read with its new version; dropped ones are left out.
pub fn pairs<'n>(
    series_move: &'n SeriesMove<'_>,
    new: &'n [Option<NewFile>],
) -> impl Iterator<Item = (&'n Patch, &'n Patch)> {
    let own = series_move.stack.own_patches().iter().zip(new);
    own.filter_map(|(old, new)| Some((old, &new.as_ref()?.patch)))
}

/// Returns the new lock's entry for the variant of `series_move`.
pub fn locked<'l>(lock: &'l Lock, series_move: &SeriesMove<'_>) -> Result<&'l LockedVariant> {
    let missing = || Error::environment("the new lock has no entry of the variant");
    lock.variants.get(series_move.stack.variant.name.as_str()).ok_or_else(missing)
}
