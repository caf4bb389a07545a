//! PURE: the result of the streams bench.

use std::time::Duration;

use serde::Serialize;

use super::{MAILBOX, PROMPT, Workload};
use crate::bench::history::History;
use crate::bench::record::{BenchResult, Head};
use crate::report::samples::{Samples, percentile};
use crate::report::table::Table;
use crate::serving::request_record::RequestRecord;

/// Counters of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Counters {
    pub(super) at: Duration,
    pub(super) steps: f64,
    /// Number of times that its threads have blocked.
    pub(super) wake_ups: f64,
    pub(super) processor_seconds: f64,
}

/// The figures of one server in one round, in the order of [`FIGURES`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Round([f64; FIGURES.len()]);

/// The figures of a round.
const FIGURES: [&str; 5] = [
    "time of a step, ms",
    "wake-ups in a step",
    "CPU time of a step, ms",
    "inter-token latency, median, ms",
    "inter-token latency, p99, ms",
];

impl Round {
    /// Evaluates what happened between the two moments at which the counters were read.
    pub(super) fn of(records: &[RequestRecord], [begin, end]: &[Counters; 2]) -> Round {
        let steps = (end.steps - begin.steps).max(1.0);
        let latencies: Vec<f64> = records.iter().flat_map(|one| latencies(one, begin.at, end.at)).collect();
        let of_all = |percent: usize| percentile(latencies.clone(), percent).unwrap_or_default();
        Round([
            1e3 * (end.at - begin.at).as_secs_f64() / steps,
            (end.wake_ups - begin.wake_ups) / steps,
            1e3 * (end.processor_seconds - begin.processor_seconds) / steps,
            1e3 * of_all(50),
            1e3 * of_all(99),
        ])
    }
}

/// Returns the inter-token latencies of the tokens that arrived within a period.
fn latencies(record: &RequestRecord, from: Duration, to: Duration) -> Vec<f64> {
    let first = record.arrivals.partition_point(|at| *at < from);
    let end = record.arrivals.partition_point(|at| *at <= to);
    record.inter_token_latencies(first..end)
}

/// All rounds.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Streams {
    #[serde(flatten)]
    workload: Workload,
    prompt: usize,
    loads: Vec<Load>,
}

/// The rounds of one number of streams.
#[derive(Clone, Debug, Serialize)]
struct Load {
    streams: usize,
    slots: usize,
    figures: Vec<Figure>,
}

/// A figure of both servers.
#[derive(Clone, Debug, Serialize)]
struct Figure {
    name: &'static str,
    off: Samples,
    on: Samples,
}

impl Streams {
    pub(super) fn new(workload: Workload) -> Streams {
        let figure = |name| Figure { name, off: Samples::default(), on: Samples::default() };
        let load = |streams: &u32| Load {
            streams: *streams as usize,
            slots: Workload::slots(*streams as usize),
            figures: FIGURES.map(figure).into(),
        };
        let loads = workload.streams.iter().map(load).collect();
        Streams { workload, prompt: PROMPT, loads }
    }

    /// Measures both servers with each number of streams, first without the option.
    pub(super) fn add_round<E>(
        &mut self,
        mut measure: impl FnMut(usize, bool) -> Result<Round, E>,
    ) -> Result<(), E> {
        for load in &mut self.loads {
            let (off, on) = (measure(load.streams, false)?, measure(load.streams, true)?);
            for (figure, (off, on)) in load.figures.iter_mut().zip(off.0.into_iter().zip(on.0)) {
                figure.off.0.push(off);
                figure.on.0.push(on);
            }
        }
        Ok(())
    }
}

impl Load {
    fn rows(&self) -> impl Iterator<Item = String> {
        let Load { streams, slots, figures } = self;
        figures.iter().map(move |figure| format!("{streams} | {slots} | {}", figure.cells()))
    }
}

impl Figure {
    fn cells(&self) -> String {
        let shown =
            |samples: &Samples| samples.median().map_or("-".to_string(), |value| format!("{value:.2}"));
        let ratio = self.on.ratio_to(&self.off).map_or("-".to_string(), |ratio| format!("{ratio:.2}x"));
        format!("{} | {} | {} | {ratio}", self.name, shown(&self.off), shown(&self.on))
    }
}

impl BenchResult for Streams {
    const HISTORY: History =
        History { bench: "streams", identity: "trees processor threads streams predict prompt" };

    fn tables(&self, head: &Head) -> String {
        let (pin, threads, machine) = (&head.pin, head.threads(), head.machine());
        let (prompt, predict) = (self.prompt, self.workload.predict);
        let columns = format!("streams | slots | figure | off | {MAILBOX} | on / off");
        let rows = self.loads.iter().flat_map(Load::rows);
        format!(
            "Streams of {predict} tokens after prompts of {prompt}, while all slots generate: small qwen3, --kv-paged, \
             -t {threads}, llama.cpp {pin}, {machine}\n\n{}",
            Table::with_numbers(&columns, 3..usize::MAX, rows)
        )
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::workload;
    use super::*;
    use crate::bench::record::tests::head;
    use crate::serving::request_record::tests::record;

    fn at(milliseconds: u64, steps: f64, wake_ups: f64, processor_seconds: f64) -> Counters {
        Counters { at: Duration::from_millis(milliseconds), steps, wake_ups, processor_seconds }
    }

    #[test]
    fn only_what_happens_between_the_counters_counts() {
        let records = [
            record(0, 0, &[10, 100, 120, 150, 900], Some(900)),
            record(1, 0, &[110, 140], Some(140)),
            record(2, 0, &[], None),
        ];
        let found = Round::of(&records, &[at(100, 4.0, 50.0, 1.0), at(200, 14.0, 90.0, 1.25)]);
        let expected = [10.0, 4.0, 25.0, 30.0, 30.0];
        assert!(
            found.0.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-9),
            "{found:?}"
        );
    }

    #[test]
    fn a_ratio_is_that_of_the_round_in_the_middle() {
        let mut result = Streams::new(workload());
        for wake_ups in [10.0, 20.0, 60.0] {
            let round = |is_on| if is_on { 2.0 } else { wake_ups };
            result.add_round(|_, is_on| Ok::<_, ()>(Round([1.0, round(is_on), 1.0, 1.0, 1.0]))).unwrap();
        }
        let text = result.tables(&head());
        assert!(text.contains("| 32 | 32 | wake-ups in a step | 20.00 | 2.00 | 0.10x |"), "{text}");
        assert!(text.contains("| 512 | 255 | time of a step, ms | 1.00 | 1.00 | 1.00x |"), "{text}");
        let value = json!(result);
        assert_eq!(value["streams"], json!([32, 512]));
        assert_eq!(value["loads"][1]["figures"][1]["off"], json!([10.0, 20.0, 60.0]));
    }

    #[test]
    fn nothing_measured_is_a_dash() {
        let text = Streams::new(workload()).tables(&head());
        assert!(text.contains("| 32 | 32 | time of a step, ms | - | - | - |"), "{text}");
    }
}
