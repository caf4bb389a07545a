//! Runs the clients of one act, each on its own thread.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use espalier_core::http::Ending;
use espalier_core::sys::net::server::Server;

use super::{RoundState, get};
use crate::fuzz::judge::{Played, cost, longest_silence};
use crate::fuzz::plan::actions::Action;
use crate::fuzz::plan::{Round, body};

/// Everything the clients of an act need.
pub struct Crowd<'a> {
    /// The server.
    pub server: &'a Server,
    /// The round.
    pub round: &'a Round,
    /// Index of the act.
    pub number: usize,
    /// State shared by all acts of the round.
    pub round_state: &'a RoundState,
    /// Maximum time without data when no earlier request is pending.
    pub patience: Duration,
}

/// Clients start no actions after this time.
const LONGEST_ACT: Duration = Duration::from_secs(8);

struct Shared {
    begin: Instant,
    /// Cost in tokens of all requests in progress.
    open: AtomicU64,
    /// Whether a client timed out: the others would too.
    is_over: AtomicBool,
}

impl Crowd<'_> {
    /// Runs the act. Returns all executed actions, and whether a client timed out.
    pub fn play(&self) -> (Vec<Played>, bool) {
        let shared =
            Shared { begin: Instant::now(), open: AtomicU64::new(0), is_over: AtomicBool::new(false) };
        let clients = &self.round.acts[self.number].clients;
        let played = std::thread::scope(|threads| {
            let shared = &shared;
            let numbered = clients.iter().enumerate();
            let running: Vec<_> = numbered
                .map(|(client, actions)| threads.spawn(move || self.play_client(client, actions, shared)))
                .collect();
            while !running.iter().all(std::thread::ScopedJoinHandle::is_finished) {
                self.scrape();
                std::thread::sleep(Duration::from_millis(200));
            }
            running.into_iter().filter_map(|client| client.join().ok()).flatten().collect()
        });
        self.scrape();
        (played, shared.is_over.into_inner())
    }

    /// Scrapes `/metrics`. A sleeping server answers it too, but the request may wake it.
    fn scrape(&self) {
        if !self.round.server.metrics {
            return;
        }
        if let (Some(text), Ok(mut scrapes)) =
            (get(self.server, &self.round.server, "/metrics"), self.round_state.scrapes.lock())
        {
            scrapes.push(text);
        }
    }

    fn play_client(&self, client: usize, actions: &[Action], shared: &Shared) -> Vec<Played> {
        let mut played = Vec::new();
        for (number, action) in actions.iter().enumerate() {
            if shared.is_over.load(Ordering::Relaxed) || shared.begin.elapsed() > LONGEST_ACT {
                break;
            }
            std::thread::sleep(action.pause);
            played.push(self.play_action((self.number, client, number), action, shared));
        }
        played
    }

    fn play_action(&self, place: (usize, usize, usize), action: &Action, shared: &Shared) -> Played {
        let request = body::request(action, &self.round.server, &self.round_state.marker);
        let cost = cost(&action.what);
        let open = shared.open.fetch_add(cost, Ordering::Relaxed) + cost;
        let sent = self.round_state.begin.elapsed();
        let response = self.server.send(
            &request,
            action.leave,
            longest_silence(&self.round.server, self.patience, open, self.round_state.pace),
        );
        shared.open.fetch_sub(cost, Ordering::Relaxed);
        if response.ending == Ending::Silent {
            shared.is_over.store(true, Ordering::Relaxed);
        }
        let own_scales = self.round.acts[self.number].own_scales;
        Played { place, action: action.clone(), own_scales, sent, response, reference: None }
    }
}
