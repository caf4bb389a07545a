//! Reading and updating `espalier.lock`.

use espalier_core::config::layout::Layout;
use espalier_core::config::lock::{Lock, LockedVariant};
use espalier_core::config::snippet::SourceText;
use espalier_core::context::Context;
use espalier_core::error::{Error, Result};
use espalier_core::sys::machine::disk;
use espalier_core::sys::project::inputs::PatchFile;
use espalier_core::sys::project::stage::Stage;

/// Returns the committed lock, if there is one.
pub fn read(context: &Context) -> Result<Option<Lock>> {
    read_in(&context.layout)
}

/// As [`read`], of a project or a stage.
pub fn read_in(layout: &Layout) -> Result<Option<Lock>> {
    let path = layout.lock();
    if !disk::exists(&path) {
        return Ok(None);
    }
    let text = disk::read_text(&path)?;
    Lock::parse(SourceText { name: "espalier.lock", text: &text }).map(Some)
}

/// Updates the entry of one variant, unless it is already there or `--locked` forbids it.
pub fn update(context: &Context, variant: &str, fresh: &LockedVariant) -> Result<()> {
    let old = read(context)?.unwrap_or_default();
    let mut new = old.clone();
    new.variants.insert(variant.to_string(), fresh.clone());
    if is_another(context, &old, &new)? {
        disk::write_if_changed(&context.layout.lock(), new.render().as_bytes())?;
    }
    Ok(())
}

/// Updates the lock for a change of patches' names and texts that leaves the resulting trees the same. A stale lock
/// stays stale.
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

/// Adds the lock to the stage if it differs.
pub fn write_to(context: &Context, stage: &mut Stage, old: &Lock, new: &Lock) -> Result<()> {
    match is_another(context, old, new)? {
        true => stage.write("espalier.lock", new.render().as_bytes()),
        false => Ok(()),
    }
}

/// Reports the differences and returns whether there are any. With `--locked`, any difference is an error.
fn is_another(context: &Context, old: &Lock, new: &Lock) -> Result<bool> {
    if context.locked {
        refuse_stale(&old.differences(new))?;
    }
    for (name, entry) in new.variants.iter().filter(|(name, entry)| old.variants.get(*name) != Some(*entry)) {
        context.ui.status("Locking", format!("{name} in espalier.lock: tree {}", entry.tree));
    }
    Ok(old != new)
}

/// Returns an error that names the differences from the lock.
pub fn refuse_stale(differences: &[String]) -> Result<()> {
    if differences.is_empty() {
        return Ok(());
    }
    Err(Error::no("`espalier.lock` is stale: it does not match the pins, patches and overlays")
        .detail(differences.join("\n"))
        .hint("if the change is intended: cargo xtask lock    # and commit `espalier.lock` with it"))
}
