//! A series on its base: the patches, with the trees between them.

use std::ops::Range;

use crate::model::patch::Patch;
use crate::model::tree::Tree;

/// A patch with the trees before and after it.
#[derive(Clone, Copy)]
pub struct PlacedPatch<'a> {
    /// The patch.
    pub patch: &'a Patch,
    /// The tree that it was made for.
    pub before: &'a dyn Tree,
    /// The tree with it.
    pub after: &'a dyn Tree,
}

/// A series on its base.
#[derive(Clone)]
pub struct PlacedSeries<'a> {
    /// The tree below the first patch.
    pub base: &'a dyn Tree,
    /// The patches, in order.
    pub patches: Vec<PlacedPatch<'a>>,
}

impl<'a> PlacedSeries<'a> {
    /// Returns all patches.
    pub fn all_patches(&self) -> Vec<&'a Patch> {
        self.patches.iter().map(|placed| placed.patch).collect()
    }

    /// Returns the patches of a range.
    pub fn patches_in(&self, range: Range<usize>) -> impl Iterator<Item = &'a Patch> {
        self.patches.get(range).unwrap_or_default().iter().map(|placed| placed.patch)
    }

    /// Returns the names of the patches of a range.
    pub fn names(&self, range: Range<usize>) -> Vec<String> {
        self.patches_in(range).map(|patch| patch.name.clone()).collect()
    }

    /// Returns the trees before the first and after the last patch of a range.
    pub fn trees(&self, range: Range<usize>) -> (&'a dyn Tree, &'a dyn Tree) {
        let before = match self.patches.get(range.start) {
            Some(placed) => placed.before,
            None => self.patches.last().map_or(self.base, |placed| placed.after),
        };
        let last = range.end.checked_sub(1).filter(|_| !range.is_empty());
        let after = last.and_then(|last| self.patches.get(last)).map_or(before, |placed| placed.after);
        (before, after)
    }
}
