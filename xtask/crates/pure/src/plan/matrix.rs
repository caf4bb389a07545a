//! What CI builds: a row for each variant, flavor and platform, and what decides the bytes that come out of it.

use super::flavors::platform::Platform;
use super::flavors::{Flavor, Flavors};
use super::lock::Lock;
use super::name::Name;
use super::pins::{Pins, Variant};
use super::toolchains::Toolchains;
use crate::error::{Error, Result};

/// How many rows a matrix of GitHub may have.
pub const ROWS_LIMIT: usize = 256;

/// Everything that a matrix is made from.
#[derive(Clone, Debug)]
pub struct Inputs {
    /// `pins.toml`.
    pub pins: Pins,
    /// `espalier.lock`: it has the tree of each variant, overlay included.
    pub lock: Lock,
    /// `ci/flavors.toml`.
    pub flavors: Flavors,
    /// `ci/toolchains.toml`.
    pub toolchains: Toolchains,
    /// Digest of the kernels' sources and of what they depend on.
    pub kernels: String,
}

/// One build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Variant name.
    pub variant: Name,
    /// Flavor name.
    pub flavor: Name,
    /// What its programs run on.
    pub platform: Platform,
    /// The machine of the CI that builds it.
    pub runner: String,
    /// The tag of its image.
    pub image: String,
    /// What is in the toolchains that it is built with, as text; nothing for the machine's own compilers.
    pub toolchains: String,
    /// Everything that decides what comes out, as text.
    pub ingredients: String,
}

impl Inputs {
    /// Every row, in the order of variants, flavors and platforms.
    ///
    /// # Errors
    ///
    /// A usage error: a variant is not in the lock, a platform has no runner, a toolchain is not there.
    pub fn rows(&self) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        for variant in self.pins.variants.values() {
            for (name, flavor) in &self.flavors.flavors {
                for platform in &flavor.platforms {
                    rows.push(self.row(variant, name, flavor, *platform)?);
                }
            }
        }
        Ok(rows)
    }

    fn row(&self, variant: &Variant, name: &Name, flavor: &Flavor, platform: Platform) -> Result<Row> {
        let locked = self.lock.variants.get(variant.name.as_str()).ok_or_else(|| {
            Error::usage(format!("variant {} is not in `espalier.lock`", variant.name))
                .hint("cargo xtask lock")
        })?;
        let runner = self.flavors.platforms.get(&platform).ok_or_else(|| {
            Error::usage(format!("`[platforms]` of `ci/flavors.toml` has no runner for {platform}"))
        })?;
        let toolchains = self.toolchains_of(flavor)?;
        let kernels = if variant.kernels { self.kernels.as_str() } else { "" };
        let entries = self.flavors.cache_entries(flavor, &[])?;
        let hosts_modules = self.flavors.host(flavor).map(|(_, host)| &host.modules);
        let ingredients = format!(
            "tree {}\npin {}\nplatform {platform}\nprograms {:?}\nmodules {:?} {hosts_modules:?}\nentries {entries:?}\n\
             toolchains {toolchains}\nkernels {kernels}\n",
            locked.tree, locked.pin, self.flavors.programs, flavor.modules,
        );
        Ok(Row {
            image: format!("{}-{name}-{}", variant.name, locked.pin),
            variant: variant.name.clone(),
            flavor: name.clone(),
            platform,
            runner: runner.runner.clone(),
            toolchains,
            ingredients,
        })
    }

    fn toolchains_of(&self, flavor: &Flavor) -> Result<String> {
        let host = self.flavors.host(flavor).and_then(|(_, host)| host.toolchain.as_ref());
        let names = host.into_iter().chain(&flavor.toolchain);
        names.map(|name| Ok(format!("{name} {}\n", self.toolchains.get(name)?.recipe()))).collect()
    }
}
