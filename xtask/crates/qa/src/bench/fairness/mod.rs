//! The fairness bench: scheduling of a paged server whose pool is too small for all requests. It measures stalls of
//! streams, bypasses of requests by later ones, and the overhead of waiting requests for running ones.

mod bypass;
mod large;
mod report;
mod side;
mod spans;
mod streams;
mod token_times;
mod traffic;
mod waiting;
mod watched;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use espalier_core::config::layout::SMOKE_MODEL;
use espalier_core::context::{Context, Outcome};
use espalier_core::error::Result;
use espalier_core::sys::machine::load;
use report::{FairnessRun, Measured, Played};
use side::Side;

use super::history::History;
use super::record::record;
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

    /// Runs the scenario against a fresh server of this side.
    fn play(
        self,
        context: &Context,
        fixture: &BenchFixture<'_>,
        side: &Side,
        seconds: u32,
    ) -> Result<Measured> {
        let tiny = context.file_of_espalier(SMOKE_MODEL)?;
        let small = || side.server(fixture, &tiny, traffic::SLOTS, traffic::CELLS, &[]);
        match self {
            Scenario::Streams => streams::measure(&small()?, seconds),
            Scenario::Large => large::measure(&small()?, seconds),
            Scenario::Waiting => waiting::measure(fixture, side, &tiny, seconds),
        }
    }
}

const HISTORY: History = History {
    bench: "fairness",
    identity: &["trees", "processor", "threads", "seconds", "builds", "workloads"],
};

/// Runs the scenarios, each against both binaries in turn, and prints tables; the exit code is 1 on any failure.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    let mut fixture =
        BenchFixture::prepare(context, options.serving.into(), &[TestServer::Paged], &waiting::spec())?;
    let sides = Side::all(&fixture, options.program.as_deref())?;
    // Before minutes of measuring.
    context.file_of_espalier(SMOKE_MODEL)?;
    let mut played = Vec::new();
    for scenario in chosen(&options.only) {
        let mut measured = Vec::new();
        for side in &sides {
            fixture.before_round()?;
            context.ui.status("Measuring", format!("{}, {}", scenario.name(), side.name));
            measured.push(scenario.play(context, &fixture, side, options.seconds)?);
        }
        played.push(Played { scenario, measured });
    }
    let found = FairnessRun {
        builds: fixture.builds.clone(),
        processor: load::processor(),
        threads: fixture.threads,
        quiet: fixture.quiet,
        options: options.clone(),
        sides,
        played,
    };
    if options.record {
        record(context, HISTORY, &found.builds.pin, report::json(&found))?;
    }
    let code = u8::from(!found.failures().is_empty());
    Ok(Outcome { code, ..Outcome::ok(report::text(&found), report::json(&found)) })
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
