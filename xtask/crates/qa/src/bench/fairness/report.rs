//! The report of all scenarios: text and JSON.

use serde_json::{Map, Value, json};

use super::side::Side;
use super::{Options, Scenario};
use crate::bench::timing::NOT_QUIET;
use crate::serving::bench_fixture::Builds;

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

/// The measurements of one binary in one scenario.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Measured {
    pub(super) rows: Vec<Row>,
    pub(super) json: Value,
    /// Violations.
    pub(super) failures: Vec<String>,
}

/// The measurements of one scenario, in the order of the sides.
#[derive(Clone, Debug)]
pub(super) struct Played {
    pub(super) scenario: Scenario,
    pub(super) measured: Vec<Measured>,
}

impl Played {
    /// Returns the violations of the packaged server; the other one is only for comparison.
    fn failures(&self) -> &[String] {
        self.measured.last().map_or(&[], |now| &now.failures)
    }
}

/// One complete run of the bench.
#[derive(Clone, Debug)]
pub(super) struct FairnessRun {
    pub(super) builds: Builds,
    pub(super) processor: Option<String>,
    pub(super) threads: usize,
    pub(super) quiet: bool,
    pub(super) options: Options,
    pub(super) sides: Vec<Side>,
    pub(super) played: Vec<Played>,
}

impl FairnessRun {
    /// Returns one line for every violation.
    pub(super) fn failures(&self) -> Vec<String> {
        let of_scenario = |played: &Played| {
            let name = played.scenario.name();
            played.failures().iter().map(|words| format!("{name}: {words}")).collect::<Vec<_>>()
        };
        self.played.iter().flat_map(of_scenario).collect()
    }
}

/// Returns a Markdown table for each scenario, and the violations.
pub(super) fn text(found: &FairnessRun) -> String {
    let warning = if found.quiet { String::new() } else { format!("{NOT_QUIET}\n\n") };
    let tables: Vec<String> = found.played.iter().map(|played| table(found, played)).collect();
    let failures: String = found.failures().iter().map(|failure| format!("\nnot good: {failure}")).collect();
    format!("{warning}{}{failures}", tables.join("\n"))
}

fn table(found: &FairnessRun, played: &Played) -> String {
    let names: String = found.sides.iter().map(|side| format!(" {} |", side.name)).collect();
    let (ratio, line) = if found.sides.len() > 1 { (" now / before |", "--:|") } else { ("", "") };
    let columns = "--:|".repeat(found.sides.len());
    let Some(last) = played.measured.last() else { return String::new() };
    let rows: String = last.rows.iter().map(|row| line_of(row, played)).collect();
    format!("{}\n\n| what |{names}{ratio}\n|---|{columns}{line}\n{rows}", title(found, played.scenario))
}

fn title(found: &FairnessRun, scenario: Scenario) -> String {
    format!(
        "{}: {}; llama.cpp {}, -t {}, {} s",
        scenario.name(),
        scenario.words(),
        found.builds.pin,
        found.threads,
        found.options.seconds
    )
}

fn line_of(row: &Row, played: &Played) -> String {
    let same = |measured: &Measured| measured.rows.iter().find(|other| other.what == row.what).cloned();
    let all: Vec<Option<Row>> = played.measured.iter().map(same).collect();
    let shown = |row: &Option<Row>| format!(" {} |", row.as_ref().map_or("-", |row| &row.shown));
    let cells: String = all.iter().map(shown).collect();
    let ratio = match all.as_slice() {
        [before, now] => format!(" {} |", ratio_of(now.as_ref(), before.as_ref())),
        _ => String::new(),
    };
    format!("| {} |{cells}{ratio}\n", row.what)
}

fn ratio_of(now: Option<&Row>, before: Option<&Row>) -> String {
    let value = |row: Option<&Row>| row.and_then(|row| row.value).filter(|value| *value > 0.0);
    match (value(now), value(before)) {
        (Some(now), Some(before)) => format!("{:.3}x", now / before),
        _ => "-".to_string(),
    }
}

pub(super) fn json(found: &FairnessRun) -> Value {
    json!({
        "pin": found.builds.pin,
        "trees": found.builds.trees,
        "processor": found.processor,
        "threads": found.threads,
        "quiet": found.quiet,
        "seconds": found.options.seconds,
        "builds": found.sides.iter().map(Side::json).collect::<Vec<_>>(),
        "workloads": found.played.iter().map(|played| played.scenario.name()).collect::<Vec<_>>(),
        "found": found.played.iter().map(|played| found_json(found, played)).collect::<Map<_, _>>(),
        "failures": found.failures(),
    })
}

fn found_json(found: &FairnessRun, played: &Played) -> (String, Value) {
    let sides = found.sides.iter().zip(&played.measured);
    let by_name: Map<_, _> = sides.map(|(side, one)| (side.name.to_string(), one.json.clone())).collect();
    (played.scenario.name().to_string(), by_name.into())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::serving::TimedServing;

    fn side(name: &'static str) -> Side {
        Side { name, program: PathBuf::new(), tree: format!("tree {name}") }
    }

    fn measured(silence: f64, failures: &[&str]) -> Measured {
        let rows = vec![
            Row::seconds("slot 3: silence", silence),
            Row::number("requests that were not answered", 0.0, 0),
        ];
        let failures = failures.iter().map(ToString::to_string).collect();
        Measured { rows, json: json!({ "silence": silence }), failures }
    }

    fn example(sides: &[&'static str], all: Vec<Measured>) -> FairnessRun {
        FairnessRun {
            builds: Builds { pin: "v1".to_string(), ..Builds::default() },
            processor: None,
            threads: 2,
            quiet: true,
            options: Options {
                seconds: 45,
                program: None,
                only: Vec::new(),
                serving: TimedServing::default(),
                record: false,
            },
            sides: sides.iter().map(|name| side(name)).collect(),
            played: vec![Played { scenario: Scenario::Streams, measured: all }],
        }
    }

    fn both() -> FairnessRun {
        example(&["before", "now"], vec![measured(44.0, &["old"]), measured(0.5, &["one"])])
    }

    #[test]
    fn two_binaries_are_compared() {
        insta::assert_snapshot!(text(&both()), @"
        streams: requests of 5 blocks from 6 clients, -np 4 --kv-paged -c 1024, the trained model; llama.cpp v1, -t 2, 45 s

        | what | before | now | now / before |
        |---|--:|--:|--:|
        | slot 3: silence | 44.00 s | 0.50 s | 0.011x |
        | requests that were not answered | 0 | 0 | - |

        not good: streams: one
        ");
    }

    #[test]
    fn one_binary_has_one_column() {
        let found = example(&["now"], vec![measured(0.5, &[])]);
        let text = text(&found);
        assert!(text.contains("| what | now |\n|---|--:|\n| slot 3: silence | 0.50 s |\n"), "{text}");
        assert!(!text.contains("not good"));
    }

    #[test]
    fn the_json_has_what_each_binary_showed() {
        let value = json(&both());
        assert_eq!(value["found"]["streams"]["before"]["silence"], 44.0);
        assert_eq!(value["builds"][1], json!({ "name": "now", "tree": "tree now" }));
        assert_eq!(value["failures"], json!(["streams: one"]));
        assert!(super::text(&FairnessRun { quiet: false, ..both() }).starts_with(NOT_QUIET));
    }
}
