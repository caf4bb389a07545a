//! What CI builds: a row for each variant, flavor and platform, and what decides the bytes that come out of it.

use super::flavors::platform::Platform;
use super::flavors::{Flavor, Flavors, Runner};
use super::lock::Lock;
use super::name::Name;
use super::pins::{Pins, Variant};
use super::toolchains::{Toolchain, Toolchains};
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
    pub runner: Runner,
    /// The tag of its image.
    pub image: String,
    /// What is in the toolchains that it is built with, as text; nothing for the machine's own compilers.
    pub toolchains: String,
    /// Everything that decides what comes out, as text.
    pub ingredients: String,
    /// Whether its programs find there what they run on.
    pub has_device: bool,
    /// Whether it makes a container image: one that runs elsewhere than where it was built.
    pub has_image: bool,
    /// Why no machine of the CI can build it.
    pub left_out: Option<String>,
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
            variant
                .flavors
                .iter()
                .flatten()
                .try_for_each(|name| self.flavors.get(name.as_str()).map(drop))?;
            for (name, flavor) in self.flavors.flavors.iter().filter(|(name, _)| variant.is_for(name)) {
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
        let named = self.toolchains_of(flavor)?;
        let runner = self.runner(platform, &named)?;
        let toolchains: String =
            named.iter().map(|(name, toolchain)| format!("{name} {}\n", toolchain.recipe())).collect();
        let kernels = if variant.kernels { self.kernels.as_str() } else { "" };
        let entries = self.flavors.cache_entries(flavor, &[], &self.pins.cache_entries(variant))?;
        let tools = ["cmake", "ninja"].map(|name| self.pins.tools.get(name).map(|tool| &tool.version));
        let hosts_modules = self.flavors.host(flavor).map(|(_, host)| &host.modules);
        let ingredients = format!(
            "tree {}\npin {}\nplatform {platform}\nrunner {} {:?}\ntools {tools:?}\nprograms {:?}\nmodules {:?} {hosts_modules:?}\nentries {entries:?}\n\
             toolchains {toolchains}\nkernels {kernels}\n",
            locked.tree,
            locked.pin,
            runner.runner,
            runner.container(),
            self.flavors.programs,
            flavor.modules,
        );
        Ok(Row {
            image: format!("{}-{name}-{}", variant.name, locked.pin),
            variant: variant.name.clone(),
            flavor: name.clone(),
            platform,
            has_image: self.flavors.has_base(flavor, platform)
                && entries.get("GGML_NATIVE").is_none_or(|is| is != "ON"),
            has_device: has_device(flavor, &named),
            left_out: why_left_out(flavor, &named),
            runner: runner.clone(),
            toolchains,
            ingredients,
        })
    }

    /// The machine for `platform`, or for what the toolchain that compiles for it runs on.
    fn runner(&self, platform: Platform, toolchains: &[Named<'_>]) -> Result<&Runner> {
        let crossing = toolchains.iter().find(|(_, toolchain)| !toolchain.hosts.contains(&platform));
        let builder = crossing.and_then(|(_, toolchain)| toolchain.hosts.first()).unwrap_or(&platform);
        self.flavors.platforms.get(builder).ok_or_else(|| {
            Error::usage(format!("`[platforms]` of `ci/flavors.toml` has no runner for {builder}"))
        })
    }

    fn toolchains_of<'a>(&'a self, flavor: &'a Flavor) -> Result<Vec<Named<'a>>> {
        let host = self.flavors.host(flavor).and_then(|(_, host)| host.toolchain.as_ref());
        let names = host.into_iter().chain(&flavor.toolchain);
        names.map(|name| Ok((name, self.toolchains.get(name)?))).collect()
    }
}

type Named<'a> = (&'a Name, &'a Toolchain);

/// A processor runs what the machine's own compilers make, and a toolchain names what its programs run on.
fn has_device(flavor: &Flavor, toolchains: &[Named<'_>]) -> bool {
    flavor.family.is_none() && toolchains.iter().all(|(_, toolchain)| toolchain.runs_on.is_some())
}

/// A machine of the CI is bare: what the tool cannot set up is not there.
fn why_left_out(flavor: &Flavor, toolchains: &[Named<'_>]) -> Option<String> {
    let own = toolchains.iter().find(|(_, toolchain)| toolchain.packages().next().is_none());
    match (own, &flavor.family, &flavor.toolchain) {
        (Some((name, toolchain)), ..) => Some(format!("no packages for {name}: {}", toolchain.about)),
        (None, Some(family), None) => Some(format!("no toolchain for {}", family.get_ref())),
        _ => None,
    }
}

/// `rows` for `jobs` jobs that take them as their matrix; as many as it takes, when no number is given.
///
/// # Errors
///
/// A usage error: there are too few jobs, so that a part of the rows would never be built.
pub fn parts<T>(rows: &[T], jobs: Option<usize>) -> Result<Vec<&[T]>> {
    let mut parts: Vec<&[T]> = rows.chunks(ROWS_LIMIT).collect();
    let jobs = jobs.unwrap_or(parts.len());
    if parts.len() > jobs {
        let what = format!("{} rows make {} parts, and there are jobs for {jobs}", rows.len(), parts.len());
        return Err(Error::usage(what).hint("add a job for each part to the workflow, and raise `--parts`"));
    }
    parts.resize(jobs, &[]);
    Ok(parts)
}
