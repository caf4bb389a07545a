//! `cargo xtask lock`: rewrites or checks `espalier.lock`.

use clap::Args;
use espalier_core::config::lock::Lock;
use espalier_core::context::{Context, Outcome};
use espalier_core::error::Result;
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

/// Applies every variant and compares, or writes, the lock.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    let access = if options.check { Access::Read } else { Access::Change };
    let (_lock, pins) = context.begin(false, access)?;
    let store = Store::open(&context.layout.store())?;
    let mut fresh = Lock::default();
    for variant in pins.variants.values() {
        let stack = Stack::read(&context.layout, &pins, variant)?;
        stack.fetch(context, &store)?;
        let applied = apply::apply_stack(&store, &stack)?;
        if access == Access::Change {
            apply::keep_base(&store, variant, &applied.locked)?;
        }
        fresh.variants.insert(variant.name.to_string(), applied.locked);
    }
    let old = read_or_default(context, options.check)?;
    let differences = old.differences(&fresh);
    if options.check || context.locked {
        refuse_stale(&differences)?;
    } else {
        let mut stage = Stage::begin(&context.layout)?;
        stage.write("espalier.lock", fresh.render().as_bytes())?;
        stage.commit("the update of espalier.lock".to_string())?;
    }
    Ok(Outcome::ok(summary(&fresh, &differences), json!({ "lock": fresh, "changed": differences })))
}

fn summary(fresh: &Lock, differences: &[String]) -> String {
    let mut lines: Vec<String> =
        fresh.variants.iter().map(|(name, variant)| format!("{name} tree {}", variant.tree)).collect();
    lines.extend(differences.iter().map(|difference| format!("changed: {difference}")));
    lines.join("\n")
}

/// Reads the lock; a lock that cannot be parsed is replaced when writing, and an error when checking.
fn read_or_default(context: &Context, check: bool) -> Result<Lock> {
    match read(context) {
        Ok(lock) => Ok(lock.unwrap_or_default()),
        Err(error) if check => Err(error),
        Err(_) => Ok(Lock::default()),
    }
}
