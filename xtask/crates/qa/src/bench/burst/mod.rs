//! The burst bench: cold requests with one shared prefix, all sent at once, to a fresh server in each round.
//!
//! Each server under test is compared with the others and with a lower bound: the same work done by our own program
//! without a server, in the same round, once with upstream's attention and once with ours.

mod floor;
mod report;
mod result;

use clap::Args;
use espalier_core::context::{Context, Outcome};
use espalier_core::error::Result;
use espalier_core::sys::machine::load;
use espalier_modelgen::ModelSpec;
use floor::{Floor, Kernels};
use result::{Burst, Entry, Machine};

use super::Rounds;
use super::history::History;
use super::record::{Keep, Recorded};
use crate::serving::TimedServing;
use crate::serving::answer::{self, Answer};
use crate::serving::bench_fixture::BenchFixture;
use crate::serving::prompts::Prompts;
use crate::serving::test_server::{TestServer, chosen};

/// Options of `bench burst`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Number of rounds.
    #[command(flatten)]
    pub rounds: Rounds,
    /// Number of requests, and of slots of each server.
    #[arg(long, value_name = "N", default_value_t = 16)]
    pub requests: usize,
    /// Tokens of the shared prefix.
    #[arg(long, value_name = "N", default_value_t = 1600)]
    pub prefix: usize,
    /// Tokens of each prompt after the shared prefix.
    #[arg(long, value_name = "N", default_value_t = 16)]
    pub suffix: usize,
    /// Tokens to predict for each request.
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub predict: usize,
    /// Measure only this server; repeatable; answers are compared with the first one's.
    #[arg(long, value_enum, value_name = "NAME")]
    pub only: Vec<TestServer>,
    /// Number of threads, and whether to measure on a busy machine.
    #[command(flatten)]
    pub serving: TimedServing,
    /// Files to write.
    #[command(flatten)]
    pub keep: Keep,
}

impl Options {
    fn prompts(&self) -> Prompts {
        let Options { requests, prefix, suffix, predict, .. } = *self;
        Prompts { requests, prefix, suffix, predict, family: 0 }
    }
}

const HISTORY: History = History {
    bench: "burst",
    identity: &["trees", "processor", "threads", "requests", "prefix", "suffix", "predict", "cells"],
};

/// Measures and prints a table.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    let prompts = options.prompts();
    prompts.check()?;
    let test_servers = chosen(&options.only);
    let serving = options.serving.into();
    let mut fixture = BenchFixture::prepare(context, serving, &test_servers, &ModelSpec::plain_70_million())?;
    let floor = Floor { probe: fixture.probe("stock")?, prompts, kernels: Kernels::Stock };
    let variant = context.pins()?.variant(None)?.name.to_string();
    let our_floor = Floor { probe: fixture.probe(&variant)?, prompts, kernels: Kernels::Ours };
    let mut burst = empty(&fixture, prompts, &test_servers);
    let rounds = options.rounds.count();
    for round in 1..=rounds {
        fixture.before_round()?;
        context.ui.status("Measuring", format!("round {round} of {rounds}"));
        burst.floor.rounds.push(floor.measure(&fixture)?);
        burst.our_floor.rounds.push(our_floor.measure(&fixture)?);
        for entry in &mut burst.entries {
            measure(&fixture, prompts, entry)?;
        }
    }
    burst.quiet = fixture.quiet;
    let recorded = Recorded {
        history: HISTORY,
        pin: &burst.builds.pin,
        run: report::json(&burst),
        shape: format!("burst-{}x{}", burst.prompts.requests, burst.prompts.prefix),
        plot: report::svg(&burst),
    };
    recorded.write(context, &options.keep)?;
    Ok(Outcome::ok(report::text(&burst), report::json(&burst)))
}

fn empty(fixture: &BenchFixture<'_>, prompts: Prompts, test_servers: &[TestServer]) -> Burst {
    let machine = Machine { processor: load::processor(), threads: fixture.threads };
    let entry = |test_server: &TestServer| Entry::new(*test_server, prompts.requests);
    let entries = test_servers.iter().map(entry).collect();
    Burst::new(prompts, machine, fixture.builds.clone(), entries)
}

fn measure(fixture: &BenchFixture<'_>, prompts: Prompts, entry: &mut Entry) -> Result<()> {
    let mut server = fixture.server(entry.test_server, prompts.requests, prompts.cells())?;
    let volley = server.post_at_once("/completion", &prompts.bodies())?;
    server.still_runs()?;
    let answers = answer::parse_all(&volley.answers)
        .map_err(|error| error.detail(format!("server under test `{}`", entry.test_server.name())))?;
    entry.times.rounds.push(volley.elapsed);
    entry.computed.push(answer::computed(&answers));
    entry.answers.push(answers.into_iter().map(|Answer { tokens, .. }| tokens).collect());
    Ok(())
}
