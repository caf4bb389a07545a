//! Decode speed against the context and against the number of sequences: plots of all measurements in a pin's history
//! for one processor, model and cache.

use std::collections::BTreeMap;

use espalier_core::context::Context;
use espalier_core::error::Result;
use espalier_core::sys::machine::disk;
use serde::Deserialize;

use super::{PagedDecode, Workload};
use crate::bench::history;
use crate::bench::record::{BenchResult, Record};
use crate::report::curves::{Axis, Curve, Curves, Scale};

const BENCH: &str = PagedDecode::HISTORY.bench;

type Run = Record<PagedDecode>;

/// Rewrites both plots.
pub(super) fn write(context: &Context, found: &Run) -> Result<()> {
    let pin = &found.head.pin;
    let bytes = disk::read_if_there(&context.layout.measurements(BENCH, pin, "json"))?;
    let runs = bytes.as_deref().and_then(history::read).unwrap_or_default();
    let runs: Vec<Run> = runs.iter().filter_map(|run| Run::deserialize(run).ok()).collect();
    for (against, plot) in [("context", by_context(found, &runs)), ("sequences", by_sequences(found, &runs))]
    {
        let file = context.layout.measurements(&shape(&found.result.workload, against), pin, "svg");
        disk::write_atomically(&file, plot.svg().as_bytes())?;
        context.ui.status("Recorded", context.layout.show(&file));
    }
    Ok(())
}

fn shape(workload: &Workload, against: &str) -> String {
    let Workload { head, cache, shared, .. } = workload;
    let shared = if *shared == 0 { "own" } else { "shared" };
    let cache = cache.replace('/', "-");
    format!("{BENCH}-against-{against}-head-{head}-{cache}-{shared}")
}

/// Whether two runs belong into the same plots, in particular whether the prompts of both share a prefix.
fn are_alike(left: &Run, right: &Run) -> bool {
    let conditions = |run: &Run| {
        let Workload { head, cache, shared, .. } = run.result.workload.clone();
        (run.head.processor.clone(), run.head.threads, head, cache, shared > 0)
    };
    conditions(left) == conditions(right)
}

fn by_context(found: &Run, runs: &[Run]) -> Curves {
    let curve =
        |name: &str, length: usize, sequences: usize| (format!("{name}, {sequences} at once"), length);
    plot(found, runs, "tokens of context of each sequence", curve)
}

fn by_sequences(found: &Run, runs: &[Run]) -> Curves {
    let curve = |name: &str, length: usize, sequences: usize| (format!("{name}, {length} tokens"), sequences);
    plot(found, runs, "sequences at once", curve)
}

/// Plots the medians of the runs that are like `found`. `of` returns the curve of a median, and its place there, from
/// the name of the server, the length of the prompts and the number of sequences.
fn plot(found: &Run, runs: &[Run], x: &str, of: impl Fn(&str, usize, usize) -> (String, usize)) -> Curves {
    // Of several medians of one point, the last one counts.
    let mut curves: BTreeMap<String, BTreeMap<usize, f64>> = BTreeMap::new();
    for PagedDecode { workload, cases, .. } in
        runs.iter().filter(|run| are_alike(run, found)).map(|run| &run.result)
    {
        for (case, server) in cases.iter().flat_map(|case| case.servers.iter().map(move |one| (case, one))) {
            let (name, at) = of(server.name.name(), workload.length, case.sequences);
            curves.entry(name).or_default().extend(server.median_rate.map(|rate| (at, rate)));
        }
    }
    let axis = |name: &str| Axis { name: name.to_string(), scale: Scale::Logarithmic };
    let curve = |(name, points): (String, BTreeMap<usize, f64>)| Curve {
        name,
        points: points.into_iter().map(|(at, rate)| (at as f64, rate)).collect(),
    };
    let Workload { head, cache, shared, .. } = &found.result.workload;
    let shared = if *shared == 0 { "nothing shared" } else { "nearly all of a prompt shared" };
    Curves {
        title: format!("Decoding: tokens per second of all sequences, {shared}"),
        subtitle: format!(
            "llama.cpp {}, qwen3 of 70 M weights, heads of {head}, cache {cache}, -t {}, {}",
            found.head.pin,
            found.head.threads(),
            found.head.machine()
        ),
        x: axis(x),
        y: axis("tokens/s"),
        curves: curves.into_iter().map(curve).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::workload;
    use super::*;
    use crate::bench::paged_decode::Case;
    use crate::bench::paged_decode::record::Sample;
    use crate::bench::record::tests::head;
    use crate::serving::test_server::TestServer;

    fn run(length: usize, shared: usize, sequences: usize, rate: f64) -> Run {
        let mut case = Case::new(sequences, false, &[TestServer::Paged]);
        case.servers[0].push(Sample { prompt_rate: 1.0, rate, computed: 0, filled: None });
        let workload = Workload { length, shared, ..workload() };
        Record { head: head(), result: PagedDecode::new(sequences, workload, vec![case]) }
    }

    #[test]
    fn a_curve_is_of_one_number_of_sequences_or_of_one_context() {
        let runs = [run(64, 0, 1, 9.0), run(1536, 0, 1, 5.0), run(1536, 0, 16, 7.0), run(1536, 0, 16, 8.0)];
        let curves = by_context(&runs[0], &runs).curves;
        assert_eq!(
            (curves[0].name.as_str(), &curves[0].points[..]),
            ("paged, 1 at once", &[(64.0, 9.0), (1536.0, 5.0)][..])
        );
        assert_eq!(curves[1].points, [(1536.0, 8.0)]);
        let curves = by_sequences(&runs[0], &runs).curves;
        assert_eq!(
            (curves[0].name.as_str(), &curves[0].points[..]),
            ("paged, 1536 tokens", &[(1.0, 5.0), (16.0, 8.0)][..])
        );
    }

    #[test]
    fn runs_with_and_without_a_shared_prefix_are_separate() {
        let runs = [run(64, 32, 1, 9.0), run(64, 0, 1, 5.0)];
        let points = |found: &Run| by_context(found, &runs).curves[0].points.clone();
        assert_eq!((points(&runs[1]), points(&runs[0])), (vec![(64.0, 5.0)], vec![(64.0, 9.0)]));
    }

    #[test]
    fn the_plots_are_named_after_what_they_are_of() {
        let name = shape(&run(64, 32, 1, 9.0).result.workload, "context");
        assert_eq!(name, "paged-decode-against-context-head-64-f16-shared");
    }
}
