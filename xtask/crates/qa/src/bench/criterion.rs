//! The kernels' criterion benchmarks.

use std::path::Path;

use espalier_core::context::Context;
use espalier_core::error::{Error, Result};
use espalier_core::sys::machine::disk;
use espalier_core::sys::machine::owned;
use espalier_core::sys::machine::process;
use serde_json::Value;

/// Folder of a benchmark's newest result, as criterion names it.
const NEWEST: &str = "new";

/// Criterion's result of one benchmark. Times are in nanoseconds per call.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Measured {
    /// Group, function and parameter, separated by `/`.
    pub(super) name: String,
    /// Elements processed by one call, as the benchmark declares them.
    pub(super) elements: f64,
    /// Bytes read by one call; 0 where the benchmark does not declare them.
    pub(super) bytes: f64,
    pub(super) median: f64,
    /// Bounds of the 95 % confidence interval of the median.
    pub(super) low: f64,
    pub(super) high: f64,
}

/// Runs one benchmark target of the kernels.
pub(super) fn run(context: &Context, target: &str) -> Result<Vec<Measured>> {
    let results = context.layout.generated().join("bench/criterion");
    owned::remove_folder(&results)?;
    let status = process::cargo(&context.layout.cargo_target("bench"))
        .args(["bench", "--quiet", "--locked", "--package", "espalier-kernels"])
        .args(["--features", "benches", "--bench", target])
        .args(["--", "--noplot"])
        .env("CRITERION_HOME", &results)
        .current_folder(context.layout.root())
        .show()?;
    if !status.success() {
        return Err(Error::no(format!("`cargo bench` ended {}", process::ending(status))));
    }
    let measured = read_all(&results)?;
    if measured.is_empty() {
        return Err(Error::no("criterion produced no measurements")
            .hint(format!("cargo bench --package espalier-kernels --features benches --bench {target}")));
    }
    Ok(measured)
}

fn read_all(results: &Path) -> Result<Vec<Measured>> {
    let files = disk::files_below(results)?;
    let newest = files.iter().filter(|file| file.ends_with(Path::new(NEWEST).join("benchmark.json")));
    newest
        .map(|file| {
            let path = results.join(file);
            let benchmark = disk::read_text(&path)?;
            let estimates = disk::read_text(&path.with_file_name("estimates.json"))?;
            let measured = parse(&benchmark, &estimates);
            measured.ok_or_else(|| Error::no(format!("{} is not what criterion writes", path.display())))
        })
        .collect()
}

fn parse(benchmark: &str, estimates: &str) -> Option<Measured> {
    let benchmark: Value = serde_json::from_str(benchmark).ok()?;
    let estimates: Value = serde_json::from_str(estimates).ok()?;
    let throughput = &benchmark["throughput"];
    let both = &throughput["ElementsAndBytes"];
    let elements = throughput["Elements"].as_f64().or(both["elements"].as_f64());
    let median = &estimates["median"];
    let interval = &median["confidence_interval"];
    Some(Measured {
        name: benchmark["full_id"].as_str()?.to_string(),
        elements: elements.filter(|count| *count > 0.0)?,
        bytes: both["bytes"].as_f64().unwrap_or(0.0),
        median: median["point_estimate"].as_f64()?,
        low: interval["lower_bound"].as_f64()?,
        high: interval["upper_bound"].as_f64()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ESTIMATES: &str = r#"{ "median": { "point_estimate": 5000.0,
        "confidence_interval": { "lower_bound": 4900.0, "upper_bound": 5200.0 } } }"#;

    #[test]
    fn elements_are_read_with_bytes_and_without() {
        let plain = r#"{ "full_id": "evict/100 blocks", "throughput": { "Elements": 100 } }"#;
        let measured = parse(plain, ESTIMATES).unwrap();
        assert_eq!((measured.elements, measured.bytes, measured.median), (100.0, 0.0, 5000.0));
        let both =
            r#"{ "full_id": "x", "throughput": { "ElementsAndBytes": { "elements": 7, "bytes": 9 } } }"#;
        let measured = parse(both, ESTIMATES).unwrap();
        assert_eq!((measured.elements, measured.bytes), (7.0, 9.0));
    }

    #[test]
    fn benchmarks_without_elements_are_skipped() {
        assert_eq!(parse(r#"{ "full_id": "evict" }"#, ESTIMATES), None);
    }
}
