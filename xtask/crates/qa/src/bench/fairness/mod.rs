//! The fairness bench: scheduling of a paged server whose pool is too small for all requests. It measures stalls of
//! streams, bypasses of requests by later ones, and the overhead of waiting requests for running ones.

mod binary;
mod bypass;
mod large;
mod record;
mod streams;
mod token_times;
mod traffic;
mod waiting;
mod watched;

use std::path::PathBuf;

use binary::Binary;
use clap::{Args, ValueEnum};
use espalier_core::config::layout::SMOKE_MODEL;
use espalier_core::context::{Context, Outcome};
use espalier_core::error::Result;
use record::{Fairness, Measured};

use super::record::{Head, Keep, Record};
use crate::serving::TimedServing;
use crate::serving::bench_fixture::BenchFixture;
use crate::serving::test_server::TestServer;

/// Options of `bench fairness`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Duration of a workload in seconds; one that has not shown everything by then is extended.
    #[arg(long, value_name = "N", default_value_t = 45, value_parser = clap::value_parser!(u32).range(1..))]
    pub seconds: u32,
    /// Also measure this server binary, as `before`; each workload runs on both in turn.
    #[arg(long, value_name = "PATH")]
    pub program: Option<PathBuf>,
    /// Run only this workload; repeatable.
    #[arg(long, value_enum, value_name = "WORKLOAD")]
    pub only: Vec<Scenario>,
    /// Number of threads, and whether to measure on a busy machine.
    #[command(flatten)]
    pub serving: TimedServing,
    /// Write the result to `docs/measurements/`.
    #[arg(long)]
    pub record: bool,
}

/// The load that a server is exposed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Scenario {
    /// Endless requests, of which three fit at once: the longest stall of a stream.
    Streams,
    /// The same, with prompts in between that need most of the pool: how many requests bypass them.
    Large,
    /// Prompts that cannot fit beside a long stream: what they cost that stream.
    Waiting,
}

impl Scenario {
    /// Every scenario, in the order of the reports.
    pub const ALL: [Scenario; 3] = [Scenario::Streams, Scenario::Large, Scenario::Waiting];

    /// Returns the name that `--only` takes.
    pub fn name(self) -> &'static str {
        match self {
            Scenario::Streams => "streams",
            Scenario::Large => "large",
            Scenario::Waiting => "waiting",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Scenario::Streams => {
                "requests of 5 blocks from 6 clients, -np 4 --kv-paged -c 1024, the trained model"
            }
            Scenario::Large => "the same, and prompts of 11 blocks that ask for a slot in turn",
            Scenario::Waiting => {
                "a stream of 8,000 tokens and more, prompts of 16,000 that wait, -np 33 --kv-paged -c 23808"
            }
        }
    }

    /// Runs the scenario against a fresh server of this binary.
    fn play(
        self,
        context: &Context,
        fixture: &BenchFixture<'_>,
        binary: &Binary,
        seconds: u32,
    ) -> Result<Measured> {
        let tiny = context.file_of_espalier(SMOKE_MODEL)?;
        let small = || binary.server(fixture, &tiny, traffic::SLOTS, traffic::CELLS, &[]);
        match self {
            Scenario::Streams => streams::measure(&small()?, seconds),
            Scenario::Large => large::measure(&small()?, seconds),
            Scenario::Waiting => waiting::measure(fixture, binary, &tiny, seconds),
        }
    }
}

/// Runs the scenarios, each against both binaries in turn, and prints tables; the exit code is 1 on any failure.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    let mut fixture =
        BenchFixture::prepare(context, options.serving.into(), &[TestServer::Paged], &waiting::spec())?;
    let binaries = Binary::all(&fixture, options.program.as_deref())?;
    // Before minutes of measuring.
    context.file_of_espalier(SMOKE_MODEL)?;
    let mut result = Fairness::new(options.seconds, binaries.clone());
    for scenario in chosen(&options.only) {
        let mut measured = Vec::new();
        for binary in &binaries {
            fixture.before_round()?;
            context.ui.status("Measuring", format!("{}, {}", scenario.name(), binary.name));
            measured.push(scenario.play(context, &fixture, binary, options.seconds)?);
        }
        result.add(scenario.name(), format!("{}: {}", scenario.name(), scenario.words()), measured);
    }
    let head = Head::of_servers(context, &fixture)?;
    Record { head, result }.finish(context, &Keep::without_plot(options.record))
}

fn chosen(only: &[Scenario]) -> Vec<Scenario> {
    Scenario::ALL.into_iter().filter(|one| only.is_empty() || only.contains(one)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_scenario_named_means_all() {
        assert_eq!(chosen(&[]), Scenario::ALL);
        assert_eq!(chosen(&[Scenario::Waiting, Scenario::Large]), [Scenario::Large, Scenario::Waiting]);
    }
}
