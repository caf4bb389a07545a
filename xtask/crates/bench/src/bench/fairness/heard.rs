//! PURE: what clients heard of their requests, and the longest time for which they heard nothing.

use std::time::Duration;

use serde_json::{Value, json};

/// What a client heard of one request. Times are those since the scene began.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Heard {
    /// When it was sent.
    pub(super) sent: Duration,
    /// The server says it with the last event only.
    pub(super) slot: Option<usize>,
    /// When each token came.
    pub(super) tokens: Vec<Duration>,
    /// When the answer was whole.
    pub(super) ended: Option<Duration>,
    /// Why it was not answered.
    pub(super) error: Option<String>,
}

/// A time in which nothing was heard.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Span {
    pub(super) seconds: f64,
    /// It was still going on when the scene ended.
    pub(super) is_open: bool,
}

impl Span {
    fn between(from: Duration, to: Option<Duration>, end: Duration) -> Span {
        let closed = to.filter(|to| *to <= end);
        let seconds = closed.unwrap_or(end).saturating_sub(from).as_secs_f64();
        Span { seconds, is_open: closed.is_none() }
    }

    /// For tables.
    pub(super) fn text(&self) -> String {
        let open = if self.is_open { ", to the end" } else { "" };
        format!("{:.2} s{open}", self.seconds)
    }

    pub(super) fn json(&self) -> Value {
        json!({ "seconds": self.seconds, "to_the_end": self.is_open })
    }
}

/// The longest one.
pub(super) fn longest(spans: impl Iterator<Item = Span>) -> Option<Span> {
    spans.max_by(|left, right| left.seconds.total_cmp(&right.seconds))
}

impl Heard {
    /// From sending to the first token, as it was at `end`.
    pub(super) fn wait(&self, end: Duration) -> Span {
        Span::between(self.sent, self.first(), end)
    }

    /// The longest time between two tokens, as it was at `end`; nothing before the first one.
    pub(super) fn silence(&self, end: Duration) -> Option<Span> {
        let next = self.tokens.iter().skip(1).copied().map(Some);
        let last = self.ended.is_none_or(|ended| ended > end).then_some(None);
        let pairs = self.tokens.iter().zip(next.chain(last));
        longest(pairs.filter(|(from, _)| **from <= end).map(|(from, to)| Span::between(*from, to, end)))
    }

    /// When the first token came.
    pub(super) fn first(&self) -> Option<Duration> {
        self.tokens.first().copied()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A request that was sent, heard tokens and was answered at these milliseconds.
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
        // What comes after the end, when nobody else asks any more, says nothing about the scene.
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
