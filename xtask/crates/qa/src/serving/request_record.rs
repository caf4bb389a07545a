//! A request to `/completion` and its answer: tokens, their arrival times, and the timings that the server reports.

use std::ops::{ControlFlow, Range};
use std::time::{Duration, Instant};

use espalier_core::error::Result;
use espalier_core::http::Request;
use espalier_core::sys::net::server::Server;
use serde::Serialize;
use serde_json::Value;

/// The path of the requests.
pub const PATH: &str = "/completion";

/// Upper limit of a response on a busy machine, including its time in the queue.
pub const LIMIT: Duration = Duration::from_secs(10 * 60);

/// A request and its answer as far as it has arrived. Times are relative to a moment that the caller chooses.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RequestRecord {
    /// The status code; 0 while the answer is arriving.
    pub status: u16,
    /// Time at which the request was sent.
    pub sent: Duration,
    /// Generated tokens.
    pub tokens: Vec<i64>,
    /// Arrival time of each token; empty if the request did not ask for a stream.
    pub arrivals: Vec<Duration>,
    /// The last event, or the body received instead of a stream.
    pub last: Value,
    /// Time at which the stream was complete; `None` if the client disconnected before.
    pub ended: Option<Duration>,
    /// Slot that answered; the server reports it only with the last event.
    pub slot: Option<usize>,
    /// Timings of a complete answer.
    pub timings: Timings,
    /// The first error that the stream reported, or the reason why the request was not answered.
    pub error: Option<String>,
}

/// Prompt tokens and rates that the server reports with a complete answer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Timings {
    /// Number of prompt tokens computed for it.
    pub computed: u64,
    /// Number of prompt tokens served from a cache.
    pub cached: u64,
    /// Time spent on the computed prompt tokens.
    pub prompt_seconds: f64,
    /// Tokens per second, excluding the first one.
    pub decode_rate: f64,
}

impl Timings {
    fn of(body: &Value) -> Option<Timings> {
        let timings = body.get("timings")?;
        Some(Timings {
            computed: timings.get("prompt_n")?.as_u64()?,
            // A server without prompt caching does not report it.
            cached: timings.get("cache_n").and_then(Value::as_u64).unwrap_or(0),
            prompt_seconds: timings.get("prompt_ms")?.as_f64()? / 1000.0,
            decode_rate: timings.get("predicted_per_second")?.as_f64()?,
        })
    }
}

/// A period without events.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Span {
    /// Its length.
    pub seconds: f64,
    /// Whether it was still going on when the load ended.
    pub is_open: bool,
}

impl Span {
    fn between(from: Duration, to: Option<Duration>, end: Duration) -> Span {
        let closed = to.filter(|to| *to <= end);
        let seconds = closed.unwrap_or(end).saturating_sub(from).as_secs_f64();
        Span { seconds, is_open: closed.is_none() }
    }

    /// Returns the longest period.
    pub fn longest(spans: impl Iterator<Item = Span>) -> Option<Span> {
        spans.max_by(|left, right| left.seconds.total_cmp(&right.seconds))
    }
}

impl RequestRecord {
    /// Sends `request`, which asks for a stream, and reads until `look`, which is called after each event, stops or the
    /// response ends.
    ///
    /// # Errors
    ///
    /// The server did not answer. A refusal is not an error.
    pub fn follow(
        server: &Server,
        request: &Value,
        limit: Duration,
        look: impl FnMut(&RequestRecord) -> ControlFlow<()>,
    ) -> Result<RequestRecord> {
        let mut response = RequestRecord::default();
        response.receive(server, request, limit, Instant::now(), look)?;
        Ok(response)
    }

    /// As [`RequestRecord::follow`], with times relative to `begin`; `self` has the events that arrived before an
    /// error.
    pub fn receive(
        &mut self,
        server: &Server,
        request: &Value,
        limit: Duration,
        begin: Instant,
        mut look: impl FnMut(&RequestRecord) -> ControlFlow<()>,
    ) -> Result<()> {
        self.sent = begin.elapsed();
        let (status, body) = server.follow(&Request::post(PATH, request), limit, |event| {
            self.take(event, begin.elapsed());
            look(self)
        })?;
        self.status = status;
        if status != 200 {
            self.last = body;
        }
        Ok(())
    }

