//! A streamed response of `/completion`, with the arrival times of its tokens.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use espalier_core::error::Result;
use espalier_core::http::Request;
use espalier_core::sys::net::server::Server;
use serde_json::Value;

/// Upper limit of a response on a busy machine, including its time in the queue.
pub const LIMIT: Duration = Duration::from_secs(10 * 60);

/// A streamed response as far as it has arrived. Times are relative to a moment that the caller chooses.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StreamedResponse {
    /// The status code; 0 while the response is arriving.
    pub status: u16,
    /// Time at which the request was sent.
    pub sent: Duration,
    /// The tokens.
    pub tokens: Vec<i64>,
    /// Arrival time of each token.
    pub arrivals: Vec<Duration>,
    /// The last event, or the body received instead of a stream.
    pub last: Value,
    /// Time at which the response was complete.
    pub ended: Option<Duration>,
    /// Slot that answered; the server reports it only with the last event.
    pub slot: Option<usize>,
    /// The first error that the stream reported.
    pub error: Option<String>,
}

impl StreamedResponse {
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
        look: impl FnMut(&StreamedResponse) -> ControlFlow<()>,
    ) -> Result<StreamedResponse> {
        let mut response = StreamedResponse::default();
        response.receive(server, request, limit, Instant::now(), look)?;
        Ok(response)
    }

    /// As [`StreamedResponse::follow`], with times relative to `begin`; `self` has the events that arrived before an
    /// error.
    pub fn receive(
        &mut self,
        server: &Server,
        request: &Value,
        limit: Duration,
        begin: Instant,
        mut look: impl FnMut(&StreamedResponse) -> ControlFlow<()>,
    ) -> Result<()> {
        self.sent = begin.elapsed();
        let (status, body) = server.follow(&Request::post("/completion", request), limit, |event| {
            self.take(event, begin.elapsed());
            look(self)
        })?;
        self.status = status;
        if status != 200 {
            self.last = body;
        }
        Ok(())
    }

    fn take(&mut self, event: &Value, now: Duration) {
        self.tokens.extend(event["tokens"].as_array().into_iter().flatten().filter_map(Value::as_i64));
        self.arrivals.resize(self.tokens.len(), now);
        self.error = self.error.take().or_else(|| event.get("error").map(Value::to_string));
        if event["stop"] == true {
            self.ended = Some(now);
            self.slot = event["id_slot"].as_u64().and_then(|slot| usize::try_from(slot).ok());
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

    /// Returns the time from the first token to the last event; zero if one of them is missing.
    pub fn decoding_time(&self) -> Duration {
        self.first_token().zip(self.ended).map_or(Duration::ZERO, |(first, ended)| ended - first)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_last_event_has_the_slot() {
        let mut response = StreamedResponse { status: 200, ..StreamedResponse::default() };
        let at = Duration::from_secs;
        response.take(&json!({ "tokens": [7], "stop": false, "id_slot": -1 }), at(1));
        response.take(&Value::Null, at(2));
        assert_eq!((&response.arrivals[..], response.slot, response.ended), (&[at(1)][..], None, None));
        assert_eq!(response.problem().as_deref(), Some("the stream ended after 1 tokens"));
        response.take(&json!({ "tokens": [8, 9], "stop": true, "id_slot": 3 }), at(3));
        assert_eq!((response.tokens.len(), response.slot, response.ended), (3, Some(3), Some(at(3))));
        assert_eq!(response.arrivals, [at(1), at(3), at(3)]);
        assert_eq!((response.decoding_time(), response.problem()), (at(2), None));
        response.take(&json!({ "error": { "code": 500 } }), at(4));
        assert_eq!(response.problem().as_deref(), Some(r#"{"code":500}"#));
    }

    #[test]
    fn a_refusal_has_its_status_and_body() {
        let refused = StreamedResponse { status: 400, last: json!("no"), ..StreamedResponse::default() };
        assert_eq!(refused.problem().as_deref(), Some("returned 400: \"no\""));
        assert_eq!(refused.decoding_time(), Duration::ZERO);
    }
}
