//! The scenario `large`: beside the endless requests, an occasional prompt that needs most of the pool.

use std::time::Duration;

use espalier_core::error::Result;
use espalier_core::sys::machine::threads::result_of;
use espalier_core::sys::net::server::Server;
use serde_json::Value;

use super::bypass::{self, Visit, kinds};
use super::record::Measured;
use super::traffic;
use crate::serving::asking::busy_slots;
use crate::serving::cases;
use crate::serving::load::{self, Clients, Patience, Progress};

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
    let (others, visits) = traffic::beside(server, |clients| send(server, clients, length))?;
    Ok(bypass::judge(&visits, &others))
}

fn send(server: &Server, clients: &Clients, length: Duration) -> Result<Vec<Visit>> {
    let mut visits = Vec::new();
    for slot in kinds().cycle() {
        if clients.now() >= length && visits.len() >= kinds().count() {
            break;
        }
        std::thread::sleep(PAUSE);
        visits.push(visit(server, clients, slot, visits.len())?);
    }
    Ok(visits)
}

fn visit(server: &Server, clients: &Clients, slot: Option<usize>, number: usize) -> Result<Visit> {
    let taken = busy_slots(server)?;
    let request = request(slot, number);
    let (progress, patience_ends) = (Progress::default(), clients.now() + PATIENCE);
    std::thread::scope(|threads| {
        let ask = || Ok(load::follow(server, clients.begin, &request, Patience::Whole, &progress));
        let client = threads.spawn(ask);
        clients.hold_back_after(patience_ends, || client.is_finished());
        clients.hold_back(false);
        Ok(Visit { slot, taken, patience_ends, record: result_of(client)? })
    })
}

fn request(slot: Option<usize>, number: usize) -> Value {
    let prompt = cases::numbered_prompt(u64::MAX / 2 + number as u64, PROMPT);
    let mut request = cases::stream_of(&prompt, PREDICTED);
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
