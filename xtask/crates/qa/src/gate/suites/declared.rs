//! `ci/suites/suites.toml`: the upstream tests that the gate runs, and the expected differences between stock and our
//! build.

use std::collections::BTreeSet;

use espalier_core::config::snippet::SourceText;
use espalier_core::error::Result;
use serde::Deserialize;

/// `ci/suites/suites.toml`, checked.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suites {
    /// Test programs in C++, in the order in which they run.
    pub programs: Vec<Program>,
    /// Substrings of the names of cases that only our build has, such as its cache types; each has to pass.
    #[serde(default, rename = "own-cases")]
    pub own_cases: Vec<String>,
    /// The tests of the server.
    #[serde(rename = "server-tests")]
    pub server_tests: ServerTests,
    /// Tests whose outcome on the paged server is expected to differ, with the reason.
    #[serde(default)]
    pub paged: Vec<Expected>,
}

/// A test program and its invocation.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// The CMake target.
    pub target: String,
    /// Its arguments; `{model}` is the local model, `{models}` the folder of generated ones.
    #[serde(default)]
    pub arguments: Vec<String>,
    /// Name that distinguishes this run from others of the same target.
    #[serde(default)]
    pub name: Option<String>,
    /// A feature to enable in our build.
    #[serde(default)]
    pub enable: Option<String>,
    /// Whether it reports the outcome of each of its cases, with `--output sql`.
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
    /// Time limit of one test, in seconds.
    pub seconds: u32,
    /// Tests that patches add along with their fixes.
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

/// Tests with an expected difference in outcome, and the reason.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// Full names of the tests.
    pub tests: Vec<String>,
    /// Outcome on stock, in one word.
    pub stock: String,
    /// Outcome on our build, in one word.
    pub ours: String,
    /// Reason why the difference is correct.
    pub reason: String,
    /// Whether rounding decides if the outcomes differ, so that the result varies between processors.
    #[serde(default)]
    pub by_rounding: bool,
}

/// The CMake targets of `programs`, each once.
pub fn targets(programs: &[Program]) -> Vec<String> {
    let targets: BTreeSet<&String> = programs.iter().map(|program| &program.target).collect();
    targets.into_iter().cloned().collect()
}

impl Suites {
    /// Reads the text of `ci/suites/suites.toml`.
    pub fn parse(source: SourceText<'_>) -> Result<Suites> {
        source.parse_toml()
    }

    /// Substrings of the names of server tests that the patches of these variants add.
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
        let list = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../ci/suites/suites.toml"));
        let suites = parse(list).unwrap();
        assert!(targets(&suites.programs).contains(&"test-backend-ops".to_string()));
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
