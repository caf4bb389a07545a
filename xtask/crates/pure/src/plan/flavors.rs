//! `ci/flavors.toml`: the accelerator builds.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::name::Name;
use super::snippet::SourceText;
use crate::error::{Error, Result};

/// The flavor that every machine can run: what is built, gated and measured when none is named.
pub const DEFAULT_FLAVOR: &str = "cpu";

/// `ci/flavors.toml`, checked.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flavors {
    /// Programs that every flavor ships, by CMake target name.
    pub programs: Vec<String>,
    /// CMake cache entries that every flavor has.
    pub cmake: BTreeMap<String, String>,
    /// Flavors by name.
    pub flavors: BTreeMap<Name, Flavor>,
}

/// One accelerator build.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flavor {
    /// One line for people.
    pub about: String,
    /// CMake cache entries of its own.
    #[serde(default)]
    pub cmake: BTreeMap<String, String>,
}

impl Flavors {
    /// Reads the text of `ci/flavors.toml`.
    pub fn parse(source: SourceText<'_>) -> Result<Flavors> {
        source.parse_toml()
    }

    /// The flavor called `name`.
    pub fn get(&self, name: &str) -> Result<&Flavor> {
        self.flavors.get(name).ok_or_else(|| {
            let known: Vec<&str> = self.flavors.keys().map(Name::as_str).collect();
            Error::usage(format!("there is no flavor `{name}` in `ci/flavors.toml`"))
                .hint(format!("use one of: {}", known.join(", ")))
        })
    }

    /// All CMake cache entries of `flavor`; its own win over the common ones.
    pub fn cache_entries(&self, flavor: &Flavor) -> BTreeMap<String, String> {
        self.cmake.iter().chain(&flavor.cmake).map(|(key, value)| (key.clone(), value.clone())).collect()
    }
}
