//! What the image of a flavor lies on.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::platform::Platform;
use crate::error::{Error, Result};
use crate::plan::name::Name;
use crate::plan::words::Inside;

/// A file system without programs of ours: what they link, and who they run as.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Base {
    /// One line for people.
    pub about: String,
    /// The toolchain of `ci/toolchains.toml` whose folder it is, by platform; none while it is only declared.
    #[serde(default)]
    pub packages: BTreeMap<Platform, Name>,
    /// What lies over it: the libraries that an accelerator's module links.
    pub runtime: Option<Runtime>,
    /// Environment of its programs.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// The licences of what is in it, an SPDX expression.
    #[serde(default)]
    pub licences: String,
    /// What is missing to make it, when nothing does.
    #[serde(default)]
    pub lacks: Option<String>,
}

/// Files of a toolchain: a module finds in its image what it was linked with.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Runtime {
    /// The toolchain of `ci/toolchains.toml`.
    pub toolchain: Name,
    /// Files and folders: the place in the image, and in the toolchain.
    pub files: BTreeMap<Inside, Inside>,
}

impl Base {
    /// The toolchain that makes the base called `name` for `platform`, which a package names.
    ///
    /// # Errors
    ///
    /// A usage error that says what is missing.
    pub fn packages_for(&self, name: &Name, platform: &str) -> Result<&Name> {
        let found = self.packages.iter().find(|(one, _)| one.as_str() == platform);
        let missing = || {
            let what =
                format!("the image base `{name}` for {platform} is declared only: nothing makes it yet");
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
