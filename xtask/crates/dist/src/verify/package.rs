//! Verification of a package against its own manifest and the lock of this project.

use espalier_core::config::lock::Lock;
use espalier_core::config::snippet::SourceText;
use espalier_core::context::Context;
use espalier_core::error::{Error, Result};
use espalier_core::sys::machine::disk;
use espalier_patches::stack::Stack;

use crate::plan::shipped::Contents;
use crate::plan::shipped::audit::{self, Audit, RepositoryFacts};
use crate::shipped;

/// Returns this project's data on its variants; empty if it has no lock.
///
/// # Errors
///
/// The lock or a patch cannot be read.
pub fn known(context: &Context) -> Result<RepositoryFacts> {
    let Some(bytes) = disk::read_if_there(&context.layout.lock())? else {
        return Ok(RepositoryFacts::default());
    };
    let text = String::from_utf8(bytes).map_err(|_| Error::usage("`espalier.lock` is not UTF-8 text"))?;
    let lock = Lock::parse(SourceText { name: "espalier.lock", text: &text })?;
    let pins = context.pins()?;
    let mut patches = Vec::new();
    for variant in pins.variants.values() {
        patches.extend(shipped::notes(&Stack::read(&context.layout, &pins, variant)?));
    }
    Ok(RepositoryFacts { lock: Some(lock), patches })
}

/// Verifies a package; `name` is its name in messages.
///
/// # Errors
///
/// Check failed, with every finding.
pub fn demand(
    name: &str,
    contents: &Contents,
    known: &RepositoryFacts,
) -> Result<crate::plan::manifest::Manifest> {
    let Audit { manifest, findings } = audit::audit(contents, known);
    match manifest {
        Some(manifest) if findings.is_empty() => Ok(manifest),
        _ => {
            let count = match findings.len() {
                1 => "1 finding".to_string(),
                count => format!("{count} findings"),
            };
            Err(Error::no(format!("`{name}` failed verification: {count}")).detail(findings.join("\n")))
        }
    }
}
