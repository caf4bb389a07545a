//! A variant with all of its inputs, and the operations on it: placed on its pin, locked, built, smoke-tested,
//! surveyed.

use espalier_core::config::layout::Layout;
use espalier_core::config::lock::LockedSibling;
use espalier_core::config::overlay::OverlayFile;
use espalier_core::config::pins::{Pin, Pins, Variant};
use espalier_core::context::Context;
use espalier_core::error::Result;
use espalier_core::sys::git::store::Store;
use espalier_core::sys::machine::disk;
use espalier_core::sys::project::inputs::{PatchFile, SeriesFiles, read_overlays, read_series};
use espalier_core::sys::upstream::fetch::fetch_pin;
use espalier_series::{Patch, change_text};

use super::lock_file;

/// A variant with all of our inputs to its tree.
#[derive(Clone, Debug)]
pub struct Stack {
    /// The variant itself.
    pub variant: Variant,
    /// The pin that its patches were made for, or a generation of it.
    pub pin: Pin,
    /// Its patch files in the order in which they apply, parents first; of a sibling, this is the sibling.
    pub files: Vec<PatchFile>,
    /// The parsed patches. On a generation, those without a sibling are as they were made, and exact only after
    /// [`placed`](crate::generation::placed).
    pub patches: Vec<Patch>,
    /// Number of patches that belong to parents; they come first.
    pub parents: usize,
    /// Overlay files, parents first.
    pub overlays: Vec<OverlayFile>,
    /// If the pin is a generation: the patches as they were made, and their siblings.
    pub generation: Option<Generation>,
}

/// The series that is replayed on a generation.
#[derive(Clone, Debug)]
pub struct Generation {
    /// The pin that the patches were made for.
    pub base: Pin,
    /// All patch files, parents first.
    pub files: Vec<PatchFile>,
    /// The parsed patches.
    pub patches: Vec<Patch>,
    /// For each patch its sibling in this generation.
    pub siblings: Vec<Option<Sibling>>,
}

/// A patch that takes the place of another one in a generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sibling {
    /// Its file.
    pub file: PatchFile,
    /// The parsed patch, which has a reason instead of a diff if it drops the other one.
    pub patch: Patch,
    /// Its record in the lock, if its patch has another change now and the sibling is as it was: it was made for
    /// another version of the patch, and nothing is locked with it before a person has looked at both.
    pub behind: Option<LockedSibling>,
}

impl Stack {
    /// Reads the inputs of `variant`.
    ///
    /// # Errors
    ///
    /// A folder cannot be read or is not a series, or a file in it is not a patch.
    pub fn read(layout: &Layout, pins: &Pins, variant: &Variant) -> Result<Stack> {
        let overlays = read_overlays(layout, &pins.stack(variant))?;
        let mut stack = Stack::of_series(pins, variant, |folder| read_series(layout, folder))?;
        if let Some(Generation { files, patches, siblings, .. }) = &mut stack.generation {
            mark_behind(layout, (files, patches), siblings);
        }
        Ok(Stack { overlays, ..stack })
    }

    /// As [`Stack::read`], without overlays and without the records of siblings in the lock; `read` returns the series
    /// in a folder.
    ///
    /// # Errors
    ///
    /// That of `read`, or a file is not a patch.
    pub fn of_series(
        pins: &Pins,
        variant: &Variant,
        read: impl Fn(&str) -> Result<SeriesFiles>,
    ) -> Result<Stack> {
        let (mut files, mut siblings) = (Vec::new(), Vec::new());
        let mut parents = 0;
        for one in pins.stack(variant) {
            parents = files.len();
            if let Some(folder) = &one.patches {
                let series = read(folder)?;
                files.extend(series.patches);
                siblings.extend(series.siblings);
            }
        }
        let stack = Stack::of(variant, pins.pin_of(variant), files, parents, Vec::new())?;
        match pins.generation_of(variant) {
            Some(generation) => stack.on_generation(generation.base, &siblings),
            None => Ok(stack),
        }
    }

    /// Returns for each patch its sibling in `generation`.
    ///
    /// # Errors
    ///
    /// A folder cannot be read or is not a series, or a sibling is not a patch.
    pub fn siblings_in(
        &self,
        layout: &Layout,
        pins: &Pins,
        generation: &str,
    ) -> Result<Vec<Option<Sibling>>> {
        let mut there = Vec::new();
        for folder in pins.patch_folders(&self.variant) {
            there.extend(read_series(layout, folder)?.siblings);
        }
        let sibling = |file: &PatchFile| sibling_of(file, generation, &there);
        let mut siblings: Vec<Option<Sibling>> = self.files.iter().map(sibling).collect::<Result<_>>()?;
        mark_behind(layout, (&self.files, &self.patches), &mut siblings);
        Ok(siblings)
    }

