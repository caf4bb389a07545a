//! The clients that keep a small pool full: each sends a request, reads its answer to the end, and sends the next.

use std::time::{Duration, Instant};

use espalier_core::error::{Error, Result};
use espalier_core::sys::net::server::Server;

use crate::serving::asking::busy_slots;
use crate::serving::cases;
use crate::serving::load::{self, Clients, Patience, Progress};
use crate::serving::request_record::RequestRecord;

/// Number of slots of the server.
pub(super) const SLOTS: usize = 4;

/// Sixteen blocks.
pub(super) const CELLS: usize = 1024;

/// More clients than slots, so that at least one always waits.
pub(super) const CLIENTS: usize = 6;

/// Tokens of a prompt and of its answer: four blocks at first and five at the end, so that three requests leave too few
/// blocks for a fourth.
pub(super) const ORDINARY: (usize, usize) = (200, 115);

/// Limit for operations that take seconds, sufficient on a busy machine.
const LIMIT: Duration = Duration::from_secs(5 * 60);

/// Runs the clients while `meanwhile` runs; returns their records, and its result.
pub(super) fn beside<T>(
    server: &Server,
    meanwhile: impl FnOnce(&Clients) -> Result<T>,
) -> Result<(Vec<RequestRecord>, T)> {
    let client = |number: usize, clients: &Clients| run_client(number, server, clients);
    let (records, result) = Clients::run(CLIENTS, u64::MAX, client, meanwhile)?;
    Ok((records.concat(), result))
}

fn run_client(number: usize, server: &Server, clients: &Clients) -> Vec<RequestRecord> {
    let mut all = Vec::new();
    while clients.may_send() {
        // Distinct prompts, so that nothing is shared.
        let (length, predict) = ORDINARY;
        let prompt = cases::numbered_prompt((number * 1_000_000 + all.len()) as u64, length);
        let request = cases::stream_of(&prompt, predict);
        let record = load::follow(server, clients.begin, &request, Patience::Whole, &Progress::default());
        if record.error.is_some() {
            clients.count_failure();
        }
        all.push(record);
    }
    all
}

/// Waits until `count` slots are busy.
pub(super) fn until_taken(server: &Server, count: usize) -> Result<()> {
    let begin = Instant::now();
    while busy_slots(server)? != count {
        if begin.elapsed() > LIMIT {
            return Err(Error::no(format!("{} slots are in use, expected {count}", busy_slots(server)?)));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_requests_fit_and_four_do_not() {
        let (prompt, predicted) = ORDINARY;
        assert_eq!((prompt + predicted).div_ceil(cases::BLOCK), 5);
        assert_eq!(((prompt + 1).div_ceil(cases::BLOCK), CELLS / cases::BLOCK), (4, 16));
        const { assert!(CLIENTS > SLOTS) };
    }
}
