//! A variant with all that it is made of, and what is done with it: placed on its pin, locked, built, smoked, surveyed.

pub mod apply;
pub mod build;
pub mod commits;
pub mod equipment;
pub mod health;
pub mod image;
pub mod import;
pub mod lock;
pub mod lock_file;
pub mod pinned_series;
pub mod range;
pub mod ready;
pub mod rebase;
pub mod release;
pub mod shipped;
pub mod smoke;
pub mod smoke_operations;
pub mod smoke_rpc;
pub mod taken;
pub mod verify;
mod watched;
pub mod web_page;

use crate::error::Result;
use crate::plan::layout::Layout;
use crate::plan::overlay::OverlayFile;
use crate::plan::pins::{Pin, Pins, Variant};
use crate::series::Patch;
use crate::sys::project::inputs::{PatchFile, read_overlays, read_series};

/// A variant with everything of ours that goes into its tree.
#[derive(Clone, Debug)]
pub struct Stack {
    /// The variant on top.
    pub variant: Variant,
    /// What its patches were made for.
    pub pin: Pin,
    /// Its patch files in the order in which they apply, parents first.
    pub files: Vec<PatchFile>,
    /// The same as data.
    pub patches: Vec<Patch>,
    /// How many patches are the parents'; they come first.
    pub parents: usize,
    /// Overlay files, parents first.
    pub overlays: Vec<OverlayFile>,
}

impl Stack {
    /// Reads what `variant` is made of.
    ///
    /// # Errors
    ///
    /// A folder cannot be read or is no series, or a file in it is no patch.
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

    /// The same with other patches of the variant's own.
    ///
    /// # Errors
    ///
    /// One of them is no patch.
    pub fn with_own(&self, own: impl IntoIterator<Item = PatchFile>) -> Result<Stack> {
        let parents = self.files.iter().take(self.parents).cloned();
        let files = parents.chain(own).collect();
        Stack::of(&self.variant, &self.pin, files, self.parents, self.overlays.clone())
    }

    /// The variant's own patches alone, on `pin`.
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

    /// The files of the variant's own patches.
    pub fn own_files(&self) -> &[PatchFile] {
        self.files.get(self.parents..).unwrap_or_default()
    }

    /// The same as data.
    pub fn own_patches(&self) -> &[Patch] {
        self.patches.get(self.parents..).unwrap_or_default()
    }

    /// The file of the last patch that is a parent's.
    pub fn last_of_parents(&self) -> Option<&PatchFile> {
        self.files.get(..self.parents)?.last()
    }
}
