//! PURE: the events that clients received for their requests, and the longest time without one.

use std::time::Duration;

use serde_json::{Value, json};

/// The events that a client received for one request. Times are relative to the start of the scenario.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Heard {
    /// Time at which the request was sent.
    pub(super) sent: Duration,
    /// Slot that answered; the server reports it only with the last event.
    pub(super) slot: Option<usize>,
    /// Arrival time of each token.
    pub(super) tokens: Vec<Duration>,
    /// Time at which the answer was complete.
    pub(super) ended: Option<Duration>,
    /// Reason why it was not answered.
    pub(super) error: Option<String>,
}

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

impl Heard {
    /// Returns the time from sending to the first token, as of `end`.
    pub(super) fn wait(&self, end: Duration) -> Span {
        Span::between(self.sent, self.first(), end)
    }

    /// Returns the longest time between two tokens, as of `end`; `None` before the first token.
    pub(super) fn silence(&self, end: Duration) -> Option<Span> {
        let next = self.tokens.iter().skip(1).copied().map(Some);
        let last = self.ended.is_none_or(|ended| ended > end).then_some(None);
        let pairs = self.tokens.iter().zip(next.chain(last));
        longest(pairs.filter(|(from, _)| **from <= end).map(|(from, to)| Span::between(*from, to, end)))
    }

    /// Returns the arrival time of the first token.
    pub(super) fn first(&self) -> Option<Duration> {
        self.tokens.first().copied()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A request that was sent, received tokens and was answered at these milliseconds.
    pub(in crate::bench::fairness) fn heard(
        slot: usize,
        sent: u64,
        tokens: &[u64],
        ended: Option<u64>,
    ) -> Heard {
        Heard {
            sent: Duration::from_millis(sent),
            slot: Some(slot),
            tokens: tokens.iter().copied().map(Duration::from_millis).collect(),
            ended: ended.map(Duration::from_millis),
            error: None,
        }
    }

    const END: Duration = Duration::from_secs(10);

    #[test]
    fn the_longest_silence_lies_between_two_tokens() {
        let found = heard(0, 0, &[500, 1000, 4000, 4100], Some(4100)).silence(END).unwrap();
        assert_eq!(found, Span { seconds: 3.0, is_open: false });
        assert_eq!(heard(0, 0, &[500], Some(500)).silence(END), None);
    }

    #[test]
    fn a_silence_at_the_end_counts_up_to_the_end() {
        let stands_still = heard(0, 0, &[500, 1000], None).silence(END).unwrap();
        assert_eq!(stands_still.text(), "9.00 s, to the end");
        // Events after the end, when no other client sends requests any more, say nothing about the scenario.
        assert_eq!(heard(0, 0, &[500, 1000, 10_500], Some(10_500)).silence(END), Some(stands_still));
        assert_eq!(heard(0, 0, &[10_500], Some(10_600)).silence(END), None);
    }

    #[test]
    fn a_wait_ends_with_the_first_token() {
        assert_eq!(heard(0, 1000, &[1500, 1600], None).wait(END).text(), "0.50 s");
        assert_eq!(heard(0, 1000, &[11_000], None).wait(END).text(), "9.00 s, to the end");
        assert_eq!(heard(0, 1000, &[], None).wait(END).text(), "9.00 s, to the end");
    }
}
