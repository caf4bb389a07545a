//! The load generator: sends the requests of a workload to a server and records each. Requests are sent at once
//! ([`at_once`]), one after the other ([`in_turn`]), or by clients of which each waits for its answer before it sends
//! the next ([`streams`]; with a limit of time or requests, [`Clients`]).

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use espalier_core::error::{Error, Result};
use espalier_core::http::Request;
use espalier_core::sys::machine::threads::{few_at_once, result_of};
use espalier_core::sys::net::client::stop_if;
use espalier_core::sys::net::server::Server;
use serde_json::Value;

use super::request_record::{self, PATH, RequestRecord};

/// Returns the number of prompt tokens computed for all requests.
pub fn computed(records: &[RequestRecord]) -> u64 {
    records.iter().map(|record| record.timings.computed).sum()
}

/// Returns the prompt tokens per second of requests that were sent one after the other.
pub fn prompt_rate(records: &[RequestRecord]) -> f64 {
    let seconds: f64 = records.iter().map(|record| record.timings.prompt_seconds).sum();
    computed(records) as f64 / seconds
}

/// Records of requests that were sent at once.
#[derive(Clone, Debug)]
pub struct Answered {
    /// From the first request sent to the last answer received.
    pub elapsed: Duration,
    /// The requests, in their order.
    pub records: Vec<RequestRecord>,
}

/// Sends all requests at once, each over its own connection; a request that is not answered is an error.
pub fn at_once(server: &Server, bodies: &[Value]) -> Result<Answered> {
    let volley = server.post_at_once(PATH, bodies)?;
    let records = volley.answers.into_iter().map(RequestRecord::of_answer);
    Ok(Answered { elapsed: volley.elapsed, records: records.map(answered).collect::<Result<_>>()? })
}

/// As [`at_once`], but returns requests that were not answered with their errors; calls `look` until all have ended.
pub fn at_once_and_look(
    server: &Server,
    bodies: &[Value],
    look: impl FnMut(&Server),
) -> Result<Vec<RequestRecord>> {
    let volley = server.post_and_look(PATH, bodies, look)?;
    Ok(volley.answers.into_iter().map(RequestRecord::of_answer).collect())
}

/// Limit of a request that is sent alone: stock needs minutes for tens of thousands of tokens.
const LIMIT: Duration = Duration::from_secs(1800);

/// Sends the requests one after the other; a request that is not answered is an error.
pub fn in_turn(server: &Server, bodies: &[Value]) -> Result<Vec<RequestRecord>> {
    let ask = |body: &Value| {
        let answer = server.json(&Request::post(PATH, body), LIMIT)?;
        answered(RequestRecord::of_answer(answer))
    };
    bodies.iter().map(ask).collect()
}

/// Returns the record of a request that was answered.
fn answered(record: RequestRecord) -> Result<RequestRecord> {
    match record.error {
        Some(words) => Err(Error::no(words)),
        None => Ok(record),
    }
}

/// Sends requests for streams with this number of clients: each takes the next request as soon as its last one is
/// answered. One client sends them one after the other. Returns the records in the order of the requests; a request
/// that is not answered is an error.
pub fn streams(server: &Server, clients: usize, bodies: &[Value]) -> Result<Vec<RequestRecord>> {
    let begin = Instant::now();
    few_at_once(clients, bodies.iter().collect(), |body| stream(server, begin, body))
}

/// Sends a request for a stream and reads its whole answer. Times are relative to `begin`.
///
/// # Errors
///
/// The answer is incomplete, or has no timings: at least one token of every prompt is computed.
pub fn stream(server: &Server, begin: Instant, body: &Value) -> Result<RequestRecord> {
    let record = answered(follow(server, begin, body, Patience::Whole, &Progress::default()))?;
    match record.timings.computed {
        0 => Err(Error::no("a stream ended without timings").detail(record.last.to_string())),
        _ => Ok(record),
    }
}

/// Condition on which a client disconnects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// Until the answer is complete.
    Whole,
    /// Until this many tokens have arrived, at least 1.
    Tokens(usize),
    /// For this long, even if nothing has arrived.
    Time(Duration),
}

/// Progress of a stream, for other threads, which can also stop it.
#[derive(Debug, Default)]
pub struct Progress {
    pub(crate) tokens: AtomicUsize,
    pub(crate) has_ended: AtomicBool,
    is_enough: AtomicBool,
}

impl Progress {
    /// Returns the number of tokens that have arrived.
    pub fn tokens(&self) -> usize {
        self.tokens.load(Ordering::Relaxed)
    }

    /// Whether no more tokens will arrive.
    pub fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }

    /// Whether the first token has arrived, or an error.
    pub fn has_begun(&self) -> bool {
        self.tokens() > 0 || self.has_ended()
    }

    /// Makes the client disconnect at the next event.
    pub fn stop(&self) {
        self.is_enough.store(true, Ordering::Relaxed);
    }
}

