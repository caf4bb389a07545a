//! The setup of a toolchain, as a list of steps that a run executes and `--dry-run` prints.

use std::collections::BTreeMap;
use std::fmt;

use super::{Archive, Build, Package, Toolchain};
use crate::config::words::Inside;

/// One step.
#[derive(Clone, Copy, Debug)]
pub enum Step<'a> {
    /// Install wheels with pip, which checks their digests.
    Wheels(&'a [Package]),
    /// Download Debian packages, check their digests, unpack them; from the given part of the archive, if any, instead
    /// of the machine's sources.
    Debs(&'a [Package], Option<&'a Archive>),
    /// Download crates with cargo, check their digests, unpack them.
    Crates(&'a [Package]),
    /// Write text files.
    Files(&'a BTreeMap<Inside, String>),
    /// Compile a CMake project.
    Compile(&'a Build),
    /// Move, remove and link.
    Arrange(&'a Toolchain),
    /// Check that the programs exist, then move the folder into place.
    Check(&'a [Inside]),
}

impl Toolchain {
    /// The steps of its setup, in order.
    pub fn steps(&self) -> Vec<Step<'_>> {
        let debs = Step::Debs(&self.debs, self.debs_from.as_ref());
        let packages = [Step::Wheels(&self.wheels), debs, Step::Crates(&self.crates)];
        let is_needed = |step: &Step<'_>| match step {
            Step::Wheels(list) | Step::Debs(list, _) | Step::Crates(list) => !list.is_empty(),
            Step::Files(files) => !files.is_empty(),
            Step::Arrange(_) => !(self.moves.is_empty() && self.remove.is_empty() && self.links.is_empty()),
            Step::Compile(_) | Step::Check(_) => true,
        };
        let builds = self.builds.iter().map(Step::Compile);
        let end = [Step::Arrange(self), Step::Check(&self.programs)];
        packages
            .into_iter()
            .chain([Step::Files(&self.files)])
            .chain(builds)
            .chain(end)
            .filter(is_needed)
            .collect()
    }
}

impl fmt::Display for Step<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Wheels(list) => packages(out, "download and unpack with pip", list),
            Step::Debs(list, from) => {
                let from = from.map_or(String::new(), |archive| format!(" from {archive}"));
                packages(out, &format!("download with apt-get{from}, unpack without installing"), list)
            }
            Step::Crates(list) => packages(out, "download with cargo, unpack", list),
            Step::Files(files) => write!(out, "write {}", joined(files.keys())),
            Step::Compile(build) => write!(out, "compile {} of {}", build.target, build.source),
            Step::Arrange(toolchain) => arrange(out, toolchain),
            Step::Check([]) => write!(out, "move it into place"),
            Step::Check(programs) => write!(out, "check {}, move it into place", joined(programs.iter())),
        }
    }
}

fn packages(out: &mut fmt::Formatter<'_>, verb: &str, list: &[Package]) -> fmt::Result {
    let bytes: u64 = list.iter().map(|package| package.bytes).sum();
    let names: Vec<String> = list.iter().map(Package::to_string).collect();
    write!(out, "{verb} ({:.1} MB): {}", bytes as f64 / 1e6, names.join(", "))
}

fn arrange(out: &mut fmt::Formatter<'_>, toolchain: &Toolchain) -> fmt::Result {
    let parts = [
        ("move to", joined(toolchain.moves.keys())),
        ("remove", joined(toolchain.remove.iter())),
        ("link", joined(toolchain.links.keys())),
    ];
    let steps: Vec<String> = parts
        .iter()
        .filter(|(_, what)| !what.is_empty())
        .map(|(verb, what)| format!("{verb} {what}"))
        .collect();
    write!(out, "{}", steps.join("; "))
}

fn joined<'a>(paths: impl Iterator<Item = &'a Inside>) -> String {
    paths.map(Inside::as_str).collect::<Vec<_>>().join(", ")
}
