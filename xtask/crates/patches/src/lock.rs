//! `cargo xtask lock`: rewrites or checks `espalier.lock`.

use clap::Args;
use espalier_core::config::lock::{Lock, LockedVariant};
use espalier_core::config::pins::Pins;
use espalier_core::context::{Context, Outcome};
use espalier_core::error::{Error, Result};
use espalier_core::sys::git::store::Store;
use espalier_core::sys::project::run_lock::Access;
use espalier_core::sys::project::stage::Stage;
use serde_json::json;

use super::apply;
use super::lock_file::{read, refuse_stale};
use crate::stack::Stack;

/// Options of `lock`.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct Options {
    /// Write nothing; a stale lock is an error.
    #[arg(long)]
    pub check: bool,
}

/// Applies every variant and compares, or writes, the lock. A variant on a generation that needs a person keeps its
/// entry when the lock is written, and the exit code is 1.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    let access = if options.check { Access::Read } else { Access::Change };
    let (_lock, pins) = context.begin(false, access)?;
    let store = Store::open(&context.layout.store())?;
    let old = read_or_default(context, options.check, &pins)?;
    let is_check = options.check || context.locked;
    let (mut fresh, mut stay) = (Lock::default(), Vec::new());
    for variant in pins.variants.values() {
        let stack = Stack::read(&context.layout, &pins, variant)?;
        let locked = entry(context, &store, &stack, is_check)?;
        match &locked {
            Some(locked) if access == Access::Change => apply::keep_base(&store, variant, locked)?,
            Some(_) => {}
            None => stay.push(variant.name.as_str()),
        }
        let locked = locked.or_else(|| old.variants.get(variant.name.as_str()).cloned());
        fresh.variants.extend(locked.map(|locked| (variant.name.to_string(), locked)));
    }
    let differences = old.differences(&fresh);
    if is_check {
        refuse_stale(&differences)?;
    } else {
        let mut stage = Stage::begin(&context.layout)?;
        stage.write("espalier.lock", fresh.render().as_bytes())?;
        stage.commit("the update of espalier.lock".to_string())?;
    }
    Ok(Outcome {
        text: summary(&fresh, &differences),
        json: json!({ "lock": fresh, "changed": differences, "stale": stay }),
        code: u8::from(!stay.is_empty()),
    })
}

/// Returns the entry of a variant; `None` if it is on a generation that needs a person, which is an error of a check.
fn entry(context: &Context, store: &Store, stack: &Stack, is_check: bool) -> Result<Option<LockedVariant>> {
    stack.fetch(context, store)?;
    match stack.generation.is_some() && !is_check {
        true => Ok(apply::locked_on_generation(context, store, stack)),
        false => Ok(Some(apply::apply_stack(store, stack)?.locked)),
    }
}

fn summary(fresh: &Lock, differences: &[String]) -> String {
    let mut lines: Vec<String> =
        fresh.variants.iter().map(|(name, variant)| format!("{name} tree {}", variant.tree)).collect();
    lines.extend(differences.iter().map(|difference| format!("changed: {difference}")));
    lines.join("\n")
}

/// Reads the lock; a lock that cannot be parsed is replaced when writing, and an error when checking.
fn read_or_default(context: &Context, check: bool, pins: &Pins) -> Result<Lock> {
    match read(context) {
        Ok(lock) => Ok(lock.unwrap_or_default()),
        Err(error) if check => Err(error),
        Err(error) => {
            warn_of_lost_records(context, pins, &error);
            Ok(Lock::default())
        }
    }
}

/// Warns that nothing says which versions of their patches the siblings were made for.
fn warn_of_lost_records(context: &Context, pins: &Pins, error: &Error) {
    if pins.variants.values().any(|variant| variant.like.is_some()) {
        let what =
            "siblings are locked as they are, without a comparison with the patches that they were made for";
        context.ui.warn(format!("{}: {what}", error.what));
    }
}
