//! The scenario `streams`: endless requests of five blocks each, in a pool that has capacity for three.

use std::time::Duration;

use espalier_core::error::Result;
use espalier_core::sys::net::server::Server;
use serde_json::{Value, json};

use super::report::{Measured, Row};
use super::spans::{Span, longest, silence, wait};
use super::traffic::{self, SLOTS};
use super::watched::{self, Watched};
use crate::serving::streamed::StreamedResponse;

/// Runs the clients for `seconds`, and then watches one stream in each slot.
pub(super) fn measure(server: &Server, seconds: u32) -> Result<Measured> {
    let length = Duration::from_secs(seconds.into());
    let (responses, (end, watched)) = traffic::beside(server, |state| {
        std::thread::sleep(length);
        Ok((state.now(), watched::watch_all(server, state)?))
    })?;
    Ok(Streams::of(&responses, end, &watched).measured())
}

/// The clients' throughput and the longest stalls.
#[derive(Debug, PartialEq)]
struct Streams {
    slots: Vec<Slot>,
    /// Completely answered requests per second.
    finished: f64,
    /// Tokens per second.
    tokens: f64,
    errors: Vec<String>,
}

/// The longest stalls of the requests that ended in one slot.
#[derive(Debug, PartialEq)]
struct Slot {
    silence: Option<Span>,
    wait: Option<Span>,
    /// The longest stall of the stream that was watched there.
    watched: Option<Span>,
}

impl Streams {
    /// Evaluates the streams. Events after `end` count only for the watched ones.
    fn of(responses: &[StreamedResponse], end: Duration, watched: &[Watched]) -> Streams {
        let within = |time: &Duration| *time <= end;
        let finished = responses.iter().filter(|one| one.ended.as_ref().is_some_and(within)).count();
        let tokens = responses.iter().flat_map(|one| &one.arrivals).filter(|time| within(time)).count();
        let all = responses.iter().chain(watched.iter().map(|one| &one.response));
        Streams {
            slots: (0..SLOTS).map(|slot| Slot::of(responses, slot, end, watched)).collect(),
            finished: finished as f64 / end.as_secs_f64(),
            tokens: tokens as f64 / end.as_secs_f64(),
            errors: all.filter_map(|one| one.error.clone()).collect(),
        }
    }

    fn measured(&self) -> Measured {
        Measured {
            rows: self.rows(),
            json: self.json(),
            failures: self.errors.first().cloned().into_iter().collect(),
        }
    }

    fn rows(&self) -> Vec<Row> {
        let of_slot = |(number, slot): (usize, &Slot)| {
            let row = |what: &str, span: Option<Span>| Row {
                what: format!("slot {number}: {what}"),
                value: span.map(|span| span.seconds),
                shown: span.map_or("-".to_string(), |span| span.text()),
            };
            [
                row("longest silence between two tokens", slot.silence),
                row("longest wait for the first token", slot.wait),
                row("longest silence of a stream that needs more room than those after it", slot.watched),
            ]
        };
        let slots = self.slots.iter().enumerate().flat_map(of_slot);
        slots
            .chain([
                Row::number("finished requests a second", self.finished, 2),
                Row::number("tokens a second", self.tokens, 0),
                Row::number("requests that were not answered", self.errors.len() as f64, 0),
            ])
            .collect()
    }

    fn json(&self) -> Value {
        let span = |span: &Option<Span>| span.map(|span| span.json());
        let slot = |slot: &Slot| {
            json!({
                "silence": span(&slot.silence),
                "wait": span(&slot.wait),
                "silence_of_the_watched": span(&slot.watched),
            })
        };
        json!({
            "slots": self.slots.iter().map(slot).collect::<Vec<_>>(),
            "finished_a_second": self.finished,
            "tokens_a_second": self.tokens,
            "errors": self.errors.len(),
        })
    }
}

impl Slot {
    fn of(responses: &[StreamedResponse], slot: usize, end: Duration, watched: &[Watched]) -> Slot {
        let here = || responses.iter().filter(move |one| one.slot == Some(slot) && one.sent <= end);
        Slot {
            silence: longest(here().filter_map(|one| silence(one, end))),
            wait: longest(here().map(|one| wait(one, end))),
            watched: longest(watched.iter().filter(|one| one.slot == slot).filter_map(Watched::silence)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::fairness::spans::tests::response;

    fn example() -> Streams {
        let mut refused = response(0, 0, &[], None);
        (refused.slot, refused.error) = (None, Some("no".to_string()));
        let all = vec![
            response(0, 0, &[100, 200], Some(200)),
            response(0, 200, &[900, 950], Some(950)),
            response(3, 0, &[100, 3000], Some(3000)),
            refused,
        ];
        let watched = Watched {
            slot: 2,
            response: response(2, 3000, &[3100, 9000], Some(9000)),
            patience_ends: Duration::from_secs(8),
        };
        Streams::of(&all, Duration::from_secs(2), &[watched])
    }

    #[test]
    fn each_slot_has_its_longest_silences() {
        let found = example();
        let shown = |slot: usize, at: usize| found.rows()[slot * 3 + at].shown.clone();
        assert_eq!((shown(0, 0), shown(0, 1)), ("0.10 s".to_string(), "0.70 s".to_string()));
        assert_eq!((shown(1, 0), shown(1, 1)), ("-".to_string(), "-".to_string()));
        assert_eq!((shown(0, 2), shown(2, 2)), ("-".to_string(), "4.90 s, to the end".to_string()));
        assert_eq!((shown(3, 0), shown(3, 1)), ("1.90 s, to the end".to_string(), "0.10 s".to_string()));
    }

    #[test]
    fn what_came_after_the_end_is_not_counted() {
        let found = example();
        assert_eq!((found.finished, found.tokens), (1.0, 2.5));
        assert_eq!(found.measured().failures, ["no"]);
        assert_eq!(found.json()["slots"][3]["silence"]["to_the_end"], true);
    }
}
