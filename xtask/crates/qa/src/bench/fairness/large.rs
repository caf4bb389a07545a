//! The scenario `large`: beside the endless requests, an occasional prompt that needs most of the pool.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use espalier_core::error::Result;
use espalier_core::sys::net::server::Server;
use serde_json::Value;

use super::bypass::{self, Visit, kinds};
use super::report::Measured;
use super::traffic::{self, ScenarioState};
use crate::serving::cases;

/// Eleven of sixteen blocks, including the answer.
const PROMPT: usize = 690;
const PREDICTED: usize = 8;

/// Time between the answer to a large prompt and the next one.
const PAUSE: Duration = Duration::from_secs(1);

/// Time to wait for an answer before the other clients are held back so that it can be produced.
const PATIENCE: Duration = Duration::from_secs(20);

/// Sends large prompts for `seconds`, at least one for each slot and one for any slot.
pub(super) fn measure(server: &Server, seconds: u32) -> Result<Measured> {
    let length = Duration::from_secs(seconds.into());
    let (others, visits) = traffic::beside(server, |state| send(server, state, length))?;
    Ok(bypass::judge(&visits, &others))
}

fn send(server: &Server, state: &ScenarioState, length: Duration) -> Result<Vec<Visit>> {
    let mut visits = Vec::new();
    for slot in kinds().cycle() {
        if state.now() >= length && visits.len() >= kinds().count() {
            break;
        }
        std::thread::sleep(PAUSE);
        visits.push(visit(server, state, slot, visits.len())?);
    }
    Ok(visits)
}

fn visit(server: &Server, state: &ScenarioState, slot: Option<usize>, number: usize) -> Result<Visit> {
    let taken = traffic::slots_taken(server)?;
    let request = request(slot, number);
    let patience_ends = state.now() + PATIENCE;
    std::thread::scope(|threads| {
        let client = threads.spawn(|| traffic::ask(server, state, &request, &AtomicBool::new(false)));
        while !client.is_finished() {
            state.hold_back(state.now() > patience_ends);
            std::thread::sleep(Duration::from_millis(2));
        }
        state.hold_back(false);
        Ok(Visit { slot, taken, patience_ends, response: traffic::joined(client)? })
    })
}

fn request(slot: Option<usize>, number: usize) -> Value {
    let prompt = cases::numbered_prompt(u64::MAX / 2 + number as u64, PROMPT);
    let mut request = traffic::stream_of(&prompt, PREDICTED);
    if let Some(slot) = slot {
        request["id_slot"] = slot.into();
    }
    request
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_prompt_needs_eleven_blocks() {
        assert_eq!((PROMPT + PREDICTED).div_ceil(cases::BLOCK), 11);
        assert_eq!(request(Some(2), 0)["id_slot"], 2);
        assert_eq!(request(None, 0)["id_slot"], Value::Null);
        assert_ne!(request(None, 0)["prompt"], request(None, 1)["prompt"]);
    }
}