    /// Returns the stack with the siblings of the patches `files` as they are: a person has compared each with its
    /// patch.
    #[must_use]
    pub fn with_reviewed(mut self, files: &[String]) -> Stack {
        if let Some(generation) = &mut self.generation {
            for (file, sibling) in generation.files.iter().zip(&mut generation.siblings) {
                if let Some(sibling) = sibling.as_mut().filter(|_| files.contains(&file.file)) {
                    sibling.behind = None;
                }
            }
        }
        self
    }

    /// Returns the stack with the siblings of its pin, a generation of `base`.
    fn on_generation(self, base: &Pin, siblings: &[PatchFile]) -> Result<Stack> {
        let sibling = |file: &PatchFile| sibling_of(file, &self.pin.name, siblings);
        let siblings: Vec<Option<Sibling>> = self.files.iter().map(sibling).collect::<Result<_>>()?;
        let (mut files, mut patches, mut parents) = (Vec::new(), Vec::new(), 0);
        for (at, ((file, patch), sibling)) in self.files.iter().zip(&self.patches).zip(&siblings).enumerate()
        {
            let (file, patch) =
                sibling.as_ref().map_or((file, patch), |sibling| (&sibling.file, &sibling.patch));
            if !patch.is_dropped() {
                files.push(file.clone());
                patches.push(patch.clone());
                parents += usize::from(at < self.parents);
            }
        }
        let generation =
            Generation { base: base.clone(), files: self.files, patches: self.patches, siblings };
        Ok(Stack { files, patches, parents, generation: Some(generation), ..self })
    }

    /// Fetches the tree of its pin, and for a generation that of the pin that the patches were made for. The caller
    /// holds the run lock.
    ///
    /// # Errors
    ///
    /// No source serves one of them.
    pub fn fetch(&self, context: &Context, store: &Store) -> Result<()> {
        let base = self.generation.as_ref().map(|generation| &generation.base);
        for pin in std::iter::once(&self.pin).chain(base) {
            fetch_pin(store, &context.layout, pin, context.offline, &context.ui)?;
        }
        Ok(())
    }

    fn of(
        variant: &Variant,
        pin: &Pin,
        files: Vec<PatchFile>,
        parents: usize,
        overlays: Vec<OverlayFile>,
    ) -> Result<Stack> {
        let patches = files.iter().map(PatchFile::parse).collect::<Result<_>>()?;
        let (variant, pin) = (variant.clone(), pin.clone());
        Ok(Stack { variant, pin, files, patches, parents, overlays, generation: None })
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
            generation: None,
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

impl Generation {
    /// Returns each sibling that is behind its patch, with the file of the patch.
    pub fn behind(&self) -> impl Iterator<Item = (&PatchFile, &Sibling)> {
        let both = self.files.iter().zip(&self.siblings);
        both.filter_map(|(file, sibling)| Some((file, sibling.as_ref()?)))
            .filter(|(_, sibling)| sibling.behind.is_some())
    }
}

impl Sibling {
    /// Parses a sibling.
    ///
    /// # Errors
    ///
    /// It is neither a patch nor a reason to drop one.
    pub fn new(file: PatchFile) -> Result<Sibling> {
        Ok(Sibling { patch: file.parse()?, file, behind: None })
    }

    /// Returns its entry for the lock; `patch` is the one whose place it takes, and `file` the file of that.
    pub fn locked(&self, file: &PatchFile, patch: &Patch) -> LockedSibling {
        LockedSibling {
            file: self.file.file.clone(),
            sha256: self.file.sha256.clone(),
            patch: file.file.clone(),
            patch_sha256: file.sha256.clone(),
            patch_change: Some(disk::sha256(&change_text(patch))),
        }
    }
}

/// Marks the siblings that are behind their patches. A lock that cannot be read has no record of them; the commands
/// that need the lock report it.
fn mark_behind(
    layout: &Layout,
    (files, patches): (&[PatchFile], &[Patch]),
    siblings: &mut [Option<Sibling>],
) {
    let Ok(Some(lock)) = lock_file::read_in(layout) else { return };
    for ((file, patch), sibling) in files.iter().zip(patches).zip(siblings) {
        if let Some(sibling) = sibling {
            sibling.behind = lock.behind(&sibling.locked(file, patch)).cloned();
        }
    }
}

/// Whether `file` is in one of the overlay folders of `variant`.
fn is_of(variant: &Variant, file: &OverlayFile) -> bool {
    let is_in =
        |folder: &String| file.from.strip_prefix(folder.as_str()).is_some_and(|rest| rest.starts_with('/'));
    variant.overlays.iter().any(is_in)
}

/// Returns the sibling of `file` in a generation.
fn sibling_of(file: &PatchFile, generation: &str, siblings: &[PatchFile]) -> Result<Option<Sibling>> {
    let path = file.sibling_in(generation);
    let found = siblings.iter().find(|sibling| Some(&sibling.file) == path.as_ref());
    found.cloned().map(Sibling::new).transpose()
}
