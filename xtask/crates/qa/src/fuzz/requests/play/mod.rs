//! Runs a round: starts a server, sends requests of growing size with another client beside each, and records the
//! observations.

mod watch;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use espalier_core::config::layout::SMOKE_MODEL;
use espalier_core::context::Context;
use espalier_core::error::{Error, Result};
use espalier_core::http::{Disconnect, Request};
use espalier_core::sys::machine::process::Run;
use espalier_core::sys::machine::{disk, owned};
use espalier_core::sys::net::server::{Server, help_of};
use serde_json::{Value, json};

use self::watch::Watched;
use super::judge::{self, Budget, Evidence, Observation};
use super::plan::Round;
use super::plan::family::Task;
use crate::serving::switches;

/// Fixture in which rounds run.
pub struct RequestFuzzFixture {
    program: PathBuf,
    is_paged: bool,
    model: PathBuf,
    folder: tempfile::TempDir,
    budget: Budget,
}

/// Time after which an early client disconnects.
const EARLY: Duration = Duration::from_millis(150);

/// Requests answered sooner than this are assumed to leave no work behind.
const SHORT: Duration = Duration::from_millis(500);

impl RequestFuzzFixture {
    /// Prepares the fixture; detects from the program's help whether it supports `--kv-paged`.
    pub fn prepare(context: &Context, program: PathBuf, budget: Budget) -> Result<RequestFuzzFixture> {
        owned::claim(&context.layout)?;
        let folder = disk::scratch_folder(&context.layout.generated().join("fuzz"), "requests")?;
        let is_paged = help_of(&program)?.contains("--kv-paged");
        let model = context.file_of_espalier(SMOKE_MODEL)?;
        Ok(RequestFuzzFixture { program, is_paged, model, folder, budget })
    }

    /// Returns the command line of a server.
    pub fn words(&self, task: Task) -> String {
        self.run(task).words()
    }

    fn run(&self, task: Task) -> Run {
        let more: &[&str] = match task {
            Task::Generate => &[],
            Task::Embed => &["--embedding", "--pooling", "last"],
            Task::Rerank => &["--reranking"],
        };
        let paged: &[&str] = if self.is_paged { &["--kv-paged"] } else { &[] };
        switches::without_features(Run::new(&self.program))
            .args(["-t", "1", "-np", "2", "-c", "4096", "--cache-ram", "0", "--model"])
            .arg(&self.model)
            .args(paged)
            .args(more)
    }

    /// Sends requests of growing size until one is refused, breaks a budget, or is the largest.
    pub fn play(&self, round: &Round) -> Result<Evidence> {
        let mut server = Server::start(self.run(round.task()), &self.folder.path().join("server.log"))?;
        let reference = reference(&server, round.task());
        let Some(answered) = reference else {
            return Err(Error::no("the server does not answer a plain request"));
        };
        // The first answer allocates memory that stays allocated.
        let rest = server.resident_bytes().unwrap_or_default();
        let mut evidence = Evidence { rest, reference: answered, ..Evidence::default() };
        for size in round.sizes() {
            let Some(request) = round.request(size) else { break };
            let one = self.observe(&server, round, size, &request, rest);
            let is_over =
                one.is_refused() || !judge::judge_one(round, &evidence, &one, &self.budget).is_empty();
            evidence.observations.push(one);
            evidence.ended = server.ended();
            if is_over || evidence.ended.is_some() {
                break;
            }
        }
        evidence.log = server.log_text()?;
        Ok(evidence)
    }

    fn observe(
        &self,
        server: &Server,
        round: &Round,
        size: usize,
        request: &Request,
        rest: u64,
    ) -> Observation {
        let body = request.body.len();
        let limit = self.budget.most_memory(rest, body);
        let leave = match round.leaves {
            true => Disconnect::AfterTime(EARLY),
            false => Disconnect::WhenAnswered(self.budget.answer),
        };
        let plain = plain(round.task());
        let ask = || server.send(request, leave, self.budget.answer);
        let Watched { response, other, peak } = watch::during(server, &plain, &self.budget, limit, ask);
        let rested = match response.took > SHORT || round.leaves {
            true => rest_of(server, self.budget.other),
            false => Some(Duration::ZERO),
        };
        let reference = reference(server, round.task());
        Observation { size, body, response, left: round.leaves, other, peak, rested, reference }
    }
}

/// Path and body of a plain request, and the JSON pointer to the part of its answer that must not change.
fn plain_json(task: Task) -> (&'static str, Value, &'static str) {
    match task {
        Task::Generate => (
            "/completion",
            json!({ "prompt": "The", "n_predict": 8, "temperature": 0, "cache_prompt": false }),
            "/content",
        ),
        Task::Embed => ("/v1/embeddings", json!({ "input": "The" }), "/data/0/embedding"),
        // Without a ranking head a document's score depends on what else is in the batch.
        Task::Rerank => ("/rerank", json!({ "query": "The", "documents": ["a"] }), "/results"),
    }
}

fn plain(task: Task) -> Request {
    let (path, json, _) = plain_json(task);
    Request::post(path, json)
}

/// Timeout for the reference answer: the server may still be finishing earlier work.
const REFERENCE: Duration = Duration::from_secs(20);

fn reference(server: &Server, task: Task) -> Option<Value> {
    let response = server.send(&plain(task), Disconnect::Never, REFERENCE);
    response.json().pointer(plain_json(task).2).cloned().filter(|_| response.status == Some(200))
}

/// A server that uses less than this share of a core is idle. On a busy machine a working one gets little CPU time.
const IDLE: f64 = 0.05;

/// Length of one CPU-time sample: a clock tick of 10 ms must be less than that share of it.
const LOOK: Duration = Duration::from_millis(300);

/// Waits until the server is idle and returns how long that took; `None` if longer than `limit`. If the system does not
/// report CPU time, the server counts as idle.
fn rest_of(server: &Server, limit: Duration) -> Option<Duration> {
    let begin = Instant::now();
    while begin.elapsed() < limit {
        let Some(before) = server.processor_time() else { return Some(begin.elapsed()) };
        let look = Instant::now();
        std::thread::sleep(LOOK);
        let computed = server.processor_time().unwrap_or(before).saturating_sub(before);
        if computed.as_secs_f64() < look.elapsed().as_secs_f64() * IDLE {
            return Some(begin.elapsed());
        }
    }
    None
}
