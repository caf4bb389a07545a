//! Requests to a server, one or many, and its pool when all are answered.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::Value;

use super::kv_pool::Pool;
use super::verdict::{self, Answer};
use crate::error::{Error, Result};
use crate::sys::machine::threads::result_of;
use crate::sys::net::server::Server;

/// A slot is released just after its answer was sent, and when a client that went away is noticed.
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

/// An answer to `/completion`.
///
/// # Errors
///
/// It was answered something else.
pub fn read_answer((status, body): &(u16, Value)) -> Result<Answer> {
    verdict::read(body)
        .ok_or_else(|| Error::no(format!("/completion answered {status}")).detail(body.to_string()))
}

/// Asks `/completion`.
pub fn ask(server: &Server, request: &Value) -> Result<Answer> {
    read_answer(&server.post("/completion", request)?)
}

/// An answer on a busy machine, behind others in the queue, takes no longer.
const TURN_LIMIT: Duration = Duration::from_secs(10 * 60);

/// Asks `/completion` for all `requests`, of which `clients` are under way at once; gives the answers in the order of
/// the requests.
///
/// # Errors
///
/// One was not answered; the others are waited for.
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
