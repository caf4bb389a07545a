//! Rules for siblings: each is of a generation, is needed there, and was made for its patch as it is.

use std::collections::BTreeMap;

use espalier_core::config::pins::{Pin, Pins, Variant};
use espalier_core::context::Context;
use espalier_core::error::Result;
use espalier_core::sys::git::store::Store;
use espalier_core::sys::machine::disk;
use espalier_core::sys::project::inputs::PatchFile;
use espalier_series::{Finding, LintRule};

use super::reported::{Reported, reported};
use crate::generation::{Placed, place, rebase_command};
use crate::stack::{Generation, Stack};

/// Returns the finding for a sibling of a generation that the pin of `variant` does not have.
pub fn of_no_generation(pins: &Pins, variant: &Variant, file: &PatchFile) -> Option<Reported> {
    let generation = file.generation()?;
    let mut known: Vec<&str> = pins.generations(&variant.pin).map(|pin| pin.name.as_str()).collect();
    known.sort_unstable();
    if known.contains(&generation.as_str()) {
        return None;
    }
    let message = format!("the pin `{}` has no generation `{generation}`", variant.pin);
    let hint = match known.is_empty() {
        true => {
            format!("describe it: `[pins.{generation}]` with `generation-of`: docs/guides/generations.md")
        }
        false => format!("name one of its generations, {}, or delete the sibling", known.join(", ")),
    };
    Some(finding(file, LintRule::SiblingOfNoGeneration, message, hint))
}

/// Returns a finding for each sibling of `variant` that gives the tree that its patch gives by itself. They are
/// compared only if both pins were fetched: lint fetches nothing.
pub fn not_needed(context: &Context, pins: &Pins, variant: &Variant) -> Result<Vec<Reported>> {
    if variant.like.is_none() {
        return Ok(Vec::new());
    }
    // What cannot be read is reported by itself.
    let Ok(stack) = Stack::read(&context.layout, pins, variant) else { return Ok(Vec::new()) };
    let Some(generation) = stack.generation.as_ref().filter(|generation| has_siblings(generation)) else {
        return Ok(Vec::new());
    };
    let path = context.layout.store();
    let store = disk::exists(&path).then(|| Store::open(&path)).transpose()?;
    let has = |store: &Store, pin: &Pin| store.has_pin(pin.tree);
    let Some(store) = store.filter(|store| has(store, &stack.pin) && has(store, &generation.base)) else {
        let what = format!("the siblings of {}: `cargo xtask fetch` gets its pins", stack.pin.name);
        context.ui.status("Skipping", what);
        return Ok(Vec::new());
    };
    let name = stack.pin.revision.to_string();
    let placed = place(&store, stack.pin.tree, (generation, &name))?;
    let found = placed.iter().filter_map(|patch| {
        let sibling = patch.sibling?;
        let is_same = matches!(patch.result, Placed::Replaced { is_same: true });
        is_same.then(|| same(&sibling.file, patch.file))
    });
    Ok(found.collect())
}

/// Returns a finding for each sibling that is behind its patch, once for all variants that have it.
pub fn behind(context: &Context, pins: &Pins) -> Vec<Reported> {
    let mut variants: Vec<&Variant> =
        pins.variants.values().filter(|variant| variant.like.is_some()).collect();
    // A series is reported for the variant that ends with it.
    variants.sort_by_key(|variant| pins.stack(variant).len());
    let mut found = BTreeMap::new();
    for variant in variants {
        // What cannot be read is reported by itself.
        let Ok(Stack { generation: Some(generation), .. }) = Stack::read(&context.layout, pins, variant)
        else {
            continue;
        };
        for (patch, sibling) in generation.behind() {
            let command = rebase_command(&variant.name);
            let message = format!("{} has changed since the sibling was made for it", patch.name());
            let hint = format!("bring the change to it, or keep it as it is: {command}");
            found
                .entry(sibling.file.file.clone())
                .or_insert_with(|| finding(&sibling.file, LintRule::SiblingBehindPatch, message, hint));
        }
    }
    found.into_values().collect()
}

fn has_siblings(generation: &Generation) -> bool {
    generation.siblings.iter().any(Option::is_some)
}

fn same(sibling: &PatchFile, patch: &PatchFile) -> Reported {
    let message = format!("it is not needed: {} gives the same tree there by itself", patch.name());
    finding(sibling, LintRule::SiblingNotNeeded, message, format!("delete it: git rm {}", sibling.file))
}

fn finding(file: &PatchFile, rule: LintRule, message: String, hint: String) -> Reported {
    let finding = Finding { patch: file.name().to_string(), line: None, rule, message, hint };
    reported(&file.file, finding)
}
