//! The program with which a container asks its server how it is.

use std::path::PathBuf;

use super::equipment::{Equipment, equipment};
use super::watched::Watched;
use crate::context::Context;
use crate::error::Result;
use crate::plan::flavors::Flavors;
use crate::sys::machine::process::{self, Run};

/// Where it is built, and with what.
#[derive(Clone, Debug)]
pub struct Health<'a> {
    context: &'a Context,
    equipment: Equipment,
}

impl<'a> Health<'a> {
    /// For the machines that `flavor` is for.
    ///
    /// # Errors
    ///
    /// A toolchain of the flavor is not set up.
    pub fn new(context: &'a Context, flavors: &Flavors, flavor: &str) -> Result<Health<'a>> {
        Ok(Health { context, equipment: equipment(context, flavors, flavors.get(flavor)?, flavor)? })
    }

    fn target(&self) -> PathBuf {
        self.context.layout.cargo_target("health")
    }

    fn run(&self) -> Run {
        let run = process::cargo(&self.target())
            .args(["build", "--release", "--package", "espalier-health", "--manifest-path"])
            .arg(self.context.layout.root().join("Cargo.toml"))
            // Smaller, and nothing of it differs between two machines.
            .env("CARGO_PROFILE_RELEASE_STRIP", "true")
            .env("CARGO_ENCODED_RUSTFLAGS", process::portable_rust_flags());
        self.equipment.cargo.iter().fold(run, |run, (key, value)| run.env(key, value))
    }

    /// The command line that builds it.
    #[must_use]
    pub fn command(&self) -> String {
        self.run().words()
    }

    /// Where cargo leaves it: for another platform, below that platform's name.
    #[must_use]
    pub fn program(&self) -> PathBuf {
        let platform = self.equipment.cargo.get("CARGO_BUILD_TARGET").cloned().unwrap_or_default();
        self.target().join(platform).join("release/espalier-health")
    }

    /// Builds it.
    ///
    /// # Errors
    ///
    /// The first error of the compiler.
    pub fn build(&self) -> Result<()> {
        let watched = Watched { context: self.context, name: "health".to_string(), folder: self.target() };
        watched.run(self.run(), |_| {})
    }
}
