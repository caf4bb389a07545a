//! `sync --since` for a generation that is new or has another tree: its report in place of that of a move.
//!
//! The patches on it were not moved: each is replayed there, or replaced by a sibling. So the proof compares them with
//! the same patches on their own pin, and the commit only says which tree was there before.

use espalier_core::config::pins::{Pin, Pins, Variant};
use espalier_core::context::Context;
use espalier_core::error::{Error, Result};
use espalier_core::sys::git::store::Store;
use espalier_core::sys::git::unverified::verification_of_pin;
use espalier_patches::report::generation::{PatchOnGeneration, summary};
use espalier_patches::report::status::ReportedTree;
use espalier_patches::stack::Stack;
use espalier_patches::{lock_file, prove};

use super::checks;
use crate::report::sync::{GenerationSince, MovedPatch, MovedTree, SyncReport};

/// The state before, and its name.
#[derive(Clone, Copy)]
pub struct Before<'a> {
    /// The commit, as the user typed it.
    pub since: &'a str,
    /// Its `pins.toml`.
    pub pins: &'a Pins,
}

/// Returns the report on the generation of `variant`, whose patches were made for the pin `base`, without its checks.
/// The caller holds the run lock.
///
/// # Errors
///
/// Both pins are as they were, a series does not apply on one of them, or the lock is stale.
pub fn describe(
    context: &Context,
    before: Before<'_>,
    (pins, variant, base): (&Pins, &Variant, &Pin),
) -> Result<SyncReport> {
    let pin = pins.pin_of(variant);
    refuse_same(before, pin, base)?;
    let store = Store::open(&context.layout.store())?;
    // Also if no variant there has patches: only of a tree that is here it is known whether it is unverified.
    Stack::read(&context.layout, pins, variant)?.fetch(context, &store)?;
    let proof = prove::prove_generation(context, &pin.name, None)?;
    let patches = prove::patches_on(context, &pin.name)?;
    let place = |pin: &Pin| ReportedTree::new(&pin.revision, pin.tree, verification_of_pin(&store, pin.tree));
    Ok(SyncReport {
        upstream: pin.upstream.clone(),
        old: place(base),
        new: place(pin),
        patches: patches.iter().map(row).collect(),
        proof,
        trees: trees(context, pins, pin)?,
        checks: Vec::new(),
        gated: checks::gated_on(pins, &pin.name).iter().map(ToString::to_string).collect(),
        generation: Some(GenerationSince {
            name: pin.name.clone(),
            since: before.since.to_string(),
            before: before.pins.pins.get(&pin.name).map(place),
            summary: summary(&patches),
        }),
        uncompared: Vec::new(),
    })
}

/// Refuses a generation that is as it was, on the same pin.
fn refuse_same(Before { since, pins }: Before<'_>, pin: &Pin, base: &Pin) -> Result<()> {
    let is_same = |pin: &Pin| pins.pins.get(&pin.name).is_some_and(|before| before.tree == pin.tree);
    if !(is_same(pin) && is_same(base)) {
        return Ok(());
    }
    let what = format!(
        "the generation {} and the pin {} are the same at {since} and in the files on disk",
        pin.name, base.name
    );
    Err(Error::usage(what).hint(format!(
        "name a commit from before {} was added or got another tree: git log --oneline -- pins.toml",
        pin.name
    )))
}

/// Returns the final tree of each variant on the generation, beside that of the variant that it is like.
fn trees(context: &Context, pins: &Pins, pin: &Pin) -> Result<Vec<MovedTree>> {
    let lock = lock_file::read(context)?.unwrap_or_default();
    let tree_of = |name: &str| lock.variants.get(name).map(|locked| locked.tree.clone());
    let tree = |variant: &Variant| {
        let (old, new) = (tree_of(variant.like.as_ref()?)?, tree_of(&variant.name)?);
        Some(MovedTree { variant: variant.name.to_string(), old, new })
    };
    Ok(pins.variants.values().filter(|variant| variant.pin == pin.name).filter_map(tree).collect())
}

fn row(patch: &PatchOnGeneration) -> MovedPatch {
    MovedPatch {
        file: patch.file.clone(),
        class: patch.alone.describe().to_string(),
        change: patch.describe(),
        difference: patch.difference.clone().unwrap_or_default(),
    }
}
