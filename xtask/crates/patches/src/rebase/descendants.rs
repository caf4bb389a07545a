//! Variants that have the patches of one whose series changes: their lock entries follow, and those that extend it and
//! no longer apply are rebased with it.

use espalier_core::config::lock::{Lock, LockedVariant};
use espalier_core::config::name::Name;
use espalier_core::config::pins::{Pins, Variant};
use espalier_core::context::Context;
use espalier_core::error::Result;
use espalier_core::sys::git::store::Store;
use espalier_core::sys::machine::disk;
use espalier_core::sys::project::stage::Stage;

use super::Choices;
use super::new_series::{NewFile, check_trees, new_series, pairs, prove_new_series, replace_series};
use super::parent::{Family, onto_parent};
use super::target::Target;
use super::walk::{Walked, create_repo, go_on, new_state};
use crate::stack::Stack;
use crate::{apply, lock_file};

/// Updates the lock, and stages it, for a change that gives `variant` another series, whose entry is `fresh`,
/// together with the entries of all variants that have this series too or extend it. Those that no longer apply are
/// rebased if every patch replays without a conflict; the others keep their patches, and a warning names the command to
/// run. Returns the new lock.
pub fn stage(
    context: &Context,
    stage: &mut Stage,
    (store, pins): (&Store, &Pins),
    variant: &Variant,
    fresh: &LockedVariant,
) -> Result<Lock> {
    let (old, new) = follow(context, stage, (store, pins), (variant, fresh), "Rebased")?;
    // A generation needs no such tree: its patches are replayed from their pin.
    for other in pins.with_patches_of(variant).filter(|other| other.like.is_none()) {
        if let Some(locked) = new.variants.get(other.name.as_str()) {
            apply::keep_base(store, other, locked)?;
        }
    }
    lock_file::write_to(context, stage, &old, &new)?;
    Ok(new)
}

/// As [`stage`], for a change that is only tried: reports the effect on the variants, and keeps nothing.
pub fn preview(
    context: &Context,
    stage: &mut Stage,
    (store, pins): (&Store, &Pins),
    variant: &Variant,
    fresh: &LockedVariant,
) -> Result<()> {
    follow(context, stage, (store, pins), (variant, fresh), "Would rebase").map(drop)
}

/// Returns the current lock and the new one.
fn follow(
    context: &Context,
    stage: &mut Stage,
    (store, pins): (&Store, &Pins),
    (variant, fresh): (&Variant, &LockedVariant),
    verb: &str,
) -> Result<(Lock, Lock)> {
    let old = lock_file::read(context)?.unwrap_or_default();
    let mut new = old.clone();
    new.variants.insert(variant.name.to_string(), fresh.clone());
    let mut following =
        Following { context, store, pins, changed: variant, old: &old, stage, verb, stale: Vec::new() };
    let mut others: Vec<&Variant> =
        pins.with_patches_of(variant).filter(|other| other.name != variant.name).collect();
    others.sort_by_key(|other| pins.stack(other).len());
    for other in others {
        if let Some(locked) = following.entry(other)? {
            new.variants.insert(other.name.to_string(), locked);
        }
    }
    Ok((old, new))
}

/// A change as it is propagated to the variants with the changed series, parents first.
struct Following<'a> {
    context: &'a Context,
    store: &'a Store,
    pins: &'a Pins,
    /// The variant whose series changes.
    changed: &'a Variant,
    /// The current lock.
    old: &'a Lock,
    stage: &'a mut Stage,
    /// The verb of the status line of a rebased variant.
    verb: &'a str,
    /// Variants that could not be rebased.
    stale: Vec<&'a Name>,
}

/// A rebased series and its result.
struct Rebased<'a> {
    target: Target<'a>,
    new: Vec<Option<NewFile>>,
    locked: LockedVariant,
}

