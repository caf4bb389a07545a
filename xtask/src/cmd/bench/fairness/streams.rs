//! The scene `streams`: endless requests of five blocks in a pool that has room for three.

use std::time::Duration;

use serde_json::{Value, json};

use super::heard::{Heard, Span, longest};
use super::report::{Measured, Row};
use super::traffic::{self, SLOTS, Traffic};
use crate::error::Result;
use crate::sys::server::Server;

/// Lets the clients come for `seconds`.
pub(super) fn measure(server: &Server, seconds: u32) -> Result<Measured> {
    let length = Duration::from_secs(seconds.into());
    let (traffic, ()) = traffic::beside(server, |_| {
        std::thread::sleep(length);
        Ok(())
    })?;
    Ok(Streams::of(&traffic).measured())
}

/// What the clients had.
#[derive(Debug, PartialEq)]
struct Streams {
    slots: Vec<Slot>,
    /// Requests that were answered whole, a second.
    finished: f64,
    /// Tokens a second.
    tokens: f64,
    errors: Vec<String>,
}

/// The longest silences of the requests that ended in one slot.
#[derive(Debug, PartialEq)]
struct Slot {
    silence: Option<Span>,
    wait: Option<Span>,
}

impl Streams {
    fn of(traffic: &Traffic) -> Streams {
        let end = traffic.end;
        let within = |time: &Duration| *time <= end;
        let heard = &traffic.heard;
        let finished = heard.iter().filter(|one| one.ended.as_ref().is_some_and(within)).count();
        let tokens = heard.iter().flat_map(|one| &one.tokens).filter(|time| within(time)).count();
        Streams {
            slots: (0..SLOTS).map(|slot| Slot::of(heard, slot, end)).collect(),
            finished: finished as f64 / end.as_secs_f64(),
            tokens: tokens as f64 / end.as_secs_f64(),
            errors: heard.iter().filter_map(|one| one.error.clone()).collect(),
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
        let slot = |slot: &Slot| json!({ "silence": span(&slot.silence), "wait": span(&slot.wait) });
        json!({
            "slots": self.slots.iter().map(slot).collect::<Vec<_>>(),
            "finished_a_second": self.finished,
            "tokens_a_second": self.tokens,
            "errors": self.errors.len(),
        })
    }
}

impl Slot {
    fn of(heard: &[Heard], slot: usize, end: Duration) -> Slot {
        let here = || heard.iter().filter(move |one| one.slot == Some(slot) && one.sent <= end);
        Slot {
            silence: longest(here().filter_map(|one| one.silence(end))),
            wait: longest(here().map(|one| one.wait(end))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::heard::tests::heard;
    use super::*;

    fn example() -> Streams {
        let mut refused = heard(0, 0, &[], None);
        (refused.slot, refused.error) = (None, Some("no".to_string()));
        let all = vec![
            heard(0, 0, &[100, 200], Some(200)),
            heard(0, 200, &[900, 950], Some(950)),
            heard(3, 0, &[100, 3000], Some(3000)),
            refused,
        ];
        Streams::of(&Traffic { heard: all, end: Duration::from_secs(2) })
    }

    #[test]
    fn each_slot_has_its_longest_silences() {
        let found = example();
        let shown = |slot: usize, at: usize| found.rows()[slot * 2 + at].shown.clone();
        assert_eq!((shown(0, 0), shown(0, 1)), ("0.10 s".to_string(), "0.70 s".to_string()));
        assert_eq!((shown(1, 0), shown(1, 1)), ("-".to_string(), "-".to_string()));
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