    /// Parses an answer that was not requested as a stream; one without tokens and timings has an error.
    pub fn of_answer((status, last): (u16, Value)) -> RequestRecord {
        let tokens = last.get("tokens").and_then(Value::as_array).filter(|_| status == 200);
        let Some((tokens, timings)) = tokens.zip(Timings::of(&last)) else {
            let body: String = last.to_string().chars().take(400).collect();
            let error = format!("a completion returned {status} without tokens and timings: {body}");
            return RequestRecord { status, last, error: Some(error), ..RequestRecord::default() };
        };
        let tokens = tokens.iter().map_while(Value::as_i64).collect();
        RequestRecord { status, tokens, timings, last, ..RequestRecord::default() }
    }

    /// Adds an event of a stream.
    fn take(&mut self, event: &Value, now: Duration) {
        // Events that report the progress of the prompt have a token that was not generated.
        let generated = event.get("prompt_progress").is_none().then(|| event["tokens"].as_array()).flatten();
        self.tokens.extend(generated.into_iter().flatten().filter_map(Value::as_i64));
        self.arrivals.resize(self.tokens.len(), now);
        self.error = self.error.take().or_else(|| event.get("error").map(Value::to_string));
        if event["stop"] == true {
            self.ended = Some(now);
            self.slot = event["id_slot"].as_u64().and_then(|slot| usize::try_from(slot).ok());
            self.timings = Timings::of(event).unwrap_or_default();
        }
        self.last = event.clone();
    }

    /// Returns the reason why this is not a complete stream; `None` if it is one.
    pub fn problem(&self) -> Option<String> {
        let problem = || match (self.status, self.ended) {
            (200, Some(_)) => None,
            (200, None) => Some(format!("the stream ended after {} tokens", self.tokens.len())),
            (status, _) => Some(format!("returned {status}: {}", self.last)),
        };
        self.error.clone().or_else(problem)
    }

    /// Returns the arrival time of the first token.
    pub fn first_token(&self) -> Option<Duration> {
        self.arrivals.first().copied()
    }

    /// Returns the time to the first token, as of `end`.
    pub fn time_to_first_token(&self, end: Duration) -> Span {
        Span::between(self.sent, self.first_token(), end)
    }

    /// Returns the longest time between two tokens, as of `end`; `None` before the first token.
    pub fn longest_gap(&self, end: Duration) -> Option<Span> {
        let next = self.arrivals.iter().skip(1).copied().map(Some);
        let last = self.ended.is_none_or(|ended| ended > end).then_some(None);
        let pairs = self.arrivals.iter().zip(next.chain(last));
        Span::longest(pairs.filter(|(from, _)| **from <= end).map(|(from, to)| Span::between(*from, to, end)))
    }

    /// Returns the inter-token latencies within a range of the tokens, in seconds.
    pub fn inter_token_latencies(&self, range: Range<usize>) -> Vec<f64> {
        let times = self.arrivals.get(range).unwrap_or_default();
        times.windows(2).map(|pair| pair[1].saturating_sub(pair[0]).as_secs_f64()).collect()
    }