impl<'a> Following<'a> {
    /// Returns the entry of `other` in the new lock; `None` if it stays as it is.
    fn entry(&mut self, other: &'a Variant) -> Result<Option<LockedVariant>> {
        if other.like.is_some() {
            let now = apply::locked_on_generation(self.context, self.store, &self.staged(other)?);
            return Ok(now.or_else(|| self.old.variants.get(other.name.as_str()).cloned()));
        }
        if let Ok(applied) = apply::apply_stack(self.store, &self.staged(other)?) {
            return Ok(Some(applied.locked));
        }
        // The series of the change itself is in the stage: it applies, so another input of this variant is in the way.
        let family = Family::of(self.pins, other).filter(|_| !self.has_changed_series(other));
        let made_for = self.made_for(other);
        if let Some((family, made_for)) = family.zip(made_for.as_ref()) {
            // Any failure is left to the command named in the warning, which reports it in full with its remedy.
            if let Ok(Some(rebased)) = self.rebase(family, made_for) {
                return self.take(rebased).map(Some);
            }
        }
        self.warn(other, family);
        self.stale.push(&other.name);
        Ok(made_for)
    }

    /// Whether the own patches of `other` are those that change.
    fn has_changed_series(&self, other: &Variant) -> bool {
        other.patches == self.changed.patches
    }

    fn staged(&self, variant: &Variant) -> Result<Stack> {
        Stack::read(&self.stage.layout(), self.pins, variant)
    }

    /// Returns the entry of `other` that its patches were made for: of the project as it is, otherwise of the lock.
    fn made_for(&self, other: &Variant) -> Option<LockedVariant> {
        let stack = Stack::read(&self.context.layout, self.pins, other);
        let applied = stack.and_then(|stack| apply::apply_stack(self.store, &stack));
        let locked = applied.ok().map(|applied| applied.locked);
        locked.or_else(|| self.old.variants.get(other.name.as_str()).cloned())
    }

    /// Replays and verifies the series of a variant; `None` if a patch needs a decision.
    fn rebase(&self, family: Family<'a>, made_for: &LockedVariant) -> Result<Option<Rebased<'a>>> {
        let parent = apply::apply_stack(self.store, &self.staged(family.parent)?)?;
        let trees = (family.base(made_for)?, parent.locked.series_tree()?);
        let stack = self.staged(family.child)?;
        let series_move = onto_parent((self.context, self.pins, self.store), (&stack, family.parent), trees);
        let target = Target::Series(series_move);
        let scratch = disk::scratch_folder(&self.context.layout.scratch(), "rebase")?;
        let repo = create_repo(&target, scratch.path())?;
        let mut state = new_state(&target, Choices::default());
        let Walked::ToTheEnd = go_on(&target, &repo, &mut state)? else { return Ok(None) };
        let (mut new, mut locked) = (Vec::new(), made_for.clone());
        for series in &state.series {
            new = new_series(target.named(), &repo, series)?;
            let files = new.iter().flatten().map(|new| new.file.clone());
            locked = apply::apply_stack(self.store, &stack.with_own(files)?)?.locked;
            check_trees(&repo, series, &locked)?;
        }
        Ok(Some(Rebased { target, new, locked }))
    }

    /// Adds the new series to the stage, and reports it.
    fn take(&mut self, rebased: Rebased<'a>) -> Result<LockedVariant> {
        let Rebased { target, new, locked } = rebased;
        let series_move = target.named();
        replace_series(series_move, self.stage, &new)?;
        let (name, parent, count) = (&series_move.stack.variant.name, &series_move.tip.name, new.len());
        let changed = pairs(series_move, &new).filter(|(old, new)| old != new).count();
        let what = format!("{name} onto {parent}: {changed} of {count} patches changed");
        self.context.ui.status(self.verb, what);
        for revert in prove_new_series(series_move, &new, &locked, &[])?.reverts() {
            self.context.ui.warn(revert);
        }
        Ok(locked)
    }

    fn warn(&self, other: &Variant, family: Option<Family<'_>>) {
        let name = &other.name;
        let stale =
            self.pins.stack(other).into_iter().rev().skip(1).find(|below| self.stale.contains(&&below.name));
        let why = match &other.extends {
            Some(parent) if !self.has_changed_series(other) => format!("extends {parent}"),
            _ => format!("has the patches of {} too", self.changed.name),
        };
        self.context.ui.warn(match (stale, family) {
            (Some(stale), _) => format!("{name} extends {}, and will be rebased with it", stale.name),
            (None, Some(_)) => {
                format!("{name} {why} and no longer applies\n  next: cargo xtask rebase --variant {name}")
            }
            (None, None) => format!(
                "{name} {why} and no longer applies\n  next: cargo xtask apply --check --variant {name}"
            ),
        });
    }
}
