//! One request to a server, and its pool when all are answered.

use std::time::Duration;

use serde_json::Value;

use super::kv_pool::Pool;
use super::verdict::{self, Answer};
use crate::error::{Error, Result};
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
