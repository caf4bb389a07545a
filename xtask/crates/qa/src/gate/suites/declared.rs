//! `ci/suites/suites.toml`: the upstream tests that the gate runs, and the expected differences between stock and our
//! build.

use std::collections::BTreeSet;

use espalier_core::config::name::Name;
use espalier_core::config::pins::Pins;
use espalier_core::config::snippet::SourceText;
use espalier_core::error::{Error, Result};
use serde::Deserialize;
use toml::Spanned;

/// `ci/suites/suites.toml`, checked, with the entries that are for one pin.
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
    /// Whether it runs in the folder of the sources, from which it reads files by relative paths.
    #[serde(default, rename = "in-sources")]
    pub in_sources: bool,
    /// The only pin that it runs on; every one if none is named.
    #[serde(default)]
    pub pin: Option<Spanned<Name>>,
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
    pub variant: Spanned<Name>,
    /// The only pin on which they do: their siblings add them on a generation.
    #[serde(default)]
    pub pin: Option<Spanned<Name>>,
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
    pub ours: Spanned<String>,
    /// A part of how it fails on our build, as the gate reports it; without line numbers, which differ between pins.
    /// Required if `ours` is `failed` or `crashed`: another failure than the explained one is a difference.
    #[serde(default)]
    pub how: Option<String>,
    /// Reason why the difference is correct.
    pub reason: String,
    /// Whether rounding decides if the outcomes differ, so that the result varies between processors.
    #[serde(default)]
    pub by_rounding: bool,
    /// The only pin on which it is expected; every one if none is named.
    #[serde(default)]
    pub pin: Option<Spanned<Name>>,
}

impl Expected {
    fn lacks_how(&self) -> bool {
        let fails = ["failed", "crashed"].contains(&self.ours.get_ref().as_str());
        fails && self.how.as_ref().is_none_or(String::is_empty)
    }
}

/// The pins of the project, and the one that the compared variants are on.
#[derive(Clone, Copy, Debug)]
pub struct OnPin<'a> {
    /// `pins.toml`.
    pub pins: &'a Pins,
    /// The pin.
    pub pin: &'a Name,
}

impl OnPin<'_> {
    /// Removes the entries for other pins. An entry for a pin that does not exist would never be used, so it is
    /// refused.
    fn keep<T>(
        self,
        source: SourceText<'_>,
        entries: &mut Vec<T>,
        pin_of: fn(&T) -> Option<&Spanned<Name>>,
    ) -> Result<()> {
        let known = &self.pins.pins;
        let unknown = entries.iter().filter_map(pin_of).find(|pin| !known.contains_key(pin.get_ref()));
        if let Some(unknown) = unknown {
            return Err(unknown_name(source, unknown, ("pin", known.keys())));
        }
        entries.retain(|entry| pin_of(entry).is_none_or(|pin| pin.get_ref() == self.pin));
        Ok(())
    }
}

/// Returns the error for a name that `pins.toml` does not have.
fn unknown_name<'a>(
    source: SourceText<'_>,
    name: &Spanned<Name>,
    (kind, known): (&str, impl Iterator<Item = &'a Name>),
) -> Error {
    let known: Vec<&str> = known.map(Name::as_str).collect();
    let label = format!("`pins.toml` has no {kind} of this name");
    source.error_at(name.span(), &label).hint(format!("use one of: {}", known.join(", ")))
}

/// The CMake targets of `programs`, each once.
pub fn targets(programs: &[Program]) -> Vec<String> {
    let targets: BTreeSet<&String> = programs.iter().map(|program| &program.target).collect();
    targets.into_iter().cloned().collect()
}

impl Suites {
    /// Reads the text of `ci/suites/suites.toml`, as it holds on one pin.
    ///
    /// # Errors
    ///
    /// An unknown key or a missing one; a variant or a pin that `pins.toml` does not have; an expected failure that does
    /// not say how the test fails.
    pub fn parse(source: SourceText<'_>, on: OnPin<'_>) -> Result<Suites> {
        let mut suites: Suites = source.parse_toml()?;
        let variants = &on.pins.variants;
        let own = &mut suites.server_tests.own;
        if let Some(own) = own.iter().find(|own| !variants.contains_key(own.variant.get_ref())) {
            return Err(unknown_name(source, &own.variant, ("variant", variants.keys())));
        }
        on.keep(source, own, |own| own.pin.as_ref())?;
        on.keep(source, &mut suites.programs, |program| program.pin.as_ref())?;
        on.keep(source, &mut suites.paged, |expected| expected.pin.as_ref())?;
        match suites.paged.iter().find(|expected| expected.lacks_how()) {
            Some(expected) => Err(source.error_at(expected.ours.span(), "without `how`, any failure would do")
                .hint("add a part of the failure that `cargo xtask gate --only suites` reports: `how = \"...\"`")),
            None => Ok(suites),
        }
    }

