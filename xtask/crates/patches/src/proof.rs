//! The proof of a move on trees of the store.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use espalier_core::config::overlay::OverlayFile;
use espalier_core::error::{Error, Result};
use espalier_core::sys::git::history;
use espalier_core::sys::git::store::Store;
use espalier_core::sys::git::store_tree::StoreTree;
use espalier_core::sys::git::tree::GitTree;
use espalier_series::{
    AppliedSeries, ChangedBaseFile, GoneWord, ObjectId, OwnFile, Patch, PlacedPatch, PlacedSeries,
    SeriesProof, gone_words, lost_calls, prove_series,
};

use super::{apply, generation};
use crate::stack::Stack;

/// Size limit of a file in which calls, words and functions are looked for, in bytes: a larger one is data or was
/// generated.
const FILE_LIMIT: usize = 4 << 20;

/// A series on its base, by the ids of its trees.
#[derive(Clone, Debug)]
pub struct SeriesTrees<'a> {
    /// Upstream's tree, without the patches of parents.
    pub upstream: ObjectId,
    /// The tree below the first patch.
    pub base: ObjectId,
    /// The patches, each with the trees before and after it.
    pub patches: Vec<(&'a Patch, [ObjectId; 2])>,
    /// The variant's own overlay files, for notes; empty if they are not known.
    pub overlays: Vec<&'a OverlayFile>,
}

impl<'a> SeriesTrees<'a> {
    /// Returns consecutive patches on upstream's tree and their base, which may have patches of parents; `after` has
    /// the tree after each.
    pub fn in_order(
        (upstream, base): (ObjectId, ObjectId),
        patches: impl IntoIterator<Item = &'a Patch>,
        after: &[ObjectId],
    ) -> SeriesTrees<'a> {
        let before = std::iter::once(&base).chain(after);
        let placed = patches.into_iter().zip(before.zip(after));
        let patches = placed.map(|(patch, (before, after))| (patch, [*before, *after])).collect();
        SeriesTrees { upstream, base, patches, overlays: Vec::new() }
    }

    /// Returns the series with these overlay files.
    #[must_use]
    pub fn with_overlays(self, overlays: impl IntoIterator<Item = &'a OverlayFile>) -> SeriesTrees<'a> {
        SeriesTrees { overlays: overlays.into_iter().collect(), ..self }
    }

    /// Returns the own patches of `stack` on its pin. `trees` are those after each patch, including the parents'.
    pub fn own_of(stack: &'a Stack, trees: &[ObjectId]) -> SeriesTrees<'a> {
        let (below, own) = trees.split_at(stack.parents.min(trees.len()));
        let base = below.last().copied().unwrap_or(stack.pin.tree);
        SeriesTrees::in_order((stack.pin.tree, base), stack.own_patches(), own)
    }

    /// Keeps only the patches for which `is_kept` holds, given the fate of each.
    pub fn keep<F: Copy>(&mut self, fates: &[F], is_kept: impl Fn(F) -> bool) {
        let mut fates = fates.iter();
        self.patches.retain(|_| fates.next().is_some_and(|fate| is_kept(*fate)));
    }

    fn ids(&self) -> impl Iterator<Item = ObjectId> {
        std::iter::once(self.base).chain(self.patches.iter().flat_map(|(_, trees)| *trees))
    }
}

/// Returns the trees after each patch of `stack`, without overlays.
pub fn trees_of(store: &Store, stack: &Stack) -> Result<Vec<ObjectId>> {
    let placed = generation::placed(store, stack)?;
    apply::trees_after(store, stack.pin.tree, &placed.patches)
}

/// As [`trees_of`], if the patches of `stack` are `applied` already.
pub fn trees_of_applied(store: &Store, stack: &Stack, applied: &AppliedSeries<'_>) -> Result<Vec<ObjectId>> {
    let mut tree = GitTree::new(store, stack.pin.tree)?;
    let mut trees = Vec::with_capacity(stack.patches.len());
    for changes in applied.changes_of_patches() {
        // Its error says why a patch is not exact.
        let Some(changes) = changes else { return trees_of(store, stack) };
        apply::change_tree(store, &mut tree, changes)?;
        trees.push(tree.write()?);
    }
    Ok(trees)
}

/// Compares a series before a move with the one after it. `is_whole` tells whether either is complete.
pub fn prove(
    store: &Store,
    old: &SeriesTrees<'_>,
    new: &SeriesTrees<'_>,
    is_whole: bool,
) -> Result<SeriesProof> {
    let mut trees = HashMap::new();
    for id in old.ids().chain(new.ids()) {
        if let Entry::Vacant(place) = trees.entry(id) {
            place.insert(StoreTree::new(store, id)?);
        }
    }
    let placed_new = placed(new, &trees)?;
    // For notes, and copies of moved functions: upstream's tree is not in the store when a series is rebased onto
    // another one.
    let changed = changed_by_upstream(store, old.upstream, new.upstream).unwrap_or_default();
    let mut proof = prove_series(&placed(old, &trees)?, &placed_new, is_whole, &changed)?;
    proof.lost_calls = lost_calls(&placed_new, &changed)?;
    let own: Vec<OwnFile<'_>> = new.overlays.iter().map(|file| own_file(file)).collect();
    proof.gone_words = gone_words(&placed_new.all_patches(), &own, &changed);
    Ok(proof)
}

/// Returns the words in lines that `patch` adds, and that upstream's code had in the tree `old` and no longer has in
/// `new`.
pub fn gone_from_upstream(store: &Store, [old, new]: [ObjectId; 2], patch: &Patch) -> Result<Vec<GoneWord>> {
    Ok(gone_words(&[patch], &[], &changed_by_upstream(store, old, new)?))
}

fn own_file(file: &OverlayFile) -> OwnFile<'_> {
    OwnFile { name: &file.from, path: file.path.as_bytes(), text: &file.bytes }
}

/// Returns the text files that differ between upstream's trees.
fn changed_by_upstream(store: &Store, old: ObjectId, new: ObjectId) -> Result<Vec<ChangedBaseFile>> {
    // A submodule has no blob in the store.
    let text = |id: ObjectId| match id == ObjectId::ZERO {
        true => Some(Vec::new()),
        false => store.read(id).ok().map(|bytes| bytes.to_vec()),
    };
    let is_counted = |text: &[u8]| text.len() <= FILE_LIMIT && !text.contains(&0);
    let differences = history::changed_between(store, old, new)?.into_iter();
    let files = differences.filter_map(|difference| {
        let [old, new] = difference.blobs;
        let file = ChangedBaseFile { path: difference.path, old: text(old)?, new: text(new)? };
        (is_counted(&file.old) && is_counted(&file.new)).then_some(file)
    });
    Ok(files.collect())
}

fn placed<'a>(
    series: &SeriesTrees<'a>,
    trees: &'a HashMap<ObjectId, StoreTree<'_>>,
) -> Result<PlacedSeries<'a>> {
    let patch = |(patch, [before, after]): &(&'a Patch, [ObjectId; 2])| {
        Ok(PlacedPatch { patch, before: opened(trees, *before)?, after: opened(trees, *after)? })
    };
    let patches = series.patches.iter().map(patch).collect::<Result<_>>()?;
    Ok(PlacedSeries { base: opened(trees, series.base)?, patches })
}

fn opened<'t, 's>(trees: &'t HashMap<ObjectId, StoreTree<'s>>, id: ObjectId) -> Result<&'t StoreTree<'s>> {
    trees.get(&id).ok_or_else(|| Error::environment(format!("the tree {id} was not opened")))
}
