//! The program with which a container checks the health of its server.

use std::path::PathBuf;

use espalier_core::config::flavors::{Flavors, NamedFlavor};
use espalier_core::context::Context;
use espalier_core::error::Result;
use espalier_core::sys::machine::process::{self, Run};

use super::equipment::{Equipment, equipment};
use super::watched::Watched;
use crate::sys::rust_flags::portable_rust_flags;

/// Build location and toolchain of the program.
#[derive(Clone, Debug)]
pub struct Health<'a> {
    context: &'a Context,
    equipment: Equipment,
}

impl<'a> Health<'a> {
    /// Creates a build for the machines that `flavor` targets.
    ///
    /// # Errors
    ///
    /// A toolchain of the flavor is not set up.
    pub fn new(context: &'a Context, flavors: &Flavors, flavor: NamedFlavor<'_>) -> Result<Health<'a>> {
        Ok(Health { context, equipment: equipment(context, flavors, flavor)? })
    }

    fn target(&self) -> PathBuf {
        self.context.layout.cargo_target("health")
    }

    fn run(&self) -> Run {
        let run = process::cargo(&self.target())
            .args(["build", "--release", "--package", "espalier-health", "--manifest-path"])
            .arg(self.context.layout.root().join("Cargo.toml"))
            // Stripped: smaller, and identical on every machine.
            .env("CARGO_PROFILE_RELEASE_STRIP", "true")
            .env("CARGO_ENCODED_RUSTFLAGS", portable_rust_flags());
        self.equipment.cargo.iter().fold(run, |run, (key, value)| run.env(key, value))
    }

    /// Returns the command line that builds it.
    #[must_use]
    pub fn command(&self) -> String {
        self.run().words()
    }

    /// Returns the path of the program in cargo's target folder: for another platform, below the name of that
    /// platform.
    #[must_use]
    pub fn program(&self) -> PathBuf {
        let platform = self.equipment.cargo.get("CARGO_BUILD_TARGET").cloned().unwrap_or_default();
        self.target().join(platform).join("release/espalier-health")
    }

    /// Builds it.
    ///
    /// # Errors
    ///
    /// The project lacks its sources, or the compiler's first error.
    pub fn build(&self) -> Result<()> {
        self.context.file_of_espalier("health/Cargo.toml")?;
        let watched = Watched { context: self.context, name: "health".to_string(), folder: self.target() };
        watched.run(self.run(), |_| {})
    }
}
