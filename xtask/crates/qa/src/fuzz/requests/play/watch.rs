//! Observation of a request in progress: another client sends requests, and memory is sampled.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use espalier_core::http::{Disconnect, Ending, Request, Response};
use espalier_core::sys::net::server::Server;

use super::super::judge::{Budget, Other};

/// Observations during the request.
pub struct Watched {
    /// The recorded response.
    pub response: Response,
    /// Observations of the other client.
    pub other: Other,
    /// Peak resident memory in bytes.
    pub peak: u64,
}

/// Interval between memory samples. A server has been observed to allocate 2 GiB per second, which is 10 MiB per
/// interval.
const GUARD: Duration = Duration::from_millis(5);

/// Pause of the other client before each request.
const PAUSE: Duration = Duration::from_millis(10);

/// Sends a request while another client repeats `plain`. A server that exceeds `limit` bytes is killed at once.
pub fn during(
    server: &Server,
    plain: &Request,
    budget: &Budget,
    limit: u64,
    ask: impl FnOnce() -> Response,
) -> Watched {
    let (is_over, sampled) = (AtomicBool::new(false), AtomicU64::new(0));
    let is_exact = server.reset_peak();
    let (response, other) = std::thread::scope(|threads| {
        let other = threads.spawn(|| ask_meanwhile(server, plain, budget.other, &is_over));
        threads.spawn(|| guard(server, limit, &sampled, &is_over));
        let response = ask();
        is_over.store(true, Ordering::Relaxed);
        (response, other.join().unwrap_or_default())
    });
    let sampled = sampled.into_inner();
    let peak = server.peak_bytes().filter(|_| is_exact).map_or(sampled, |peak| peak.max(sampled));
    Watched { response, other, peak }
}

fn guard(server: &Server, limit: u64, most: &AtomicU64, is_over: &AtomicBool) {
    while !is_over.load(Ordering::Relaxed) {
        let bytes = server.resident_bytes().unwrap_or_default();
        if most.fetch_max(bytes, Ordering::Relaxed).max(bytes) > limit {
            server.kill();
            return;
        }
        std::thread::sleep(GUARD);
    }
}

/// Sends at least one request, and stops after the first that is not answered correctly.
fn ask_meanwhile(server: &Server, plain: &Request, limit: Duration, is_over: &AtomicBool) -> Other {
    let mut other = Other::default();
    while other.asked == 0 || !is_over.load(Ordering::Relaxed) {
        std::thread::sleep(PAUSE);
        let response = server.send(plain, Disconnect::WhenAnswered(limit), limit);
        other.asked += 1;
        other.longest = other.longest.max(response.took);
        other.failed = failure(&response);
        if other.failed.is_some() {
            break;
        }
    }
    other
}

fn failure(response: &Response) -> Option<String> {
    match (response.status, &response.ending) {
        (Some(200), _) if response.is_whole => None,
        (Some(status), _) => Some(format!("it got status {status}")),
        (None, Ending::Left | Ending::Silent) => Some("it was not answered".to_string()),
        (None, ending) => Some(format!("it got no answer: {ending:?}")),
    }
}
