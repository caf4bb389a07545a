//! PURE: oracles for one request's time and memory budget and for the state of the server afterwards.

#[cfg(test)]
mod tests;

use std::time::Duration;

use espalier_core::http::{Ending, Response};
use serde_json::Value;

use super::plan::Round;
use crate::fuzz::judge::{Finding, log};

/// Budget of one request.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Maximum time until it is answered or refused.
    pub answer: Duration,
    /// Maximum time until a concurrent plain request of another client is answered, and until the server is idle
    /// afterwards.
    pub other: Duration,
    /// Bytes of memory above those of the idle server, independent of the body.
    pub memory: u64,
    /// Additional bytes of memory for each byte of the body.
    pub memory_of_body: u64,
}

impl Budget {
    /// Builds the budget for a maximum wait of `patience` for other clients.
    pub fn with_patience(patience: Duration) -> Budget {
        Budget { answer: patience * 2, other: patience, memory: 256 << 20, memory_of_body: 64 }
    }

    /// Maximum resident memory of a server that uses `rest` bytes when idle, while it processes a body of `body` bytes.
    pub fn most_memory(&self, rest: u64, body: usize) -> u64 {
        rest + self.memory + self.memory_of_body * body as u64
    }
}

/// Observations of another client while the request was in progress.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Other {
    /// Number of requests that it sent.
    pub asked: usize,
    /// Maximum time that one of them took.
    pub longest: Duration,
    /// The first failed response, if any.
    pub failed: Option<String>,
}

/// Observations of one request.
#[derive(Clone, Debug)]
pub struct Observation {
    /// Size parameter of the request.
    pub size: usize,
    /// Length of the body in bytes.
    pub body: usize,
    /// The recorded response.
    pub response: Response,
    /// Whether the client disconnected on purpose.
    pub left: bool,
    /// Observations of the other client.
    pub other: Other,
    /// Peak resident memory in bytes; 0 if the system does not report it.
    pub peak: u64,
    /// Time until the server was idle; `None` if it was not within the budget.
    pub rested: Option<Duration>,
    /// Answer to a plain request afterwards; `None` if the server was gone.
    pub reference: Option<Value>,
}

impl Observation {
    /// Returns the status and the text of the error, if a response arrived.
    pub fn status(&self) -> Option<(u16, String)> {
        let text = self.response.text();
        let body: Value = serde_json::from_str(&text).unwrap_or_default();
        let message = body["error"]["message"].as_str().map(str::to_string);
        Some((self.response.status?, message.unwrap_or(text)))
    }

    /// Returns the message of an error of the type `invalid_request_error`, which may quote the request.
    fn mistake(&self) -> Option<String> {
        let body = self.response.json();
        let error = &body["error"];
        let message = error["message"].as_str().filter(|message| !message.is_empty())?;
        (error["type"] == "invalid_request_error").then(|| message.to_string())
    }

    /// Whether the request was refused (4xx); then larger ones will be too.
    pub fn is_refused(&self) -> bool {
        self.status().is_some_and(|(status, _)| (400..500).contains(&status))
    }
}

/// All observations of a round.
#[derive(Debug, Default)]
pub struct Evidence {
    /// Resident memory of the idle server before the first request, in bytes.
    pub rest: u64,
    /// Answer to a plain request before the first one.
    pub reference: Value,
    /// The observed requests, by increasing size.
    pub observations: Vec<Observation>,
    /// Exit status of the server, if it ended by itself.
    pub ended: Option<String>,
    /// The server's log.
    pub log: String,
}

/// Runs every oracle.
pub fn judge(round: &Round, evidence: &Evidence, budget: &Budget) -> Vec<Finding> {
    let of_one = |one| judge_one(round, evidence, one, budget);
    let mut findings: Vec<Finding> = evidence.observations.iter().flat_map(of_one).collect();
    let is_killed = findings.iter().any(|finding| finding.oracle == "memory");
    if let (Some(how), Some(last), false) = (&evidence.ended, evidence.observations.last(), is_killed) {
        // All other violations of this request follow from the exit.
        let asked = in_words(round, last);
        findings.retain(|finding| finding.asked != asked);
        let (expected, came) = ("a server that runs".to_string(), format!("it ended: {how}"));
        findings.push(Finding { oracle: "server", asked, expected, came });
    }
    findings.extend(log::judge(&evidence.log, None));
    findings
}

fn in_words(round: &Round, one: &Observation) -> String {
    format!("{}, size {}, a body of {} bytes", round.words(), one.size, one.body)
}

/// Returns the violations of one request; the caller sends no larger requests after one.
pub fn judge_one(round: &Round, evidence: &Evidence, one: &Observation, budget: &Budget) -> Vec<Finding> {
    let asked = in_words(round, one);
    let finding = |(oracle, wrong): (&'static str, Wrong)| {
        let (expected, came) = wrong?;
        Some(Finding { oracle, asked: asked.clone(), expected, came })
    };
    // A server that exceeds the limit is killed, so other violations are not its own doing.
    if let Some(memory) = finding(("memory", memory(evidence, one, budget))) {
        return vec![memory];
    }
    let wrong = [
        ("time", time(one, budget)),
        ("status", status(one)),
        ("message", message(one)),
        ("other", other(one, budget)),
        ("work", work(one, budget)),
        ("answer", answer(evidence, one)),
        ("log", logged(evidence, one)),
    ];
    wrong.into_iter().filter_map(finding).collect()
}

