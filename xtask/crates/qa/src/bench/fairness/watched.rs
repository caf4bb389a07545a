//! Watched streams: each starts beside two others, is the most recent of them, and is preempted when all three have
//! grown. Then all other clients send requests, each of which needs fewer blocks than the watched one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use espalier_core::error::Result;
use espalier_core::sys::net::server::Server;

use super::spans::{self, Span};
use super::traffic::{self, SLOTS, ScenarioState};
use crate::serving::cases;
use crate::serving::streamed::StreamedResponse;

/// Seven blocks of sixteen, and eight when the two others have taken their fifth ones.
const PROMPT: usize = 400;
const PREDICTED: usize = 120;

/// Duration of a stall after which the other clients are held back.
const PATIENCE: Duration = Duration::from_secs(10);

/// One stream, and the time at which the others were held back so that it could end.
pub(super) struct Watched {
    pub(super) slot: usize,
    pub(super) response: StreamedResponse,
    pub(super) patience_ends: Duration,
}

impl Watched {
    /// Returns the longest time between two tokens.
    pub(super) fn silence(&self) -> Option<Span> {
        spans::silence(&self.response, self.patience_ends)
    }
}

/// Watches one stream in each slot, one after the other.
pub(super) fn watch_all(server: &Server, state: &ScenarioState) -> Result<Vec<Watched>> {
    let all = (0..SLOTS).map(|slot| watch(server, state, slot)).collect();
    state.hold_back(false);
    all
}

fn watch(server: &Server, state: &ScenarioState, slot: usize) -> Result<Watched> {
    state.hold_back(true);
    traffic::until_taken(server, 0)?;
    let began: [AtomicBool; 3] = Default::default();
    std::thread::scope(|threads| {
        let began = &began;
        let send = |number: usize| {
            threads.spawn(move || {
                let response = traffic::ask(server, state, &request(slot, number), &began[number]);
                began[number].store(true, Ordering::Relaxed);
                response
            })
        };
        let others = [1, 2].map(send);
        wait_for(&began[1..]);
        let client = send(0);
        wait_for(&began[..1]);
        let patience_ends = state.now() + PATIENCE;
        while !client.is_finished() {
            state.hold_back(state.now() > patience_ends);
            std::thread::sleep(Duration::from_millis(2));
        }
        state.hold_back(true);
        others.into_iter().try_for_each(|other| traffic::joined(other).map(drop))?;
        Ok(Watched { slot, response: traffic::joined(client)?, patience_ends })
    })
}

/// Waits until all have received their first token, or an error.
fn wait_for(began: &[AtomicBool]) {
    while !began.iter().all(|one| one.load(Ordering::Relaxed)) {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Returns a request. Number 0 is the watched one, in `slot`; the others are in the next slots.
fn request(slot: usize, number: usize) -> serde_json::Value {
    let (length, predict) = if number == 0 { (PROMPT, PREDICTED) } else { traffic::ORDINARY };
    let prompt = cases::numbered_prompt(u64::MAX / 4 + (slot * 3 + number) as u64, length);
    let mut request = traffic::stream_of(&prompt, predict);
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
