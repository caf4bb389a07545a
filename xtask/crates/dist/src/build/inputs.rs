//! The inputs that determine the bytes of a package, and whether the existing one matches them.

use espalier_core::config::layout::Layout;
use espalier_core::config::pins::{Pins, Variant};
use espalier_core::context::Context;
use espalier_core::error::Result;
use espalier_core::sys::machine::disk;
use espalier_patches::apply::{self, Applied};

use super::{Build, Options};
use crate::plan::rust_library::RustLibrary;
use crate::plan::shipped;
use crate::sys::compilers::{self, Compilers};
use crate::sys::package;
use crate::web_page::{self, Choice};

/// Digests of the inputs of a build, taken before it begins: a file may be edited while it runs.
pub(super) struct InputDigests {
    /// Of everything that determines the result.
    pub(super) all: String,
    /// Of the tree and of the Rust libraries that are linked with it.
    pub(super) sources: String,
}

impl Build<'_> {
    /// Returns the digests of the inputs as they are now.
    pub(super) fn inputs_digest(
        &self,
        applied: &Applied,
        compilers: &Compilers,
        page: &Choice,
    ) -> Result<InputDigests> {
        let sources = sources_digest(&self.context.layout, self.variant, applied)?;
        let mut text = format!(
            "tool {}\nsources {sources}\npin {}\nc {}\ncxx {} {}\nprograms {:?}\nmodules {:?}\n",
            env!("CARGO_PKG_VERSION"),
            applied.pin.revision,
            compilers.c,
            compilers.cxx,
            compilers.version,
            self.flavors.programs,
            self.flavor.entry.modules,
        );
        // A patch that yields the same tree may have another description.
        text += &format!("documents {} {}\n", shipped::FORMAT, applied.locked.to_text(&self.variant.name));
        for (key, value) in self.cache_entries()? {
            text += &format!("{key}={value}\n");
        }
        for variable in ["CFLAGS", "CXXFLAGS", "LDFLAGS", "RUSTFLAGS"] {
            text += &format!("{variable}={}\n", std::env::var(variable).unwrap_or_default());
        }
        text += &format!("toolchains {:?}\n", self.equipment()?.toolchains);
        text += &page.inputs();
        Ok(InputDigests { all: disk::sha256(text.as_bytes()), sources })
    }

    pub(super) fn is_current(&self, inputs: &str) -> Result<bool> {
        let Some(stamp) = package::read_stamp(&self.stamp_file())? else { return Ok(false) };
        Ok(stamp.inputs == inputs && package::is_as_stamped(&self.package_folder(), &stamp))
    }

    /// Whether a reference is asked for and the full build, which serves as one, is there.
    pub(super) fn has_full_build(
        &self,
        applied: &Applied,
        compilers: &Compilers,
        page: &Choice,
    ) -> Result<bool> {
        if !self.options.reference {
            return Ok(false);
        }
        let options = Options { reference: false, ..self.options.clone() };
        let full = Build { options: &options, ..*self };
        full.is_current(&full.inputs_digest(applied, compilers, page)?.all)
    }

    /// Whether a run would leave all as it is.
    pub(super) fn would_stay(&self, applied: &Applied) -> Result<bool> {
        let Ok(compilers) = compilers::compilers() else { return Ok(false) };
        let is_on_disk = apply::is_on_disk(self.context, self.variant, applied)?;
        let page = web_page::choose(self.context, self.variant, self.options.page())?;
        Ok(is_on_disk && self.is_current(&self.inputs_digest(applied, &compilers, &page)?.all)?)
    }
}

/// Returns the digest of the current sources of `variant`; `None` if they have changed since they were last applied.
///
/// # Errors
///
/// A source cannot be read.
pub fn sources(context: &Context, pins: &Pins, variant: &Variant) -> Result<Option<String>> {
    let (_, applied) = apply::plan(context, pins, variant)?;
    applied.map(|applied| sources_digest(&context.layout, variant, &applied)).transpose()
}

fn sources_digest(layout: &Layout, variant: &Variant, applied: &Applied) -> Result<String> {
    let mut text = format!("tree {}\n", applied.tree);
    for library in RustLibrary::of(variant) {
        text += &library_digest(layout, library)?;
    }
    Ok(disk::sha256(text.as_bytes()))
}

pub(super) fn library_digest(layout: &Layout, library: RustLibrary) -> Result<String> {
    let folder = layout.root().join(library.folder());
    let mut text = String::new();
    for file in disk::files_below(&folder)? {
        let digest = disk::sha256(&disk::read(&folder.join(&file))?);
        text += &format!("{} {digest}\n", file.display());
    }
    let lock = disk::read_if_there(&layout.root().join("Cargo.lock"))?;
    text += &disk::sha256(&lock.unwrap_or_default());
    Ok(text)
}
