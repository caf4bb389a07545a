//! Ownership of paths: an overlay may only add paths that neither upstream, nor a patch, nor another overlay has.

use espalier_core::config::overlay::{Clash, OverlayFile, Owner, clash_between};
use espalier_core::error::{Error, Result};
use espalier_core::sys::git::tree::GitTree;
use espalier_series::{Patch, RepoPath};

use crate::stack::Stack;

/// Refuses the first overlay file whose path has another owner. `base` is the pinned tree, `patched` the tree after
/// the series.
pub fn check_owners(base: &mut GitTree<'_>, patched: &mut GitTree<'_>, stack: &Stack) -> Result<()> {
    stack.overlays.iter().try_for_each(check_path)?;
    match clashes(base, patched, stack, &stack.pin.revision.to_string())?.first() {
        Some(clash) => Err(clash.refusal()),
        None => Ok(()),
    }
}

/// Returns every overlay file of `stack` whose path has another owner. `base` is the upstream tree called `upstream`,
/// `patched` the tree after the series.
pub fn clashes(
    base: &mut GitTree<'_>,
    patched: &mut GitTree<'_>,
    stack: &Stack,
    upstream: &str,
) -> Result<Vec<Clash>> {
    let between = clash_between(&stack.overlays);
    let mut found: Vec<Clash> = between.iter().map(|(file, owner)| Clash::new(file, owner)).collect();
    for file in &stack.overlays {
        let path = file.path.as_bytes();
        let is_upstream = base.entry(path)?.is_some() || patched.has_any_case(path)?;
        let upstream = is_upstream.then(|| Owner::Upstream { tag: upstream.to_string() });
        found.extend(patch_that_touches(path, stack).or(upstream).map(|owner| Clash::new(file, &owner)));
    }
    Ok(found)
}

/// Applies the rules for a patch's paths to an overlay file.
fn check_path(file: &OverlayFile) -> Result<()> {
    RepoPath::new(file.path.as_bytes()).map(drop).map_err(|refusal| {
        Error::usage(format!("the overlay file `{}` has an invalid path: {refusal}", file.from))
    })
}

fn patch_that_touches(path: &[u8], stack: &Stack) -> Option<Owner> {
    let touches = |patch: &Patch| {
        let mut sides = patch.files.iter().flat_map(|file| file.old.iter().chain(&file.new));
        sides.any(|side| side.path.as_bytes() == path)
    };
    let at = stack.patches.iter().position(touches)?;
    Some(Owner::Patch { file: stack.files.get(at)?.file.clone() })
}
