//! `ci/flavors.toml`: the accelerator builds, the single source of what is built for which machine.

pub mod architectures;
pub mod base;
pub mod platform;

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use self::architectures::Family;
use self::base::Base;
use self::platform::Platform;
use super::name::Name;
use super::snippet::SourceText;
use crate::error::{Error, Result};

/// The flavor that is built, gated and measured when none is named: the fastest to compile, and equal to the default of
/// upstream's own build.
pub const DEFAULT_FLAVOR: &str = "cpu-native";

/// `ci/flavors.toml`, checked. The default is for a project that builds nothing.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flavors {
    /// Programs that every flavor ships, by CMake target name.
    pub programs: Vec<String>,
    /// CMake cache entries that every flavor has.
    pub cmake: BTreeMap<String, String>,
    /// CI machines, by the platform that they build for.
    #[serde(default)]
    pub platforms: BTreeMap<Platform, Runner>,
    /// Base images, by the name that flavors use.
    #[serde(default)]
    pub bases: BTreeMap<Name, Base>,
    /// GPU architectures that toolchains support, by the name that flavors use.
    #[serde(default)]
    pub families: BTreeMap<Name, Family>,
    /// Flavors by name.
    pub flavors: BTreeMap<Name, Flavor>,
}

/// A CI machine.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Runner {
    /// Its name in a workflow.
    pub runner: String,
    /// The container image that a job runs in, with its digest; jobs without one run on the machine itself.
    #[serde(default)]
    pub container: Option<Spanned<String>>,
}

/// A flavor that was looked up, with the name that its folders have.
#[derive(Clone, Copy, Debug)]
pub struct NamedFlavor<'a> {
    /// Its name.
    pub name: &'a Name,
    /// Its entry in `ci/flavors.toml`.
    pub entry: &'a Flavor,
}

/// One accelerator build.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flavor {
    /// One-line description.
    pub about: String,
    /// Platforms that its programs run on; when empty, any platform that compiles them.
    #[serde(default)]
    pub platforms: Vec<Platform>,
    /// The flavor whose programs it reuses; only its modules are compiled.
    #[serde(default)]
    pub host: Option<Spanned<Name>>,
    /// Backends that are loaded when a program starts, by CMake target name. `*` stands for any ending.
    #[serde(default)]
    pub modules: Vec<String>,
    /// The entry of [`Flavors::bases`] that its image is based on; a flavor without one has no image.
    #[serde(default)]
    pub base: Option<Spanned<Name>>,
    /// The toolchain that it needs when the machine's own compiler is not enough.
    #[serde(default)]
    pub toolchain: Option<Name>,
    /// The entry of [`Flavors::families`] that its accelerators belong to.
    #[serde(default)]
    pub family: Option<Spanned<Name>>,
    /// The GPU architectures that it is compiled for.
    #[serde(default)]
    pub architectures: Option<Spanned<Vec<String>>>,
    /// CMake cache entries of its own.
    #[serde(default)]
    pub cmake: BTreeMap<String, String>,
}

impl Runner {
    /// The container image that a job runs in; empty for the machine itself.
    #[must_use]
    pub fn container(&self) -> &str {
        self.container.as_ref().map_or("", |container| container.get_ref())
    }
}

impl Flavors {
    /// Reads the text of `ci/flavors.toml`.
    ///
    /// # Errors
    ///
    /// With the line underlined: invalid TOML, an unknown key, a host, base or family that does not exist, a host that
    /// itself has a host, an architecture that its toolchain does not support, or an image without its digest.
    pub fn parse(source: SourceText<'_>) -> Result<Flavors> {
        let flavors: Flavors = source.parse_toml()?;
        flavors.flavors.values().try_for_each(|flavor| flavors.check(source, flavor))?;
        let containers = flavors.platforms.values().filter_map(|runner| runner.container.as_ref());
        // A tag alone may refer to another image later.
        if let Some(container) = { containers }.find(|container| !container.get_ref().contains("@sha256:")) {
            return Err(
                source.error_at(container.span(), "expected an image with its digest: NAME@sha256:...")
            );
        }
        Ok(flavors)
    }