/// Sends a request for a stream and reads the answer as long as `patience` lasts. Times are relative to `begin`.
pub fn follow(
    server: &Server,
    begin: Instant,
    body: &Value,
    patience: Patience,
    progress: &Progress,
) -> RequestRecord {
    let mut record = RequestRecord { sent: begin.elapsed(), ..RequestRecord::default() };
    let wait_for = match patience {
        Patience::Whole => usize::MAX,
        Patience::Tokens(tokens) => tokens,
        Patience::Time(time) => {
            record.error = server.post_and_leave(PATH, body, time).err().map(|error| error.to_string());
            return record;
        }
    };
    let mut has_enough = false;
    let received = record.receive(server, body, request_record::LIMIT, begin, |record| {
        progress.tokens.store(record.tokens.len(), Ordering::Relaxed);
        has_enough = record.tokens.len() >= wait_for || progress.is_enough.load(Ordering::Relaxed);
        stop_if(record.ended.is_some() || record.error.is_some() || has_enough)
    });
    progress.has_ended.store(true, Ordering::Relaxed);
    let problem = match received {
        Err(error) => Some(error.to_string()),
        Ok(()) if has_enough && record.status == 200 => None,
        Ok(()) => record.problem(),
    };
    record.error = record.error.or(problem);
    record
}

/// Clients in a closed loop: each sends a request, reads its answer, and sends the next.
#[derive(Debug)]
pub struct Clients {
    /// Start of the load.
    pub begin: Instant,
    /// Number of requests of all clients after which the load ends.
    most: u64,
    sent: AtomicU64,
    failures: AtomicU64,
    is_over: AtomicBool,
    is_held_back: AtomicBool,
}

/// A server that has exited answers no request, so the load ends after this many failures.
const MAX_FAILURES: u64 = 20;

impl Clients {
    /// Runs `count` clients, with at most `most` requests, while `meanwhile` runs. `client` is called with its number,
    /// and sends requests as long as [`Clients::may_send`]. Returns the results of all clients, and that of
    /// `meanwhile`.
    pub fn run<T: Send, M>(
        count: usize,
        most: u64,
        client: impl Fn(usize, &Clients) -> T + Sync,
        meanwhile: impl FnOnce(&Clients) -> Result<M>,
    ) -> Result<(Vec<T>, M)> {
        let clients = Clients {
            begin: Instant::now(),
            most,
            sent: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            is_held_back: AtomicBool::new(false),
        };
        std::thread::scope(|threads| {
            let (clients, client) = (&clients, &client);
            let start = |number| threads.spawn(move || Ok(client(number, clients)));
            let running: Vec<_> = (0..count).map(start).collect();
            let result = meanwhile(clients);
            clients.is_over.store(true, Ordering::Relaxed);
            let all = running.into_iter().map(result_of).collect::<Result<Vec<T>>>()?;
            Ok((all, result?))
        })
    }

    /// Returns the time since the start of the load.
    pub fn now(&self) -> Duration {
        self.begin.elapsed()
    }

    /// Sets whether clients pause before they send; requests that are being answered continue.
    pub fn hold_back(&self, is_held_back: bool) {
        self.is_held_back.store(is_held_back, Ordering::Relaxed);
    }

    /// Holds the clients back once `patience_ends`, until `is_over` returns true.
    pub fn hold_back_after(&self, patience_ends: Duration, is_over: impl Fn() -> bool) {
        while !is_over() {
            self.hold_back(self.now() > patience_ends);
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Blocks until a request may be sent, and counts it; returns false when the load is over.
    pub fn may_send(&self) -> bool {
        while self.is_held_back.load(Ordering::Relaxed) && !self.is_over() {
            std::thread::sleep(Duration::from_millis(1));
        }
        !self.is_over() && self.sent.fetch_add(1, Ordering::Relaxed) < self.most
    }

    /// Whether no client sends another request.
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
            || self.sent.load(Ordering::Relaxed) >= self.most
            || self.failures.load(Ordering::Relaxed) >= MAX_FAILURES
    }

    /// Counts a request that failed.
    pub fn count_failure(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_prompt_rate_is_that_of_all_requests() {
        let timings = json!({ "prompt_n": 16, "prompt_ms": 250.0, "predicted_per_second": 12.5 });
        let answer = || RequestRecord::of_answer((200, json!({ "tokens": [5], "timings": timings })));
        assert!((prompt_rate(&[answer(), answer()]) - 64.0).abs() < 1e-9);
        assert!(answered(answer()).is_ok());
        let refused = RequestRecord::of_answer((500, json!({ "error": { "message": "no room" } })));
        assert!(answered(refused).unwrap_err().to_string().contains("no room"));
    }

    #[test]
    fn clients_stop_at_the_limit_and_after_failures() {
        let send_all = |_: usize, clients: &Clients| {
            let mut sent = 0_u64;
            while clients.may_send() {
                sent += 1;
            }
            sent
        };
        let until_over = |clients: &Clients| {
            while !clients.is_over() {
                std::thread::yield_now();
            }
            Ok(())
        };
        let (sent, ()) = Clients::run(3, 50, send_all, until_over).unwrap();
        assert_eq!(sent.iter().sum::<u64>(), 50);
        let fail = |_: usize, clients: &Clients| {
            while clients.may_send() {
                clients.count_failure();
            }
        };
        Clients::run(2, u64::MAX, fail, until_over).unwrap();
    }
}
