//! `prove --generation`: each patch makes the same change on a generation as on the pin that it was made for.

use std::collections::BTreeSet;

use espalier_core::config::lock::Lock;
use espalier_core::config::name::Name;
use espalier_core::config::pins::{Pins, Variant};
use espalier_core::context::Context;
use espalier_core::error::{Error, Result};
use espalier_core::sys::git::store::Store;
use espalier_core::sys::machine::disk;

use super::base_on;
use crate::proof::{self, SeriesTrees};
use crate::report::proof::{MoveProof, ProvenSeries};
use crate::stack::Stack;
use crate::{apply, generation, lock_file};

/// Compares every series on the generation `name`, or that of `variant` alone, with what it is on its own pin.
///
/// # Errors
///
/// There is no such generation, a series does not apply on one of the pins, or the lock is stale.
pub fn prove(context: &Context, name: &Name, variant: Option<&str>) -> Result<MoveProof> {
    let pins = context.pins()?;
    let pin = pins.generation(name)?;
    let variants = variants(&pins, name, variant)?;
    let base = pin.generation_of.as_ref().map_or("its base", |base| base.as_str());
    let mut proof = MoveProof {
        old: format!("the pin {base}"),
        new: format!("the generation {name}"),
        ..MoveProof::default()
    };
    let store = Store::open(&context.layout.store())?;
    let lock = lock_file::read(context)?.unwrap_or_default();
    for variant in variants {
        proof.series.push(prove_variant(context, &store, &pins, (variant, &lock))?);
    }
    proof.take_reasons(|file| disk::read_if_there(&context.layout.root().join(file)))?;
    Ok(proof)
}

/// Returns one variant for every series on the generation.
pub(super) fn variants<'p>(
    pins: &'p Pins,
    name: &'p Name,
    variant: Option<&str>,
) -> Result<Vec<&'p Variant>> {
    if let Some(wanted) = variant {
        let found = pins.variant(Some(wanted))?;
        return match pins.patched_on(name).find(|variant| variant.name == found.name) {
            Some(variant) => Ok(vec![variant]),
            None => Err(Error::usage(format!("`{wanted}` has no patches on the generation {name}"))),
        };
    }
    let mut variants: Vec<&Variant> = pins.patched_on(name).collect();
    variants.sort_by_key(|variant| pins.stack(variant).len());
    let mut known = BTreeSet::new();
    variants.retain(|variant| known.insert(pins.patch_folders(variant)));
    Ok(variants)
}

fn prove_variant(
    context: &Context,
    store: &Store,
    pins: &Pins,
    (variant, lock): (&Variant, &Lock),
) -> Result<ProvenSeries> {
    let not_there = || Error::usage(format!("`{}` is not on a generation", variant.name));
    let like = pins.generation_of(variant).ok_or_else(not_there)?.like;
    let (old, new) =
        (Stack::read(&context.layout, pins, like)?, Stack::read(&context.layout, pins, variant)?);
    new.fetch(context, store)?;
    refuse_stale(store, &new, lock)?;
    let new = generation::placed(store, &new)?.into_owned();
    let (old_trees, new_trees) = (proof::trees_of(store, &old)?, proof::trees_of(store, &new)?);
    let before = SeriesTrees::own_of(&old, &old_trees);
    let after = SeriesTrees::own_of(&new, &new_trees).with_overlays(new.own_overlays());
    let mut proven = ProvenSeries {
        variant: variant.name.to_string(),
        old: base_on(store, &old.pin, before.base),
        new: base_on(store, &new.pin, after.base),
        proof: proof::prove(store, &before, &after, true)?,
    };
    proven.account_for_dropped(&dropped(&new));
    Ok(proven)
}

/// Returns the name of each dropped patch, with the reason that its sibling gives.
fn dropped(stack: &Stack) -> Vec<(String, String)> {
    let Some(generation) = &stack.generation else { return Vec::new() };
    let both = generation.patches.iter().zip(&generation.siblings);
    let reasons = both.filter_map(|(patch, sibling)| {
        let reason = sibling.as_ref()?.patch.dropped_because()?;
        Some((patch.name.clone(), reason.to_string()))
    });
    reasons.collect()
}

/// Refuses a lock that is not of these patches: what is proved has to be what is built.
fn refuse_stale(store: &Store, stack: &Stack, lock: &Lock) -> Result<()> {
    let name = stack.variant.name.to_string();
    let only = |locked| Lock { variants: [(name.clone(), locked)].into(), ..Lock::default() };
    let fresh = only(apply::apply_stack(store, stack)?.locked);
    match lock.variants.get(&name).cloned() {
        Some(locked) => lock_file::refuse_stale(&only(locked).differences(&fresh)),
        None => lock_file::refuse_stale(&[format!("variant {name} is not in the lock")]),
    }
}
