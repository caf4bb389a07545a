//! The burst bench: cold requests with one shared prefix, all sent at once, to a fresh server in each round.
//!
//! Each server under test is compared with the others and with a lower bound: the same work done by our own program
//! without a server, in the same round, once with upstream's attention and once with ours.

mod floor;
mod report;
mod result;

use espalier_core::context::{Context, Outcome};
use espalier_core::error::Result;
use espalier_core::sys::machine::load;
use espalier_modelgen::ModelSpec;
use floor::{Floor, Kernels};
use result::{Burst, Entry, Machine};

use super::history::History;
use super::record::{Keep, Recorded};
use crate::serving::Serving;
use crate::serving::answer::{self, Answer};
use crate::serving::bench_fixture::BenchFixture;
use crate::serving::prompts::Prompts;
use crate::serving::test_server::{TestServer, chosen};

/// Options of `bench burst`.
#[derive(Clone, Debug)]
pub struct Options {
    /// Number of rounds; in each, the servers run in turn.
    pub rounds: u32,
    /// Prompts of the requests.
    pub prompts: Prompts,
    /// Servers under test; all when the list is empty.
    pub only: Vec<TestServer>,
    /// Number of threads, and whether to measure on a busy machine.
    pub serving: Serving,
    /// Files to write.
    pub keep: Keep,
}

const HISTORY: History = History {
    bench: "burst",
    identity: &["trees", "processor", "threads", "requests", "prefix", "suffix", "predict", "cells"],
};

/// Measures and prints a table.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    options.prompts.check()?;
    let test_servers = chosen(&options.only);
    let mut fixture =
        BenchFixture::prepare(context, options.serving, &test_servers, &ModelSpec::plain_70_million())?;
    let prompts = options.prompts;
    let floor = Floor { probe: fixture.probe("stock")?, prompts, kernels: Kernels::Stock };
    let variant = context.pins()?.variant(None)?.name.to_string();
    let our_floor = Floor { probe: fixture.probe(&variant)?, prompts, kernels: Kernels::Ours };
    let mut burst = empty(&fixture, options, &test_servers);
    for round in 1..=options.rounds.max(1) {
        fixture.before_round()?;
        context.ui.status("Measuring", format!("round {round} of {}", options.rounds.max(1)));
        burst.floor.rounds.push(floor.measure(&fixture)?);
        burst.our_floor.rounds.push(our_floor.measure(&fixture)?);
        for entry in &mut burst.entries {
            measure(&fixture, options.prompts, entry)?;
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

fn empty(fixture: &BenchFixture<'_>, options: &Options, test_servers: &[TestServer]) -> Burst {
    let machine = Machine { processor: load::processor(), threads: fixture.threads };
    let entry = |test_server: &TestServer| Entry::new(*test_server, options.prompts.requests);
    let entries = test_servers.iter().map(entry).collect();
    Burst::new(options.prompts, machine, fixture.builds.clone(), entries)
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
