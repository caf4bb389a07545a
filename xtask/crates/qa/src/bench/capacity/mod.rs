//! The capacity bench: the number of sequences that fit into a pool with a shared prefix, without one, and in stock.
//!
//! Nothing is timed, so the machine may be busy. The results are the servers' own statistics while they answer.

mod live;
mod record;
mod search;

use clap::Args;
use espalier_core::context::{Context, Outcome};
use espalier_core::error::Result;
use espalier_core::sys::net::server::Server;
use espalier_modelgen::{Architecture, ModelSpec, WeightType};
pub(super) use record::Capacity;
use record::{Live, Tenants};
use serde_json::Value;

use super::paged_decode::CACHE;
use super::record::{Head, Keep, Record};
use crate::serving::Serving;
use crate::serving::bench_fixture::{self, BenchFixture};
use crate::serving::kv_pool::Pool;
use crate::serving::load;
use crate::serving::prompts::Prompts;
use crate::serving::request_record::RequestRecord;
use crate::serving::test_server::TestServer;

/// Options of `bench capacity`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Cells of the pool.
    #[arg(long, value_name = "N", default_value_t = 32_768)]
    pub cells: usize,
    /// KV cache type of our server, or `K/V`; suffixes as in `bench kv-quality --cache`.
    #[arg(long, value_name = "TYPE", default_value = CACHE)]
    pub cache: String,
    /// Threads of each server; default: the idle cores.
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// Files to write.
    #[command(flatten)]
    pub keep: Keep,
}

/// Largest number of sequences to try: one less than llama.cpp's limit, because the paged server reserves one.
const MAX_LIVE: usize = 255;

/// 16 shared blocks and two private ones for each sequence, from its first token to its last, so the number of blocks
/// in use does not depend on the progress of each sequence.
const LIVE: Prompts = Prompts { requests: 0, prefix: 1024, suffix: 96, predict: 32, family: 0 };

/// 1,024 tokens for each tenant, 960 of them shared.
const TENANTS: Prompts = Prompts { requests: 32, prefix: 960, suffix: 32, predict: 32, family: 0 };

/// Large enough for all tenants at once even where nothing is shared.
const TENANTS_CELLS: usize = 65_536;

/// Counts and prints two tables.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    let test_servers = [TestServer::StockUnified, TestServer::Paged];
    let serving = Serving::untimed(options.threads);
    let fixture = BenchFixture::prepare(context, serving, &test_servers, &spec())?;
    let bench = Bench { context, fixture, cells: options.cells, cache: &options.cache };
    let pool = Pool::of_server(&bench.server(TestServer::Paged, 1, options.cells)?)?;
    let capacity = Capacity {
        cache: options.cache.clone(),
        block_count: pool.block_count,
        block_size: pool.block_size,
        live: Live {
            prefix: LIVE.prefix,
            own: LIVE.suffix + LIVE.predict,
            shared: bench.most_live(TestServer::Paged, false)?,
            unshared: bench.most_live(TestServer::Paged, true)?,
            stock: bench.most_live(TestServer::StockUnified, false)?,
        },
        tenants: bench.tenants(pool.block_size)?,
    };
    let head = Head::of_servers(context, &bench.fixture)?;
    Record { head, result: capacity }.finish(context, &options.keep)
}

/// Only cells are counted, so the model is made cheap: one layer.
fn spec() -> ModelSpec {
    ModelSpec {
        n_layer: 1,
        n_vocab: 32_000,
        n_context: 65_536,
        ..ModelSpec::small(Architecture::Qwen3, WeightType::F16)
    }
}

struct Bench<'a> {
    context: &'a Context,
    fixture: BenchFixture<'a>,
    cells: usize,
    cache: &'a str,
}

