//! `ci/toolchains.toml`: compilers, and devices or emulators that programs run on, assembled from pinned packages.

pub mod diagnosis;
pub mod member;
mod steps;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::json;

pub use self::steps::Step;
use super::flavors::platform::Platform;
use super::name::Name;
use super::pins::Version;
use super::snippet::SourceText;
use super::words::{Inside, Sha256, Word};
use crate::error::{Error, Result};

/// `ci/toolchains.toml`, checked.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Toolchains {
    /// Toolchains by name.
    pub toolchains: BTreeMap<Name, Toolchain>,
}

/// A compiler for a flavor, or a device that a flavor runs on.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Toolchain {
    /// One-line description.
    pub about: String,
    /// Machines that the packages are for; when empty there are no packages.
    #[serde(default)]
    pub hosts: Vec<Platform>,
    /// Wheels of PyPI.
    #[serde(default)]
    pub wheels: Vec<Package>,
    /// Packages of Debian.
    #[serde(default)]
    pub debs: Vec<Package>,
    /// The part of Debian's archive that has them, when it is not the machine's own release; by default the machine's
    /// sources.
    pub debs_from: Option<Archive>,
    /// Crates, for the sources that they vendor.
    #[serde(default)]
    pub crates: Vec<Package>,
    /// Text files to write once the packages are unpacked; scripts are made executable.
    #[serde(default)]
    pub files: BTreeMap<Inside, String>,
    /// CMake projects to compile from the packages, in this order.
    #[serde(default)]
    pub builds: Vec<Build>,
    /// Files and folders to move: the new place, and the old one.
    #[serde(default)]
    pub moves: BTreeMap<Inside, Inside>,
    /// Files and folders to remove once everything is compiled.
    #[serde(default)]
    pub remove: Vec<Inside>,
    /// Symbolic links to create: the link, and its target relative to it.
    #[serde(default)]
    pub links: BTreeMap<Inside, Inside>,
    /// Programs that must exist in the end.
    #[serde(default)]
    pub programs: Vec<Inside>,
    /// CMake cache entries of a build with it; `{toolchain}` stands for its folder.
    #[serde(default)]
    pub cmake: BTreeMap<String, String>,
    /// Environment of the cargo that builds the kernels; `{toolchain}` stands for its folder.
    #[serde(default)]
    pub cargo: BTreeMap<String, String>,
    /// Environment of programs that run on it; `{toolchain}` stands for its folder.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Command prefix of a program that runs on it; `{toolchain}` stands for its folder.
    #[serde(default)]
    pub runner: Vec<String>,
    /// A compiler of the machine that can replace it.
    pub own: Option<Own>,
    /// Commands that install a replacement, by package manager: `apt-get`, `brew`, `winget`.
    #[serde(default)]
    pub install: BTreeMap<String, String>,
    /// The toolchain that has a device or an emulator for what this one compiles.
    pub runs_on: Option<Name>,
}

/// One pinned package.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Package {
    /// Its name in its registry.
    pub name: Word,
    /// Its exact version.
    pub version: Word,
    /// Its architecture, as Debian names it; only Debian packages have one.
    pub arch: Option<Word>,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// Digest of the file.
    pub sha256: Sha256,
}

impl std::fmt::Display for Package {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{} {}", self.name, self.version)
    }
}

/// A part of Debian's archive.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Archive {
    /// The release, such as `trixie`.
    pub suite: Word,
    /// The component: `main`, `contrib` or `non-free`.
    pub component: Word,
}

impl std::fmt::Display for Archive {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{} of {}", self.component, self.suite)
    }
}

/// One CMake project among the packages, and the files to keep from its build.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Build {
    /// The folder of its `CMakeLists.txt`.
    pub source: Inside,
    /// The Ninja target.
    pub target: Word,
    /// CMake cache entries.
    #[serde(default)]
    pub cmake: BTreeMap<String, String>,
    /// Files to keep: their place in the toolchain, and in the build folder.
    pub take: BTreeMap<Inside, Inside>,
}

/// A compiler installed on the machine.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Own {
    /// The program, on PATH.
    pub program: Word,
    /// The oldest acceptable version, as its `--version` reports it; `None` for any.
    pub at_least: Option<String>,
    /// The first version that is too new.
    pub below: Option<String>,
}

impl Own {
    /// Whether a program whose version output is `text` is acceptable.
    pub fn does(&self, text: &str) -> bool {
        let bound = |bound: &Option<String>| bound.as_deref().and_then(Version::find_in);
        let Some(found) = Version::find_in(text) else { return self.at_least.is_none() };
        bound(&self.at_least).is_none_or(|least| found >= least)
            && bound(&self.below).is_none_or(|end| found < end)
    }
}

impl Toolchains {
    /// Reads the text of `ci/toolchains.toml`.
    ///
    /// # Errors
    ///
    /// A usage error that shows the line.
    pub fn parse(source: SourceText<'_>) -> Result<Toolchains> {
        let read: Toolchains = source.parse_toml()?;
        for (name, toolchain) in &read.toolchains {
            if let Some(why) = read.problem_with(toolchain) {
                return Err(Error::usage(format!("invalid `{}`", source.name))
                    .detail(format!("[toolchains.{name}]: {why}")));
            }
        }
        Ok(read)
    }

