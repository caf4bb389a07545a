//! `espalier.lock`, read and brought up to date.

use crate::context::Context;
use crate::error::{Error, Result};
use crate::plan::lock::{Lock, LockedVariant};
use crate::plan::snippet::SourceText;
use crate::sys::disk;

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

/// Names what is not as the lock says.
pub fn refuse_stale(differences: &[String]) -> Result<()> {
    if differences.is_empty() {
        return Ok(());
    }
    Err(Error::no("`espalier.lock` is stale: it is not what the pins, patches and overlays give now")
        .detail(differences.join("\n"))
        .hint("if the change is meant: cargo xtask lock    # and commit `espalier.lock` with it"))
}
