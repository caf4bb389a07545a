//! Fixture of the feature checks: our servers with any arguments, stock's answer to any request, and the comparison
//! results.

use std::path::PathBuf;
use std::time::Duration;

use espalier_core::error::Result;
use espalier_core::sys::machine::disk;
use espalier_core::sys::net::server::Server;
use serde_json::Value;

use super::{ALONE, Compared, ServerGate, Setup, pool_is_held, run_of};
use crate::serving::asking::pool_at_rest;
use crate::serving::cases;
use crate::serving::kv_pool;
use crate::serving::overload::tally::Tally;
use crate::serving::reference::Reference;
use crate::serving::switches;
use crate::serving::verdict::Answer;

/// Maximum slots of stock for concurrent requests: the context has capacity for the longest prompt of each.
const MAX_NEIGHBOURS: usize = 8;

/// Batches of one block, beside which windows take few cells.
pub const SMALL_BATCHES: [&str; 4] = ["-b", "64", "-ub", "64"];

/// A stock server that answers one request at a time, and the results so far.
pub struct Fixture<'a> {
    gate: &'a ServerGate<'a>,
    name: String,
    setup: Setup,
    arguments: Vec<String>,
    /// Feature that is enabled in our servers.
    feature: Option<&'static str>,
    /// Whether layers with a sliding window have cells of their own in our servers.
    own_windows: bool,
    reference: Reference,
    compared: &'a mut Compared,
}

