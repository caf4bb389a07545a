//! Base images of flavors.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::platform::Platform;
use crate::config::name::Name;
use crate::config::words::Inside;
use crate::error::{Error, Result};

/// A file system without our programs: the libraries that they link, and the user that they run as.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Base {
    /// One-line description.
    pub about: String,
    /// The toolchain of `ci/toolchains.toml` whose folder is the base, by platform; empty while the base is only
    /// declared.
    #[serde(default)]
    pub packages: BTreeMap<Platform, Name>,
    /// Files added on top of it: the libraries that an accelerator's module links.
    pub runtime: Option<Runtime>,
    /// Environment of its programs.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// The licences of its contents, an SPDX expression.
    #[serde(default)]
    pub licences: String,
    /// Missing prerequisites, for a base that is only declared.
    #[serde(default)]
    pub lacks: Option<String>,
}

/// Files copied from a toolchain, so that a module finds the libraries that it was linked with in its image.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Runtime {
    /// The toolchain of `ci/toolchains.toml`.
    pub toolchain: Name,
    /// Files and folders: the place in the image, and in the toolchain.
    pub files: BTreeMap<Inside, Inside>,
}

impl Base {
    /// Returns the toolchain that provides the base called `name` for `platform`, the platform named by a package.
    ///
    /// # Errors
    ///
    /// A usage error that states what is missing.
    pub fn packages_for(&self, name: &Name, platform: &str) -> Result<&Name> {
        let found = self.packages.iter().find(|(one, _)| one.as_str() == platform);
        let missing = || {
            let what = format!("the image base `{name}` for {platform} is only declared: it has no packages");
            let error = Error::usage(what).detail(format!("it is to be {}", self.about));
            let error =
                self.lacks.iter().fold(error, |error, lacks| error.detail(format!("missing: {lacks}")));
            error.hint(format!(
                "give `[bases.{name}]` of `ci/flavors.toml` its `packages`, or take the flavor cpu"
            ))
        };
        found.map(|(_, toolchain)| toolchain).ok_or_else(missing)
    }
}
