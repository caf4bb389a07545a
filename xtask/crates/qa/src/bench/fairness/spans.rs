//! PURE: the longest time without a token of a streamed response.

use std::time::Duration;

use serde_json::{Value, json};

use crate::serving::streamed::StreamedResponse;

/// A period without events.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Span {
    pub(super) seconds: f64,
    /// Whether it was still going on when the scenario ended.
    pub(super) is_open: bool,
}

impl Span {
    fn between(from: Duration, to: Option<Duration>, end: Duration) -> Span {
        let closed = to.filter(|to| *to <= end);
        let seconds = closed.unwrap_or(end).saturating_sub(from).as_secs_f64();
        Span { seconds, is_open: closed.is_none() }
    }

    /// Formats the period for tables.
    pub(super) fn text(&self) -> String {
        let open = if self.is_open { ", to the end" } else { "" };
        format!("{:.2} s{open}", self.seconds)
    }

    pub(super) fn json(&self) -> Value {
        json!({ "seconds": self.seconds, "to_the_end": self.is_open })
    }
}

/// Returns the longest period.
pub(super) fn longest(spans: impl Iterator<Item = Span>) -> Option<Span> {
    spans.max_by(|left, right| left.seconds.total_cmp(&right.seconds))
}

/// Returns the time from sending to the first token, as of `end`.
pub(super) fn wait(response: &StreamedResponse, end: Duration) -> Span {
    Span::between(response.sent, response.first_token(), end)
}

/// Returns the longest time between two tokens, as of `end`; `None` before the first token.
pub(super) fn silence(response: &StreamedResponse, end: Duration) -> Option<Span> {
    let next = response.arrivals.iter().skip(1).copied().map(Some);
    let last = response.ended.is_none_or(|ended| ended > end).then_some(None);
    let pairs = response.arrivals.iter().zip(next.chain(last));
    longest(pairs.filter(|(from, _)| **from <= end).map(|(from, to)| Span::between(*from, to, end)))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A response to a request that was sent, received tokens and was answered at these milliseconds.
    pub(in crate::bench::fairness) fn response(
        slot: usize,
        sent: u64,
        tokens: &[u64],
        ended: Option<u64>,
    ) -> StreamedResponse {
        StreamedResponse {
            sent: Duration::from_millis(sent),
            slot: Some(slot),
            arrivals: tokens.iter().copied().map(Duration::from_millis).collect(),
            ended: ended.map(Duration::from_millis),
            ..StreamedResponse::default()
        }
    }

    const END: Duration = Duration::from_secs(10);

    #[test]
    fn the_longest_silence_lies_between_two_tokens() {
        let found = silence(&response(0, 0, &[500, 1000, 4000, 4100], Some(4100)), END).unwrap();
        assert_eq!(found, Span { seconds: 3.0, is_open: false });
        assert_eq!(silence(&response(0, 0, &[500], Some(500)), END), None);
    }

    #[test]
    fn a_silence_at_the_end_counts_up_to_the_end() {
        let stands_still = silence(&response(0, 0, &[500, 1000], None), END).unwrap();
        assert_eq!(stands_still.text(), "9.00 s, to the end");
        // Events after the end, when no other client sends requests any more, say nothing about the scenario.
        assert_eq!(silence(&response(0, 0, &[500, 1000, 10_500], Some(10_500)), END), Some(stands_still));
        assert_eq!(silence(&response(0, 0, &[10_500], Some(10_600)), END), None);
    }

    #[test]
    fn a_wait_ends_with_the_first_token() {
        assert_eq!(wait(&response(0, 1000, &[1500, 1600], None), END).text(), "0.50 s");
        assert_eq!(wait(&response(0, 1000, &[11_000], None), END).text(), "9.00 s, to the end");
        assert_eq!(wait(&response(0, 1000, &[], None), END).text(), "9.00 s, to the end");
    }
}
