//! The burst bench: cold requests with one shared prefix, all sent at once, to a fresh server in each round.
//!
//! Each server under test is compared with the others and with a lower bound: the same work done by our own program
//! without a server, in the same round, once with upstream's attention and once with ours.

mod lower_bound;
mod record;

use clap::Args;
use espalier_core::config::name::Name;
use espalier_core::context::{Context, Outcome};
use espalier_core::error::Result;
use lower_bound::LowerBound;
pub(super) use record::Burst;

use super::Rounds;
use super::record::{Head, Keep, Record};
use crate::serving::TimedServing;
use crate::serving::bench_fixture::{BenchFixture, Variants};
use crate::serving::bench_model::BenchModel;
use crate::serving::load::{self, Answered};
use crate::serving::prompts::Prompts;
use crate::serving::switches::ATTENTION;
use crate::serving::test_server::{TestServer, chosen};

/// Options of `bench burst`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Number of rounds.
    #[command(flatten)]
    pub rounds: Rounds,
    /// Model: its kind of memory decides how a prefix can be shared.
    #[arg(long, value_enum, value_name = "NAME", default_value = "plain")]
    pub model: BenchModel,
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
    /// Variant to measure, against the one that it is gated against; default: that of `pins.toml`.
    #[arg(long, value_name = "NAME")]
    pub variant: Option<Name>,
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

/// Measures and prints a table.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    let prompts = options.prompts();
    prompts.check()?;
    let test_servers = chosen(&options.only);
    let serving = options.serving.into();
    let spec = options.model.of_70_million();
    let variants = Variants::of(context, options.variant.as_ref())?;
    let mut fixture = BenchFixture::prepare_of(context, variants, serving, &test_servers, &spec)?;
    let (stock_probe, our_probe) =
        (fixture.probe(&fixture.variants.stock)?, fixture.probe(&fixture.variants.ours)?);
    let stock_bound = LowerBound { probe: stock_probe, prompts, kernels: None };
    let our_bound = LowerBound { probe: our_probe, prompts, kernels: Some(ATTENTION) };
    let mut burst = Burst::new(options.model, prompts, &test_servers);
    fixture.rounds(options.rounds.count(), |fixture| {
        burst.lower_bound.push(stock_bound.measure(fixture)?);
        burst.our_lower_bound.push(our_bound.measure(fixture)?);
        burst.add_round(|test_server| ask(fixture, prompts, test_server))
    })?;
    Record { head: Head::of_servers(context, &fixture)?, result: burst }.finish(context, &options.keep)
}

fn ask(fixture: &BenchFixture<'_>, prompts: Prompts, test_server: TestServer) -> Result<Answered> {
    let mut server = fixture.server(test_server, prompts.requests, prompts.cells())?;
    let answered = load::at_once(&server, &prompts.bodies())
        .map_err(|error| error.detail(format!("server under test `{}`", test_server.name())))?;
    server.still_runs()?;
    Ok(answered)
}
