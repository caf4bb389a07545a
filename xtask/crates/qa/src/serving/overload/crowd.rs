//! The clients: each sends a request, waits or disconnects, and repeats until the end condition is met.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use espalier_core::sys::net::client::stop_if;
use espalier_core::sys::net::server::Server;

use super::tally::Tally;
use super::traffic::{self, Client, Patience, Visit};
use crate::serving::streamed::{self, StreamedResponse};
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
        let has_enough = |response: &StreamedResponse| response.tokens.len() >= wait_for;
        let received = StreamedResponse::follow(server, &request, streamed::LIMIT, |response| {
            stop_if(response.ended.is_some() || response.error.is_some() || has_enough(response))
        });
        let response = match received {
            Ok(response) => response,
            Err(error) => return tally.error(format!("{name}: {error}")),
        };
        let has_left = response.status == 200 && response.error.is_none() && has_enough(&response);
        match response.problem() {
            None => tally.answer(&name, stock, &response.tokens, visit.predict, self.tolerance),
            Some(_) if has_left => tally.left += 1,
            Some(words) => tally.error(format!("{name}: {words}")),
        }
    }
}