    fn check(&self, source: SourceText<'_>, flavor: &Flavor) -> Result<()> {
        if let Some(host) = &flavor.host {
            match self.flavors.get(host.get_ref()) {
                None => return Err(source.error_at(host.span(), "there is no such flavor")),
                Some(other) if other.host.is_some() => {
                    return Err(source.error_at(host.span(), "this flavor has no programs of its own"));
                }
                Some(_) => {}
            }
        }
        if let Some(base) = flavor.base.as_ref().filter(|base| !self.bases.contains_key(base.get_ref())) {
            return Err(source.error_at(base.span(), "there is no such `[bases.*]`"));
        }
        match (&flavor.family, &flavor.architectures) {
            (None, None) => Ok(()),
            (Some(family), None) => Err(source.error_at(family.span(), "`architectures` is missing")),
            (None, Some(names)) => Err(source.error_at(names.span(), "`family` is missing")),
            (Some(family), Some(names)) => match self.families.get(family.get_ref()) {
                Some(known) => known.written(source, names),
                None => Err(source.error_at(family.span(), "there is no such `[families.*]`")),
            },
        }
    }

    /// The flavor called `name`.
    pub fn get(&self, name: &str) -> Result<NamedFlavor<'_>> {
        self.named(name).ok_or_else(|| {
            let known: Vec<&str> = self.flavors.keys().map(Name::as_str).collect();
            Error::usage(format!("there is no flavor `{name}` in `ci/flavors.toml`"))
                .hint(format!("use one of: {}", known.join(", ")))
        })
    }

    fn named(&self, name: &str) -> Option<NamedFlavor<'_>> {
        self.flavors.get_key_value(name).map(|(name, entry)| NamedFlavor { name, entry })
    }

    /// The flavor whose programs `flavor` reuses, if it compiles none.
    pub fn host(&self, flavor: &Flavor) -> Option<NamedFlavor<'_>> {
        self.named(flavor.host.as_ref()?.get_ref())
    }

    /// Whether the base image of `flavor` for `platform` can be built.
    #[must_use]
    pub fn has_base(&self, flavor: &Flavor, platform: Platform) -> bool {
        let base = flavor.base.as_ref().and_then(|base| self.bases.get(base.get_ref()));
        base.is_some_and(|base| base.packages.contains_key(&platform))
    }

    /// Returns the base image of a flavor.
    ///
    /// # Errors
    ///
    /// A usage error: it has no image.
    pub fn base(&self, flavor: NamedFlavor<'_>) -> Result<(&Name, &Base)> {
        let NamedFlavor { name, entry } = flavor;
        let base = entry.base.as_ref().and_then(|base| self.bases.get_key_value(base.get_ref()));
        base.ok_or_else(|| {
            Error::usage(format!(
                "the flavor `{name}` has no `base` in `ci/flavors.toml`, so it has no image"
            ))
            .hint("images are for Linux: `cargo xtask image --flavor cpu` makes one")
        })
    }

    /// All CMake cache entries of a variant in `flavor`: the common ones, then those of the flavor's host, of the
    /// flavor and of the variant (`variant`, see `Pins::cache_entries`); later ones replace earlier ones.
    /// `architectures`, if not empty, replace those of the file.
    pub fn cache_entries(
        &self,
        flavor: &Flavor,
        architectures: &[String],
        variant: &BTreeMap<String, String>,
    ) -> Result<BTreeMap<String, String>> {
        let host = self.host(flavor).map(|host| &host.entry.cmake);
        let all =
            [Some(&self.cmake), host, Some(&flavor.cmake), Some(variant)].into_iter().flatten().flatten();
        let mut entries: BTreeMap<String, String> =
            all.map(|(key, value)| (key.clone(), value.clone())).collect();
        let family = flavor.family.as_ref().and_then(|family| self.families.get(family.get_ref()));
        match (family, &flavor.architectures) {
            (Some(family), Some(own)) => {
                let names = if architectures.is_empty() { own.get_ref() } else { architectures };
                entries.insert(family.option.clone(), family.typed(names)?);
            }
            _ if architectures.is_empty() => {}
            _ => {
                return Err(Error::usage(
                    "this flavor is not compiled for an architecture: leave `--architectures` out",
                ));
            }
        }
        Ok(entries)
    }
}

impl Flavor {
    /// The platform that its programs run on when this machine compiles them: this machine's, unless the flavor targets
    /// another.
    #[must_use]
    pub fn platform_here(&self) -> String {
        let here = Platform::of_this_machine();
        let other = self.platforms.first().filter(|_| !here.is_some_and(|here| self.is_for(here)));
        match other.copied().or(here) {
            Some(platform) => platform.to_string(),
            None => format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH),
        }
    }

    /// Whether its programs are compiled for the exact CPU of the build machine, so that they may not start on another.
    #[must_use]
    pub fn is_for_one_machine(&self) -> bool {
        self.cmake.get("GGML_NATIVE").is_some_and(|is| is == "ON")
    }

    /// Whether its programs are compiled for `platform`.
    #[must_use]
    pub fn is_for(&self, platform: Platform) -> bool {
        self.platforms.is_empty() || self.platforms.contains(&platform)
    }
}
