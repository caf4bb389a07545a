//! The overload bench: for minutes, more clients than a paged server has capacity for. Nothing is timed, so the machine
//! may be busy: it checks that every answer is stock's, that no block stays in use, and that memory does not grow.

mod memory;
mod record;

use std::time::{Duration, Instant};

use clap::Args;
use espalier_core::context::{Context, Outcome};
use espalier_core::error::Result;
use memory::Memory;
pub(super) use record::Overload;
use serde_json::Value;

use super::record::{Head, Keep, Record};
use crate::serving::Serving;
use crate::serving::asking::{self, pool_at_rest};
use crate::serving::bench_fixture::BenchFixture;
use crate::serving::bench_model::BenchModel;
use crate::serving::overload::crowd::Crowd;
use crate::serving::overload::traffic;
use crate::serving::reference::Reference;
use crate::serving::rounding::Rounding;
use crate::serving::test_server::TestServer;
use crate::serving::verdict::{self, Answer};

/// Options of `bench overload`.
#[derive(Clone, Copy, Debug, Args)]
pub struct Options {
    /// Model: its kind of memory decides what is preempted and shared.
    #[arg(long, value_enum, value_name = "NAME", default_value = "plain")]
    pub model: BenchModel,
    /// Duration in minutes.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub minutes: u32,
    /// Number of clients; each sends its next request as soon as the last one ended.
    #[arg(long, value_name = "N", default_value_t = 24)]
    pub clients: usize,
    /// Random seed of the clients' requests and disconnects.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Threads of the server; default: the idle cores.
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// Write the result to `docs/measurements/`.
    #[arg(long)]
    pub record: bool,
}

/// Number of slots of the server: more than its pool has blocks for.
const SLOTS: usize = 8;

/// Size of stock's cache: as many of the longest requests as there are slots.
const CELLS_OF_STOCK: usize = SLOTS * traffic::CELLS;

/// Arguments of every server. It logs warnings only: several lines per request would fill the disk.
const ARGUMENTS: [&str; 4] = ["--cache-ram", "0", "-lv", "2"];

/// Computes stock's answers, runs the clients, and prints a table; the exit code is 1 on any violation.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    let test_servers = [TestServer::StockUnified, TestServer::Paged];
    let serving = Serving::untimed(options.threads);
    let fixture = BenchFixture::prepare(context, serving, &test_servers, &options.model.small())?;
    context.ui.status("Asking", "stock, one prompt after the other");
    let stock = stock_answers(&fixture)?;
    context.ui.status("Overloading", format!("{} clients for {} min", options.clients, options.minutes));
    let result = measure(&fixture, options, &stock)?.judged();
    let head = Head::of_servers(context, &fixture)?;
    Record { head, result }.finish(context, &Keep::without_plot(options.record))
}

/// Stock's answers alone, and the effect of rounding on them with chunked prompts and with other sequences in the
/// batch.
struct Stock {
    known: Vec<(Vec<u32>, Answer)>,
    /// Maximum by which a token may be less likely than the expected one, in natural logarithms.
    tolerance: f64,
    /// Counts of answers with the same and with other tokens.
    rounding: Rounding,
}

fn stock_answers(fixture: &BenchFixture<'_>) -> Result<Stock> {
    let stock = fixture.server_with(TestServer::StockUnified, 1, CELLS_OF_STOCK, &ARGUMENTS)?;
    let mut reference = Reference { stock, tolerance: verdict::tolerance(&[]) };
    let many = fixture.server_with(TestServer::StockUnified, SLOTS, CELLS_OF_STOCK, &ARGUMENTS)?;
    let prompts = traffic::prompts();
    let requests = traffic::longest_requests(&prompts);
    let alone = reference.expect_each(&many, &requests)?;
    // Truncated to the tokens that are compared.
    let known = reference.clear(prompts.into_iter().zip(alone).collect());
    let others = many.post_at_once("/completion", &requests)?.answers;
    let rounding = rounding_of(&known, &others)?;
    Ok(Stock { known, tolerance: reference.tolerance, rounding })
}

fn rounding_of(known: &[(Vec<u32>, Answer)], others: &[(u16, Value)]) -> Result<Rounding> {
    let first = |((_, alone), other): (&(Vec<u32>, Answer), &(u16, Value))| {
        asking::read_answer(other).map(|other| other.first(alone.tokens.len()))
    };
    let others = known.iter().zip(others).map(first).collect::<Result<Vec<_>>>()?;
    let pairs: Vec<_> = known.iter().map(|(_, alone)| alone).zip(&others).collect();
    Ok(Rounding::of(&pairs))
}

fn measure(fixture: &BenchFixture<'_>, options: &Options, stock: &Stock) -> Result<Overload> {
    let mut server = fixture.server_with(TestServer::Paged, SLOTS, traffic::CELLS, &ARGUMENTS)?;
    let Options { model, minutes, clients, seed, .. } = *options;
    let time = Duration::from_secs(u64::from(minutes) * 60);
    let Stock { known, tolerance, rounding } = stock;
    let crowd = Crowd { known, tolerance: *tolerance, clients, seed, visits: u64::MAX, time };
    let begin = Instant::now();
    let mut memory = Memory::default();
    let tally = crowd.visit(&server, |server| {
        let seconds = begin.elapsed().as_secs();
        if memory.is_due(seconds) {
            memory.samples.extend(server.resident_bytes().map(|bytes| (seconds, bytes)));
        }
    })?;
    server.still_runs().map_err(|error| error.detail(tally.words.join("\n")))?;
    let pool = pool_at_rest(&server)?;
    Ok(Overload {
        model,
        minutes,
        clients,
        seed,
        slots: SLOTS,
        cells: traffic::CELLS,
        tolerance: *tolerance,
        answers: tally,
        stock: *rounding,
        preempted: server.log_text()?.matches("preempted with").count() as u64,
        evicted_blocks: pool.evicted_blocks,
        hits: pool.hits()?,
        blocks_used_at_the_end: pool.blocks_used,
        resident_bytes: memory.summary(),
        failures: Vec::new(),
    })
}
