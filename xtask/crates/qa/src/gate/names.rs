//! Names of the servers' checks and of the promises, as they are given to `gate`. A newcomer cannot know of which kind
//! a name is, so each is looked up among both.

use espalier_core::context::Outcome;
use espalier_core::error::{Error, Result};
use espalier_core::ui;
use espalier_names::nearest::meant;
use serde_json::json;

use super::Options;
use super::servers::promises::{PROMISES, Promise};
use super::servers::{CHECKS, Check};

/// The checks and promises that the options name.
pub struct NamedChecks {
    /// Checks of the servers; empty if none is named.
    pub checks: Vec<&'static Check>,
    /// Promises; all if none is named.
    pub promises: Vec<&'static Promise>,
}

impl NamedChecks {
    /// Looks up the names in `options`.
    ///
    /// # Errors
    ///
    /// A name is unknown.
    pub fn read(options: &Options) -> Result<NamedChecks> {
        let [checks, promises] = kinds();
        checks.refuse_unknown(&options.checks, &promises)?;
        promises.refuse_unknown(&options.promises, &checks)?;
        let is_in = |names: &[String], name: &str| names.iter().any(|one| one == name);
        let is_promised =
            |promise: &&Promise| options.promises.is_empty() || is_in(&options.promises, promise.name);
        Ok(NamedChecks {
            checks: CHECKS.iter().filter(|check| is_in(&options.checks, check.name)).collect(),
            promises: PROMISES.iter().filter(is_promised).collect(),
        })
    }
}

/// The last line of the list: the names alone do not say what is checked.
const WHERE: &str = "The comment of each function in xtask/crates/qa/src/gate/servers says what it checks.";

/// Returns all names, with the command that runs one of them.
pub fn list() -> Outcome {
    let [checks, promises] = kinds();
    let text = format!("{}\n\n{}\n\n{WHERE}", checks.text(), promises.text());
    Outcome::ok(text, json!({ "checks": checks.names, "promises": promises.names }))
}

/// A kind of thing that `gate` runs by name: checks of the servers, or promises.
struct Kind {
    /// The word for one of them.
    what: &'static str,
    /// The flags before a name.
    flags: &'static str,
    names: Vec<&'static str>,
}

fn kinds() -> [Kind; 2] {
    let checks = CHECKS.iter().map(|check| check.name).collect();
    let promises = PROMISES.iter().map(|promise| promise.name).collect();
    [
        Kind { what: "check", flags: "--only servers --check", names: checks },
        Kind { what: "promise", flags: "--only promises --promise", names: promises },
    ]
}

impl Kind {
    fn command(&self, name: &str) -> String {
        format!("cargo xtask gate {} {name}", self.flags)
    }

    fn text(&self) -> String {
        format!("{}:\n  {}", ui::hint(&self.command("NAME")), self.names.join("\n  "))
    }

    fn refuse_unknown(&self, given: &[String], other: &Kind) -> Result<()> {
        match given.iter().find(|name| !self.names.contains(&name.as_str())) {
            Some(name) => Err(self.unknown(name, other)),
            None => Ok(()),
        }
    }

    fn unknown(&self, name: &str, other: &Kind) -> Error {
        let what = format!("there is no {} `{name}`", self.what);
        if other.names.contains(&name) {
            return Error::usage(format!("{what}: it is the name of a {}", other.what))
                .hint(other.command(name));
        }
        let near = [self, other].map(|kind| kind.near(name));
        let error = near.into_iter().flatten().fold(Error::usage(what), Error::hint);
        error
            .hint(format!("use one of: {}", self.names.join(", ")))
            .hint("list all checks and promises: cargo xtask gate --list")
    }

    /// Returns the hint about the name that resembles `name`.
    fn near(&self, name: &str) -> Option<String> {
        let near = meant(name, self.names.iter().copied())?;
        Some(format!("for the {} `{near}`: {}", self.what, self.command(near)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(checks: &[&str], promises: &[&str]) -> Result<NamedChecks> {
        let owned =
            |names: &[&str]| -> Vec<String> { names.iter().map(|name| (*name).to_string()).collect() };
        NamedChecks::read(&Options { checks: owned(checks), promises: owned(promises), ..Options::default() })
    }

    fn message(checks: &[&str], promises: &[&str]) -> String {
        named(checks, promises).err().unwrap().to_string()
    }

    #[test]
    fn checks_and_promises_are_found_by_name() {
        let found = named(&["eviction", "answers"], &["negative-scale"]).unwrap();
        let checks: Vec<&str> = found.checks.iter().map(|check| check.name).collect();
        let promises: Vec<&str> = found.promises.iter().map(|promise| promise.name).collect();
        assert_eq!((checks, promises), (vec!["answers", "eviction"], vec!["negative-scale"]));
        let none = named(&[], &[]).unwrap();
        assert!(none.checks.is_empty());
        assert_eq!(none.promises.len(), PROMISES.len());
    }

    #[test]
    fn a_name_of_the_other_kind_is_answered_with_its_command() {
        assert_eq!(
            message(&["negative-scale"], &[]),
            "error: there is no check `negative-scale`: it is the name of a promise\n  \
             next: cargo xtask gate --only promises --promise negative-scale"
        );
        assert_eq!(
            message(&[], &["eviction"]),
            "error: there is no promise `eviction`: it is the name of a check\n  \
             next: cargo xtask gate --only servers --check eviction"
        );
    }

    #[test]
    fn a_misspelt_name_is_answered_with_the_command_of_the_nearest() {
        let near = "next: for the promise `negative-scale`: \
                    cargo xtask gate --only promises --promise negative-scale\n";
        assert!(message(&["negative_scale"], &[]).contains(near));
        assert!(message(&[], &["negative_scale"]).contains(near));
        let near = "next: for the check `answers`: cargo xtask gate --only servers --check answers\n";
        assert!(message(&["answer"], &[]).contains(near));
    }

    #[test]
    fn an_unknown_name_lists_those_that_exist_and_the_command_that_lists_all() {
        let all = "\n  next: list all checks and promises: cargo xtask gate --list";
        let check = message(&["no-such-thing"], &[]);
        assert!(
            check.contains("\n  next: use one of: answers, sharing, ") && check.ends_with(all),
            "{check}"
        );
        let promise = message(&[], &["no-such-thing"]);
        assert!(promise.contains("\n  next: use one of: negative-scale, "), "{promise}");
    }

    #[test]
    fn names_are_unique_within_a_kind() {
        for kind in kinds() {
            let names: std::collections::BTreeSet<&str> = kind.names.iter().copied().collect();
            assert_eq!(names.len(), kind.names.len(), "{}", kind.what);
        }
    }
}
