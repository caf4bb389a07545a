//! The overlays of variants at an upstream tree that their pin could move to: paths that another owner has there.

use espalier_core::config::name::Name;
use espalier_core::config::overlay::Clash;
use espalier_core::config::pins::{Pins, Variant};
use espalier_core::context::Context;
use espalier_core::error::Result;
use espalier_core::sys::git::store::Store;
use espalier_core::sys::git::tree::{Entry, GitTree};
use espalier_series::{Change, ObjectId, Patch};

use super::apply::owners;
use crate::stack::Stack;

/// An upstream tree, and its name for people.
#[derive(Clone, Copy, Debug)]
pub struct UpstreamTree<'a> {
    /// Tag, branch or commit.
    pub name: &'a str,
    /// The tree.
    pub tree: ObjectId,
}

/// Every variant on a pin that has overlays.
pub struct PinOverlays {
    stacks: Vec<Stack>,
}

impl PinOverlays {
    /// Reads the variants. A pin moves only with all of them, whether or not they have patches.
    pub fn read(context: &Context, pins: &Pins, pin: &Name) -> Result<PinOverlays> {
        let has_overlays =
            |variant: &Variant| pins.stack(variant).iter().any(|below| !below.overlays.is_empty());
        let on_pin = pins.variants.values().filter(|variant| variant.pin == *pin && has_overlays(variant));
        let stacks = on_pin.map(|variant| Stack::read(&context.layout, pins, variant));
        Ok(PinOverlays { stacks: stacks.collect::<Result<_>>()? })
    }

    /// Returns the clashes of each variant at an upstream tree to which every series applies.
    pub fn by_variant(&self, store: &Store, upstream: UpstreamTree<'_>) -> Result<Vec<(&Name, Vec<Clash>)>> {
        let clashes =
            self.stacks.iter().map(|stack| Ok((&stack.variant.name, clashes_at(store, stack, upstream)?)));
        clashes.collect()
    }

    /// As [`PinOverlays::by_variant`], without the variants, each clash once.
    pub fn clashes_at(&self, store: &Store, upstream: UpstreamTree<'_>) -> Result<Vec<Clash>> {
        let by_variant = self.by_variant(store, upstream)?;
        Ok(each_once(by_variant.into_iter().map(|(_, clashes)| clashes)))
    }

    /// As [`PinOverlays::clashes_at`]; `patched` returns the tree after the series of a variant.
    pub fn clashes_in(
        &self,
        store: &Store,
        upstream: UpstreamTree<'_>,
        patched: impl Fn(&Stack) -> ObjectId,
    ) -> Result<Vec<Clash>> {
        let clashes = self.stacks.iter().map(|stack| clashes_in(store, stack, upstream, patched(stack)));
        Ok(each_once(clashes.collect::<Result<Vec<_>>>()?.into_iter()))
    }
}

/// Variants inherit overlays: the same file clashes in all of them.
fn each_once(clashes: impl Iterator<Item = Vec<Clash>>) -> Vec<Clash> {
    let mut found = Vec::new();
    for clash in clashes.flatten() {
        if !found.contains(&clash) {
            found.push(clash);
        }
    }
    found
}

/// Returns the clashes of one variant at an upstream tree. The series need not have been replayed there: its patches
/// add and remove the same paths as on the pin.
pub fn clashes_at(store: &Store, stack: &Stack, upstream: UpstreamTree<'_>) -> Result<Vec<Clash>> {
    if stack.overlays.is_empty() {
        return Ok(Vec::new());
    }
    let mut patched = with_paths_of(&stack.patches, GitTree::new(store, upstream.tree)?)?;
    owners::clashes(&mut GitTree::new(store, upstream.tree)?, &mut patched, stack, upstream.name)
}

/// As [`clashes_at`], with the tree that the replay of the series gave.
pub fn clashes_in(
    store: &Store,
    stack: &Stack,
    upstream: UpstreamTree<'_>,
    patched: ObjectId,
) -> Result<Vec<Clash>> {
    let mut patched = GitTree::new(store, patched)?;
    owners::clashes(&mut GitTree::new(store, upstream.tree)?, &mut patched, stack, upstream.name)
}

/// Adds the paths that the patches create to `tree`, as empty names, and removes those that they delete.
fn with_paths_of<'store>(patches: &[Patch], mut tree: GitTree<'store>) -> Result<GitTree<'store>> {
    for file in patches.iter().flat_map(|patch| &patch.files) {
        let gone = file.old.as_ref().filter(|_| matches!(file.change, Change::Delete | Change::Rename));
        let new = file.new.as_ref().filter(|_| file.change != Change::Modify);
        if let Some(side) = gone {
            tree.set(side.path.as_bytes(), None)?;
        }
        if let Some(side) = new {
            tree.set(side.path.as_bytes(), Some(Entry { mode: 0o100_644, id: ObjectId::ZERO }))?;
        }
    }
    // Without the folders that are empty now.
    tree.write()?;
    Ok(tree)
}
