//! `espalier.lock`, read and brought up to date.

use crate::context::Context;
use crate::error::{Error, Result};
use crate::plan::lock::{Lock, LockedVariant};
use crate::plan::snippet::SourceText;
use crate::sys::machine::disk;
use crate::sys::project::inputs::PatchFile;
use crate::sys::project::stage::Stage;

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
    if is_another(context, &old, &new)? {
        disk::write_if_changed(&context.layout.lock(), new.render().as_bytes())?;
    }
    Ok(())
}

/// The lock of a change of names and words of patches, which make what they made. A lock that is stale stays so.
pub fn follow<'a>(
    context: &Context,
    stage: &mut Stage,
    moved: impl Iterator<Item = (&'a PatchFile, &'a PatchFile)>,
) -> Result<()> {
    let Ok(Some(old)) = read(context) else { return Ok(()) };
    let mut new = old.clone();
    let key = |file: &'a PatchFile| (file.file.as_str(), file.sha256.as_str());
    new.follow(&moved.map(|(old, new)| (key(old), key(new))).collect());
    write_to(context, stage, &old, &new)
}

/// Puts the lock into the stage when it is another one.
pub fn write_to(context: &Context, stage: &mut Stage, old: &Lock, new: &Lock) -> Result<()> {
    match is_another(context, old, new)? {
        true => stage.write("espalier.lock", new.render().as_bytes()),
        false => Ok(()),
    }
}

/// Says what changes. With `--locked`, nothing may.
fn is_another(context: &Context, old: &Lock, new: &Lock) -> Result<bool> {
    if context.locked {
        refuse_stale(&old.differences(new))?;
    }
    for (name, entry) in new.variants.iter().filter(|(name, entry)| old.variants.get(*name) != Some(*entry)) {
        context.ui.status("Locking", format!("{name} in espalier.lock: tree {}", entry.tree));
    }
    Ok(old != new)
}

/// Names what is not as the lock says.
pub fn refuse_stale(differences: &[String]) -> Result<()> {
    if differences.is_empty() {
        return Ok(());
    }
    Err(Error::no("`espalier.lock` is stale: it does not match the pins, patches and overlays")
        .detail(differences.join("\n"))
        .hint("if the change is intended: cargo xtask lock    # and commit `espalier.lock` with it"))
}
