//! Documents of a package besides its programs: licences of everything linked, and provenance.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use espalier_core::config::pins::{Pin, Pins, Revision, Source, Variant};
use espalier_core::context::Context;
use espalier_core::error::Result;
use espalier_core::sys::machine::disk;
use espalier_core::sys::machine::process;
use espalier_core::sys::project::inputs::PatchFile;
use espalier_patches::apply::Applied;
use espalier_patches::stack::Stack;
use espalier_series::Patch;

use crate::plan::rust_library::RustLibrary;
use crate::plan::shipped::{self, Library, Origin, PatchNote, licence_text};
use crate::plan::web_page::ManifestPage;
use crate::sys::licences::{self, Texts};
use crate::sys::web_page as pages;

/// Facts about a build that its package documents.
#[derive(Clone, Debug)]
pub struct BuildFacts<'a> {
    /// The stack of the variant.
    pub pins: &'a Pins,
    /// The variant that was built.
    pub variant: &'a Variant,
    /// The applied tree of the variant.
    pub applied: &'a Applied,
    /// The web page in its server.
    pub page: Option<&'a ManifestPage>,
    /// The Ninja program and the folder in which it compiled.
    pub ninja: (&'a Path, PathBuf),
    /// The compiled targets.
    pub targets: &'a [String],
    /// Environment of the cargo that built the libraries of Rust.
    pub cargo: BTreeMap<String, String>,
    /// Other inputs that determine the bytes, by name, each with its sha256.
    pub inputs: BTreeMap<String, String>,
}

impl BuildFacts<'_> {
    /// Returns the data for the package's documents, and the texts that go into it.
    ///
    /// # Errors
    ///
    /// A compiled file no longer exists; cargo or Ninja fails.
    pub fn gather(self, context: &Context) -> Result<(Origin, Texts)> {
        let tree = context.layout.tree(&self.variant.name);
        let (ninja, build) = &self.ninja;
        let sources = licences::sources(ninja, build, self.targets, &tree)?;
        let mut texts = licences::of_upstream(&tree, &sources)?;
        texts.extend(licences::of_project(context.layout.root())?);
        let crates = self.crates(context, &mut texts)?;
        let licence = texts.get(&format!("{}/LICENSE", shipped::UPSTREAM_LICENCES));
        let licence = licence.and_then(|text| licence_text::spdx_id(&espalier_series::lossy(text)));
        let pin = &self.applied.pin;
        let origin = Origin {
            version: env!("CARGO_PKG_VERSION").to_string(),
            upstream: pin.upstream.clone(),
            url: url_of(pin),
            commit: commit_of(pin),
            patches: self.patches(context)?,
            overlays: self.applied.locked.overlays.clone(),
            crates,
            page: self.page_packages(context)?,
            licence: licence.map(str::to_string),
            inputs: self.inputs,
        };
        Ok((origin, texts))
    }

    fn crates(&self, context: &Context, texts: &mut Texts) -> Result<Vec<Library>> {
        let linked: Vec<RustLibrary> = RustLibrary::of(self.variant).collect();
        let Some(first) = linked.first() else { return Ok(Vec::new()) };
        let (rust, more) = licences::of_rust()?;
        texts.extend(more);
        let triple = self.cargo.get("CARGO_BUILD_TARGET").cloned().map_or_else(licences::host_triple, Ok)?;
        let metadata = process::cargo(&context.layout.cargo_target(first.folder()))
            .args(["metadata", "--format-version", "1", "--locked", "--filter-platform", &triple])
            // cargo needs the sources of every crate of the workspace, and a first build has fetched only its own.
            .args(context.offline.then_some("--offline"))
            .arg("--manifest-path")
            .arg(context.layout.root().join("Cargo.toml"))
            .success()?;
        let mut crates = BTreeSet::from([rust]);
        for library in linked {
            let (more, more_texts) = licences::of_crates(&metadata, &library.package())?;
            crates.extend(more);
            texts.extend(more_texts);
        }
        Ok(crates.into_iter().collect())
    }

    fn patches(&self, context: &Context) -> Result<Vec<PatchNote>> {
        let stack = Stack::read(&context.layout, self.pins, self.variant)?;
        let notes: Vec<PatchNote> = notes(&stack);
        let locked = self.applied.locked.patches.iter();
        Ok(locked
            .map(|patch| {
                let note = notes.iter().find(|note| note.sha256 == patch.sha256).cloned().unwrap_or_default();
                PatchNote { file: patch.file.clone(), sha256: patch.sha256.clone(), ..note }
            })
            .collect())
    }

    fn page_packages(&self, context: &Context) -> Result<Vec<Library>> {
        let Some(page) = self.page else { return Ok(Vec::new()) };
        Ok(licences::of_page(&disk::read_text(&pages::notices(&context.layout, &page.tree))?))
    }
}

/// Returns the notes on each patch of a stack.
#[must_use]
pub fn notes(stack: &Stack) -> Vec<PatchNote> {
    let note = |(file, patch): (&PatchFile, &Patch)| PatchNote {
        file: file.file.clone(),
        sha256: file.sha256.clone(),
        subject: patch.subject.clone(),
        status: status_of(patch),
    };
    stack.files.iter().zip(&stack.patches).map(note).collect()
}

fn status_of(patch: &Patch) -> String {
    let is_status = |trailer: &&espalier_series::Trailer| trailer.key.eq_ignore_ascii_case("Upstream-Status");
    patch.trailers.iter().find(is_status).map(|trailer| trailer.value.clone()).unwrap_or_default()
}

/// Returns a repository that others can reach, never a path of this machine.
fn url_of(pin: &Pin) -> Option<String> {
    pin.sources.iter().find_map(|source| match source {
        Source::Git { url } if url.starts_with("https://") => Some(url.clone()),
        _ => None,
    })
}

fn commit_of(pin: &Pin) -> Option<String> {
    match &pin.revision {
        Revision::Commit(commit) => Some(commit.to_string()),
        Revision::Tag(_) => None,
    }
}
