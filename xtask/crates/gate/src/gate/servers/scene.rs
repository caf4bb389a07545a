//! What each check of a feature has: servers of ours with any arguments, stock's answer to any request, and a place
//! for verdicts.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use super::{ALONE, Compared, ServerGate, Setup, pool_is_held, run_of};
use crate::error::Result;
use crate::serving::asking::pool_at_rest;
use crate::serving::cases;
use crate::serving::overload::tally::Tally;
use crate::serving::reference::Reference;
use crate::serving::verdict::Answer;
use crate::sys::machine::disk;
use crate::sys::net::server::Server;

/// Slots of stock when many ask at once: there is room for the longest prompt of each.
const MOST_NEIGHBOURS: usize = 8;

/// A stock server that answers alone, and what was found so far.
pub struct Scene<'a> {
    gate: &'a ServerGate<'a>,
    name: &'static str,
    setup: Setup,
    arguments: Vec<String>,
    reference: Reference,
    compared: &'a mut Compared,
}

impl<'a> Scene<'a> {
    /// Starts stock for the check `name`; it and every server of ours get `arguments`.
    pub fn open(
        gate: &'a ServerGate<'a>,
        name: &'static str,
        setup: Setup,
        arguments: Vec<String>,
        compared: &'a mut Compared,
    ) -> Result<Scene<'a>> {
        // Of the model, with neighbours and without.
        let tolerance = gate.tolerance(&setup)?;
        let run = run_of(&gate.stock, &setup).args(ALONE).args(&arguments);
        let stock = Server::start(run, &gate.context.layout.log("gate-stock"))?;
        Ok(Scene { gate, name, setup, arguments, reference: Reference { stock, tolerance }, compared })
    }

    /// A server of ours, with these arguments besides.
    pub fn ours(&self, arguments: &[&str]) -> Result<Server> {
        let run = run_of(&self.gate.ours, &self.setup).args(&self.arguments).args(arguments);
        Server::start(run, &self.gate.log())
    }

    /// A folder of that name for files of the servers.
    pub fn folder(&self, name: &str) -> Result<PathBuf> {
        let folder = self.gate.folder.join(name);
        disk::create_folder(&folder)?;
        Ok(folder)
    }

    /// Stock's answer to a request; the tolerance of this check covers it from here on.
    pub fn expect(&mut self, request: &Value) -> Result<Answer> {
        self.reference.expect(request)
    }

    /// The same for each of the requests; the tolerance covers besides how stock answers them at once, and without flash
    /// attention, which sums an f16 cache in f16: the sum depends on the order of the cells, and that order is never
    /// another one in stock. For checks that ask ours at once.
    pub fn expect_each(&mut self, requests: &[Value]) -> Result<Vec<Answer>> {
        let slots = requests.len().min(MOST_NEIGHBOURS).to_string();
        let run = run_of(&self.gate.stock, &self.setup)
            .args(["-np", &slots, "-c", cases::ROOMY, "--kv-unified", "-fa", "off"])
            .args(&self.arguments);
        let many = Server::start(run, &self.gate.context.layout.log("gate-stock-many"))?;
        self.reference.expect_each(&many, requests)
    }

    /// What stock answers, and how far it moves.
    pub fn reference(&mut self) -> &mut Reference {
        &mut self.reference
    }

    /// Asks, and holds the answer against stock's; gives the body.
    pub fn ask(&mut self, what: &str, server: &Server, request: &Value, stock: &Answer) -> Result<Value> {
        let (status, body) = server.post("/completion", request)?;
        self.hold(what, stock, (status, &body));
        Ok(body)
    }

    /// An answer to `/completion` has to be stock's.
    pub fn hold(&mut self, what: &str, stock: &Answer, answer: (u16, &Value)) {
        self.compared.hold(&format!("{}: {what}", self.name), stock, self.reference.tolerance, answer);
    }

    /// Tokens have to be stock's.
    pub fn hold_tokens(&mut self, what: &str, stock: &Answer, tokens: &[i64]) {
        self.compared.hold_tokens(&format!("{}: {what}", self.name), stock, self.reference.tolerance, tokens);
    }

    /// What many clients found.
    pub fn count(&mut self, tally: &Tally) {
        self.compared.same += usize::try_from(tally.same).unwrap_or(usize::MAX);
        self.compared.near_ties += usize::try_from(tally.near_ties).unwrap_or(usize::MAX);
        self.must(tally.bad() == 0, || {
            format!("{} wrong answers, {} errors:\n{}", tally.wrong, tally.errors, tally.words.join("\n"))
        });
    }

    /// Something else that has to be so.
    pub fn must(&mut self, holds: bool, otherwise: impl FnOnce() -> String) {
        if !holds {
            self.compared.failures.push(format!("{}: {}", self.name, otherwise()));
        }
    }

    /// The prompt tokens that an answer found in the cache have to be these.
    pub fn must_have_found(&mut self, what: &str, body: &Value, tokens: usize) {
        let found = body["timings"]["cache_n"].as_u64();
        self.must(found == u64::try_from(tokens).ok(), || {
            format!("{what}: expected {tokens} cached tokens, found {found:?}")
        });
    }

    /// After all requests nothing is held, and the server is there.
    pub fn must_be_at_rest(&mut self, mut server: Server) -> Result<()> {
        let held = pool_is_held(&pool_at_rest(&server)?);
        self.must(held.is_none(), || held.unwrap_or_default());
        server.still_runs()
    }
}

/// How often the server's log has `words`. What it says is written a moment later, so that a first time is waited for.
pub fn times_said(server: &Server, words: &str) -> Result<usize> {
    for _ in 0..40 {
        let times = server.said()?.matches(words).count();
        if times > 0 {
            return Ok(times);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(0)
}
