//! The scenario `streams`: endless requests of five blocks each, in a pool that has capacity for three.

use std::time::Duration;

use espalier_core::error::Result;
use espalier_core::sys::net::server::Server;
use serde::Serialize;
use serde_json::json;

use super::record::{Measured, Row, seconds_of};
use super::traffic::{self, SLOTS};
use super::watched::{self, Watched};
use crate::serving::request_record::{RequestRecord, Span};

/// Runs the clients for `seconds`, and then watches one stream in each slot.
pub(super) fn measure(server: &Server, seconds: u32) -> Result<Measured> {
    let length = Duration::from_secs(seconds.into());
    let (records, (end, watched)) = traffic::beside(server, |clients| {
        std::thread::sleep(length);
        Ok((clients.now(), watched::watch_all(server, clients)?))
    })?;
    Ok(Streams::of(&records, end, &watched).measured())
}

/// The clients' throughput and the longest stalls.
#[derive(Debug, PartialEq, Serialize)]
struct Streams {
    slots: Vec<Slot>,
    /// Completely answered requests.
    requests_per_second: f64,
    tokens_per_second: f64,
    /// Number of requests that were not answered.
    errors: usize,
    #[serde(skip)]
    first_error: Option<String>,
}

/// The longest stalls of the requests that ended in one slot.
#[derive(Debug, PartialEq, Serialize)]
struct Slot {
    longest_gap: Option<Span>,
    longest_time_to_first_token: Option<Span>,
    /// The longest stall of the stream that was watched there.
    watched_longest_gap: Option<Span>,
}

impl Streams {
    /// Evaluates the streams. Events after `end` count only for the watched ones.
    fn of(records: &[RequestRecord], end: Duration, watched: &[Watched]) -> Streams {
        let within = |time: &Duration| *time <= end;
        let finished = records.iter().filter(|one| one.ended.as_ref().is_some_and(within)).count();
        let tokens = records.iter().flat_map(|one| &one.arrivals).filter(|time| within(time)).count();
        let all = records.iter().chain(watched.iter().map(|one| &one.record));
        let errors: Vec<&String> = all.filter_map(|one| one.error.as_ref()).collect();
        Streams {
            slots: (0..SLOTS).map(|slot| Slot::of(records, slot, end, watched)).collect(),
            requests_per_second: finished as f64 / end.as_secs_f64(),
            tokens_per_second: tokens as f64 / end.as_secs_f64(),
            errors: errors.len(),
            first_error: errors.first().map(ToString::to_string),
        }
    }

    fn measured(&self) -> Measured {
        let failures = self.first_error.clone().into_iter().collect();
        Measured { rows: self.rows(), json: json!(self), failures }
    }

    fn rows(&self) -> Vec<Row> {
        let of_slot = |(number, slot): (usize, &Slot)| {
            let row = |what: &str, span: Option<Span>| Row {
                what: format!("slot {number}: {what}"),
                value: span.map(|span| span.seconds),
                shown: span.map_or("-".to_string(), seconds_of),
            };
            [
                row("longest inter-token time", slot.longest_gap),
                row("longest time to first token", slot.longest_time_to_first_token),
                row(
                    "longest inter-token time of a stream that needs more blocks than those after it",
                    slot.watched_longest_gap,
                ),
            ]
        };
        let slots = self.slots.iter().enumerate().flat_map(of_slot);
        slots
            .chain([
                Row::number("finished requests a second", self.requests_per_second, 2),
                Row::number("tokens a second", self.tokens_per_second, 0),
                Row::number("requests that were not answered", self.errors as f64, 0),
            ])
            .collect()
    }
}

impl Slot {
    fn of(records: &[RequestRecord], slot: usize, end: Duration, watched: &[Watched]) -> Slot {
        let here = || records.iter().filter(move |one| one.slot == Some(slot) && one.sent <= end);
        let watched = watched.iter().filter(|one| one.slot == slot);
        Slot {
            longest_gap: Span::longest(here().filter_map(|one| one.longest_gap(end))),
            longest_time_to_first_token: Span::longest(here().map(|one| one.time_to_first_token(end))),
            watched_longest_gap: Span::longest(watched.filter_map(Watched::longest_gap)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serving::request_record::tests::record;

    fn example() -> Streams {
        let mut refused = record(0, 0, &[], None);
        (refused.slot, refused.error) = (None, Some("no".to_string()));
        let all = vec![
            record(0, 0, &[100, 200], Some(200)),
            record(0, 200, &[900, 950], Some(950)),
            record(3, 0, &[100, 3000], Some(3000)),
            refused,
        ];
        let watched = Watched {
            slot: 2,
            record: record(2, 3000, &[3100, 9000], Some(9000)),
            patience_ends: Duration::from_secs(8),
        };
        Streams::of(&all, Duration::from_secs(2), &[watched])
    }

    #[test]
    fn each_slot_has_its_longest_gaps() {
        let found = example();
        let shown = |slot: usize, at: usize| found.rows()[slot * 3 + at].shown.clone();
        assert_eq!((shown(0, 0), shown(0, 1)), ("0.10 s".to_string(), "0.70 s".to_string()));
        assert_eq!((shown(1, 0), shown(1, 1)), ("-".to_string(), "-".to_string()));
        assert_eq!((shown(0, 2), shown(2, 2)), ("-".to_string(), "4.90 s, to the end".to_string()));
        assert_eq!((shown(3, 0), shown(3, 1)), ("1.90 s, to the end".to_string(), "0.10 s".to_string()));
    }

    #[test]
    fn tokens_after_the_end_are_not_counted() {
        let found = example();
        assert_eq!((found.requests_per_second, found.tokens_per_second), (1.0, 2.5));
        assert_eq!(found.measured().failures, ["no"]);
        let value = json!(found);
        assert_eq!(
            (&value["slots"][3]["longest_gap"]["is_open"], &value["errors"]),
            (&json!(true), &json!(1))
        );
    }
}
