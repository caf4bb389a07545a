//! A stream that runs while others ask: it holds room, or must not stand still.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use serde_json::Value;

use super::asking::{ANYBODY, with};
use crate::error::{Error, Result};
use crate::sys::machine::threads::result_of;
use crate::sys::net::server::Server;

/// What others see of it.
#[derive(Debug, Default)]
pub struct Running {
    is_over: AtomicBool,
    may_leave: AtomicBool,
}

impl Running {
    /// Whether its last token has come: then what was seen after it shows nothing.
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }
}

/// What a stream said.
#[derive(Debug, Default)]
pub struct Heard {
    /// Its tokens.
    pub tokens: usize,
    /// Its last event, or what came instead of a stream.
    pub last: Value,
}

/// Asks `/completion` for a stream; when its first token is there, does `act`. Then the client goes away, if the
/// stream is not over by itself.
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
        // It ends without a word when the stream does not begin; that is an error of the stream.
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
            // Whoever waits hears it once.
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
