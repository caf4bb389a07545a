//! The clients: each sends a request, reads its answer to the end, and sends the next.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use espalier_core::error::{Error, Result};
use espalier_core::sys::net::client::stop_if;
use espalier_core::sys::net::server::Server;
use serde_json::Value;

use crate::serving::cases;
use crate::serving::streamed::{self, StreamedResponse};

/// Number of slots of the server.
pub(super) const SLOTS: usize = 4;

/// Sixteen blocks.
pub(super) const CELLS: usize = 1024;

/// More clients than slots, so that at least one always waits.
pub(super) const CLIENTS: usize = 6;

/// Tokens of a prompt and of its answer: four blocks at first and five at the end, so that three requests leave too few
/// blocks for a fourth.
pub(super) const ORDINARY: (usize, usize) = (200, 115);

/// Errors after which a client stops: a server that has exited answers no request.
const MOST_ERRORS: usize = 20;

/// Limit for operations that take seconds, sufficient on a busy machine.
const LIMIT: Duration = Duration::from_secs(5 * 60);

/// State shared by the clients.
pub(super) struct ScenarioState {
    begin: Instant,
    is_over: AtomicBool,
    is_held_back: AtomicBool,
}

impl ScenarioState {
    /// Returns the time since the start of the scenario.
    pub(super) fn now(&self) -> Duration {
        self.begin.elapsed()
    }

    /// Sets whether clients pause before they send; requests that are being answered continue.
    pub(super) fn hold_back(&self, is_held_back: bool) {
        self.is_held_back.store(is_held_back, Ordering::Relaxed);
    }

    /// Blocks until a request may be sent; returns false when the scenario is over.
    fn may_send(&self) -> bool {
        while self.is_held_back.load(Ordering::Relaxed) && !self.is_over.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(1));
        }
        !self.is_over.load(Ordering::Relaxed)
    }
}

/// Runs the clients while `meanwhile` runs; returns their responses and its result.
pub(super) fn beside<T>(
    server: &Server,
    meanwhile: impl FnOnce(&ScenarioState) -> Result<T>,
) -> Result<(Vec<StreamedResponse>, T)> {
    let state = ScenarioState {
        begin: Instant::now(),
        is_over: AtomicBool::new(false),
        is_held_back: AtomicBool::new(false),
    };
    std::thread::scope(|threads| {
        let state = &state;
        let send = |number| threads.spawn(move || run_client(number, server, state));
        let clients: Vec<_> = (0..CLIENTS).map(send).collect();
        let result = meanwhile(state);
        state.is_over.store(true, Ordering::Relaxed);
        let responses = clients.into_iter().map(joined).collect::<Result<Vec<Vec<_>>>>()?;
        Ok((responses.concat(), result?))
    })
}

/// Returns the result of a client's thread.
pub(super) fn joined<T>(client: ScopedJoinHandle<'_, T>) -> Result<T> {
    client.join().map_err(|_| Error::environment("a client thread of the bench panicked"))
}

fn run_client(number: usize, server: &Server, state: &ScenarioState) -> Vec<StreamedResponse> {
    let mut all = Vec::new();
    let mut errors = 0;
    while errors < MOST_ERRORS && state.may_send() {
        // Distinct prompts, so that nothing is shared.
        let (length, predict) = ORDINARY;
        let prompt = cases::numbered_prompt((number * 1_000_000 + all.len()) as u64, length);
        let response = ask(server, state, &stream_of(&prompt, predict), &AtomicBool::new(false));
        errors += usize::from(response.error.is_some());
        all.push(response);
    }
    all
}

/// Returns a streaming request for `predict` tokens.
pub(super) fn stream_of(prompt: &[u32], predict: usize) -> Value {
    let mut request = cases::request_for(prompt, predict);
    request["stream"] = true.into();
    request["n_probs"] = 0.into();
    request
}

/// Reads the response to its end; sets `has_begun` when the first token arrives.
pub(super) fn ask(
    server: &Server,
    state: &ScenarioState,
    request: &Value,
    has_begun: &AtomicBool,
) -> StreamedResponse {
    let mut response = StreamedResponse::default();
    let received = response.receive(server, request, streamed::LIMIT, state.begin, |response| {
        has_begun.store(!response.tokens.is_empty(), Ordering::Relaxed);
        stop_if(response.ended.is_some() || response.error.is_some())
    });
    let problem = received.map_or_else(|error| Some(error.to_string()), |()| response.problem());
    response.error = response.error.or(problem);
    response
}

/// Returns the number of busy slots.
pub(super) fn slots_taken(server: &Server) -> Result<usize> {
    let (_, slots) = server.get("/slots")?;
    let slots = slots.as_array().ok_or_else(|| Error::no("the server does not report what its slots do"))?;
    Ok(slots.iter().filter(|slot| slot["is_processing"] == true).count())
}

/// Waits until `count` slots are busy.
pub(super) fn until_taken(server: &Server, count: usize) -> Result<()> {
    let begin = Instant::now();
    while slots_taken(server)? != count {
        if begin.elapsed() > LIMIT {
            return Err(Error::no(format!("{} slots are in use, expected {count}", slots_taken(server)?)));
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
