//! The clients: each sends a request, waits or disconnects, and repeats until the end condition is met.

use std::time::Duration;

use espalier_core::error::Result;
use espalier_core::sys::net::server::Server;

use super::tally::Tally;
use super::traffic::{self, Client, Visit};
use crate::serving::load::{self, Clients, Progress};
use crate::serving::request_record::RequestRecord;
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
    /// Number of visits of all clients together after which no other one begins.
    pub visits: u64,
    /// Time after which no other visit begins.
    pub time: Duration,
}

impl Crowd<'_> {
    /// Runs all clients; calls `look` ten times a second until the end condition is met.
    pub fn visit(&self, server: &Server, mut look: impl FnMut(&Server)) -> Result<Tally> {
        let client = |number: usize, clients: &Clients| self.run_client(number, server, clients);
        let (tallies, ()) = Clients::run(self.clients, self.visits, client, |clients| {
            while !clients.is_over() && clients.now() < self.time {
                look(server);
                std::thread::sleep(Duration::from_millis(100));
            }
            Ok(())
        })?;
        let mut all = Tally::default();
        tallies.into_iter().for_each(|tally| all.add(tally));
        Ok(all)
    }

    fn run_client(&self, number: usize, server: &Server, clients: &Clients) -> Tally {
        let mut tally = Tally::default();
        for visit in Client::new(self.seed, number, self.known.len()) {
            if !clients.may_send() {
                break;
            }
            let before = tally.bad();
            self.pay(&visit, server, clients, &mut tally);
            if tally.bad() > before {
                clients.count_failure();
            }
        }
        tally
    }

    fn pay(&self, visit: &Visit, server: &Server, clients: &Clients, tally: &mut Tally) {
        let (prompt, stock) = &self.known[visit.prompt];
        let visit = &visit.asking_at_most(stock.tokens.len());
        let request = traffic::request(visit, prompt);
        let name = format!("prompt {}", visit.prompt);
        match load::follow(server, clients.begin, &request, visit.patience, &Progress::default()) {
            RequestRecord { error: Some(words), .. } => tally.error(format!("{name}: {words}")),
            RequestRecord { ended: None, .. } => tally.left += 1,
            RequestRecord { tokens, .. } => {
                tally.answer(&name, stock, &tokens, visit.predict, self.tolerance);
            }
        }
    }
}