    /// Substrings of the names of server tests that the patches of these variants add.
    pub fn own_tests(&self, variants: &[&str]) -> Vec<String> {
        let is_of = |own: &&OwnTests| variants.contains(&own.variant.get_ref().as_str());
        let own = self.server_tests.own.iter().filter(is_of);
        own.flat_map(|own| own.names.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PINS: &str = r#"default-variant = "a"
[pins.main]
upstream = "u"
tag = "v1"
tree = "0424752fbbc3bb01469ec830a30f2bc035497cd4"
sources = [{ path = "a" }]
[pins.b2]
upstream = "u"
generation-of = "main"
tag = "v2"
tree = "0424752fbbc3bb01469ec830a30f2bc035497cd4"
sources = [{ path = "a" }]
[variants.a]
pin = "main"
[variants.b]
extends = "a"
"#;

    fn pins_of(text: &str) -> Pins {
        Pins::parse(SourceText { name: "pins.toml", text }).unwrap()
    }

    fn parse_on(pin: &str, text: &str) -> Result<Suites> {
        let (pins, pin) = (pins_of(PINS), Name::new(pin).unwrap());
        Suites::parse(SourceText { name: "suites.toml", text }, OnPin { pins: &pins, pin: &pin })
    }

    fn parse(text: &str) -> Result<Suites> {
        parse_on("main", text)
    }

    #[test]
    fn the_project_s_own_list_is_read_and_every_difference_has_a_reason() {
        let list = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../ci/suites/suites.toml"));
        let pins = pins_of(include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../pins.toml")));
        for pin in pins.pins.keys() {
            let source = SourceText { name: "suites.toml", text: list };
            let suites = Suites::parse(source, OnPin { pins: &pins, pin }).unwrap();
            assert!(targets(&suites.programs).contains(&"test-backend-ops".to_string()));
            assert!(suites.paged.iter().all(|expected| !expected.reason.is_empty()));
            let mut names: Vec<String> = suites.programs.iter().map(Program::name).collect();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), suites.programs.len(), "runs of one target need names");
        }
    }

    #[test]
    fn an_entry_can_be_for_one_pin() {
        let list = "[[programs]]\ntarget = \"x\"\n[[programs]]\ntarget = \"y\"\npin = \"b2\"\n\
                    [server-tests]\nrun = []\nseconds = 1\n\
                    [[server-tests.own]]\nvariant = \"a\"\nnames = [\"n\"]\npin = \"b2\"\n\
                    [[paged]]\ntests = [\"t\"]\nstock = \"passed\"\nours = \"skipped\"\nreason = \"r\"\n\
                    pin = \"main\"\n";
        let read = |pin: &str| {
            let suites = parse_on(pin, list).unwrap();
            (targets(&suites.programs).join(" "), suites.own_tests(&["a"]).join(" "), suites.paged.len())
        };
        assert_eq!(read("main"), ("x".to_string(), String::new(), 1));
        assert_eq!(read("b2"), ("x y".to_string(), "n".to_string(), 0));
        for (from, to, says) in [
            ("\"y\"\npin = \"b2\"", "\"y\"\npin = \"b3\"", "`pins.toml` has no pin of this name"),
            ("[\"n\"]\npin = \"b2\"", "[\"n\"]\npin = \"b3\"", "`pins.toml` has no pin of this name"),
            ("pin = \"main\"", "pin = \"mian\"", "`pins.toml` has no pin of this name"),
            ("variant = \"a\"", "variant = \"c\"", "`pins.toml` has no variant of this name"),
        ] {
            assert!(list.contains(from), "{from}");
            let message = parse(&list.replace(from, to)).unwrap_err().to_string();
            assert!(message.contains(says) && message.contains("next: use one of: "), "{message}");
        }
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
                    [[paged]]\ntests = [\"a\"]\nstock = \"passed\"\nours = \"skipped\"\n";
        assert!(parse(list).unwrap_err().to_string().contains("reason"));
        assert!(parse(&format!("{list}reason = \"r\"\n")).is_ok());
    }

    #[test]
    fn an_expected_failure_that_does_not_say_how_is_refused() {
        let list = "programs = []\n[server-tests]\nrun = []\nseconds = 1\n\
                    [[paged]]\ntests = [\"a\"]\nstock = \"passed\"\nours = \"failed\"\nreason = \"r\"\n";
        for how in ["", "how = \"\"\n"] {
            let message = parse(&format!("{list}{how}")).unwrap_err().to_string();
            assert!(message.contains("without `how`, any failure would do"), "{message}");
        }
        assert!(parse(&format!("{list}how = \"assert 1 == 2\"\n")).is_ok());
        for ours in ["passed", "skipped", "absent"] {
            assert!(parse(&list.replace("failed", ours)).is_ok(), "{ours}");
        }
    }
}
