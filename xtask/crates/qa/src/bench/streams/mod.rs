//! The streams bench: many streams at once, to the server of the variant `front` with and without `--mailbox`. The model
//! is small, so that a step consists of what the server does for each token, not of the model's computation.

mod record;

use std::time::Duration;

use clap::Args;
use espalier_core::config::name::Name;
use espalier_core::context::{Context, Outcome};
use espalier_core::error::{Error, Result};
use espalier_core::sys::net::server::Server;
use record::{Counters, Round, Streams};
use serde::Serialize;
use serde_json::Value;

use super::Rounds;
use super::record::{Head, Keep, Record};
use crate::serving::TimedServing;
use crate::serving::bench_fixture::{BenchFixture, Variants};
use crate::serving::bench_model::BenchModel;
use crate::serving::cases::{self, BLOCK};
use crate::serving::load::{self, Clients, Patience, Progress};
use crate::serving::metrics::metric;
use crate::serving::test_server::TestServer;

/// Numbers of streams by default.
const STREAMS: [u32; 3] = [32, 128, 512];

/// Largest number of slots of a paged server.
const MAX_SLOTS: usize = 255;

/// Tokens of each prompt.
const PROMPT: usize = 16;

/// The variant whose server has the option.
const VARIANT: &str = "front";

/// The option that is compared with its default.
const MAILBOX: &str = "--mailbox";

/// The requests.
#[derive(Clone, Debug, PartialEq, Eq, Args, Serialize)]
pub struct Workload {
    /// Numbers of concurrent streams, separated by commas; those beyond 255 wait for a slot.
    #[arg(long, value_name = "N", value_delimiter = ',')]
    #[arg(default_values_t = STREAMS, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub streams: Vec<u32>,
    /// Tokens of each answer.
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(32..=2048))]
    pub predict: u32,
}

/// Options of `bench streams`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Number of rounds.
    #[command(flatten)]
    pub rounds: Rounds,
    /// The requests.
    #[command(flatten)]
    pub workload: Workload,
    /// Number of threads, and whether to measure on a busy machine.
    #[command(flatten)]
    pub serving: TimedServing,
    /// Write the result to `docs/measurements/`.
    #[arg(long)]
    pub record: bool,
}

impl Workload {
    fn slots(streams: usize) -> usize {
        streams.min(MAX_SLOTS)
    }

    /// Returns a context size that fits the sequences of all slots.
    fn cells(&self, streams: usize) -> usize {
        Workload::slots(streams) * (PROMPT + self.predict as usize).next_multiple_of(BLOCK)
    }

    /// Returns a request; none shares its prompt with another one.
    fn request(&self, number: usize) -> Value {
        cases::stream_of(&cases::numbered_prompt(number as u64, PROMPT), self.predict as usize)
    }
}

/// Measures and prints a table.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    let name = Name::new(VARIANT).map_err(Error::usage)?;
    let variants = Variants::of(context, Some(&name))?;
    let (serving, spec) = (options.serving.into(), BenchModel::Plain.small());
    let mut fixture = BenchFixture::prepare_of(context, variants, serving, &[TestServer::Paged], &spec)?;
    let mut result = Streams::new(options.workload.clone());
    fixture.rounds(options.rounds.count(), |fixture| {
        result.add_round(|streams, is_on| measure(fixture, &options.workload, streams, is_on))
    })?;
    let head = Head::of_servers(context, &fixture)?;
    Record { head, result }.finish(context, &Keep::without_plot(options.record))
}

/// Sends the streams to a fresh server.
fn measure(fixture: &BenchFixture<'_>, workload: &Workload, streams: usize, is_on: bool) -> Result<Round> {
    let mut arguments = vec!["--cache-ram", "0", "-lv", "2", "--metrics"];
    arguments.extend(is_on.then_some(MAILBOX));
    let (slots, cells) = (Workload::slots(streams), workload.cells(streams));
    let mut server = fixture.server_with(TestServer::Paged, slots, cells, &arguments)?;
    let progress: Vec<Progress> = std::iter::repeat_with(Progress::default).take(streams).collect();
    let client = |number: usize, clients: &Clients| {
        let request = workload.request(number);
        load::follow(&server, clients.begin, &request, Patience::Whole, &progress[number])
    };
    let (records, window) =
        Clients::run(streams, u64::MAX, client, |clients| watch(&server, clients, &progress, slots))?;
    server.still_runs()?;
    match records.iter().find_map(|record| record.error.clone()) {
        Some(problem) => {
            Err(Error::no(problem).detail(format!("{streams} streams, arguments {arguments:?}")))
        }
        None => Ok(Round::of(&records, &window)),
    }
}

/// Returns the counters once all slots have a stream, and when the first stream has ended.
fn watch(server: &Server, clients: &Clients, progress: &[Progress], slots: usize) -> Result<[Counters; 2]> {
    wait_until(|| progress.iter().filter(|one| one.has_begun()).count() >= slots);
    let begin = counters(server, clients)?;
    wait_until(|| progress.iter().any(Progress::has_ended));
    Ok([begin, counters(server, clients)?])
}

fn wait_until(is_so: impl Fn() -> bool) {
    while !is_so() {
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn counters(server: &Server, clients: &Clients) -> Result<Counters> {
    let unknown = || Error::no("the system does not report the context switches of a process");
    Ok(Counters {
        steps: metric(server, "n_decode_total")?,
        wake_ups: server.context_switches().ok_or_else(unknown)? as f64,
        processor_seconds: server.processor_time().ok_or_else(unknown)?.as_secs_f64(),
        at: clients.now(),
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Two numbers of streams.
    pub(super) fn workload() -> Workload {
        Workload { streams: vec![32, 512], predict: 100 }
    }

    #[test]
    fn each_slot_has_blocks_for_a_whole_sequence() {
        assert_eq!((workload().cells(32), workload().cells(512)), (32 * 128, 255 * 128));
        assert_eq!((Workload::slots(32), Workload::slots(512)), (32, 255));
    }

    #[test]
    fn prompts_differ() {
        assert_ne!(workload().request(0)["prompt"], workload().request(1)["prompt"]);
        assert_eq!(workload().request(0)["stream"], true);
    }
}
