//! PURE: the requests that bypassed a large prompt, that is, got a token before it although they were sent later.

use std::time::Duration;

use serde::Serialize;
use serde_json::json;

use super::record::{Measured, Row, seconds_of};
use super::traffic::SLOTS;
use crate::report::samples::median_of;
use crate::serving::request_record::{RequestRecord, Span};

/// Requests sent at least this long apart surely reach the server in the order in which they were sent.
const SURELY_LATER: Duration = Duration::from_millis(20);

/// A large prompt that was sent.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Visit {
    /// The slot that it requested.
    pub(super) slot: Option<usize>,
    /// Number of busy slots when it was sent.
    pub(super) taken: usize,
    /// Time at which its client had waited long enough, and the others were held back.
    pub(super) patience_ends: Duration,
    pub(super) record: RequestRecord,
}

impl Visit {
    fn wait(&self) -> Span {
        self.record.time_to_first_token(self.patience_ends)
    }

    /// Returns the number of requests that were sent later and got their first token earlier.
    fn bypassing(&self, others: &[RequestRecord]) -> usize {
        let until = self.record.first_token().unwrap_or(Duration::MAX).min(self.patience_ends);
        let bypasses = |other: &&RequestRecord| {
            other.sent >= self.record.sent + SURELY_LATER
                && other.first_token().is_some_and(|first| first < until)
        };
        others.iter().filter(bypasses).count()
    }
}

/// A visit with its evaluation.
#[derive(Serialize)]
struct Judged {
    slot: Option<usize>,
    slots_taken: usize,
    time_to_first_token: Span,
    bypassed_by: usize,
    /// Requests that run may end and free blocks for a request in another slot; no other request may bypass the prompt.
    exceeds_bound: bool,
    answered_in_slot: Option<usize>,
}

impl Judged {
    fn of(visit: &Visit, others: &[RequestRecord]) -> Judged {
        let bypassed_by = visit.bypassing(others);
        Judged {
            slot: visit.slot,
            slots_taken: visit.taken,
            time_to_first_token: visit.wait(),
            bypassed_by,
            exceeds_bound: bypassed_by > visit.taken,
            answered_in_slot: visit.record.slot,
        }
    }
}

/// Returns rows for each requested slot, and for prompts that requested none.
pub(super) fn judge(visits: &[Visit], others: &[RequestRecord]) -> Measured {
    let judged: Vec<Judged> = visits.iter().map(|visit| Judged::of(visit, others)).collect();
    let exceeding = judged.iter().filter(|one| one.exceeds_bound).count();
    let words =
        format!("{exceeding} of {} large prompts were bypassed by more than were running", judged.len());
    let records = visits.iter().map(|visit| &visit.record).chain(others);
    let error = records.filter_map(|record| record.error.clone()).next();
    Measured {
        rows: kinds().flat_map(|kind| rows(kind, &judged)).collect(),
        json: json!(judged),
        failures: (exceeding > 0).then_some(words).into_iter().chain(error).collect(),
    }
}

/// Iterates over the slots that a large prompt can request; `None` is any slot.
pub(super) fn kinds() -> impl Iterator<Item = Option<usize>> + Clone {
    (0..SLOTS).map(Some).chain([None])
}

fn name(kind: Option<usize>) -> String {
    kind.map_or("any slot".to_string(), |slot| format!("slot {slot}"))
}

fn rows(kind: Option<usize>, judged: &[Judged]) -> Vec<Row> {
    let of_kind: Vec<&Judged> = judged.iter().filter(|one| one.slot == kind).collect();
    let waits = || of_kind.iter().map(|one| one.time_to_first_token);
    let (Some(longest), Some(most)) =
        (Span::longest(waits()), of_kind.iter().max_by_key(|one| one.bypassed_by))
    else {
        return Vec::new();
    };
    let what = |words: &str| format!("{}: {words}", name(kind));
    let median = median_of(waits().map(|wait| wait.seconds).collect());
    let exceeding = of_kind.iter().filter(|one| one.exceeds_bound).count();
    vec![
        Row::seconds(&what("time to first token, median"), median.unwrap_or_default()),
        Row {
            what: what("time to first token, longest"),
            value: Some(longest.seconds),
            shown: seconds_of(longest),
        },
        Row {
            what: what("bypassed at most by (slots taken when it arrived)"),
            value: Some(most.bypassed_by as f64),
            shown: format!("{} ({})", most.bypassed_by, most.slots_taken),
        },
        Row {
            what: what("bypassed by more than were running"),
            value: None,
            shown: format!("{exceeding} of {}", of_kind.len()),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serving::request_record::tests::record;

    fn visit(slot: Option<usize>, sent: u64, first: u64) -> Visit {
        let patience_ends = Duration::from_millis(sent + 5000);
        Visit { slot, taken: 2, patience_ends, record: record(3, sent, &[first], Some(first)) }
    }

    fn others() -> Vec<RequestRecord> {
        vec![
            record(0, 900, &[1100], Some(1300)),  // sent before it
            record(0, 1010, &[1100], Some(1300)), // at the same time
            record(0, 1100, &[1200], None),
            record(1, 1200, &[1300], Some(1400)),
            record(2, 1300, &[2000], Some(2100)),
            record(2, 1300, &[7000], Some(7100)),
        ]
    }

    #[test]
    fn a_request_that_was_sent_later_and_answered_earlier_bypassed() {
        let visits = [visit(Some(3), 1000, 1400), visit(Some(3), 1000, 8000), visit(None, 1000, 1050)];
        assert_eq!(visits.each_ref().map(|one| one.bypassing(&others())), [2, 3, 0]);
    }

    #[test]
    fn rows_for_what_was_asked_for() {
        let visits = [visit(Some(3), 1000, 1400), visit(Some(3), 1000, 8000), visit(None, 1000, 1050)];
        let found = judge(&visits, &others());
        let shown: Vec<&str> = found.rows.iter().map(|row| row.shown.as_str()).collect();
        assert_eq!(
            shown,
            ["2.70 s", "5.00 s, to the end", "3 (2)", "1 of 2", "0.05 s", "0.05 s", "0 (2)", "0 of 1"]
        );
        assert_eq!(found.failures, ["1 of 3 large prompts were bypassed by more than were running"]);
    }

    #[test]
    fn an_error_is_a_failure() {
        let mut refused = visit(None, 0, 10);
        refused.record.error = Some("503".to_string());
        assert_eq!(judge(&[refused], &[]).failures, ["503"]);
    }
}
