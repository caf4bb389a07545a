//! Plays a round: a server, requests of growing size, another client beside each, and everything that is seen.

mod watch;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use self::watch::Watched;
use super::judge::{self, Budget, Evidence, Observation};
use super::plan::Round;
use super::plan::family::Duty;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::fuzz::judge::decode;
use crate::serving::switches;
use crate::sys::machine::process::Run;
use crate::sys::machine::{disk, ours};
use crate::sys::net::exchange::{Exchange, Leave, Question};
use crate::sys::net::server::{Server, help_of};

/// Where rounds are played.
pub struct Arena {
    program: PathBuf,
    is_paged: bool,
    model: PathBuf,
    folder: tempfile::TempDir,
    budget: Budget,
}

/// A client that goes away early does so after this time.
const EARLY: Duration = Duration::from_millis(150);

/// A request that was answered sooner leaves no work behind.
const SHORT: Duration = Duration::from_millis(500);

impl Arena {
    /// Finds out whether the program can be paged.
    pub fn prepare(context: &Context, program: PathBuf, budget: Budget) -> Result<Arena> {
        ours::claim(&context.layout)?;
        let folder = disk::scratch_folder(&context.layout.generated().join("fuzz"), "requests")?;
        let is_paged = help_of(&program)?.contains("--kv-paged");
        Ok(Arena { program, is_paged, model: context.layout.smoke_model(), folder, budget })
    }

    /// The command line of a server.
    pub fn words(&self, duty: Duty) -> String {
        self.run(duty).words()
    }

    fn run(&self, duty: Duty) -> Run {
        let more: &[&str] = match duty {
            Duty::Generate => &[],
            Duty::Embed => &["--embedding", "--pooling", "last"],
            Duty::Rerank => &["--reranking"],
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
        let mut server = Server::start(self.run(round.duty()), &self.folder.path().join("server.log"))?;
        let reference = reference(&server, round.duty());
        let Some(answered) = reference else {
            return Err(Error::no("the server does not answer a plain request"));
        };
        // The first answers allocate what stays.
        let rest = server.resident_bytes().unwrap_or_default();
        let mut evidence = Evidence { rest, reference: answered, ..Evidence::default() };
        for size in round.sizes() {
            let Some(question) = round.request(size) else { break };
            let one = self.observe(&server, round, size, &question, rest);
            let is_over =
                one.is_refused() || !judge::judge_one(round, &evidence, &one, &self.budget).is_empty();
            evidence.observations.push(one);
            evidence.ended = server.ended();
            if is_over || evidence.ended.is_some() {
                break;
            }
        }
        evidence.log = server.said()?;
        Ok(evidence)
    }

    fn observe(
        &self,
        server: &Server,
        round: &Round,
        size: usize,
        question: &Question,
        rest: u64,
    ) -> Observation {
        let body = question.body.len();
        let limit = self.budget.most_memory(rest, body);
        let leave = match round.leaves {
            true => Leave::AfterTime(EARLY),
            false => Leave::WhenAnswered(self.budget.answer),
        };
        let plain = plain(round.duty());
        let ask = || server.exchange(question, leave, self.budget.answer);
        let Watched { exchange, other, peak } = watch::during(server, &plain, &self.budget, limit, ask);
        let rested = match exchange.took > SHORT || round.leaves {
            true => rest_of(server, self.budget.other),
            false => Some(Duration::ZERO),
        };
        let reference = reference(server, round.duty());
        Observation { size, body, exchange, left: round.leaves, other, peak, rested, reference }
    }
}

/// A plain request, and where its answer has what must not change.
fn plain_json(duty: Duty) -> (&'static str, Value, &'static str) {
    match duty {
        Duty::Generate => (
            "/completion",
            json!({ "prompt": "The", "n_predict": 8, "temperature": 0, "cache_prompt": false }),
            "/content",
        ),
        Duty::Embed => ("/v1/embeddings", json!({ "input": "The" }), "/data/0/embedding"),
        // Without a head for ranks the scores of documents depend on what is computed with them.
        Duty::Rerank => ("/rerank", json!({ "query": "The", "documents": ["a"] }), "/results"),
    }
}

fn plain(duty: Duty) -> Question {
    let (path, json, _) = plain_json(duty);
    Question { method: "POST", path: path.to_string(), body: json.to_string(), ..Question::default() }
}

/// How long the reference is waited for: the server may still end what it has begun.
const REFERENCE: Duration = Duration::from_secs(20);

fn reference(server: &Server, duty: Duty) -> Option<Value> {
    let exchange = server.exchange(&plain(duty), Leave::Never, REFERENCE);
    answer_of(&exchange)?.pointer(plain_json(duty).2).cloned()
}

fn answer_of(exchange: &Exchange) -> Option<Value> {
    let reply = decode(&exchange.bytes).filter(|reply| reply.status == 200)?;
    serde_json::from_slice(&reply.body).ok()
}

/// A server that computes for less than this share of a time rests. On a busy machine one that works gets little.
const IDLE: f64 = 0.05;

/// How long it is looked at, in one piece: a clock tick of 10 ms is less than that share.
const LOOK: Duration = Duration::from_millis(300);

/// Until the server computes no more; nothing if that takes longer than `limit`. Where the system does not say, it rests.
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
