//! The patches of a generation: whether each applies there by itself, and how its sibling differs from it.

use std::collections::BTreeSet;

use espalier_core::config::name::Name;
use espalier_core::config::pins::short_name;
use espalier_core::context::Context;
use espalier_core::error::Result;
use espalier_core::sys::git::store::Store;
use espalier_core::sys::git::store_tree::StoreTree;
use espalier_core::sys::project::inputs::PatchFile;
use espalier_series::{Patch, Replay, Step, TreeNames, replayed_patch};

use super::on_generation::variants;
use crate::report::generation::PatchOnGeneration;
use crate::report::range_diff::{lines_between, settled};
use crate::stack::{Generation, Sibling, Stack};
use crate::{generation, range};

/// Returns every patch of every series on the generation `name`, each once, parents first. Both pins are in the store.
///
/// # Errors
///
/// There is no such generation, or a patch is not exact on its own pin.
pub fn patches_on(context: &Context, name: &Name) -> Result<Vec<PatchOnGeneration>> {
    let pins = context.pins()?;
    let store = Store::open(&context.layout.store())?;
    let mut known = BTreeSet::new();
    let mut patches = Vec::new();
    for variant in variants(&pins, name, None)? {
        let stack = Stack::read(&context.layout, &pins, variant)?;
        let of_stack = patches_of(&store, &stack)?;
        patches.extend(of_stack.into_iter().filter(|patch| known.insert(patch.file.clone())));
    }
    Ok(patches)
}

/// Returns the patches of `stack`, with those of its parents; none if it is not on a generation.
fn patches_of(store: &Store, stack: &Stack) -> Result<Vec<PatchOnGeneration>> {
    let Some(Generation { base, files, patches, siblings }) = &stack.generation else {
        return Ok(Vec::new());
    };
    let base_tree = StoreTree::new(store, base.tree)?;
    let new_tree = StoreTree::in_range(store, stack.pin.tree, base.tree, stack.pin.tree)?;
    let applied = range::applied_series(store, patches, &base_tree)?;
    let (old_name, new_name) = (base.revision.to_string(), stack.pin.revision.to_string());
    let names = TreeNames { pin: short_name(&old_name), tip: short_name(&new_name) };
    let nothing = BTreeSet::new();
    let mut replay = Replay::new(&applied, &new_tree, names, &nothing);
    let mut found = Vec::with_capacity(patches.len());
    for (at, ((file, patch), sibling)) in files.iter().zip(patches).zip(siblings).enumerate() {
        found.push(patch_at(&mut replay, at, (file, patch, sibling.as_ref()))?);
    }
    Ok(found)
}

fn patch_at(
    replay: &mut Replay<'_>,
    at: usize,
    (file, patch, sibling): (&PatchFile, &Patch, Option<&Sibling>),
) -> Result<PatchOnGeneration> {
    let step = if sibling.is_some() { replay.try_step(at) } else { replay.step(at) };
    let Step { replayed, .. } = step.map_err(|error| generation::not_exact(error, file))?;
    let here = match sibling {
        Some(sibling) => {
            replay.apply_instead(&sibling.patch)?;
            (!sibling.patch.is_dropped()).then(|| sibling.patch.clone())
        }
        None => Some(replayed_patch(patch, &replayed, replay)?),
    };
    let (fate, difference) = settled(patch, here.as_ref(), false);
    let dropped = sibling.and_then(|sibling| sibling.patch.dropped_because());
    Ok(PatchOnGeneration {
        file: file.file.clone(),
        alone: replayed.class(),
        sibling: sibling.map(|sibling| sibling.file.file.clone()),
        fate,
        dropped_because: dropped.map(str::to_string),
        lines: lines_between(patch, here.as_ref()),
        difference,
    })
}
