//! Project files that each step of `cargo xtask test` reads, and the files that changed since the step last passed.

use std::collections::BTreeMap;
use std::fmt::Write;

/// Files and folders of the project, separated by `/`; an empty path is the whole project.
pub type Paths = &'static [&'static str];

/// Files by path, with the digest of their contents.
pub type Digests = BTreeMap<String, String>;

/// The whole project. Also the inputs of a step that is missing from `STEPS`, so that it is never skipped by mistake.
const EVERYTHING: Paths = &[""];

const CARGO: Paths = &["Cargo.toml", "Cargo.lock", ".cargo"];

/// The crates of the program that builds and ships.
const BASE: Paths = &[
    "series",
    "kernels/names",
    "xtask/src",
    "xtask/Cargo.toml",
    "xtask/crates/core",
    "xtask/crates/patches",
    "xtask/crates/dist",
];

/// Sources of the commands that check and measure.
const QA: Paths = &["xtask/crates/qa/src", "xtask/crates/qa/Cargo.toml", "xtask/crates/modelgen"];

/// Inputs of packages.
const PACKAGES: Paths = &[
    "pins.toml",
    "espalier.lock",
    "patches",
    "overlay",
    "kernels",
    "front",
    "ci/flavors.toml",
    "ci/toolchains.toml",
];

/// The models of the smoke test and the gate.
const MODELS: Paths = &["ci/models"];

const ALL_CRATES: Paths = &["xtask", "series", "kernels", "front", "health"];

/// Documents that checks of the gate compare servers with.
const DOCUMENTS: Paths = &["SECURITY.md"];

/// Files that the sources of crates include as text.
const INCLUDED: Paths = &["ci/suites", "docs/design/kv-parity.md", "LICENSE-MIT", "LICENSE-APACHE"];

/// Results of benchmarks, and the page that is generated from them.
const RECORDS: Paths = &["docs/measurements", "docs/results.md"];

/// Inputs of each step, in groups. A step that is not listed reads everything. Build steps are never skipped: a build
/// detects by itself that it is up to date, and the steps after it need its packages.
const STEPS: [(&str, &[Paths]); 11] = [
    ("fmt", &[ALL_CRATES, &["Cargo.toml", "rustfmt.toml"]]),
    ("clippy", &[ALL_CRATES, CARGO, INCLUDED, &["clippy.toml"]]),
    ("lint", &[CARGO, BASE, QA, &["pins.toml", "espalier.lock", "patches", "overlay", "ci/lint.toml"]]),
    ("workflows", &[CARGO, BASE, QA, &["pins.toml", ".github"]]),
    ("docs", &[CARGO, BASE, QA, &["docs", "README.md", "ci", "pins.toml"]]),
    ("lock", &[CARGO, BASE, QA, PACKAGES]),
    ("smoke", &[CARGO, BASE, QA, PACKAGES, MODELS]),
    ("page", &[CARGO, BASE, QA, PACKAGES, MODELS, &["ci/browser"]]),
    ("gate", &[CARGO, BASE, QA, PACKAGES, MODELS, DOCUMENTS, &["ci/probe"]]),
    ("quality", &[CARGO, BASE, QA, PACKAGES, MODELS, &["ci/kv-quality.json", "ci/probe"]]),
    ("suites", &[CARGO, BASE, QA, PACKAGES, MODELS, &["ci/suites"]]),
];

/// The steps that build packages; they detect changes themselves.
pub const BUILDS: [&str; 2] = ["paged", "stock"];

/// Tests that can be run alone: a part of the step `unit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitTestPart {
    /// Name under which its result is recorded.
    pub name: &'static str,
    /// Workspace package of the tests.
    pub package: &'static str,
    /// Whether to run only those of its tests that read files of this repository.
    pub reading_the_repository: bool,
    reads: &'static [Paths],
}

const fn part(name: &'static str, package: &'static str, reads: &'static [Paths]) -> UnitTestPart {
    UnitTestPart { name, package, reading_the_repository: false, reads }
}

/// All tests. End-to-end tests that read files of the repository besides the tool's sources are in [`REPOSITORY`].
pub const PARTS: [UnitTestPart; 11] = [
    part("unit-kernels", "espalier-kernels", &[CARGO, &["kernels", "docs/design/kv-parity.md"]]),
    // One of its tests compiles the mailbox of the overlay.
    part("unit-front", "espalier-front", &[CARGO, &["front", "overlay/front"]]),
    part("unit-health", "espalier-health", &[CARGO, &["health"]]),
    part("unit-modelgen", "espalier-modelgen", &[CARGO, &["xtask/crates/modelgen"]]),
    part("unit-series", "espalier-series", &[CARGO, &["series"]]),
    // Two of its tests look for the variables that all sources read, and for the options that patches add.
    part("unit-names", "espalier-names", &[CARGO, ALL_CRATES, &["overlay", "patches"]]),
    part(
        "unit-core",
        "espalier-core",
        &[CARGO, &["series", "kernels/names", "xtask/crates/core", "pins.toml", ".gitattributes"]],
    ),
    part(
        "unit-patches",
        "espalier-patches",
        &[CARGO, &["series", "kernels/names", "xtask/crates/core", "xtask/crates/patches"]],
    ),
    part("unit-dist", "espalier-dist", &[CARGO, INCLUDED, BASE, &["ci"]]),
    part("unit-xtask", "xtask", &[CARGO, BASE]),
    part(
        "unit-qa",
        "espalier-qa",
        &[CARGO, INCLUDED, RECORDS, &["xtask", "series", "kernels/names", "pins.toml", "ci"]],
    ),
];

/// Those of the tool's tests that read the repository; any changed file may be an input of one of them.
pub const REPOSITORY: UnitTestPart = UnitTestPart {
    name: "unit-repository",
    package: "espalier-qa",
    reading_the_repository: true,
    reads: &[EVERYTHING],
};

