//! The kernels bench: operations of the block pool on one core, as criterion measures them.

use std::path::Path;

use serde_json::{Value, json};

use super::history::History;
use super::record::{Keep, Recorded};
use crate::context::{Context, Outcome};
use crate::error::{Error, Result};
use crate::report::bars::{Bar, Bars};
use crate::sys::machine::ours;
use crate::sys::machine::process::{self, Run};
use crate::sys::machine::{disk, load};

/// The folder of a benchmark's newest result, as criterion names it.
const NEWEST: &str = "new";

const HISTORY: History = History { bench: "kernels", identity: &["processor"] };

/// Nanoseconds for one element (a token or a block), as criterion estimates them.
#[derive(Clone, Debug, PartialEq)]
struct Operation {
    name: String,
    median: f64,
    /// Both ends of the interval that has the median with 95 % confidence.
    low: f64,
    high: f64,
}

/// Measures and prints a table.
pub fn run(context: &Context, keep: &Keep) -> Result<Outcome> {
    load::refuse_busy()?;
    context.ui.status("Measuring", "operations of the block pool, about a minute");
    let results = context.layout.generated().join("bench/criterion");
    ours::remove_folder(&results)?;
    let status = bench(context, &results).show()?;
    if !status.success() {
        return Err(Error::no(format!("`cargo bench` ended {}", process::ending(status))));
    }
    let operations = read_all(&results)?;
    let pins = context.pins()?;
    let pin = &pins.pin_of(pins.variant(None)?).revision.to_string();
    let recorded = Recorded {
        history: HISTORY,
        pin,
        run: to_json(&operations, load::processor()),
        shape: "kernels".to_string(),
        plot: plot(&operations, load::processor()),
    };
    let (text, run) = (table(&operations), recorded.run.clone());
    recorded.write(context, keep)?;
    Ok(Outcome::ok(text, run))
}

fn bench(context: &Context, results: &Path) -> Run {
    process::cargo(&context.layout.cargo_target("bench"))
        .args([
            "bench",
            "--quiet",
            "--locked",
            "--package",
            "espalier-kernels",
            "--bench",
            "pool",
            "--",
            "--noplot",
        ])
        .env("CRITERION_HOME", results)
        .current_folder(context.layout.root())
}

fn read_all(results: &Path) -> Result<Vec<Operation>> {
    let mut operations = Vec::new();
    for file in disk::files_below(results)? {
        if file.ends_with(Path::new(NEWEST).join("benchmark.json")) {
            let path = results.join(&file);
            let (benchmark, estimates) =
                (disk::read_text(&path)?, disk::read_text(&path.with_file_name("estimates.json"))?);
            let operation = parse(&benchmark, &estimates);
            operations.push(
                operation
                    .ok_or_else(|| Error::no(format!("{} is not what criterion writes", path.display())))?,
            );
        }
    }
    if operations.is_empty() {
        return Err(Error::no("criterion measured nothing")
            .hint("cargo bench --package espalier-kernels --bench pool"));
    }
    Ok(operations)
}

fn parse(benchmark: &str, estimates: &str) -> Option<Operation> {
    let benchmark: Value = serde_json::from_str(benchmark).ok()?;
    let estimates: Value = serde_json::from_str(estimates).ok()?;
    let elements = benchmark["throughput"]["Elements"].as_f64().filter(|count| *count > 0.0)?;
    let median = &estimates["median"];
    let nanoseconds = |value: &Value| Some(value.as_f64()? / elements);
    Some(Operation {
        name: benchmark["full_id"].as_str()?.replace('/', ": "),
        median: nanoseconds(&median["point_estimate"])?,
        low: nanoseconds(&median["confidence_interval"]["lower_bound"])?,
        high: nanoseconds(&median["confidence_interval"]["upper_bound"])?,
    })
}

impl Operation {
    fn millions_a_second(&self) -> f64 {
        1e3 / self.median
    }
}

fn table(operations: &[Operation]) -> String {
    let row = |one: &Operation| {
        let Operation { name, median, low, high } = one;
        format!(
            "| {name} | {median:.1} ns | {low:.1} - {high:.1} ns | {:.1} M/s |\n",
            one.millions_a_second()
        )
    };
    let rows: String = operations.iter().map(row).collect();
    format!(
        "The block pool, one core, for one token or block\n\n| what | median | 95 % interval | operations |\n|---|--:|--:|--:|\n{rows}"
    )
}

fn to_json(operations: &[Operation], processor: Option<String>) -> Value {
    let one = |operation: &Operation| json!({ "name": operation.name, "median_ns": operation.median, "low_ns": operation.low, "high_ns": operation.high });
    json!({ "processor": processor, "operations": operations.iter().map(one).collect::<Vec<_>>() })
}

fn plot(operations: &[Operation], processor: Option<String>) -> String {
    let bar = |one: &Operation| Bar {
        label: one.name.clone(),
        value: one.median,
        low: one.low,
        high: one.high,
        note: format!("{:.1} ns, {:.1} M/s", one.median, one.millions_a_second()),
    };
    Bars {
        title: "Operations of the block pool, nanoseconds for one token or block".to_string(),
        subtitle: format!(
            "one core of {}; 95 % intervals of the median",
            processor.as_deref().unwrap_or("this machine")
        ),
        bars: operations.iter().map(bar).collect(),
        line: None,
    }
    .svg()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BENCHMARK: &str = r#"{ "full_id": "evict/100 blocks", "throughput": { "Elements": 100 } }"#;
    const ESTIMATES: &str = r#"{ "median": { "point_estimate": 5000.0,
        "confidence_interval": { "lower_bound": 4900.0, "upper_bound": 5200.0 } } }"#;

    #[test]
    fn an_estimate_is_of_one_element() {
        let operation = parse(BENCHMARK, ESTIMATES).unwrap();
        assert_eq!((operation.median, operation.low, operation.high), (50.0, 49.0, 52.0));
        insta::assert_snapshot!(table(&[operation]), @"
        The block pool, one core, for one token or block

        | what | median | 95 % interval | operations |
        |---|--:|--:|--:|
        | evict: 100 blocks | 50.0 ns | 49.0 - 52.0 ns | 20.0 M/s |
        ");
    }

    #[test]
    fn what_says_no_elements_is_not_read() {
        assert_eq!(parse(r#"{ "full_id": "evict" }"#, ESTIMATES), None);
    }
}
