//! Requests to a server, one or many, and the state of its pool after all are answered.

use std::time::Duration;

use espalier_core::error::{Error, Result};
use espalier_core::http::Request;
use espalier_core::sys::machine::threads::few_at_once;
use espalier_core::sys::net::server::Server;
use serde_json::Value;

use super::kv_pool::Pool;
use super::request_record;
use super::verdict::{self, Answer};

/// Returns the pool once it is idle: a slot is released just after its answer was sent, and when the disconnect of a
/// client is noticed.
pub fn pool_at_rest(server: &Server) -> Result<Pool> {
    for _ in 0..100 {
        let pool = Pool::of_server(server)?;
        if pool.is_at_rest() {
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

/// POSTs all `requests` to `/completion`, `clients` of them concurrently; returns the answers in the order of the
/// requests.
///
/// # Errors
///
/// A request was not answered; those that were sent before are still awaited.
pub fn ask_in_turn(server: &Server, requests: &[Value], clients: usize) -> Result<Vec<Answer>> {
    few_at_once(clients, requests.iter().collect(), |request| {
        read_answer(&server.json(&Request::post("/completion", request), request_record::LIMIT)?)
    })
}

/// Returns the number of busy slots.
pub fn busy_slots(server: &Server) -> Result<usize> {
    let (_, slots) = server.get("/slots")?;
    let slots = slots.as_array().ok_or_else(|| Error::no("the server does not report what its slots do"))?;
    Ok(slots.iter().filter(|slot| slot["is_processing"] == true).count())
}
