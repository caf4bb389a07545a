//! `cargo xtask lock`: write `espalier.lock` anew, or check it.

use serde_json::json;

use super::apply;
use crate::context::{Context, Outcome};
use crate::error::{Error, Result};
use crate::plan::lock::{Lock, LockedVariant};
use crate::plan::snippet::SourceText;
use crate::sys::fetch::fetch_pin;
use crate::sys::inputs::read_stack;
use crate::sys::store::Store;
use crate::sys::{disk, run_lock};

/// Options of `lock`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Write nothing; a stale lock is an error.
    pub check: bool,
}

/// Applies every variant and compares, or writes, the lock.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    let pins = context.pins()?;
    let _lock = run_lock::take(context)?;
    let store = Store::open(&context.layout.store())?;
    let mut fresh = Lock::default();
    for variant in pins.variants.values() {
        let pin = pins.pin_of(variant);
        fetch_pin(&store, &context.layout, pin, context.offline, &context.ui)?;
        let inputs = read_stack(&context.layout, &pins.stack(variant))?;
        let applied = apply::apply_inputs(&store, variant, pin, &inputs)?;
        fresh.variants.insert(variant.name.to_string(), applied.locked);
    }
    let old = read_or_default(context, options.check)?;
    let differences = old.differences(&fresh);
    if options.check || context.locked {
        refuse_stale(&differences)?;
    } else {
        disk::write_if_changed(&context.layout.lock(), fresh.render().as_bytes())?;
    }
    Ok(Outcome::ok(summary(&fresh, &differences), json!({ "lock": fresh, "changed": differences })))
}

fn summary(fresh: &Lock, differences: &[String]) -> String {
    let mut lines: Vec<String> =
        fresh.variants.iter().map(|(name, variant)| format!("{name} tree {}", variant.tree)).collect();
    lines.extend(differences.iter().map(|difference| format!("changed: {difference}")));
    lines.join("\n")
}

/// A lock that cannot be read is replaced when it is being written, and an error when it is checked.
fn read_or_default(context: &Context, check: bool) -> Result<Lock> {
    match read(context) {
        Ok(lock) => Ok(lock.unwrap_or_default()),
        Err(error) if check => Err(error),
        Err(_) => Ok(Lock::default()),
    }
}

/// The committed lock, when there is one.
pub fn read(context: &Context) -> Result<Option<Lock>> {
    let path = context.layout.lock();
    if !disk::exists(&path) {
        return Ok(None);
    }
    let text = disk::read_text(&path)?;
    Lock::parse(SourceText { name: "espalier.lock", text: &text }).map(Some)
}

/// Puts one variant's fresh entry into the lock, unless it is there already or `--locked` forbids it.
pub fn update(context: &Context, variant: &str, fresh: &LockedVariant) -> Result<()> {
    let old = read(context)?.unwrap_or_default();
    let mut new = old.clone();
    new.variants.insert(variant.to_string(), fresh.clone());
    let differences = old.differences(&new);
    if differences.is_empty() {
        return Ok(());
    }
    if context.locked {
        return refuse_stale(&differences);
    }
    context.ui.status("Locking", format!("{variant} in espalier.lock: tree {}", fresh.tree));
    disk::write_if_changed(&context.layout.lock(), new.render().as_bytes()).map(drop)
}

fn refuse_stale(differences: &[String]) -> Result<()> {
    if differences.is_empty() {
        return Ok(());
    }
    Err(Error::no("`espalier.lock` is stale: it is not what the pins, patches and overlays give now")
        .detail(differences.join("\n"))
        .hint("if the change is meant: cargo xtask lock    # and commit `espalier.lock` with it"))
}
