//! The stage of an import: patches, `pins.toml` and `espalier.lock`, verified before the project changes.

use espalier_core::config::attributes::{ATTRIBUTES_FILE, completed};
use espalier_core::config::lock::LockedVariant;
use espalier_core::config::name::Name;
use espalier_core::config::pins::{Pins, Variant};
use espalier_core::context::Context;
use espalier_core::error::{Error, Kind, Result};
use espalier_core::sys::git::store::Store;
use espalier_core::sys::machine::disk;
use espalier_core::sys::project::stage::Stage;

use crate::apply;
use crate::import::patches::NewPatch;
use crate::import::sequence::SequenceCommit;
use crate::rebase::descendants;
use crate::stack::Stack;

/// Collects everything in a stage and applies it there, strictly: the tree after each patch has to be the commit's.
/// `pins_text` is the new text of `pins.toml`.
pub fn stage(
    context: &Context,
    store: &Store,
    pins_text: &str,
    (variant, folder): (&Name, &str),
    (commits, patches): (&[SequenceCommit], &[NewPatch]),
) -> Result<Stage> {
    let mut stage = Stage::begin(&context.layout)?;
    stage.write("pins.toml", pins_text.as_bytes())?;
    let pins = context.staged(&stage).pins()?;
    let attributes = disk::read_if_there(&context.layout.root().join(ATTRIBUTES_FILE))?.unwrap_or_default();
    if let Some(after) = completed(&attributes, &pins) {
        stage.write(ATTRIBUTES_FILE, &after)?;
    }
    let variant = pins.variant(Some(variant))?;
    stage.keep_series(pins.series_folders())?;
    for patch in patches {
        stage.write(&format!("{folder}/{}", patch.name), &patch.bytes)?;
    }
    let locked = prove(&stage, store, &pins, variant, commits)?;
    descendants::stage(context, &mut stage, (store, &pins), variant, &locked)?;
    Ok(stage)
}

/// The way out if a path of a new patch is refused.
const LEAVE_OUT: &str = "or, if a path differs from another one in case only, or takes the place of a folder or a \
                         file: the same command with --leave-out PATH";

fn prove(
    stage: &Stage,
    store: &Store,
    pins: &Pins,
    variant: &Variant,
    commits: &[SequenceCommit],
) -> Result<LockedVariant> {
    let stack = Stack::read(&stage.layout(), pins, variant)?;
    // git wrote the patches, so what a strict reader still refuses is a path.
    let with_hint = |error: Error| if error.kind == Kind::No { error.hint(LEAVE_OUT) } else { error };
    let locked = apply::apply_stack(store, &stack).map_err(with_hint)?.locked;
    let before = locked.patches.len().saturating_sub(commits.len());
    for (commit, patch) in commits.iter().zip(&locked.patches[before..]) {
        if commit.tree.to_string() != patch.tree {
            let what =
                format!("the patch of {} produces a different tree; nothing was written", commit.origin);
            return Err(
                Error::environment(what).detail(format!("imported {}\napplied  {}", commit.tree, patch.tree))
            );
        }
    }
    Ok(locked)
}
