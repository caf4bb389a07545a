//! The package of a variant on disk, as its manifest describes it.

use espalier_core::context::Context;
use espalier_core::error::{Error, Result};
use espalier_core::sys::machine::disk;

use crate::plan::manifest::{Manifest, build_command};
use crate::plan::reference;
use crate::plan::shipped::MANIFEST;

/// Returns the manifest; `None` if the variant is not built.
///
/// # Errors
///
/// The file cannot be read, or is not a manifest of this version of the tool.
pub fn manifest(context: &Context, variant: &str, flavor: &str) -> Result<Option<Manifest>> {
    let path = context.layout.package(variant, flavor).join(MANIFEST);
    let Some(text) = disk::read_if_there(&path)? else { return Ok(None) };
    serde_json::from_slice(&text).map(Some).map_err(|error| {
        Error::usage(format!("`{}` is not a manifest", context.layout.show(&path)))
            .detail(error.to_string())
            .hint(build_command(variant, flavor))
    })
}

/// Whether the package is a reference, which is neither shipped nor timed; `None` if there is none.
///
/// # Errors
///
/// Those of [`manifest`].
pub fn is_reference(context: &Context, variant: &str, flavor: &str) -> Result<Option<bool>> {
    let manifest = manifest(context, variant, flavor)?;
    Ok(manifest.map(|manifest| reference::is_reference(&manifest.flags)))
}

/// Returns the error of a command that needs the package.
pub fn not_built(variant: &str, flavor: &str) -> Error {
    Error::usage(format!("{variant}-{flavor} is not built")).hint(build_command(variant, flavor))
}
