//! PURE: whether a request stayed within its budget, and what became of the server.

#[cfg(test)]
mod tests;

use std::time::Duration;

use serde_json::Value;

use super::plan::Round;
use crate::fuzz::judge::{Finding, decode, log};
use crate::sys::net::exchange::{Ending, Exchange};

/// What one request may take.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Until it is answered or refused.
    pub answer: Duration,
    /// Until a plain request of another client is answered meanwhile, and until the server rests afterwards.
    pub other: Duration,
    /// Bytes of memory above those of the server at rest, whatever the body.
    pub memory: u64,
    /// Bytes of memory for each byte of the body.
    pub memory_of_body: u64,
}

impl Budget {
    /// Where other clients wait `patience` at most.
    pub fn with_patience(patience: Duration) -> Budget {
        Budget { answer: patience * 2, other: patience, memory: 256 << 20, memory_of_body: 64 }
    }

    /// The most resident memory of a server that has `rest` bytes at rest, while it has a body of so many bytes.
    pub fn most_memory(&self, rest: u64, body: usize) -> u64 {
        rest + self.memory + self.memory_of_body * body as u64
    }
}

/// What another client saw while the request was under way.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Other {
    /// Requests that it sent.
    pub asked: usize,
    /// The longest that one of them took.
    pub longest: Duration,
    /// What came instead of an answer, the first time.
    pub failed: Option<String>,
}

/// What was seen of one request.
#[derive(Clone, Debug)]
pub struct Observation {
    /// The size.
    pub size: usize,
    /// Bytes of the body.
    pub body: usize,
    /// What came.
    pub exchange: Exchange,
    /// The client went away on purpose.
    pub left: bool,
    /// The other client.
    pub other: Other,
    /// The most resident memory in bytes; 0 where the system does not say.
    pub peak: u64,
    /// Until the server rested; nothing if it did not within the budget.
    pub rested: Option<Duration>,
    /// What a plain request was answered afterwards; nothing if the server was gone.
    pub reference: Option<Value>,
}

impl Observation {
    /// The status and the text of the error, if one came.
    pub fn status(&self) -> Option<(u16, String)> {
        let reply = decode(&self.exchange.bytes)?;
        let text = crate::series::lossy(&reply.body).into_owned();
        let body: Value = serde_json::from_str(&text).unwrap_or_default();
        let message = body["error"]["message"].as_str().map(str::to_string);
        Some((reply.status, message.unwrap_or(text)))
    }

    /// Whether the request was refused: a larger one will be too.
    pub fn is_refused(&self) -> bool {
        self.status().is_some_and(|(status, _)| (400..500).contains(&status))
    }
}

/// Everything that was seen in a round.
#[derive(Debug, Default)]
pub struct Evidence {
    /// Resident memory at rest, before the first request, in bytes.
    pub rest: u64,
    /// What a plain request was answered before the first one.
    pub reference: Value,
    /// Each request, by size.
    pub observations: Vec<Observation>,
    /// How the server ended by itself.
    pub ended: Option<String>,
    /// What the server logged.
    pub log: String,
}

/// Every oracle.
pub fn judge(round: &Round, evidence: &Evidence, budget: &Budget) -> Vec<Finding> {
    let of_one = |one| judge_one(round, evidence, one, budget);
    let mut findings: Vec<Finding> = evidence.observations.iter().flat_map(of_one).collect();
    let is_killed = findings.iter().any(|finding| finding.oracle == "memory");
    if let (Some(how), Some(last), false) = (&evidence.ended, evidence.observations.last(), is_killed) {
        // All else that is wrong with this request follows from it.
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

/// What is wrong with one request; a server that has broken down is not asked for larger ones.
pub fn judge_one(round: &Round, evidence: &Evidence, one: &Observation, budget: &Budget) -> Vec<Finding> {
    let asked = in_words(round, one);
    let finding = |(oracle, wrong): (&'static str, Wrong)| {
        let (expected, came) = wrong?;
        Some(Finding { oracle, asked: asked.clone(), expected, came })
    };
    // A server that takes more is killed: nothing else is its own doing.
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
    ];
    wrong.into_iter().filter_map(finding).collect()
}

/// What was expected and what came, if they differ.
type Wrong = Option<(String, String)>;

fn memory(evidence: &Evidence, one: &Observation, budget: &Budget) -> Wrong {
    let most = budget.most_memory(evidence.rest, one.body);
    let expected =
        || format!("at most {} of memory, of which {} at rest", mebibytes(most), mebibytes(evidence.rest));
    (one.peak > most).then(|| (expected(), mebibytes(one.peak)))
}

fn time(one: &Observation, budget: &Budget) -> Wrong {
    let is_whole = decode(&one.exchange.bytes).is_some_and(|reply| reply.is_whole);
    let is_late = !one.left && !is_whole && matches!(one.exchange.ending, Ending::Left | Ending::Silent);
    is_late.then(|| {
        (format!("an answer within {:.0} s", budget.answer.as_secs_f64()), "none until then".to_string())
    })
}

/// Statuses of requests that a server does not take: 4xx, and 501 for what it was not started for.
fn status(one: &Observation) -> Wrong {
    let expected = || "200, 4xx or 501".to_string();
    match (one.status(), &one.exchange.ending) {
        (Some((200 | 400..=499 | 501, _)), _) | (None, Ending::Left | Ending::Silent) => None,
        (Some((status, message)), _) => Some((expected(), format!("{status}: {}", shorten(&message)))),
        (None, ending) => Some((expected(), format!("no answer: {ending:?}"))),
    }
}

/// What a refusal must not consist of: it does not name what was too much or wrong.
const VAGUE: [&str; 5] = ["failed to parse grammar", "std::", "bad_alloc", "basic_string", "vector::"];

/// Refusals of the HTTP library have a status and no body.
fn message(one: &Observation) -> Wrong {
    let (status, message) = one.status()?;
    let has_body = decode(&one.exchange.bytes).is_some_and(|reply| !reply.body.is_empty());
    let is_vague = message.trim().is_empty() || VAGUE.iter().any(|vague| message.contains(vague));
    let is_wrong = (400..500).contains(&status) && has_body && is_vague;
    let came = || format!("{status}: {:?}", shorten(&message));
    is_wrong.then(|| ("a message that names what is too much".to_string(), came()))
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

fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}

/// A message may be long.
fn shorten(text: &str) -> String {
    const MOST: usize = 300;
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{} ...", &text[..at]),
        None => text.to_string(),
    }
}
