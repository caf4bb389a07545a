//! PURE: the result of all scenarios.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::binary::Binary;
use crate::bench::history::History;
use crate::bench::record::{BenchResult, Head};
use crate::report::table::Table;
use crate::serving::request_record::Span;

/// A row of a table.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    pub(super) what: String,
    /// The value for comparing two binaries; `None` where a ratio is meaningless.
    pub(super) value: Option<f64>,
    pub(super) shown: String,
}

impl Row {
    pub(super) fn number(what: &str, value: f64, decimals: usize) -> Row {
        Row { what: what.to_string(), value: Some(value), shown: format!("{value:.decimals$}") }
    }

    pub(super) fn seconds(what: &str, value: f64) -> Row {
        Row { what: what.to_string(), value: Some(value), shown: format!("{value:.2} s") }
    }
}

/// Formats a period for tables.
pub(super) fn seconds_of(span: Span) -> String {
    let open = if span.is_open { ", to the end" } else { "" };
    format!("{:.2} s{open}", span.seconds)
}

/// The measurements of one binary in one scenario.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Measured {
    pub(super) rows: Vec<Row>,
    pub(super) json: Value,
    /// Violations.
    pub(super) failures: Vec<String>,
}

/// The scenarios that every binary was exposed to.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Fairness {
    seconds: u32,
    builds: Vec<Binary>,
    workloads: Vec<&'static str>,
    /// By workload and binary.
    results: BTreeMap<&'static str, BTreeMap<&'static str, Value>>,
    failures: Vec<String>,
    /// A title and rows for each workload, in the order of the binaries.
    #[serde(skip)]
    tables: Vec<(String, Vec<Vec<Row>>)>,
}

impl Fairness {
    pub(super) fn new(seconds: u32, builds: Vec<Binary>) -> Fairness {
        Fairness { seconds, builds, ..Fairness::default() }
    }

    /// Adds the measurements of a workload, in the order of the binaries. Only violations of the packaged server, the
    /// last one, count; the other one is for comparison.
    pub(super) fn add(&mut self, workload: &'static str, title: String, measured: Vec<Measured>) {
        let failures = measured.last().map(|now| now.failures.as_slice()).unwrap_or_default();
        self.failures.extend(failures.iter().map(|words| format!("{workload}: {words}")));
        self.workloads.push(workload);
        let named =
            self.builds.iter().zip(&measured).map(|(one, measured)| (one.name, measured.json.clone()));
        self.results.insert(workload, named.collect());
        self.tables.push((title, measured.into_iter().map(|one| one.rows).collect()));
    }

    fn table(&self, rows: &[Vec<Row>]) -> Table {
        let names = self.builds.iter().map(|one| one.name);
        let ratio = (self.builds.len() > 1).then_some("now / before");
        let columns: Vec<&str> = std::iter::once("what").chain(names).chain(ratio).collect();
        let last = rows.last().map(Vec::as_slice).unwrap_or_default();
        Table::new(&columns.join(" | "), last.iter().map(|row| cells(&row.what, rows)))
    }
}

/// Returns one row of a table for all binaries.
fn cells(what: &str, rows: &[Vec<Row>]) -> String {
    let find = |rows: &Vec<Row>| rows.iter().find(|row| row.what == what).cloned();
    let all: Vec<Option<Row>> = rows.iter().map(find).collect();
    let shown = all.iter().map(|row| row.as_ref().map_or("-".to_string(), |row| row.shown.clone()));
    let ratio = match all.as_slice() {
        [before, now] => Some(ratio_of(now.as_ref(), before.as_ref())),
        _ => None,
    };
    std::iter::once(what.to_string()).chain(shown).chain(ratio).collect::<Vec<_>>().join(" | ")
}

fn ratio_of(now: Option<&Row>, before: Option<&Row>) -> String {
    let value = |row: Option<&Row>| row.and_then(|row| row.value).filter(|value| *value > 0.0);
    match (value(now), value(before)) {
        (Some(now), Some(before)) => format!("{:.3}x", now / before),
        _ => "-".to_string(),
    }
}

impl BenchResult for Fairness {
    const HISTORY: History =
        History { bench: "fairness", identity: "trees processor threads seconds builds workloads" };

    fn tables(&self, head: &Head) -> String {
        let (pin, threads, seconds) = (&head.pin, head.threads(), self.seconds);
        let table = |(title, rows): &(String, Vec<Vec<Row>>)| {
            format!("{title}; llama.cpp {pin}, -t {threads}, {seconds} s\n\n{}", self.table(rows))
        };
        self.tables.iter().map(table).collect::<Vec<_>>().join("\n")
    }

    fn failures(&self) -> &[String] {
        &self.failures
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use serde_json::json;

    use super::*;
    use crate::bench::record::Record;
    use crate::bench::record::tests::head;

    fn measured(gap: f64, failures: &[&str]) -> Measured {
        let rows = vec![
            Row::seconds("slot 3: longest inter-token time", gap),
            Row::number("requests that were not answered", 0.0, 0),
        ];
        let failures = failures.iter().map(ToString::to_string).collect();
        Measured { rows, json: json!({ "gap": gap }), failures }
    }

    fn example(names: &[&'static str], measured: Vec<Measured>) -> Record<Fairness> {
        let binary =
            |name: &'static str| Binary { name, program: PathBuf::new(), tree: format!("tree {name}") };
        let mut result = Fairness::new(45, names.iter().copied().map(binary).collect());
        result.add("streams", "streams: requests of 5 blocks".to_string(), measured);
        Record { head: head(), result }
    }

    fn both() -> Record<Fairness> {
        example(&["before", "now"], vec![measured(44.0, &["old"]), measured(0.5, &["one"])])
    }

    #[test]
    fn two_binaries_are_compared() {
        insta::assert_snapshot!(both().text(), @"
        streams: requests of 5 blocks; llama.cpp v1, -t 2, 45 s

        | what | before | now | now / before |
        |---|--:|--:|--:|
        | slot 3: longest inter-token time | 44.00 s | 0.50 s | 0.011x |
        | requests that were not answered | 0 | 0 | - |

        not good: streams: one
        ");
    }

    #[test]
    fn one_binary_has_one_column() {
        let text = example(&["now"], vec![measured(0.5, &[])]).text();
        let table = "| what | now |\n|---|--:|\n| slot 3: longest inter-token time | 0.50 s |\n";
        assert!(text.contains(table), "{text}");
        assert!(!text.contains("not good"));
    }

    #[test]
    fn the_json_has_what_each_binary_showed() {
        let value = json!(both());
        assert_eq!(value["results"]["streams"]["before"]["gap"], 44.0);
        assert_eq!(value["builds"][1], json!({ "name": "now", "tree": "tree now" }));
        assert_eq!(value["failures"], json!(["streams: one"]));
    }
}