/// Expected and actual result, if they differ.
type Wrong = Option<(String, String)>;

fn memory(evidence: &Evidence, one: &Observation, budget: &Budget) -> Wrong {
    let most = budget.most_memory(evidence.rest, one.body);
    let expected =
        || format!("at most {} of memory, of which {} at rest", mebibytes(most), mebibytes(evidence.rest));
    (one.peak > most).then(|| (expected(), mebibytes(one.peak)))
}

fn time(one: &Observation, budget: &Budget) -> Wrong {
    let is_whole = one.response.is_whole;
    let is_late = !one.left && !is_whole && matches!(one.response.ending, Ending::Left | Ending::Silent);
    is_late.then(|| {
        (format!("an answer within {:.0} s", budget.answer.as_secs_f64()), "none until then".to_string())
    })
}

/// Accepts 200, 4xx, and 501 for endpoints the server was not started for.
fn status(one: &Observation) -> Wrong {
    let expected = || "200, 4xx or 501".to_string();
    match (one.status(), &one.response.ending) {
        (Some((200 | 400..=499 | 501, _)), _) | (None, Ending::Left | Ending::Silent) => None,
        (Some((status, message)), _) => Some((expected(), format!("{status}: {}", shorten(&message)))),
        (None, ending) => Some((expected(), format!("no answer: {ending:?}"))),
    }
}

/// Substrings that an error message must not contain: they do not name what was too large or wrong.
const VAGUE: [&str; 5] = ["std::", "bad_alloc", "basic_string", "vector::", "stoul"];

/// The message of a grammar without the reason, which follows it.
const WITHOUT_REASON: &str = "failed to parse grammar";

/// Substrings of messages about a limit: these have to name it.
const LIMITS: [&str; 4] = ["too many", "too large", "too deep", "sane defaults"];

/// Whether a message of a 4xx response does not tell the client what to change.
fn is_vague(message: &str) -> bool {
    let text = message.trim().trim_end_matches(':');
    let is_limit = LIMITS.iter().any(|limit| text.contains(limit));
    text.is_empty()
        || text.ends_with(WITHOUT_REASON)
        || VAGUE.iter().any(|vague| text.contains(vague))
        || (is_limit && !text.contains(|character: char| character.is_ascii_digit()))
}

/// Checks that a 4xx response explains itself. Refusals by the HTTP library, which have no body, are exempt.
fn message(one: &Observation) -> Wrong {
    let (status, message) = one.status()?;
    let has_body = !one.response.body.is_empty();
    let is_wrong = (400..500).contains(&status) && has_body && is_vague(&message);
    let came = || format!("{status}: {:?}", shorten(&message));
    is_wrong.then(|| ("a message that names the reason, with its limit if it has one".to_string(), came()))
}

fn other(one: &Observation, budget: &Budget) -> Wrong {
    let expected = || format!("another client is answered within {:.0} s", budget.other.as_secs_f64());
    let slow = (one.other.longest > budget.other)
        .then(|| format!("it waited {:.1} s", one.other.longest.as_secs_f64()));
    one.other.failed.clone().or(slow).map(|came| (expected(), came))
}

fn work(one: &Observation, budget: &Budget) -> Wrong {
    let has_left = one.left || one.status().is_none();
    let how = if has_left { "after its client went away" } else { "after the answer" };
    one.rested.is_none().then(|| {
        (
            format!("a server at rest within {:.0} s {how}", budget.other.as_secs_f64()),
            "it still computes".to_string(),
        )
    })
}

fn answer(evidence: &Evidence, one: &Observation) -> Wrong {
    let came = one.reference.as_ref().map_or("none".to_string(), Value::to_string);
    let is_same = one.reference.as_ref() == Some(&evidence.reference);
    let expected =
        || format!("the answer to a plain request as before: {}", shorten(&evidence.reference.to_string()));
    (!is_same).then(|| (expected(), shorten(&came)))
}

/// Checks that the log does not have the message of a client's error, which may quote the request. There is no log until
/// the round is over.
fn logged(evidence: &Evidence, one: &Observation) -> Wrong {
    let quotes = |message: &String| !has_numbers_only(message) && evidence.log.contains(message.as_str());
    let message = one.mistake().filter(quotes)?;
    Some(("a log without the message of a client's error".to_string(), shorten(&message)))
}

/// Whether the message can quote nothing but numbers. `/v1/messages` has no type of its own for that error.
fn has_numbers_only(message: &str) -> bool {
    let text: String = message.chars().filter(|one| !one.is_ascii_digit()).collect();
    text == "request ( tokens) exceeds the available context size ( tokens), try increasing it"
}

fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}

/// Truncates a message, which may be long.
fn shorten(text: &str) -> String {
    const MAX_CHARS: usize = 300;
    match text.char_indices().nth(MAX_CHARS) {
        Some((at, _)) => format!("{} ...", &text[..at]),
        None => text.to_string(),
    }
}
