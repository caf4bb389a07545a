//! A stream that runs while other requests are sent: it holds blocks, or must not stall.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use espalier_core::error::{Error, Result};
use espalier_core::sys::machine::threads::result_of;
use espalier_core::sys::net::client::stop_if;
use espalier_core::sys::net::server::Server;
use serde_json::Value;

use super::asking::{LIMIT, with};
use crate::serving::request_record::RequestRecord;

/// State of the stream, shared with the code that runs beside it.
#[derive(Debug, Default)]
pub struct Running {
    is_over: AtomicBool,
    may_leave: AtomicBool,
}

impl Running {
    /// Whether the last token has arrived; observations after that prove nothing.
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }
}

/// Starts a stream of `/completion` and calls `act` after its first token. Then the client disconnects, unless the
/// stream has ended by itself.
pub fn meanwhile<T>(
    server: &Server,
    request: &Value,
    act: impl FnOnce(&Running) -> Result<T>,
) -> Result<(RequestRecord, T)> {
    let request = with(request.clone(), "stream", true);
    let running = Running::default();
    let (begins, has_begun) = mpsc::channel();
    std::thread::scope(|threads| {
        let stream = threads.spawn(|| follow(server, &request, begins, &running));
        // The channel closes without a message if the stream does not begin; the stream has the error then.
        let begun = has_begun.recv();
        let acted = begun.is_ok().then(|| act(&running));
        running.may_leave.store(true, Ordering::SeqCst);
        let response = result_of(stream)?;
        match acted {
            Some(acted) => Ok((response, acted?)),
            None => Err(Error::no("a stream did not begin").detail(response.last.to_string())),
        }
    })
}

fn follow(
    server: &Server,
    request: &Value,
    begins: mpsc::Sender<()>,
    running: &Running,
) -> Result<RequestRecord> {
    let mut begins = Some(begins);
    let received = RequestRecord::follow(server, request, LIMIT, |response| {
        if !response.tokens.is_empty() {
            // Signals the first token, once.
            begins.take().map(|begins| begins.send(()));
        }
        stop_if(running.may_leave.load(Ordering::SeqCst))
    });
    running.is_over.store(true, Ordering::SeqCst);
    received
}