    fn problem_with(&self, toolchain: &Toolchain) -> Option<String> {
        if let Some(other) = toolchain.runs_on.as_ref().filter(|other| !self.toolchains.contains_key(*other))
        {
            return Some(format!("`runs-on` names `{other}`, and no toolchain has this name"));
        }
        if toolchain.packages().next().is_some() == toolchain.hosts.is_empty() {
            return Some(
                "packages need `hosts`, the machines they are for, and nothing else does".to_string(),
            );
        }
        if toolchain.hosts.is_empty() && toolchain.own.is_none() {
            return Some("expected packages, or `own`, a program of the machine's own".to_string());
        }
        if toolchain.debs_from.is_some() && toolchain.debs.is_empty() {
            return Some("`debs-from` says where `debs` are, and there are none".to_string());
        }
        let is_pasteable = |(manager, line): &(&String, &String)| {
            let command = line.split('#').next().unwrap_or_default();
            command.strip_prefix(manager.as_str()).is_some_and(|rest| rest.starts_with(' '))
                && !command.contains(',')
        };
        if let Some((manager, line)) = toolchain.install.iter().find(|entry| !is_pasteable(entry)) {
            return Some(format!(
                "`{line}` cannot be pasted into a shell: expected `{manager} ...`, and words for people behind a `#`"
            ));
        }
        let stray = toolchain.wheels.iter().chain(&toolchain.crates).find(|package| package.arch.is_some());
        stray.map(|package| format!("`{}` has an `arch`, and only `debs` do", package.name))
    }

    /// The toolchain called `name`.
    ///
    /// # Errors
    ///
    /// A usage error that lists the known names.
    pub fn get(&self, name: &Name) -> Result<&Toolchain> {
        self.toolchains.get(name).ok_or_else(|| {
            let known: Vec<&str> = self.toolchains.keys().map(Name::as_str).collect();
            Error::usage(format!("there is no toolchain `{name}` in `ci/toolchains.toml`"))
                .hint(format!("use one of: {}", known.join(", ")))
        })
    }
}

/// Placeholder for the toolchain's folder in the values of its tables.
const FOLDER: &str = "{toolchain}";

impl Toolchain {
    /// Whether its packages are for a machine; false for an unknown platform.
    pub fn is_for(&self, host: Option<Platform>) -> bool {
        host.is_some_and(|host| self.hosts.contains(&host))
    }

    /// All its packages.
    pub fn packages(&self) -> impl Iterator<Item = &Package> {
        self.wheels.iter().chain(&self.debs).chain(&self.crates)
    }

    /// Size of the download, in bytes.
    pub fn download_bytes(&self) -> u64 {
        self.packages().map(|package| package.bytes).sum()
    }

    /// Everything that determines the contents of its folder, as text; the digest of it is part of the folder's name.
    pub fn contents(&self) -> String {
        let package =
            |package: &Package| json!([package.name, package.version, package.arch, package.sha256]);
        let packages = |list: &[Package]| list.iter().map(package).collect::<Vec<_>>();
        let build = |build: &Build| json!([build.source, build.target, build.cmake, build.take]);
        let builds: Vec<_> = self.builds.iter().map(build).collect();
        json!({
            "wheels": packages(&self.wheels), "debs": packages(&self.debs), "crates": packages(&self.crates),
            "files": self.files, "builds": builds, "moves": self.moves, "remove": self.remove, "links": self.links,
        })
        .to_string()
    }

    /// [`Toolchain::contents`], and the settings of a build with it.
    pub fn recipe(&self) -> String {
        let own = self.own.as_ref().map(|own| (&own.at_least, &own.below));
        format!("{} {:?} {:?} {own:?}", self.contents(), self.cmake, self.cargo)
    }

    /// Replaces the placeholder in `values` with `folder`.
    pub fn in_folder(values: &BTreeMap<String, String>, folder: &str) -> BTreeMap<String, String> {
        values.iter().map(|(key, value)| (key.clone(), value.replace(FOLDER, folder))).collect()
    }

    /// Command prefix of a program that runs on it, when the toolchain is in `folder`.
    pub fn runner_in(&self, folder: &str) -> Vec<String> {
        self.runner.iter().map(|word| word.replace(FOLDER, folder)).collect()
    }

    /// Commands that install a replacement with the package managers that are `there`, or with any when none is.
    pub fn install_hints(&self, there: impl Fn(&str) -> bool) -> Vec<String> {
        let mut managers: Vec<_> = self.install.iter().filter(|(manager, _)| there(manager)).collect();
        if managers.is_empty() {
            managers = self.install.iter().collect();
        }
        managers.into_iter().map(|(_, line)| line.clone()).collect()
    }
}

#[cfg(test)]
mod tests;
