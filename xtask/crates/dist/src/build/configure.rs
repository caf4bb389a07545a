//! CMake's arguments of a build, and the libraries of Rust that it links.

use std::path::{Path, PathBuf};

use espalier_core::config::pins::Revision;
use espalier_core::error::Result;
use espalier_core::sys::machine::disk;
use espalier_core::sys::machine::process::{self, Run};
use espalier_patches::apply::Applied;

use super::{Build, Tools};
use crate::plan::cmake::{self, Configure};
use crate::plan::prefix_map::PrefixMap;
use crate::plan::reference;
use crate::plan::rust_library::RustLibrary;
use crate::sys::rust_flags::portable_rust_flags;

impl Build<'_> {
    pub(super) fn library_run(&self, library: RustLibrary) -> Result<Run> {
        let run = process::cargo(&self.context.layout.cargo_target(library.folder()))
            .args(["build", "--release", "--package", &library.package(), "--lib", "--manifest-path"])
            .arg(self.context.layout.root().join("Cargo.toml"))
            .env("CARGO_ENCODED_RUSTFLAGS", portable_rust_flags());
        Ok(self.equipment()?.cargo.iter().fold(run, |run, (key, value)| run.env(key, value)))
    }

    /// Returns the library's path in cargo's target folder: for another platform, below the name of that platform.
    fn library_file(&self, library: RustLibrary) -> Result<PathBuf> {
        let name = library.package().replace('-', "_");
        let name = if cfg!(windows) { format!("{name}.lib") } else { format!("lib{name}.a") };
        let target = self.equipment()?.cargo.get("CARGO_BUILD_TARGET").cloned().unwrap_or_default();
        let folder = self.context.layout.cargo_target(library.folder());
        Ok(folder.join(target).join("release").join(name))
    }

    fn headers(&self, library: RustLibrary) -> PathBuf {
        self.context.layout.root().join(library.folder()).join("include")
    }

    /// Path of the file with `reference::CMAKE`.
    pub(super) fn compared_file(&self) -> PathBuf {
        self.build_folder().join(reference::FILE)
    }

    pub(super) fn write_compared(&self) -> Result<()> {
        disk::write_if_changed(&self.compared_file(), reference::CMAKE.as_bytes()).map(drop)
    }

    pub(super) fn identity_folder(&self) -> PathBuf {
        self.build_folder().join("espalier-identity")
    }

    pub(super) fn write_identity(&self, applied: &Applied) -> Result<()> {
        let header = cmake::identity_header(
            &self.variant.name,
            &applied.pin.revision.to_string(),
            &applied.tree.to_string(),
        );
        let path = self.identity_folder().join("espalier-identity.h");
        disk::write_if_changed(&path, header.as_bytes()).map(drop)
    }

    pub(super) fn prefix_map(&self) -> PrefixMap {
        let layout = &self.context.layout;
        PrefixMap::new(layout.root(), &layout.tree(&self.variant.name), &self.build_folder())
    }

    pub(super) fn configuration<'a>(
        &self,
        tools: &'a Tools,
        source: &'a Path,
        build: &'a Path,
        revision: &'a Revision,
    ) -> Result<Configure<'a>> {
        let linked = |library: RustLibrary| -> Result<(RustLibrary, PathBuf, PathBuf)> {
            Ok((library, self.library_file(library)?, self.headers(library)))
        };
        Ok(Configure {
            source,
            build,
            ninja: &tools.ninja,
            compilers: (&tools.compilers.c, &tools.compilers.cxx),
            entries: self.cache_entries()?,
            libraries: RustLibrary::of(self.variant).map(linked).collect::<Result<_>>()?,
            identity: self.identity_folder(),
            prefix_map: self.prefix_map(),
            revision,
        })
    }

    pub(super) fn configure_arguments(&self, tools: &Tools, revision: &Revision) -> Result<Vec<String>> {
        let (source, build) = (self.context.layout.tree(&self.variant.name), self.build_folder());
        Ok(self.configuration(tools, &source, &build, revision)?.arguments())
    }

    /// Runs CMake only if its arguments changed; if its own files changed, Ninja runs it.
    pub(super) fn configure(&self, tools: &Tools, applied: &Applied) -> Result<()> {
        let build = self.build_folder();
        let arguments = self.configure_arguments(tools, &applied.pin.revision)?;
        let remembered = build.join("espalier-configure.txt");
        let wanted = format!("{}\n{}\n", tools.cmake.display(), arguments.join("\n"));
        let configured = disk::exists(&build.join("build.ninja"));
        if configured && disk::read_if_there(&remembered)?.as_deref() == Some(wanted.as_bytes()) {
            return Ok(());
        }
        self.context.ui.status("Configuring", self.name());
        disk::create_folder(&build)?;
        if self.options.reference {
            self.write_compared()?;
        }
        // Without the cache, an entry that is no longer given falls back to its default.
        disk::remove_file(&build.join("CMakeCache.txt"))?;
        let run = Run::new(&tools.cmake).args(&arguments);
        self.watched(run, &format!("configure-{}", self.name()), |_| {})?;
        disk::write_atomically(&remembered, wanted.as_bytes())
    }
}
