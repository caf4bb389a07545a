//! What was measured at one pin, kept in the repository: a list of runs, the newest last.

use serde_json::{Value, json};

use crate::error::{Error, Result};

/// A bench that keeps its runs.
#[derive(Clone, Copy, Debug)]
pub struct History {
    /// As the command calls it.
    pub bench: &'static str,
    /// What makes two runs the same measurement: the later one takes the place of the earlier.
    pub identity: &'static [&'static str],
}

impl History {
    /// The file's new text, with `run` in it.
    pub fn with(&self, before: Option<&[u8]>, pin: &str, run: Value) -> Result<String> {
        let mut runs = match before {
            None => Vec::new(),
            Some(bytes) => read(bytes).ok_or_else(|| self.not_ours(pin))?,
        };
        runs.retain(|earlier| !self.is_same(earlier, &run));
        runs.push(run);
        let history = json!({ "bench": self.bench, "pin": pin, "runs": runs });
        Ok(format!("{history:#}\n"))
    }

    fn not_ours(&self, pin: &str) -> Error {
        Error::usage(format!("the history of {pin} is not what `bench {} --record` writes", self.bench))
            .hint("git checkout docs/measurements")
    }

    /// Two runs with other contestants are two measurements as well.
    fn is_same(&self, left: &Value, right: &Value) -> bool {
        self.identity.iter().all(|key| left[key] == right[key]) && names(left) == names(right)
    }
}

/// The runs of a history; none where it is not one.
pub fn read(bytes: &[u8]) -> Option<Vec<Value>> {
    let history: Value = serde_json::from_slice(bytes).ok()?;
    history.get("runs")?.as_array().cloned()
}

fn names(run: &Value) -> Vec<&str> {
    let contestants = run["contestants"].as_array().map(Vec::as_slice).unwrap_or_default();
    contestants.iter().filter_map(|one| one["name"].as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HISTORY: History = History { bench: "burst", identity: &["threads"] };

    fn run(threads: u64, name: &str) -> Value {
        json!({ "threads": threads, "median": 1.0, "contestants": [{ "name": name }] })
    }

    #[test]
    fn the_same_measurement_is_kept_once() {
        let first = HISTORY.with(None, "v1", run(2, "stock")).unwrap();
        assert_eq!(HISTORY.with(Some(first.as_bytes()), "v1", run(2, "stock")).unwrap(), first);
        for other in [run(16, "stock"), run(2, "paged")] {
            let both = HISTORY.with(Some(first.as_bytes()), "v1", other).unwrap();
            assert_eq!(read(both.as_bytes()).unwrap().len(), 2);
        }
    }

    #[test]
    fn a_file_of_somebody_elses_is_not_overwritten() {
        let error = HISTORY.with(Some(b"[1]"), "v1", json!({})).unwrap_err();
        assert!(error.to_string().contains("next: git checkout"), "{error}");
    }
}
