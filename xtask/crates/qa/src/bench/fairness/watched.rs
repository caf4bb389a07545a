//! Watched streams: each starts beside two others, is the most recent of them, and is preempted when all three have
//! grown. Then all other clients send requests, each of which needs fewer blocks than the watched one.

use std::time::Duration;

use espalier_core::error::Result;
use espalier_core::sys::machine::threads::result_of;
use espalier_core::sys::net::server::Server;

use super::traffic::{self, SLOTS};
use crate::serving::cases;
use crate::serving::load::{self, Clients, Patience, Progress};
use crate::serving::request_record::{RequestRecord, Span};

/// Seven blocks of sixteen, and eight when the two others have taken their fifth ones.
const PROMPT: usize = 400;
const PREDICTED: usize = 120;

/// Duration of a stall after which the other clients are held back.
const PATIENCE: Duration = Duration::from_secs(10);

/// One stream, and the time at which the others were held back so that it could end.
pub(super) struct Watched {
    pub(super) slot: usize,
    pub(super) record: RequestRecord,
    pub(super) patience_ends: Duration,
}

impl Watched {
    /// Returns the longest time between two tokens.
    pub(super) fn longest_gap(&self) -> Option<Span> {
        self.record.longest_gap(self.patience_ends)
    }
}

/// Watches one stream in each slot, one after the other.
pub(super) fn watch_all(server: &Server, clients: &Clients) -> Result<Vec<Watched>> {
    let all = (0..SLOTS).map(|slot| watch(server, clients, slot)).collect();
    clients.hold_back(false);
    all
}

fn watch(server: &Server, clients: &Clients, slot: usize) -> Result<Watched> {
    clients.hold_back(true);
    traffic::until_taken(server, 0)?;
    let streams: [Progress; 3] = Default::default();
    std::thread::scope(|threads| {
        let streams = &streams;
        let send = |number: usize| {
            threads.spawn(move || {
                let request = request(slot, number);
                Ok(load::follow(server, clients.begin, &request, Patience::Whole, &streams[number]))
            })
        };
        let others = [1, 2].map(send);
        wait_for(&streams[1..]);
        let client = send(0);
        wait_for(&streams[..1]);
        let patience_ends = clients.now() + PATIENCE;
        clients.hold_back_after(patience_ends, || client.is_finished());
        clients.hold_back(true);
        others.into_iter().try_for_each(|other| result_of(other).map(drop))?;
        Ok(Watched { slot, record: result_of(client)?, patience_ends })
    })
}

/// Waits until all have received their first token, or an error.
fn wait_for(streams: &[Progress]) {
    while !streams.iter().all(Progress::has_begun) {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Returns a request. Number 0 is the watched one, in `slot`; the others are in the next slots.
fn request(slot: usize, number: usize) -> serde_json::Value {
    let (length, predict) = if number == 0 { (PROMPT, PREDICTED) } else { traffic::ORDINARY };
    let prompt = cases::numbered_prompt(u64::MAX / 4 + (slot * 3 + number) as u64, length);
    let mut request = cases::stream_of(&prompt, predict);
    request["id_slot"] = ((slot + number) % SLOTS).into();
    request
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serving::cases::BLOCK;

    #[test]
    fn all_three_begin_and_do_not_all_end() {
        let (prompt, predicted) = traffic::ORDINARY;
        let pool = traffic::CELLS / BLOCK;
        assert!((PROMPT + 1).div_ceil(BLOCK) + 2 * (prompt + 1).div_ceil(BLOCK) < pool);
        assert!((PROMPT + PREDICTED).div_ceil(BLOCK) + 2 * (prompt + predicted).div_ceil(BLOCK) > pool);
    }

    #[test]
    fn each_asks_for_a_slot_of_its_own() {
        let slots = [0, 1, 2].map(|number| request(3, number)["id_slot"].as_u64());
        assert_eq!(slots, [Some(3), Some(0), Some(1)]);
        assert_ne!(request(3, 0)["prompt"], request(2, 0)["prompt"]);
    }
}