impl UnitTestPart {
    /// Returns its inputs among `project`, the digests of all files.
    #[must_use]
    pub fn inputs(&self, project: &Digests) -> Digests {
        below(project, self.reads)
    }
}

/// Returns the inputs of the step `name` among `project`, the digests of all files.
#[must_use]
pub fn inputs(name: &str, project: &Digests) -> Digests {
    let described = STEPS.iter().find(|(step, _)| *step == name);
    below(project, described.map_or(&[EVERYTHING], |(_, paths)| paths))
}

fn below(project: &Digests, groups: &[Paths]) -> Digests {
    let is_read = |file: &str| groups.iter().copied().flatten().any(|path| is_below(file, path));
    let files = project.iter().filter(|(file, _)| is_read(file));
    files.map(|(file, digest)| (file.clone(), digest.clone())).collect()
}

fn is_below(file: &str, path: &str) -> bool {
    path.is_empty() || file.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The steps whose inputs are listed, for a test that checks that these steps exist.
#[must_use]
pub fn described_steps() -> Vec<&'static str> {
    STEPS.iter().map(|(name, _)| *name).collect()
}

/// Every path named here, for a test that checks that they exist.
#[must_use]
pub fn named_paths() -> Vec<&'static str> {
    let of_steps = STEPS.iter().flat_map(|(_, paths)| paths.iter());
    let of_parts = PARTS.iter().flat_map(|part| part.reads.iter());
    of_steps.chain(of_parts).flat_map(|paths| paths.iter().copied()).collect()
}

/// Renders the record of a step that has passed: its tools and its inputs.
#[must_use]
pub fn record(tools: &str, inputs: &Digests) -> String {
    let mut text = format!("{tools}\n");
    for (file, digest) in inputs {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{digest} {file}");
    }
    text
}

/// Reason why a step has to run; `None` when its tools and inputs are the same as when it last passed.
#[must_use]
pub fn reason(recorded: Option<&str>, tools: &str, inputs: &Digests) -> Option<String> {
    let Some(recorded) = recorded else { return Some("it has not passed here yet".to_string()) };
    if recorded == record(tools, inputs) {
        return None;
    }
    let (then, lines) = recorded.split_once('\n').unwrap_or((recorded, ""));
    if then != tools {
        return Some("it passed with other compilers".to_string());
    }
    let before: BTreeMap<&str, &str> =
        lines.lines().filter_map(|line| line.split_once(' ')).map(|(digest, file)| (file, digest)).collect();
    Some(named(&changed(&before, inputs)))
}

/// Files that were changed, added or removed.
fn changed(before: &BTreeMap<&str, &str>, now: &Digests) -> Vec<String> {
    let differs = |file: &str| before.get(file).copied() != now.get(file).map(String::as_str);
    let mut files: Vec<String> = before.keys().map(|file| (*file).to_string()).collect();
    files.extend(now.keys().filter(|file| !before.contains_key(file.as_str())).cloned());
    files.retain(|file| differs(file));
    files.sort();
    files
}

/// Lists the first files, and the number of the others.
fn named(files: &[String]) -> String {
    const SHOWN: usize = 3;
    let shown = files.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    match files.len() {
        0 => "its record cannot be read".to_string(),
        count if count > SHOWN => format!("changed: {shown} and {} more", count - SHOWN),
        _ => format!("changed: {shown}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(files: &[(&str, &str)]) -> Digests {
        files.iter().map(|(file, digest)| (file.to_string(), digest.to_string())).collect()
    }

    #[test]
    fn a_step_reads_what_is_below_its_paths_and_nothing_beside_them() {
        let files = [
            ("kernels/src/lib.rs", "1"),
            ("kernels-old/src/lib.rs", "2"),
            ("espalier.lock", "3"),
            ("espalier.lock.orig", "4"),
            ("xtask/crates/bench/src/lib.rs", "5"),
        ];
        let read: Vec<String> = inputs("gate", &project(&files)).into_keys().collect();
        assert_eq!(read, ["espalier.lock", "kernels/src/lib.rs"]);
    }

    #[test]
    fn a_step_without_declared_inputs_reads_everything() {
        let files = project(&[("a", "1"), ("b/c", "2")]);
        assert_eq!(inputs("something new", &files), files);
    }

    #[test]
    fn a_passed_step_runs_again_when_one_of_its_inputs_has_changed() {
        let before = project(&[("a", "1"), ("b", "2"), ("c", "3")]);
        let recorded = record("rustc 1", &before);
        assert_eq!(reason(Some(&recorded), "rustc 1", &before), None);
        let reason = |now: &[(&str, &str)]| reason(Some(&recorded), "rustc 1", &project(now)).unwrap();
        assert_eq!(reason(&[("a", "1"), ("b", "9"), ("c", "3")]), "changed: b");
        assert_eq!(reason(&[("a", "1"), ("c", "3")]), "changed: b");
        assert_eq!(reason(&[("a", "1"), ("b", "2"), ("c", "3"), ("d", "4")]), "changed: d");
        assert_eq!(reason(&[("e", "1")]), "changed: a, b, c and 1 more");
    }

    #[test]
    fn a_step_that_failed_or_passed_with_other_tools_runs() {
        let files = project(&[("a", "1")]);
        assert_eq!(reason(None, "rustc 1", &files).unwrap(), "it has not passed here yet");
        let recorded = record("rustc 1", &files);
        assert_eq!(reason(Some(&recorded), "rustc 2", &files).unwrap(), "it passed with other compilers");
        assert_eq!(reason(Some("rustc 1\ngarbage"), "rustc 1", &files).unwrap(), "changed: a");
    }
}
