//! The measurements at one pin, kept in the repository: a list of runs, the newest last.

use std::collections::BTreeMap;

use espalier_core::error::{Error, Result};
use serde_json::{Value, json};

/// A bench whose runs are kept.
#[derive(Clone, Copy, Debug)]
pub struct History {
    /// Name of the bench's command.
    pub bench: &'static str,
    /// Keys that identify a measurement, separated by spaces: a later run with the same values replaces an earlier one.
    pub identity: &'static str,
}

impl History {
    /// Returns the file's new text, which includes `run`.
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

    /// Runs with different servers under test are different measurements as well.
    fn is_same(&self, left: &Value, right: &Value) -> bool {
        self.identity.split(' ').all(|key| left[key] == right[key]) && names(left) == names(right)
    }
}

/// Returns the runs of each benchmark at every pin, the newest last, from the contents of all files; one that is not a
/// history has none. A run from before records had a head gets the pin of its history.
pub fn by_bench(files: impl IntoIterator<Item = Vec<u8>>) -> BTreeMap<String, Vec<Value>> {
    let mut runs: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for bytes in files {
        let history: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let text = |key: &str| history[key].as_str().unwrap_or_default();
        let found = read(&bytes).unwrap_or_default().into_iter().map(|run| with_pin(run, text("pin")));
        runs.entry(text("bench").to_string()).or_default().extend(found);
    }
    let day = |run: &Value| run["date"].as_str().map(str::to_string);
    runs.values_mut().for_each(|runs| runs.sort_by_key(day));
    runs
}

fn with_pin(mut run: Value, pin: &str) -> Value {
    if let Some(run) = run.as_object_mut() {
        run.entry("pin").or_insert_with(|| json!(pin));
    }
    run
}

/// Returns the runs of a history; `None` if the text is not a history.
pub fn read(bytes: &[u8]) -> Option<Vec<Value>> {
    let history: Value = serde_json::from_slice(bytes).ok()?;
    history.get("runs")?.as_array().cloned()
}

fn names(run: &Value) -> Vec<&str> {
    let test_servers = run["servers"].as_array().map(Vec::as_slice).unwrap_or_default();
    test_servers.iter().filter_map(|one| one["name"].as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HISTORY: History = History { bench: "burst", identity: "threads" };

    fn run(threads: u64, name: &str) -> Value {
        json!({ "threads": threads, "median": 1.0, "servers": [{ "name": name }] })
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
    fn the_runs_of_all_pins_are_in_the_order_of_their_days() {
        let dated = |day: &str| json!({ "threads": 1, "date": day, "servers": [] });
        let at = |pin: &str, day: &str| HISTORY.with(None, pin, dated(day)).unwrap().into_bytes();
        let files =
            [at("v2", "2026-11-03"), b"[1]".to_vec(), at("v1", "2026-11-01"), at("v10", "2026-11-02")];
        let found = by_bench(files);
        let days: Vec<&str> = found["burst"].iter().map(|run| run["date"].as_str().unwrap()).collect();
        assert_eq!(days, ["2026-11-01", "2026-11-02", "2026-11-03"]);
        let pins: Vec<&str> = found["burst"].iter().map(|run| run["pin"].as_str().unwrap()).collect();
        assert_eq!(pins, ["v1", "v10", "v2"]);
    }

    #[test]
    fn a_file_of_others_is_not_overwritten() {
        let error = HISTORY.with(Some(b"[1]"), "v1", json!({})).unwrap_err();
        assert!(error.to_string().contains("next: git checkout"), "{error}");
    }
}
