//! A series whose parent series changed: the tree that it was made for, and the new one.

use espalier_core::config::lock::LockedVariant;
use espalier_core::config::pins::{Pin, Pins, Revision, Variant};
use espalier_core::context::Context;
use espalier_core::error::{Error, Result};
use espalier_core::next_command::quoted;
use espalier_core::sys::git::store::Store;
use espalier_core::sys::git::unverified::verification_of_pin;
use espalier_core::sys::upstream::tip::Tip;
use espalier_series::ObjectId;

use super::target::{SeriesMove, Target};
use crate::stack::Stack;
use crate::{apply, lock_file};

/// A variant with a series, and the variant whose series it builds on.
#[derive(Clone, Copy)]
pub struct Family<'a> {
    pub child: &'a Variant,
    /// Folder of the child's own patches.
    pub folder: &'a str,
    pub parent: &'a Variant,
}

impl<'a> Family<'a> {
    /// Returns the family of `child`; `None` if it has no patches, or no series below it.
    pub fn of(pins: &'a Pins, child: &'a Variant) -> Option<Family<'a>> {
        let folder = child.patches.as_deref()?;
        Some(Family { child, folder, parent: pins.parent_series(child)? })
    }

    /// Returns the tree that the child's patches were made for, according to `locked`.
    pub fn base(&self, locked: &LockedVariant) -> Result<ObjectId> {
        locked.tree_below(self.folder)
    }
}

/// Returns the rebase of the own patches of `stack`, from the tree `old` of the former parent series to `new` of the
/// current one.
pub fn onto_parent<'a>(
    (context, pins, store): (&'a Context, &'a Pins, &'a Store),
    (stack, parent): (&Stack, &Variant),
    (old, new): (ObjectId, ObjectId),
) -> SeriesMove<'a> {
    let revision = Revision::from(&parent.name);
    let pin =
        Pin { upstream: "variant".to_string(), revision: revision.clone(), tree: old, ..stack.pin.clone() };
    let (name, commit) = (parent.name.to_string(), ObjectId::ZERO);
    let old_name = format!("{name} (old)");
    let verification = verification_of_pin(store, stack.pin.tree);
    let tip = Tip { name, revision, commit, tree: new, verification };
    let home = pin.name.clone();
    let stack = stack.own_on(pin);
    SeriesMove { context, pins, store, stack, old_name, tip, home, siblings: Vec::new() }
}

/// Returns the rebase of the series of `child` onto the current parent series; `None` if it already applies there.
///
/// # Errors
///
/// The variant has no parent series, the parent series does not apply, or the tree that the patches were made for is
/// unknown.
pub fn load<'a>(
    context: &'a Context,
    pins: &'a Pins,
    store: &'a Store,
    child: &'a Variant,
) -> Result<Option<Target<'a>>> {
    let family = Family::of(pins, child).ok_or_else(|| no_parent(child))?;
    let stack = Stack::read(&context.layout, pins, child)?;
    stack.fetch(context, store)?;
    if apply::apply_stack(store, &stack).is_ok() {
        return Ok(None);
    }
    let new = parent_tree(context, pins, store, family)?;
    let old = locked_base(context, store, family)?;
    let series_move = onto_parent((context, pins, store), (&stack, family.parent), (old, new));
    Ok(Some(Target::Series(series_move)))
}

/// As [`load`], for a rebase in progress: `old` is the tree that it started from.
pub fn reload<'a>(
    context: &'a Context,
    pins: &'a Pins,
    store: &'a Store,
    (child, old): (&'a Variant, ObjectId),
) -> Result<Target<'a>> {
    let family = Family::of(pins, child).ok_or_else(|| no_parent(child))?;
    let stack = Stack::read(&context.layout, pins, child)?;
    stack.fetch(context, store)?;
    let new = parent_tree(context, pins, store, family)?;
    Ok(Target::Series(onto_parent((context, pins, store), (&stack, family.parent), (old, new))))
}

/// Returns the tree of the current parent series.
fn parent_tree(context: &Context, pins: &Pins, store: &Store, family: Family<'_>) -> Result<ObjectId> {
    let stack = Stack::read(&context.layout, pins, family.parent)?;
    apply::apply_stack(store, &stack)?.locked.series_tree()
}

/// Returns the tree that the child was made for according to the lock.
fn locked_base(context: &Context, store: &Store, family: Family<'_>) -> Result<ObjectId> {
    let lock = lock_file::read(context)?.unwrap_or_default();
    let Some(locked) = lock.variants.get(family.child.name.as_str()) else {
        let what = format!("`espalier.lock` does not say what {} was made for", family.child.name);
        return Err(with_way_out(Error::environment(what), family));
    };
    let base = family.base(locked)?;
    match store.has(base) {
        true => Ok(base),
        false => Err(with_way_out(not_in_store(family, base), family)),
    }
}

fn no_parent(child: &Variant) -> Error {
    let what = format!("`--to` is required: {} extends no variant with patches", child.name);
    Error::usage(what).hint(format!("name the target: cargo xtask rebase --to REF --variant {}", child.name))
}

fn not_in_store(family: Family<'_>, base: ObjectId) -> Error {
    let Family { child, parent, .. } = family;
    Error::environment(format!("the tree that {} was made for is not in the store", child.name))
        .detail(format!("{base}: {} as `espalier.lock` has it for {}", parent.name, child.name))
}

/// Adds a hint: the old patches of the parent reproduce the tree.
fn with_way_out(error: Error, family: Family<'_>) -> Error {
    let Family { child, parent, .. } = family;
    let folder = quoted(parent.patches.as_deref().unwrap_or_default());
    let restore = |from: &str| format!("git restore --staged --worktree --source={from} {folder}");
    error
        .hint(format!(
            "check out the patches of {} before the change: {}    # COMMIT: the last one with them",
            parent.name,
            restore("COMMIT")
        ))
        .hint(format!("then: cargo xtask apply --check --variant {}", child.name))
        .hint(format!("then: {} && cargo xtask rebase --variant {}", restore("HEAD"), child.name))
}