impl Bench<'_> {
    fn server(&self, test_server: TestServer, slots: usize, cells: usize) -> Result<Server> {
        if !test_server.is_ours() {
            return self.fixture.server(test_server, slots, cells);
        }
        let types = bench_fixture::cache_types(self.cache)?;
        let types: Vec<&str> = types.iter().map(String::as_str).collect();
        self.fixture.server_with(test_server, slots, cells, &types)
    }

    fn most_live(&self, test_server: TestServer, salted: bool) -> Result<usize> {
        let how = if salted { ", nothing shared" } else { "" };
        let shares = test_server.is_ours() && !salted;
        search::largest(limit(self.cells, shares), |requests| {
            let fits = self.fits(test_server, requests, salted)?;
            let verdict = if fits { "fit" } else { "do not fit" };
            self.context.ui.status("Trying", format!("{}{how}: {requests} {verdict}", test_server.name()));
            Ok(fits)
        })
    }

    /// Whether this many requests, sent at once to a fresh server, were all live at one moment and all answered
    /// completely.
    fn fits(&self, test_server: TestServer, requests: usize, salted: bool) -> Result<bool> {
        let prompts = Prompts { requests, ..LIVE };
        let server = self.server(test_server, requests, self.cells)?;
        let bodies = if salted { prompts.salted_bodies() } else { prompts.bodies() };
        let mut most = 0;
        let records = load::at_once_and_look(&server, &bodies, |server| {
            // A failed query counts no live slot.
            let slots = server.get("/slots").map(|(_, slots)| slots).unwrap_or_default();
            most = most.max(live::count(&slots));
        })?;
        Ok(most == requests && records.iter().all(|record| record.tokens.len() == prompts.predict))
    }

    fn tenants(&self, block_size: u64) -> Result<Tenants> {
        self.context.ui.status("Counting", format!("blocks of {} tenants", TENANTS.requests));
        let shared = self.ask_tenants(TestServer::Paged, &TENANTS.bodies())?.0;
        let unshared = self.ask_tenants(TestServer::Paged, &TENANTS.salted_bodies())?.0;
        let stock_cells = cells_of_stock(&self.ask_tenants(TestServer::StockUnified, &TENANTS.bodies())?.1);
        Ok(Tenants {
            count: TENANTS.requests,
            tokens: TENANTS.length(),
            shared_blocks: Pool::of_props(&shared)?.blocks_used_peak,
            unshared_blocks: Pool::of_props(&unshared)?.blocks_used_peak,
            stock_cells,
            stock_blocks: stock_cells.div_ceil(block_size.max(1)),
        })
    }

    fn ask_tenants(&self, test_server: TestServer, bodies: &[Value]) -> Result<(Value, Vec<RequestRecord>)> {
        let server = self.server(test_server, bodies.len(), TENANTS_CELLS)?;
        let answered = load::at_once(&server, bodies)?;
        Ok((server.get("/props")?.1, answered.records))
    }
}

/// Returns the cells of stock's answers while all were live: it shares none. The last token of an answer is never
/// stored.
fn cells_of_stock(records: &[RequestRecord]) -> u64 {
    let cells = |record: &RequestRecord| {
        record.timings.computed + record.timings.cached + record.tokens.len() as u64 - 1
    };
    records.iter().map(cells).sum()
}

/// Returns the upper limit of the search. Where nothing is shared, at most half of it can fit. Far more requests would
/// take minutes: a paged server then preempts requests and recomputes them.
fn limit(cells: usize, shares: bool) -> usize {
    if shares { MAX_LIVE } else { MAX_LIVE.min(2 * cells / LIVE.length()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serving::request_record::Timings;

    #[test]
    fn stock_stores_all_but_the_last_token() {
        let timings = Timings { computed: 10, cached: 5, ..Timings::default() };
        let record = RequestRecord { tokens: vec![1, 2, 3], timings, ..RequestRecord::default() };
        assert_eq!(cells_of_stock(&[record.clone(), record]), 34);
    }

    #[test]
    fn sequences_that_cannot_fit_are_not_requested() {
        assert_eq!((limit(32_768, true), limit(32_768, false)), (255, 56));
        assert_eq!(limit(1 << 20, false), 255);
    }

    #[test]
    fn blocks_do_not_depend_on_who_is_how_far() {
        for prompts in [LIVE, TENANTS] {
            let blocks = |tokens: usize| tokens.div_ceil(64);
            assert!(prompts.prefix.is_multiple_of(64));
            assert_eq!(blocks(prompts.prefix + prompts.suffix + 1), blocks(prompts.length()));
        }
    }
}
