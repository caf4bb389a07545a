//! What was measured at one pin, kept in the repository: a list of runs, the newest last.

use serde_json::{Value, json};

use crate::error::{Error, Result};

/// What makes two runs the same measurement: the later one takes the place of the earlier.
const IDENTITY: [&str; 8] =
    ["trees", "processor", "threads", "requests", "prefix", "suffix", "predict", "cells"];

/// The file's new text, with `run` in it.
pub(super) fn with(before: Option<&[u8]>, pin: &str, run: Value) -> Result<String> {
    let mut runs = match before {
        None => Vec::new(),
        Some(bytes) => read(bytes).ok_or_else(|| {
            Error::usage(format!("the history of {pin} is not what `bench burst --record` writes"))
                .hint("git checkout docs/measurements")
        })?,
    };
    runs.retain(|earlier| !is_same(earlier, &run));
    runs.push(run);
    let history = json!({ "bench": "burst", "pin": pin, "runs": runs });
    Ok(format!("{history:#}\n"))
}

fn read(bytes: &[u8]) -> Option<Vec<Value>> {
    let history: Value = serde_json::from_slice(bytes).ok()?;
    history.get("runs")?.as_array().cloned()
}

/// Two runs with other contestants are two measurements as well.
fn is_same(left: &Value, right: &Value) -> bool {
    IDENTITY.iter().all(|key| left[key] == right[key]) && names(left) == names(right)
}

fn names(run: &Value) -> Vec<&str> {
    let contestants = run["contestants"].as_array().map(Vec::as_slice).unwrap_or_default();
    contestants.iter().filter_map(|one| one["name"].as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::report;
    use super::super::result::tests::example;
    use super::*;

    #[test]
    fn the_same_measurement_is_kept_once() {
        let run = report::json(&example());
        let first = with(None, "v1", run.clone()).unwrap();
        assert_eq!(with(Some(first.as_bytes()), "v1", run.clone()).unwrap(), first);
        let mut other = run;
        other["threads"] = json!(16);
        let both = with(Some(first.as_bytes()), "v1", other).unwrap();
        assert_eq!(read(both.as_bytes()).unwrap().len(), 2);
    }

    #[test]
    fn a_file_of_somebody_elses_is_not_overwritten() {
        let error = with(Some(b"[1]"), "v1", json!({})).unwrap_err();
        assert!(error.to_string().contains("next: git checkout"), "{error}");
    }
}