    /// Returns the time from the first token to the last event; zero if one of them is missing.
    pub fn decoding_time(&self) -> Duration {
        self.first_token().zip(self.ended).map_or(Duration::ZERO, |(first, ended)| ended - first)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;

    use super::*;

    /// A request that was sent, received tokens and was answered at these milliseconds.
    pub(crate) fn record(slot: usize, sent: u64, tokens: &[u64], ended: Option<u64>) -> RequestRecord {
        RequestRecord {
            sent: Duration::from_millis(sent),
            tokens: vec![7; tokens.len()],
            arrivals: tokens.iter().copied().map(Duration::from_millis).collect(),
            ended: ended.map(Duration::from_millis),
            slot: Some(slot),
            ..RequestRecord::default()
        }
    }

    const END: Duration = Duration::from_secs(10);

    fn text(span: Span) -> String {
        format!("{:.2}{}", span.seconds, if span.is_open { ", open" } else { "" })
    }

    #[test]
    fn the_progress_of_a_prompt_is_not_a_token() {
        let mut record = RequestRecord::default();
        record.take(&json!({ "tokens": [0], "prompt_progress": { "processed": 16 } }), END);
        record.take(&json!({ "tokens": [7] }), END);
        assert_eq!((record.tokens.as_slice(), record.arrivals.len()), ([7].as_slice(), 1));
    }

    #[test]
    fn the_longest_gap_lies_between_two_tokens() {
        let found = record(0, 0, &[500, 1000, 4000, 4100], Some(4100)).longest_gap(END).unwrap();
        assert_eq!(found, Span { seconds: 3.0, is_open: false });
        assert_eq!(record(0, 0, &[500], Some(500)).longest_gap(END), None);
    }

    #[test]
    fn a_gap_at_the_end_counts_up_to_the_end() {
        let stands_still = record(0, 0, &[500, 1000], None).longest_gap(END).unwrap();
        assert_eq!(text(stands_still), "9.00, open");
        // Events after the end, when no other client sends requests any more, say nothing about the load.
        assert_eq!(record(0, 0, &[500, 1000, 10_500], Some(10_500)).longest_gap(END), Some(stands_still));
        assert_eq!(record(0, 0, &[10_500], Some(10_600)).longest_gap(END), None);
    }

    #[test]
    fn a_wait_ends_with_the_first_token() {
        let wait = |tokens: &[u64]| text(record(0, 1000, tokens, None).time_to_first_token(END));
        assert_eq!([wait(&[1500, 1600]), wait(&[11_000]), wait(&[])], ["0.50", "9.00, open", "9.00, open"]);
    }

    #[test]
    fn latencies_are_those_within_the_range() {
        let stream = record(0, 0, &[0, 10, 30, 60, 100], None);
        assert_eq!(stream.inter_token_latencies(1..4), [0.02, 0.03]);
        assert!(stream.inter_token_latencies(3..9).is_empty());
    }

    #[test]
    fn the_last_event_has_slot_and_timings() {
        let timings =
            json!({ "prompt_n": 16, "cache_n": 1600, "prompt_ms": 250.0, "predicted_per_second": 12.5 });
        let mut record = RequestRecord { status: 200, ..RequestRecord::default() };
        let at = Duration::from_secs;
        record.take(&json!({ "tokens": [7], "stop": false, "id_slot": -1 }), at(1));
        record.take(&Value::Null, at(2));
        assert_eq!((&record.arrivals[..], record.slot, record.ended), (&[at(1)][..], None, None));
        assert_eq!(record.problem().as_deref(), Some("the stream ended after 1 tokens"));
        record.take(&json!({ "tokens": [8, 9], "stop": true, "id_slot": 3, "timings": timings }), at(3));
        assert_eq!((record.tokens.len(), record.slot, record.ended), (3, Some(3), Some(at(3))));
        assert_eq!(record.arrivals, [at(1), at(3), at(3)]);
        assert_eq!((record.timings.computed, record.timings.cached), (16, 1600));
        assert_eq!((record.decoding_time(), record.problem()), (at(2), None));
        record.take(&json!({ "error": { "code": 500 } }), at(4));
        assert_eq!(record.problem().as_deref(), Some(r#"{"code":500}"#));
    }

    #[test]
    fn a_refusal_has_its_status_and_body() {
        let refused = RequestRecord { status: 400, last: json!("no"), ..RequestRecord::default() };
        assert_eq!(refused.problem().as_deref(), Some("returned 400: \"no\""));
        assert_eq!(refused.decoding_time(), Duration::ZERO);
    }

    #[test]
    fn an_answer_needs_tokens_and_timings() {
        let timings = json!({ "prompt_n": 16, "prompt_ms": 250.0, "predicted_per_second": 12.5 });
        let body = json!({ "tokens": [5, 6], "timings": timings });
        let whole = RequestRecord::of_answer((200, body.clone()));
        assert_eq!((whole.tokens.as_slice(), whole.timings.cached, whole.error), (&[5, 6][..], 0, None));
        let refused = |status: u16, body: Value| RequestRecord::of_answer((status, body)).error.unwrap();
        assert!(refused(503, body).contains("503"));
        assert!(refused(200, json!({ "tokens": [] })).contains("without tokens and timings"));
    }
}
