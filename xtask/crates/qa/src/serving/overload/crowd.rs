//! The clients: each sends a request, waits or disconnects, and repeats until the end condition is met.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use espalier_core::sys::net::server::Server;
use serde_json::Value;

use super::tally::Tally;
use super::traffic::{self, Client, Patience, Visit};
use crate::serving::verdict::Answer;

/// The clients of a run, their expected answers, and the end condition.
pub struct Crowd<'a> {
    /// Prompts with stock's answers; no client requests more tokens than these have.
    pub known: &'a [(Vec<u32>, Answer)],
    /// Maximum by which a token may be less likely than stock's choice, in natural logarithms.
    pub tolerance: f64,
    /// Number of concurrent clients.
    pub clients: usize,
    /// Seed of the clients' visits.
    pub seed: u64,
    /// End condition: no client begins another visit after it.
    pub enough: Enough,
}

/// The end condition.
#[derive(Clone, Copy, Debug)]
pub enum Enough {
    /// After this many visits of all clients together.
    Visits(u64),
    /// After this time.
    Time(Duration),
}

/// A crashed server answers no requests, so the run stops after this many errors.
const MOST_ERRORS: u64 = 20;

/// State shared by the clients.
struct Shared {
    begin: Instant,
    visits: AtomicU64,
    errors: AtomicU64,
}

impl Crowd<'_> {
    /// Runs all clients; calls `look` ten times a second until the last one has finished.
    pub fn visit(&self, server: &Server, mut look: impl FnMut(&Server)) -> Tally {
        let shared = Shared { begin: Instant::now(), visits: AtomicU64::new(0), errors: AtomicU64::new(0) };
        std::thread::scope(|threads| {
            let shared = &shared;
            let send = |number| threads.spawn(move || self.run_client(number, server, shared));
            let running: Vec<_> = (0..self.clients).map(send).collect();
            while !running.iter().all(|client| client.is_finished()) {
                look(server);
                std::thread::sleep(Duration::from_millis(100));
            }
            let mut tally = Tally::default();
            for client in running {
                match client.join() {
                    Ok(one) => tally.add(one),
                    Err(_) => tally.error("a client broke down".to_string()),
                }
            }
            tally
        })
    }

    fn run_client(&self, number: usize, server: &Server, shared: &Shared) -> Tally {
        let mut tally = Tally::default();
        for visit in Client::new(self.seed, number, self.known.len()) {
            if self.is_over(shared) {
                break;
            }
            let before = tally.bad();
            self.pay(&visit, server, &mut tally);
            shared.errors.fetch_add(tally.bad() - before, Ordering::Relaxed);
        }
        tally
    }

    fn is_over(&self, shared: &Shared) -> bool {
        let visits = shared.visits.fetch_add(1, Ordering::Relaxed);
        let enough = match self.enough {
            Enough::Visits(most) => visits >= most,
            Enough::Time(limit) => shared.begin.elapsed() >= limit,
        };
        enough || shared.errors.load(Ordering::Relaxed) >= MOST_ERRORS
    }

    fn pay(&self, visit: &Visit, server: &Server, tally: &mut Tally) {
        let (prompt, stock) = &self.known[visit.prompt];
        let visit = &visit.asking_at_most(stock.tokens.len());
        let request = traffic::request(visit, prompt);
        let name = format!("prompt {}", visit.prompt);
        let wait_for = match visit.patience {
            Patience::Time(time) => {
                match server.post_and_leave("/completion", &request, time) {
                    Ok(()) => tally.left += 1,
                    Err(error) => tally.error(format!("{name}: {error}")),
                }
                return;
            }
            Patience::Tokens(tokens) => tokens,
            Patience::Whole => usize::MAX,
        };
        match follow(server, &request, wait_for) {
            Ok(Heard { tokens, is_whole: true }) => {
                tally.answer(&name, stock, &tokens, visit.predict, self.tolerance);
            }
            Ok(Heard { .. }) => tally.left += 1,
            Err(words) => tally.error(format!("{name}: {words}")),
        }
    }
}

/// The data that a client had received when it stopped reading.
struct Heard {
    tokens: Vec<i64>,
    is_whole: bool,
}

/// Reads until `wait_for` tokens have arrived, or the answer is complete.
fn follow(server: &Server, request: &Value, wait_for: usize) -> Result<Heard, String> {
    let mut heard = Heard { tokens: Vec::new(), is_whole: false };
    let mut refusal = None;
    let look = |event: &Value| {
        heard.tokens.extend(event["tokens"].as_array().into_iter().flatten().filter_map(Value::as_i64));
        heard.is_whole = event["stop"] == true;
        refusal = event.get("error").map(Value::to_string);
        match heard.is_whole || refusal.is_some() || heard.tokens.len() >= wait_for {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    };
    let answered = server.follow("/completion", request, look).map_err(|error| error.to_string())?;
    match (answered, refusal) {
        ((200, _), None) if heard.is_whole || heard.tokens.len() >= wait_for => Ok(heard),
        ((200, _), None) => Err(format!("the stream ended after {} tokens", heard.tokens.len())),
        ((_, _), Some(refusal)) => Err(refusal),
        ((status, body), None) => Err(format!("returned {status}: {body}")),
    }
}
