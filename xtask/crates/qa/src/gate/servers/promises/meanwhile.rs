//! A stream that runs while other requests are sent: it holds blocks, or must not stall.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use espalier_core::error::{Error, Result};
use espalier_core::sys::machine::threads::result_of;
use espalier_core::sys::net::server::Server;
use serde_json::Value;

use super::asking::{ANYBODY, with};

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

/// Result of a stream.
#[derive(Debug, Default)]
pub struct Heard {
    /// Number of tokens received.
    pub tokens: usize,
    /// The last event, or the response received instead of a stream.
    pub last: Value,
}

/// Starts a stream of `/completion` and calls `act` after its first token. Then the client disconnects, unless the
/// stream has ended by itself.
pub fn meanwhile<T>(
    server: &Server,
    request: &Value,
    act: impl FnOnce(&Running) -> Result<T>,
) -> Result<(Heard, T)> {
    let request = with(request.clone(), "stream", true);
    let running = Running::default();
    let (begins, has_begun) = mpsc::channel();
    std::thread::scope(|threads| {
        let stream = threads.spawn(|| follow(server, &request, begins, &running));
        // The channel closes without a message if the stream does not begin; the stream has the error then.
        let begun = has_begun.recv();
        let acted = begun.is_ok().then(|| act(&running));
        running.may_leave.store(true, Ordering::SeqCst);
        let heard = result_of(stream)?;
        match acted {
            Some(acted) => Ok((heard, acted?)),
            None => Err(Error::no("a stream did not begin").detail(heard.last.to_string())),
        }
    })
}

fn follow(server: &Server, request: &Value, begins: mpsc::Sender<()>, running: &Running) -> Result<Heard> {
    let mut heard = Heard::default();
    let mut begins = Some(begins);
    let look = |line: &str| {
        let Ok(event) = serde_json::from_str::<Value>(line.strip_prefix("data:").unwrap_or(line)) else {
            return ControlFlow::Continue(());
        };
        heard.tokens += event["tokens"].as_array().map_or(0, Vec::len);
        if heard.tokens > 0 {
            // Signals the first token, once.
            begins.take().map(|begins| begins.send(()));
        }
        heard.last = event;
        match running.may_leave.load(Ordering::SeqCst) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    };
    let read = server.read_lines("/completion", request, ANYBODY, look);
    running.is_over.store(true, Ordering::SeqCst);
    read.map(|_| heard)
}
