//! The packages that a gate, a fuzzer or a bench runs: of the current sources, and for a gate the same ones from its
//! beginning to its end.

use espalier_core::config::flavors::DEFAULT_FLAVOR;
use espalier_core::config::name::Name;
use espalier_core::config::pins::{Pins, Variant};
use espalier_core::context::Context;
use espalier_core::error::{Error, Result};

use crate::build;
use crate::plan::manifest::{Stamp, build_command};
use crate::sys::package;

/// The packages that a check runs, as they were when it began.
pub struct CheckedPackages<'a> {
    context: &'a Context,
    /// Variants, each with the record of its build; `None` for a package that no build recorded.
    stamps: Vec<(Name, Option<Stamp>)>,
}

impl<'a> CheckedPackages<'a> {
    /// Reads the records of the packages of `variants` in the default flavor.
    ///
    /// # Errors
    ///
    /// A package was built from other sources than the current ones: a check of it would pass or fail, and a measurement
    /// be recorded, for code that is not there any more. Packages of older versions of this tool do not record their sources.
    pub fn begin(context: &'a Context, pins: &Pins, variants: &[&Variant]) -> Result<CheckedPackages<'a>> {
        let stamps =
            variants.iter().map(|variant| Ok((variant.name.clone(), stamp(context, &variant.name)?)));
        let packages = CheckedPackages { context, stamps: stamps.collect::<Result<_>>()? };
        for (variant, (_, stamp)) in variants.iter().zip(&packages.stamps) {
            let Some(stamp) = stamp.as_ref().filter(|stamp| !stamp.sources.is_empty()) else { continue };
            if build::inputs::sources(context, pins, variant)?.as_ref() != Some(&stamp.sources) {
                return Err(outdated(&variant.name));
            }
        }
        Ok(packages)
    }

    /// Returns `result`, the result of the check.
    ///
    /// # Errors
    ///
    /// One of the packages was built again during the check, so that some servers were of the old build and some of the
    /// new one.
    pub fn end<T>(&self, result: Result<T>) -> Result<T> {
        for (variant, before) in &self.stamps {
            if stamp(self.context, variant)? != *before {
                let what = format!("{variant}-{DEFAULT_FLAVOR} was built again while it was checked");
                return Err(Error::environment(what).hint("run the same command again"));
            }
        }
        result
    }
}

fn stamp(context: &Context, variant: &Name) -> Result<Option<Stamp>> {
    package::read_stamp(&build::stamp_file(&context.layout, variant, DEFAULT_FLAVOR))
}

fn outdated(variant: &str) -> Error {
    let what =
        format!("{variant}-{DEFAULT_FLAVOR} was built before patches, overlays or Rust sources changed");
    Error::usage(what).hint(build_command(variant, DEFAULT_FLAVOR))
}
