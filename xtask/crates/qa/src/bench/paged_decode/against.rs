//! Decode speed against the context and against the number of sequences: plots of all measurements in a pin's history
//! for one processor, model and cache.

use std::collections::BTreeMap;

use espalier_core::context::Context;
use espalier_core::error::Result;
use espalier_core::sys::machine::disk;
use serde_json::Value;

use super::report::PagedDecodeRun;
use super::{HISTORY, Workload};
use crate::bench::history;
use crate::report::curves::{Axis, Curve, Curves, Scale};

/// One median of the history.
#[derive(Clone, Debug, PartialEq)]
struct Reading {
    name: String,
    length: u64,
    sequences: u64,
    rate: f64,
}

/// Rewrites both plots.
pub(super) fn write(context: &Context, found: &PagedDecodeRun) -> Result<()> {
    let pin = &found.builds.pin;
    let bytes = disk::read_if_there(&context.layout.measurements(HISTORY.bench, pin, "json"))?;
    let runs = bytes.as_deref().and_then(history::read).unwrap_or_default();
    let readings: Vec<Reading> = runs.iter().filter(|run| is_alike(run, found)).flat_map(readings).collect();
    for (against, plot) in
        [("context", by_context(found, &readings)), ("sequences", by_sequences(found, &readings))]
    {
        let file = context.layout.measurements(&shape(&found.workload, against), pin, "svg");
        disk::write_atomically(&file, plot.svg().as_bytes())?;
        context.ui.status("Recorded", context.layout.show(&file));
    }
    Ok(())
}

fn shape(workload: &Workload, against: &str) -> String {
    let Workload { head, cache, shared, .. } = workload;
    let shared = if *shared == 0 { "own" } else { "shared" };
    let cache = cache.replace('/', "-");
    format!("{}-against-{against}-head-{head}-{cache}-{shared}", HISTORY.bench)
}

/// Whether a run belongs into the same plots, in particular whether its prompts share a prefix as here.
fn is_alike(run: &Value, found: &PagedDecodeRun) -> bool {
    let Workload { head, cache, shared, .. } = &found.workload;
    run["processor"].as_str() == found.processor.as_deref()
        && run["threads"].as_u64() == Some(found.threads as u64)
        && run["head"].as_u64() == Some(*head)
        && run["cache"].as_str() == Some(cache)
        && run["shared"].as_u64().map(|shared| shared > 0) == Some(*shared > 0)
}

fn readings(run: &Value) -> Vec<Reading> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let length = run["length"].as_u64().unwrap_or_default();
    let of_case = |case: Value| {
        let sequences = case["sequences"].as_u64().unwrap_or_default();
        let reading = move |one: Value| {
            let name = one["name"].as_str()?.to_string();
            Some(Reading { name, length, sequences, rate: one["median_rate"].as_f64()? })
        };
        list(&case["servers"]).into_iter().filter_map(reading).collect::<Vec<_>>()
    };
    list(&run["cases"]).into_iter().flat_map(of_case).collect()
}

fn by_context(found: &PagedDecodeRun, readings: &[Reading]) -> Curves {
    let curve = |one: &Reading| (format!("{}, {} at once", one.name, one.sequences), one.length);
    plot(found, readings, "tokens of context of each sequence", curve)
}

fn by_sequences(found: &PagedDecodeRun, readings: &[Reading]) -> Curves {
    let curve = |one: &Reading| (format!("{}, {} tokens", one.name, one.length), one.sequences);
    plot(found, readings, "sequences at once", curve)
}

fn plot(
    found: &PagedDecodeRun,
    readings: &[Reading],
    x: &str,
    of: impl Fn(&Reading) -> (String, u64),
) -> Curves {
    // Of several readings of one point, the last one counts.
    let mut curves: BTreeMap<String, BTreeMap<u64, f64>> = BTreeMap::new();
    for reading in readings {
        let (name, at) = of(reading);
        curves.entry(name).or_default().insert(at, reading.rate);
    }
    let axis = |name: &str| Axis { name: name.to_string(), scale: Scale::Logarithmic };
    let curve = |(name, points): (String, BTreeMap<u64, f64>)| Curve {
        name,
        points: points.into_iter().map(|(at, rate)| (at as f64, rate)).collect(),
    };
    let Workload { head, cache, shared, .. } = &found.workload;
    let shared = if *shared == 0 { "nothing shared" } else { "nearly all of a prompt shared" };
    Curves {
        title: format!("Decoding: tokens a second of all sequences, {shared}"),
        subtitle: format!(
            "llama.cpp {}, qwen3 of 70 M weights, heads of {head}, cache {cache}, -t {}, {}",
            found.builds.pin,
            found.threads,
            found.processor.as_deref().unwrap_or("this machine")
        ),
        x: axis(x),
        y: axis("tokens/s"),
        curves: curves.into_iter().map(curve).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn run(length: u64, shared: u64, sequences: u64, rate: f64) -> Value {
        let rates = json!([{ "name": "paged", "median_rate": rate }]);
        json!({ "processor": "P", "threads": 1, "head": 64, "cache": "f16", "length": length, "shared": shared,
                "cases": [{ "sequences": sequences, "filled": false, "servers": rates }] })
    }

    fn found(shared: usize) -> PagedDecodeRun {
        let cache = "f16".to_string();
        let workload = Workload { length: 64, shared, predict: 2, cells: 1, head: 64, cache, fresh: true };
        let processor = Some("P".to_string());
        PagedDecodeRun {
            builds: Default::default(),
            processor,
            threads: 1,
            quiet: true,
            workload,
            cases: Vec::new(),
        }
    }

    fn all(runs: &[Value], found: &PagedDecodeRun) -> Vec<Reading> {
        runs.iter().filter(|run| is_alike(run, found)).flat_map(readings).collect()
    }

    #[test]
    fn a_curve_is_of_one_number_of_sequences_or_of_one_context() {
        let runs = [run(64, 0, 1, 9.0), run(1536, 0, 1, 5.0), run(1536, 0, 16, 7.0), run(1536, 0, 16, 8.0)];
        let readings = all(&runs, &found(0));
        let curves = by_context(&found(0), &readings).curves;
        assert_eq!(
            (curves[0].name.as_str(), &curves[0].points[..]),
            ("paged, 1 at once", &[(64.0, 9.0), (1536.0, 5.0)][..])
        );
        assert_eq!(curves[1].points, [(1536.0, 8.0)]);
        let curves = by_sequences(&found(0), &readings).curves;
        assert_eq!(
            (curves[0].name.as_str(), &curves[0].points[..]),
            ("paged, 1536 tokens", &[(1.0, 5.0), (16.0, 8.0)][..])
        );
    }

    #[test]
    fn what_shares_is_not_mixed_with_what_does_not() {
        let runs = [run(64, 32, 1, 9.0), run(64, 0, 1, 5.0)];
        assert_eq!(all(&runs, &found(0))[0].rate, 5.0);
        assert_eq!(all(&runs, &found(32)).len(), 1);
    }

    #[test]
    fn the_plots_are_named_after_what_they_are_of() {
        let name = shape(&found(32).workload, "context");
        assert_eq!(name, "paged-decode-against-context-head-64-f16-shared");
    }
}
