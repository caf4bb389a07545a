//! Shutdown: every request gets an answer, whatever it waits for, and the process ends in time.

use std::time::{Duration, Instant};

use espalier_core::error::Result;
use espalier_core::http::Request;
use espalier_core::sys::machine::threads::result_of;
use espalier_core::sys::net::server::Server;
use serde_json::Value;

use super::asking::{LIMIT, metric, plain, read_to_end, with};
use super::fixture::{Model, PromiseFixture};
use super::tenants::MOMENT;
use crate::serving::cases;

/// `--shutdown-timeout` in seconds, the default.
const TIMEOUT: &str = "5";

/// The longest time from the signal to the exit: the timeout, and as long again for a busy machine. A server that hangs
/// never exits.
const BOUND: Duration = Duration::from_secs(10);

/// Time in which all requests have to run or wait, before the signal.
const PATIENCE: Duration = Duration::from_secs(5);

/// Steps so short, and attention so slow, that a long prompt takes seconds.
const SLOW: [&str; 6] = ["-b", "4", "-ub", "1", "-fa", "off"];

/// State of each request when the signal arrives, and its body. Sent in this order to four slots and 64 blocks: the prompt
/// has 54 blocks, the request without blocks needs 11, and the last one finds no slot.
fn requests() -> [(&'static str, Value); 5] {
    let prompt = cases::numbered_prompt(2, 3400);
    [
        ("runs", with(plain(&cases::numbered_prompt(1, 10), 3000), "stream", true)),
        ("computes a prompt", plain(&prompt, 4)),
        ("waits for the prefix of another", plain(&prompt, 4)),
        ("is queued for blocks", plain(&cases::numbered_prompt(3, 700), 4)),
        ("is queued for a slot", plain(&cases::numbered_prompt(4, 20), 4)),
    ]
}

/// A request that runs, one that waits for the prefix of another, and requests that are queued for blocks and for a
/// slot are answered at shutdown, and the process ends within its timeout.
pub fn of_a_queue(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    // Without a paged cache, which needs cells for all of them, all but the last request run.
    let modes = [("--kv-paged", "4096", &WAITS[..]), ("--kv-unified", "16384", &WAITS[..1])];
    for (paging, cells, waits) in modes {
        let arguments = ["-np", "4", "-c", cells, paging, "--metrics", "--shutdown-timeout", TIMEOUT];
        let server = fixture.serve(Model::Random, &[&arguments[..], &SLOW].concat())?;
        let (answers, ended) = answers_at_shutdown(fixture, &server, (paging, waits))?;
        let is_good = matches!(ended, Some((0 | 1, _)));
        fixture.must(is_good, || format!("{paging}: after the signal, exit code and time are {ended:?}"));
        for (what, (status, text)) in &answers {
            fixture.must(is_an_answer(*status, text), || {
                format!("{paging}: a request that {what} got {status}: {text}")
            });
        }
        let refused = answers.iter().filter(|(_, (_, text))| text.contains(UNAVAILABLE)).count();
        fixture.must(refused > 0, || format!("{paging}: no request was refused because of the shutdown"));
    }
    Ok(())
}

/// The type of the error that ends a request at shutdown.
const UNAVAILABLE: &str = "unavailable_error";

/// A refusal with 503, also as the last event of a stream, or the whole answer of a request that was just done.
fn is_an_answer(status: u16, text: &str) -> bool {
    match status {
        503 => text.contains(UNAVAILABLE),
        200 => text.contains(UNAVAILABLE) || text.contains("\"stop\":true"),
        _ => false,
    }
}

/// Each request with the status and the text of its answer; 0 without one.
type Answers = Vec<(&'static str, (u16, String))>;

/// The exit code of a server, and the time since the signal; `None` if it still runs.
type Exit = Option<(i32, Duration)>;

/// Sends all requests, and the signal as soon as each of them runs or waits, or after a limited time.
fn answers_at_shutdown(
    fixture: &mut PromiseFixture<'_>,
    server: &Server,
    (paging, waits): (&str, &[(&str, f64)]),
) -> Result<(Answers, Exit)> {
    std::thread::scope(|threads| {
        let mut asked = Vec::new();
        for (what, body) in requests() {
            let request = Request::post("/completion", &body);
            asked.push((what, threads.spawn(move || Ok(read_to_end(server, &request, 2 * LIMIT)))));
            std::thread::sleep(MOMENT);
        }
        let missing = missing_waits(server, waits)?;
        fixture.arose(missing.is_empty(), || format!("{paging}: too small before the signal: {missing:?}"));
        let ended = server.shut_down(BOUND)?;
        // So that no request waits for its limit.
        server.kill();
        let answers = asked.into_iter().map(|(what, answer)| Ok((what, result_of(answer)?)));
        let answers = answers.collect::<Result<Answers>>()?;
        Ok((answers, ended))
    })
}

/// Metrics that show what requests wait for, and their smallest values when all wait.
const WAITS: [(&str, f64); 3] = [
    ("requests_deferred", 1.0),
    ("kv_cache_queue_waits_total", 1.0),
    ("prefix_cache_inflight_waits_total", 1.0),
];

/// Waits until all metrics are large enough, for a limited time; returns those that are not.
fn missing_waits<'a>(server: &Server, waits: &'a [(&'a str, f64)]) -> Result<Vec<&'a str>> {
    let begin = Instant::now();
    loop {
        let mut missing = Vec::new();
        for (name, least) in waits {
            if metric(server, name)? < *least {
                missing.push(*name);
            }
        }
        if missing.is_empty() || begin.elapsed() > PATIENCE {
            return Ok(missing);
        }
        std::thread::sleep(MOMENT / 5);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_whole_or_says_that_the_server_ends() {
        assert!(is_an_answer(503, "{\"error\":{\"type\":\"unavailable_error\"}}"));
        assert!(is_an_answer(
            200,
            "data: {\"content\":\"a\"}\n\ndata: {\"error\":{\"type\":\"unavailable_error\"}}"
        ));
        assert!(is_an_answer(200, "{\"content\":\"a\",\"stop\":true}"));
        for (status, text) in
            [(0, ""), (200, "data: {\"content\":\"a\"}"), (503, "a proxy"), (500, UNAVAILABLE)]
        {
            assert!(!is_an_answer(status, text), "{status} {text}");
        }
    }
}
