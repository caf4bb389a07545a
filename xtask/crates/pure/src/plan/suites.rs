//! `ci/suites/suites.toml`: which of upstream's own tests the gate runs, and where ours may end differently.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::snippet::SourceText;
use crate::error::Result;

/// `ci/suites/suites.toml`, checked.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suites {
    /// Test programs in C++, in the order in which they run.
    pub programs: Vec<Program>,
    /// Parts of the names of cases that only ours has, such as its types: each has to pass.
    #[serde(default, rename = "own-cases")]
    pub own_cases: Vec<String>,
    /// The tests of the server.
    #[serde(rename = "server-tests")]
    pub server_tests: ServerTests,
    /// Where the paged server ends differently, and why that is right.
    #[serde(default)]
    pub paged: Vec<Expected>,
}

/// A test program and how it is run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// The CMake target.
    pub target: String,
    /// What it is given; `{model}` is the local model, `{models}` the folder of generated ones.
    #[serde(default)]
    pub arguments: Vec<String>,
    /// What sets this run apart from others of the same target.
    #[serde(default)]
    pub name: Option<String>,
    /// A feature that is switched on in ours.
    #[serde(default)]
    pub enable: Option<String>,
    /// It tells the outcome of each of its cases, with `--output sql`.
    #[serde(default)]
    pub cases: bool,
}

impl Program {
    /// The name of this run.
    pub fn name(&self) -> String {
        match &self.name {
            Some(name) => format!("{} {name}", self.target),
            None => self.target.clone(),
        }
    }
}

/// The tests of the server, in upstream's `tools/server/tests`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerTests {
    /// Files and tests, relative to that folder.
    pub run: Vec<String>,
    /// How long one test may take, in seconds.
    pub seconds: u32,
    /// Tests that patches bring along with their fixes.
    #[serde(default)]
    pub own: Vec<OwnTests>,
}

/// Tests that stock does not have: the patches of a variant add them, and each has to pass there.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnTests {
    /// The variant whose patches add them.
    pub variant: String,
    /// Parts of their names.
    pub names: Vec<String>,
}

/// Tests that end differently, and why.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// Names of tests, each whole.
    pub tests: Vec<String>,
    /// How they end on stock, in one word.
    pub stock: String,
    /// How they end on ours, in one word.
    pub ours: String,
    /// Why that is right.
    pub reason: String,
    /// Rounding decides whether they differ, and each processor rounds in its own way.
    #[serde(default)]
    pub by_rounding: bool,
}

impl Suites {
    /// Reads the text of `ci/suites/suites.toml`.
    pub fn parse(source: SourceText<'_>) -> Result<Suites> {
        source.parse_toml()
    }

    /// The CMake targets, each once.
    pub fn targets(&self) -> Vec<String> {
        let targets: BTreeSet<&String> = self.programs.iter().map(|program| &program.target).collect();
        targets.into_iter().cloned().collect()
    }

    /// Parts of the names of server tests that the patches of these variants add.
    pub fn own_tests(&self, variants: &[&str]) -> Vec<String> {
        let own = self.server_tests.own.iter().filter(|own| variants.contains(&own.variant.as_str()));
        own.flat_map(|own| own.names.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Suites> {
        Suites::parse(SourceText { name: "suites.toml", text })
    }

    #[test]
    fn the_project_s_own_list_is_read_and_every_difference_has_a_reason() {
        let suites = parse(include_str!("../../../../../ci/suites/suites.toml")).unwrap();
        assert!(suites.targets().contains(&"test-backend-ops".to_string()));
        assert!(suites.paged.iter().all(|expected| !expected.reason.is_empty()));
        let mut names: Vec<String> = suites.programs.iter().map(Program::name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), suites.programs.len(), "runs of one target need names");
    }

    #[test]
    fn own_tests_are_those_of_the_variants_that_are_stacked() {
        let list = "programs = []\n[server-tests]\nrun = []\nseconds = 1\n\
                    own = [{ variant = \"a\", names = [\"x\", \"y\"] }, { variant = \"b\", names = [\"z\"] }]\n";
        let suites = parse(list).unwrap();
        assert_eq!(suites.own_tests(&["a", "other"]), ["x", "y"]);
        assert_eq!(suites.own_tests(&["stock"]), [""; 0]);
    }

    #[test]
    fn a_difference_without_a_reason_is_refused() {
        let list = "programs = []\n[server-tests]\nrun = []\nseconds = 1\n\
                    [[paged]]\ntests = [\"a\"]\nstock = \"passed\"\nours = \"failed\"\n";
        assert!(parse(list).unwrap_err().to_string().contains("reason"));
        assert!(parse(&format!("{list}reason = \"r\"\n")).is_ok());
    }
}
