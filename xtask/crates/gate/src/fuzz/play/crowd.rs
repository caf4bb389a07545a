//! The clients of one act, each on a thread of its own.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::{Scene, get};
use crate::fuzz::judge::{Played, cost, longest_silence};
use crate::fuzz::plan::actions::Action;
use crate::fuzz::plan::{Round, body};
use crate::sys::net::exchange::Ending;
use crate::sys::net::server::Server;

/// What the clients of an act need.
pub struct Crowd<'a> {
    /// Whom they ask.
    pub server: &'a Server,
    /// The round.
    pub round: &'a Round,
    /// Which act.
    pub number: usize,
    /// What all acts of it have.
    pub scene: &'a Scene,
    /// How long nothing may come when there is nothing to do before.
    pub patience: Duration,
}

/// After this time nobody begins anything more.
const LONGEST_ACT: Duration = Duration::from_secs(8);

struct Shared {
    begin: Instant,
    /// Tokens of all that was asked and has not ended.
    open: AtomicU64,
    /// Somebody waits in vain: the rest would too.
    is_over: AtomicBool,
}

impl Crowd<'_> {
    /// Everything that the clients did; and whether the server answers no more.
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

    /// Of a server that sleeps the numbers are said too, but who asks may wake it.
    fn scrape(&self) {
        if !self.round.server.metrics {
            return;
        }
        if let (Some(text), Ok(mut scrapes)) =
            (get(self.server, &self.round.server, "/metrics"), self.scene.scrapes.lock())
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
        let question = body::question(action, &self.round.server, &self.scene.marker);
        let cost = cost(&action.what);
        let open = shared.open.fetch_add(cost, Ordering::Relaxed) + cost;
        let sent = self.scene.begin.elapsed();
        let exchange = self.server.exchange(
            &question,
            action.leave,
            longest_silence(&self.round.server, self.patience, open, self.scene.pace),
        );
        shared.open.fetch_sub(cost, Ordering::Relaxed);
        if exchange.ending == Ending::Silent {
            shared.is_over.store(true, Ordering::Relaxed);
        }
        let own_scales = self.round.acts[self.number].own_scales;
        Played { place, action: action.clone(), own_scales, sent, exchange, reference: None }
    }
}
