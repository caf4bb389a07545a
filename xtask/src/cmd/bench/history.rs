//! What was measured at one pin, kept in the repository: a list of runs, the newest last.

use serde_json::{Value, json};

use crate::error::{Error, Result};

/// What makes two runs of any bench the same measurement: the later one takes the place of the earlier. What a
/// bench does not say is the same.
const IDENTITY: [&str; 13] = [
    "trees",
    "kernels",
    "processor",
    "threads",
    "requests",
    "prefix",
    "suffix",
    "predict",
    "cells",
    "length",
    "sequences",
    "block_count",
    "clients",
];

/// The new text of the file of `bench`, with `run` in it.
pub(super) fn with(before: Option<&[u8]>, bench: &str, pin: &str, run: Value) -> Result<String> {
    let mut runs = match before {
        None => Vec::new(),
        Some(bytes) => read(bytes).ok_or_else(|| {
            Error::usage(format!("the history of {pin} is not what `bench {bench} --record` writes"))
                .hint("git checkout docs/measurements")
        })?,
    };
    runs.retain(|earlier| !is_same(earlier, &run));
    runs.push(run);
    let history = json!({ "bench": bench, "pin": pin, "runs": runs });
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
    use super::*;

    fn run(threads: u32, only: &str) -> Value {
        json!({ "threads": threads, "contestants": [{ "name": only }] })
    }

    #[test]
    fn the_same_measurement_is_kept_once() {
        let first = with(None, "burst", "v1", run(2, "a")).unwrap();
        assert_eq!(with(Some(first.as_bytes()), "burst", "v1", run(2, "a")).unwrap(), first);
        for (other, count) in [(run(16, "a"), 2), (run(2, "b"), 2)] {
            let both = with(Some(first.as_bytes()), "burst", "v1", other).unwrap();
            assert_eq!(read(both.as_bytes()).unwrap().len(), count);
        }
    }

    #[test]
    fn a_file_of_somebody_elses_is_not_overwritten() {
        let error = with(Some(b"[1]"), "burst", "v1", json!({})).unwrap_err();
        assert!(error.to_string().contains("next: git checkout"), "{error}");
    }
}
