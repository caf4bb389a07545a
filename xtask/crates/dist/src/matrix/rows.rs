//! The build matrix of CI: a row for each variant, flavor and platform, with everything that determines its output
//! bytes.

use espalier_core::config::flavors::platform::Platform;
use espalier_core::config::flavors::{Flavor, Flavors, Runner};
use espalier_core::config::lock::Lock;
use espalier_core::config::name::Name;
use espalier_core::config::pins::{Pins, Variant};
use espalier_core::config::toolchains::{Toolchain, Toolchains};
use espalier_core::error::{Error, Result};

/// Maximum number of rows in a GitHub Actions matrix.
pub const ROWS_LIMIT: usize = 256;

/// Inputs of the matrix.
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
    /// Digest of the kernels' sources and dependencies.
    pub kernels: String,
    /// The same of the transport in Rust.
    pub front: String,
}

/// One build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Variant name.
    pub variant: Name,
    /// Flavor name.
    pub flavor: Name,
    /// Target platform of its programs.
    pub platform: Platform,
    /// The CI machine that builds it.
    pub runner: Runner,
    /// The tag of its image.
    pub image: String,
    /// Contents of the toolchains that it is built with, as text; empty for the machine's own compilers.
    pub toolchains: String,
    /// Everything that determines the output, as text.
    pub ingredients: String,
    /// Whether the CI machine has the device that its programs run on.
    pub has_device: bool,
    /// Whether it makes a container image: it has a base, and its programs also run on CPUs other than the build
    /// machine's.
    pub has_image: bool,
    /// Reason why no CI machine can build it, if any.
    pub left_out: Option<String>,
}

impl Inputs {
    /// Every row, in the order of variants, flavors and platforms.
    ///
    /// # Errors
    ///
    /// A usage error: a variant is not in the lock, a platform has no runner, or a toolchain does not exist.
    pub fn rows(&self) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        for variant in self.pins.variants.values() {
            variant.flavors.iter().flatten().try_for_each(|name| self.flavors.get(name).map(drop))?;
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
        let front = if variant.front { format!("front {}\n", self.front) } else { String::new() };
        let entries = self.flavors.cache_entries(flavor, &[], &self.pins.cache_entries(variant))?;
        let tools = ["cmake", "ninja"].map(|name| self.pins.tools.get(name).map(|tool| &tool.version));
        let hosts_modules = self.flavors.host(flavor).map(|host| &host.entry.modules);
        let ingredients = format!(
            "tree {}\npin {}\nplatform {platform}\nrunner {} {:?}\ntools {tools:?}\nprograms {:?}\nmodules {:?} {hosts_modules:?}\nentries {entries:?}\n\
             toolchains {toolchains}\nkernels {kernels}\n{front}",
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

    /// The machine for `platform`, or for the host of the toolchain that cross-compiles for it.
    fn runner(&self, platform: Platform, toolchains: &[Named<'_>]) -> Result<&Runner> {
        let crossing = toolchains.iter().find(|(_, toolchain)| !toolchain.hosts.contains(&platform));
        let builder = crossing.and_then(|(_, toolchain)| toolchain.hosts.first()).unwrap_or(&platform);
        self.flavors.platforms.get(builder).ok_or_else(|| {
            Error::usage(format!("`[platforms]` of `ci/flavors.toml` has no runner for {builder}"))
        })
    }

    fn toolchains_of<'a>(&'a self, flavor: &'a Flavor) -> Result<Vec<Named<'a>>> {
        let host = self.flavors.host(flavor).and_then(|host| host.entry.toolchain.as_ref());
        let names = host.into_iter().chain(&flavor.toolchain);
        names.map(|name| Ok((name, self.toolchains.get(name)?))).collect()
    }
}

type Named<'a> = (&'a Name, &'a Toolchain);

/// Whether the programs can run where they are built: output of the machine's own compilers runs on its CPU, and a
/// toolchain names the device or emulator that its programs run on.
fn has_device(flavor: &Flavor, toolchains: &[Named<'_>]) -> bool {
    flavor.family.is_none() && toolchains.iter().all(|(_, toolchain)| toolchain.runs_on.is_some())
}

/// Reason why CI cannot build the flavor: CI machines are bare and only have what this tool can set up.
fn why_left_out(flavor: &Flavor, toolchains: &[Named<'_>]) -> Option<String> {
    let own = toolchains.iter().find(|(_, toolchain)| toolchain.packages().next().is_none());
    match (own, &flavor.family, &flavor.toolchain) {
        (Some((name, toolchain)), ..) => Some(format!("no packages for {name}: {}", toolchain.about)),
        (None, Some(family), None) => Some(format!("no toolchain for {}", family.get_ref())),
        _ => None,
    }
}

/// Splits `rows` into the matrices of `jobs` jobs, or of as many jobs as needed when no number is given.
///
/// # Errors
///
/// A usage error: there are too few jobs, so some rows would never be built.
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
