//! The stage of an import: patches, `pins.toml` and `espalier.lock`, proved before any of it happens.

use crate::context::Context;
use crate::error::{Error, Result};
use crate::plan::lock::{Lock, LockedVariant};
use crate::plan::name::Name;
use crate::plan::pending::Pending;
use crate::plan::pins::{Pins, Variant};
use crate::stack::import::patches::NewPatch;
use crate::stack::{apply, lock_file};
use crate::sys::inputs::{read_folder, read_stack};
use crate::sys::ours;
use crate::sys::store::Store;
use crate::sys::{disk, pending};

use crate::stack::import::line::LineCommit;

/// Collects everything in the stage and applies it there, strictly: the tree after each patch has to be the
/// commit's. `pins_text` is `pins.toml` as it shall be.
pub fn stage(
    context: &Context,
    store: &Store,
    pins_text: &str,
    (variant, folder): (&Name, &str),
    (commits, patches): (&[LineCommit], &[NewPatch]),
) -> Result<Pending> {
    let stage = context.layout.stage();
    ours::remove_folder(&stage)?;
    disk::write_atomically(&stage.join("pins.toml"), pins_text.as_bytes())?;
    let staged = Context { layout: context.layout.staged(stage.clone()), ..context.clone() };
    let pins = staged.pins()?;
    copy_series(context, &pins)?;
    let paths: Vec<String> = patches.iter().map(|patch| format!("{folder}/{}", patch.name)).collect();
    for (path, patch) in paths.iter().zip(patches) {
        disk::write_atomically(&stage.join(path), &patch.bytes)?;
    }
    let locked = prove(&staged, store, &pins, pins.variant(Some(variant))?, commits)?;
    let lock = lock_of(context, &staged, store, &pins, variant, &locked)?;
    disk::write_atomically(&staged.layout.lock(), lock.render().as_bytes())?;
    let others = ["pins.toml", "espalier.lock"].map(String::from);
    let paths: Vec<String> = others.into_iter().chain(paths).collect();
    let what = format!("the import into {variant}");
    pending::describe(&context.layout, &stage, &what, &paths)
}

/// The series as they are: the stage is read as if it were the project.
fn copy_series(context: &Context, pins: &Pins) -> Result<()> {
    let stage = context.layout.stage();
    for folder in pins.variants.values().filter_map(|variant| variant.patches.as_deref()) {
        disk::create_folder(&stage.join(folder))?;
        if !disk::exists(&context.layout.series(folder)) {
            continue;
        }
        for file in read_folder(&context.layout, folder)? {
            disk::write_atomically(&stage.join(&file.file), &file.bytes)?;
        }
    }
    Ok(())
}

fn prove(
    staged: &Context,
    store: &Store,
    pins: &Pins,
    variant: &Variant,
    commits: &[LineCommit],
) -> Result<LockedVariant> {
    let inputs = read_stack(&staged.layout, &pins.stack(variant))?;
    let locked = apply::apply_inputs(store, variant, pins.pin_of(variant), &inputs)?.locked;
    let before = locked.patches.len().saturating_sub(commits.len());
    for (commit, patch) in commits.iter().zip(&locked.patches[before..]) {
        if commit.tree.to_string() != patch.tree {
            let what = format!("the patch of {} makes another tree; nothing was written", commit.origin);
            return Err(Error::surroundings(what)
                .detail(format!("imported {}\napplied  {}", commit.tree, patch.tree)));
        }
    }
    Ok(locked)
}

/// Those of the variant and of all that extend it are new; one that no longer applies is told.
fn lock_of(
    context: &Context,
    staged: &Context,
    store: &Store,
    pins: &Pins,
    variant: &Name,
    locked: &LockedVariant,
) -> Result<Lock> {
    let mut lock = lock_file::read(context)?.unwrap_or_default();
    lock.variants.insert(variant.to_string(), locked.clone());
    for other in pins.variants.values().filter(|other| other.name != *variant) {
        let stack = pins.stack(other);
        if !stack.iter().any(|below| below.name == *variant) {
            continue;
        }
        let inputs = read_stack(&staged.layout, &stack)?;
        match apply::apply_inputs(store, other, pins.pin_of(other), &inputs) {
            Ok(applied) => drop(lock.variants.insert(other.name.to_string(), applied.locked)),
            Err(_) => context.ui.warn(format!(
                "{} extends {variant} and does not apply any more\n  next: cargo xtask status --variant {}",
                other.name, other.name
            )),
        }
    }
    Ok(lock)
}
