//! PURE: outcomes of tests, parsed from the output of upstream test programs and of our pytest plugin.

use std::collections::BTreeMap;
use std::fmt;

use espalier_core::error::{Error, Result};
use serde::Deserialize;

/// Outcome of one test. Failures at different places are different outcomes: a test that fails on both sides may hide
/// another failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It passed.
    Passed,
    /// It reported that it did not run.
    Skipped,
    /// It failed; the text gives the place and the cause.
    Failed(String),
    /// The program crashed, or was killed after a timeout.
    Crashed(String),
    /// It exists and was not run on this side, because it passed on every other.
    NotRun,
    /// It was not reported.
    Absent,
}

/// Word for a test that was collected and not run, in reports too.
const NOT_RUN: &str = "not run";

/// Outcomes by the name of the test.
pub type Outcomes = BTreeMap<String, Outcome>;

impl Outcome {
    /// Returns the outcome in one word.
    pub fn word(&self) -> &'static str {
        match self {
            Outcome::Passed => "passed",
            Outcome::Skipped => "skipped",
            Outcome::Failed(_) => "failed",
            Outcome::Crashed(_) => "crashed",
            Outcome::NotRun => NOT_RUN,
            Outcome::Absent => "absent",
        }
    }

    /// Returns the place and the cause of a failure; empty for other outcomes.
    pub fn how(&self) -> &str {
        match self {
            Outcome::Failed(how) | Outcome::Crashed(how) => how,
            _ => "",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Failed(how) | Outcome::Crashed(how) => write!(formatter, "{} ({how})", self.word()),
            _ => formatter.write_str(self.word()),
        }
    }
}

/// One line of the report that `ci/suites/local_model.py` writes.
#[derive(Deserialize)]
struct ReportLine {
    test: String,
    outcome: String,
    how: Option<String>,
}

/// Parses the plugin's report. A test may have several lines, for set-up, call and tear-down: the first that is not a
/// success counts.
pub fn read_server_tests(report: &str) -> Result<Outcomes> {
    let mut outcomes = Outcomes::new();
    for text in report.lines() {
        let line: ReportLine = serde_json::from_str(text).map_err(|error| {
            Error::environment("the server tests' report cannot be read").detail(format!("{error}: {text}"))
        })?;
        let outcome = match line.outcome.as_str() {
            "passed" => Outcome::Passed,
            "skipped" => Outcome::Skipped,
            NOT_RUN => Outcome::NotRun,
            _ => Outcome::Failed(line.how.unwrap_or_default()),
        };
        let known = outcomes.entry(line.test).or_insert(Outcome::Passed);
        if *known == Outcome::Passed {
            *known = outcome;
        }
    }
    Ok(outcomes)
}

/// Parses the output of `test-backend-ops --output sql`: one statement per line, with named fields. Cases with the same
/// name are numbered.
pub fn read_cases(output: &str) -> Outcomes {
    let mut outcomes = Outcomes::new();
    for (name, outcome) in output.lines().filter_map(read_case) {
        let mut numbered = name.clone();
        let mut count = 1;
        while outcomes.contains_key(&numbered) {
            count += 1;
            numbered = format!("{name} #{count}");
        }
        outcomes.insert(numbered, outcome);
    }
    outcomes
}

fn read_case(line: &str) -> Option<(String, Outcome)> {
    let (fields, values) = line.strip_prefix("INSERT INTO test_backend_ops (")?.split_once(") VALUES ('")?;
    let values = values.strip_suffix("');")?.split("', '");
    let case: BTreeMap<&str, &str> = fields.split(", ").zip(values).collect();
    let name = format!("{}({})", case.get("op_name")?, case.get("op_params")?);
    let outcome = match (*case.get("supported")?, *case.get("passed")?) {
        ("0", _) => Outcome::Skipped,
        (_, "1") => Outcome::Passed,
        _ => Outcome::Failed((*case.get("error_message")?).to_string()),
    };
    Some((name, outcome))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_phase_that_went_wrong_is_what_became_of_a_test() {
        let report = r#"{"test": "a", "outcome": "passed", "how": null}
{"test": "b", "outcome": "failed", "how": "b.py:3: assert 400 == 200"}
{"test": "b", "outcome": "failed", "how": "utils.py:9: TimeoutError"}
{"test": "c", "outcome": "skipped", "how": null}
{"test": "a", "outcome": "failed", "how": "utils.py:9: TimeoutError"}
{"test": "d", "outcome": "not run", "how": null}"#;
        let outcomes = read_server_tests(report).unwrap();
        assert_eq!(outcomes["a"], Outcome::Failed("utils.py:9: TimeoutError".to_string()));
        assert_eq!(outcomes["b"], Outcome::Failed("b.py:3: assert 400 == 200".to_string()));
        assert_eq!(outcomes["c"], Outcome::Skipped);
        assert_eq!(outcomes["d"], Outcome::NotRun);
    }

    #[test]
    fn a_report_that_is_none_is_an_error() {
        assert!(read_server_tests("{\"test\":").is_err());
    }

    fn statement(params: &str, supported: &str, passed: &str, error: &str) -> String {
        format!(
            "INSERT INTO test_backend_ops (op_name, op_params, supported, passed, error_message) \
             VALUES ('ADD', '{params}', '{supported}', '{passed}', '{error}');\n"
        )
    }

    #[test]
    fn cases_are_read_by_the_names_of_their_fields_and_counted_when_they_have_the_same_name() {
        let output = format!(
            "Testing 1 devices\n{}{}{}{}",
            statement("n=[1,2]", "1", "1", ""),
            statement("n=[1,2]", "1", "0", "test failed"),
            statement("n=2", "0", "0", "not supported"),
            "INSERT INTO test_backend_ops (op_name) VALUES ('cut o"
        );
        let outcomes = read_cases(&output);
        assert_eq!(outcomes.len(), 3);
        assert_eq!(outcomes["ADD(n=[1,2])"], Outcome::Passed);
        assert_eq!(outcomes["ADD(n=[1,2]) #2"], Outcome::Failed("test failed".to_string()));
        assert_eq!(outcomes["ADD(n=2)"], Outcome::Skipped);
    }
}
