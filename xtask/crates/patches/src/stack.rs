//! A variant with all of its inputs, and the operations on it: placed on its pin, locked, built, smoke-tested,
//! surveyed.

use espalier_core::config::layout::Layout;
use espalier_core::config::overlay::OverlayFile;
use espalier_core::config::pins::{Pin, Pins, Variant};
use espalier_core::error::Result;
use espalier_core::sys::project::inputs::{PatchFile, read_overlays, read_series};
use espalier_series::Patch;

/// A variant with all of our inputs to its tree.
#[derive(Clone, Debug)]
pub struct Stack {
    /// The variant itself.
    pub variant: Variant,
    /// The pin that its patches were made for.
    pub pin: Pin,
    /// Its patch files in the order in which they apply, parents first.
    pub files: Vec<PatchFile>,
    /// The parsed patches.
    pub patches: Vec<Patch>,
    /// Number of patches that belong to parents; they come first.
    pub parents: usize,
    /// Overlay files, parents first.
    pub overlays: Vec<OverlayFile>,
}

impl Stack {
    /// Reads the inputs of `variant`.
    ///
    /// # Errors
    ///
    /// A folder cannot be read or is not a series, or a file in it is not a patch.
    pub fn read(layout: &Layout, pins: &Pins, variant: &Variant) -> Result<Stack> {
        let line = pins.stack(variant);
        let mut files = Vec::new();
        let mut parents = 0;
        for one in &line {
            parents = files.len();
            if let Some(folder) = &one.patches {
                files.extend(read_series(layout, folder)?);
            }
        }
        let overlays = read_overlays(layout, &line)?;
        Stack::of(variant, pins.pin_of(variant), files, parents, overlays)
    }

    fn of(
        variant: &Variant,
        pin: &Pin,
        files: Vec<PatchFile>,
        parents: usize,
        overlays: Vec<OverlayFile>,
    ) -> Result<Stack> {
        let patches = files.iter().map(PatchFile::parse).collect::<Result<_>>()?;
        Ok(Stack { variant: variant.clone(), pin: pin.clone(), files, patches, parents, overlays })
    }

    /// Returns the stack with the variant's own patches replaced.
    ///
    /// # Errors
    ///
    /// One of them is not a patch.
    pub fn with_own(&self, own: impl IntoIterator<Item = PatchFile>) -> Result<Stack> {
        let parents = self.files.iter().take(self.parents).cloned();
        let files = parents.chain(own).collect();
        Stack::of(&self.variant, &self.pin, files, self.parents, self.overlays.clone())
    }

    /// Returns a stack of only the variant's own patches, on `pin`.
    pub fn own_on(&self, pin: Pin) -> Stack {
        Stack {
            variant: self.variant.clone(),
            pin,
            files: self.own_files().to_vec(),
            patches: self.own_patches().to_vec(),
            parents: 0,
            overlays: Vec::new(),
        }
    }

    /// Returns the files of the variant's own patches.
    pub fn own_files(&self) -> &[PatchFile] {
        self.files.get(self.parents..).unwrap_or_default()
    }

    /// Returns the variant's own patches, parsed.
    pub fn own_patches(&self) -> &[Patch] {
        self.patches.get(self.parents..).unwrap_or_default()
    }

    /// Returns the overlay files that the variant itself has.
    pub fn own_overlays(&self) -> impl Iterator<Item = &OverlayFile> {
        self.overlays.iter().filter(|file| is_of(&self.variant, file))
    }

    /// Returns the file of the last patch of the parents.
    pub fn last_of_parents(&self) -> Option<&PatchFile> {
        self.files.get(..self.parents)?.last()
    }
}

/// Whether `file` is in one of the overlay folders of `variant`.
fn is_of(variant: &Variant, file: &OverlayFile) -> bool {
    let is_in =
        |folder: &String| file.from.strip_prefix(folder.as_str()).is_some_and(|rest| rest.starts_with('/'));
    variant.overlays.iter().any(is_in)
}
