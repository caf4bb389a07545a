//! Requests to a server, one or many, and the state of its pool after all are answered.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use espalier_core::error::{Error, Result};
use espalier_core::sys::machine::threads::result_of;
use espalier_core::sys::net::server::Server;
use serde_json::Value;

use super::kv_pool::Pool;
use super::verdict::{self, Answer};

/// Returns the pool once it is idle: a slot is released just after its answer was sent, and when the disconnect of a
/// client is noticed.
pub fn pool_at_rest(server: &Server) -> Result<Pool> {
    for _ in 0..100 {
        let pool = Pool::of_server(server)?;
        if pool.blocks_used == 0 {
            return Ok(pool);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Pool::of_server(server)
}

/// Reads an answer to `/completion`.
///
/// # Errors
///
/// The answer is something else.
pub fn read_answer((status, body): &(u16, Value)) -> Result<Answer> {
    verdict::read(body)
        .ok_or_else(|| Error::no(format!("/completion answered {status}")).detail(body.to_string()))
}

/// POSTs to `/completion`.
pub fn ask(server: &Server, request: &Value) -> Result<Answer> {
    read_answer(&server.post("/completion", request)?)
}

/// Upper limit of an answer on a busy machine, including its time in the queue.
const TURN_LIMIT: Duration = Duration::from_secs(10 * 60);

/// POSTs all `requests` to `/completion`, `clients` of them concurrently; returns the answers in the order of the
/// requests.
///
/// # Errors
///
/// A request was not answered; the others are still awaited.
pub fn ask_in_turn(server: &Server, requests: &[Value], clients: usize) -> Result<Vec<Answer>> {
    let next = AtomicUsize::new(0);
    let client = || -> Result<Vec<(usize, Answer)>> {
        let mut answers = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(request) = requests.get(at) else { return Ok(answers) };
            let volley =
                server.post_at_once_within("/completion", std::slice::from_ref(request), TURN_LIMIT)?;
            for answer in &volley.answers {
                answers.push((at, read_answer(answer)?));
            }
        }
    };
    let mut answers: Vec<(usize, Answer)> = std::thread::scope(|threads| {
        let running: Vec<_> = (0..clients.max(1)).map(|_| threads.spawn(client)).collect();
        let answers = running.into_iter().map(result_of).collect::<Result<Vec<_>>>();
        answers.map(|answers| answers.into_iter().flatten().collect())
    })?;
    answers.sort_by_key(|(at, _)| *at);
    Ok(answers.into_iter().map(|(_, answer)| answer).collect())
}
