//! PURE: `ci/suites/cases.json`, the outcomes of stock's test cases. A program whose cases end on ours as recorded here
//! is neither compiled nor run on stock.

use std::collections::BTreeMap;
use std::fmt::Write;

use espalier_core::error::{Error, Result};
use serde::{Deserialize, Serialize};

use super::outcome::Outcomes;

/// Path of the record.
pub const RECORD: &str = "ci/suites/cases.json";

/// The cases of one program on stock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cases {
    /// Number of cases.
    pub count: usize,
    /// Lines of the name and the outcome of each.
    pub text: String,
}

/// The recorded cases of one program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    /// Number of cases.
    pub count: usize,
    /// SHA-256 of the lines of all cases.
    pub sha256: String,
}

/// Recorded cases by the name of the program, by the git tree of the sources.
pub type Record = BTreeMap<String, BTreeMap<String, Recorded>>;

/// Reads the record.
///
/// # Errors
///
/// It is not one.
pub fn read(text: &str) -> Result<Record> {
    serde_json::from_str(text).map_err(|error| {
        Error::usage(format!("invalid `{RECORD}`: {error}"))
            .hint("remove the file, then: cargo xtask gate --only suites --record-cases")
    })
}

/// Renders the record.
pub fn render(record: &Record) -> String {
    let text = serde_json::to_string_pretty(record).unwrap_or_default();
    format!("{text}\n")
}

/// Returns the cases of the program `name` among `outcomes`, without those of which `is_own` says that only ours has
/// them.
pub fn of(name: &str, outcomes: &Outcomes, is_own: impl Fn(&str) -> bool) -> Cases {
    let prefix = format!("{name}{}", super::programs::CASE);
    let mut cases = Cases::default();
    for (test, outcome) in outcomes.iter().filter(|(test, _)| test.starts_with(&prefix) && !is_own(test)) {
        cases.count += 1;
        // Writing to a string cannot fail.
        let _ = writeln!(cases.text, "{}\t{outcome}", &test[prefix.len()..]);
    }
    cases
}

impl Cases {
    /// Returns the form that is recorded; `digest` computes a SHA-256.
    pub fn record(&self, digest: impl Fn(&[u8]) -> String) -> Recorded {
        Recorded { count: self.count, sha256: digest(self.text.as_bytes()) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::outcome::Outcome;
    use super::*;

    fn outcomes(list: &[(&str, Outcome)]) -> Outcomes {
        list.iter().map(|(test, outcome)| ((*test).to_string(), outcome.clone())).collect()
    }

    #[test]
    fn the_cases_of_a_program_are_those_after_its_name_without_our_own() {
        let all = outcomes(&[
            ("ops", Outcome::Passed),
            ("ops: ADD(n=1)", Outcome::Passed),
            ("ops: CPY(tcq2)", Outcome::Passed),
            ("ops: CPY(f16)", Outcome::Failed("x".to_string())),
            ("ops more: ADD(n=1)", Outcome::Passed),
        ]);
        let cases = of("ops", &all, |test| test.contains("tcq"));
        assert_eq!(cases, Cases { count: 2, text: "ADD(n=1)\tpassed\nCPY(f16)\tfailed (x)\n".to_string() });
        let length = |bytes: &[u8]| bytes.len().to_string();
        assert_eq!(cases.record(length), Recorded { count: 2, sha256: "36".to_string() });
    }

    #[test]
    fn a_record_is_read_as_it_is_rendered_and_nothing_else_is() {
        let recorded = Recorded { count: 3, sha256: "ab".to_string() };
        let programs = BTreeMap::from([("ops".to_string(), recorded)]);
        let record = Record::from([("f00d".to_string(), programs)]);
        assert_eq!(read(&render(&record)).unwrap(), record);
        assert!(read("{\"f00d\": {\"ops\": {\"count\": 3}}}").unwrap_err().to_string().contains("sha256"));
    }
}