impl<'a> Fixture<'a> {
    /// Starts stock for the check `name`; stock and each of our servers get `arguments`.
    pub fn open(
        gate: &'a ServerGate<'a>,
        name: String,
        setup: Setup,
        arguments: Vec<String>,
        compared: &'a mut Compared,
    ) -> Result<Fixture<'a>> {
        // Covers the model's rounding with and without concurrent requests.
        let tolerance = gate.tolerance(&setup)?;
        let run = run_of(&gate.stock, &setup).args(ALONE).args(&arguments);
        let stock = Server::start(run, &gate.context.layout.log("gate-stock"))?;
        let reference = Reference { stock, tolerance };
        Ok(Fixture { gate, name, setup, arguments, feature: None, own_windows: false, reference, compared })
    }

    /// Enables a feature in each of our servers, if any.
    #[must_use]
    pub fn with_feature(self, feature: Option<&'static str>) -> Fixture<'a> {
        Fixture { feature, ..self }
    }

    /// Gives the layers with a sliding window cells of their own in each of our paged servers.
    #[must_use]
    pub fn with_own_windows(self, own_windows: bool) -> Fixture<'a> {
        Fixture { own_windows, ..self }
    }

    /// Whether layers with a sliding window have cells of their own. They take at most half of the pool, so it has to
    /// be a little larger then.
    pub fn has_own_windows(&self) -> bool {
        self.own_windows
    }

    /// Starts one of our servers, with these additional arguments.
    pub fn ours(&self, arguments: &[&str]) -> Result<Server> {
        let run = run_of(&self.gate.ours, &self.setup).args(&self.arguments).args(arguments);
        let run = self.feature.into_iter().fold(run, |run, feature| run.env(switches::ENABLE, feature));
        let is_paged = kv_pool::should_be_paged(arguments);
        let run = if self.own_windows { run.env(switches::WINDOWS, "1").args(SMALL_BATCHES) } else { run };
        let server = Server::start(run, &self.gate.log())?;
        if is_paged {
            kv_pool::must_be_paged(&server)?;
        }
        if is_paged && self.own_windows {
            kv_pool::must_have_own_windows(&server)?;
        }
        Ok(server)
    }

    /// Whether the sequences of the model have a recurrent state.
    pub fn has_state(&self) -> bool {
        self.setup.model.has_state()
    }

    /// Creates a folder of this name for files of the servers.
    pub fn folder(&self, name: &str) -> Result<PathBuf> {
        let folder = self.gate.folder.join(name);
        disk::create_folder(&folder)?;
        Ok(folder)
    }

    /// Returns stock's answer to a request and extends this check's tolerance to cover it.
    pub fn expect(&mut self, request: &Value) -> Result<Answer> {
        self.reference.expect(request)
    }

    /// Like [`Fixture::expect`] for each request. The tolerance also covers stock's answers to all of them at once, and
    /// without flash attention, which sums an f16 cache in f16: that sum depends on the order of the cells, which never
    /// varies in stock. For checks that send concurrent requests to ours.
    pub fn expect_each(&mut self, requests: &[Value]) -> Result<Vec<Answer>> {
        let slots = requests.len().min(MAX_NEIGHBOURS).to_string();
        let run = run_of(&self.gate.stock, &self.setup)
            .args(["-np", &slots, "-c", cases::AMPLE_CELLS, "--kv-unified", "-fa", "off"])
            .args(&self.arguments);
        let many = Server::start(run, &self.gate.context.layout.log("gate-stock-many"))?;
        self.reference.expect_each(&many, requests)
    }

    /// Returns stock's answers and their tolerance.
    pub fn reference(&mut self) -> &mut Reference {
        &mut self.reference
    }

    /// Sends a request, compares the answer with stock's, and returns the body.
    pub fn ask(&mut self, what: &str, server: &Server, request: &Value, stock: &Answer) -> Result<Value> {
        let (status, body) = server.post("/completion", request)?;
        self.hold(what, stock, (status, &body));
        Ok(body)
    }

    /// Checks that an answer to `/completion` matches stock's.
    pub fn hold(&mut self, what: &str, stock: &Answer, answer: (u16, &Value)) {
        self.compared.hold(&format!("{}: {what}", self.name), stock, self.reference.tolerance, answer);
    }

    /// Checks that tokens match stock's.
    pub fn hold_tokens(&mut self, what: &str, stock: &Answer, tokens: &[i64]) {
        self.compared.hold_tokens(&format!("{}: {what}", self.name), stock, self.reference.tolerance, tokens);
    }

    /// Adds the results of many clients.
    pub fn count(&mut self, tally: &Tally) {
        self.compared.same += usize::try_from(tally.same).unwrap_or(usize::MAX);
        self.compared.ties += usize::try_from(tally.ties).unwrap_or(usize::MAX);
        self.must(tally.bad() == 0, || {
            format!("{} wrong answers, {} errors:\n{}", tally.wrong, tally.errors, tally.words.join("\n"))
        });
    }

    /// Records a failure unless `holds`.
    pub fn must(&mut self, holds: bool, otherwise: impl FnOnce() -> String) {
        if !holds {
            self.compared.failures.push(format!("{}: {}", self.name, otherwise()));
        }
    }

    /// Checks the number of prompt tokens that an answer found in the cache.
    pub fn must_have_found(&mut self, what: &str, body: &Value, tokens: usize) {
        let found = body["timings"]["cache_n"].as_u64();
        self.must(found == u64::try_from(tokens).ok(), || {
            format!("{what}: expected {tokens} cached tokens, found {found:?}")
        });
    }

    /// Checks that no blocks are in use after all requests, and that the server still runs.
    pub fn must_be_at_rest(&mut self, mut server: Server) -> Result<()> {
        let pool = pool_at_rest(&server)?;
        let held = pool_is_held(&pool);
        self.must(held.is_none(), || held.unwrap_or_default());
        let is_reported = pool.window_blocks_used.is_some() || !self.own_windows;
        self.must(is_reported, || "/props has no window_blocks_used".to_string());
        server.still_runs()
    }
}

/// Counts occurrences of `words` in the server's log. The log is written with a delay, so this waits for the first one.
pub fn times_logged(server: &Server, words: &str) -> Result<usize> {
    for _ in 0..40 {
        let times = server.log_text()?.matches(words).count();
        if times > 0 {
            return Ok(times);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(0)
}
