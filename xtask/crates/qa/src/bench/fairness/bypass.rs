//! PURE: the requests that bypassed a large prompt, that is, got a token before it although they were sent later.

use std::time::Duration;

use serde_json::{Value, json};

use super::report::{Measured, Row};
use super::spans::{self, Span};
use super::traffic::SLOTS;
use crate::bench::timing::median_of;
use crate::serving::streamed::StreamedResponse;

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
    /// The response.
    pub(super) response: StreamedResponse,
}

impl Visit {
    fn wait(&self) -> Span {
        spans::wait(&self.response, self.patience_ends)
    }

    /// Returns the number of requests that were sent later and got their first token earlier.
    fn bypassing(&self, others: &[StreamedResponse]) -> usize {
        let until = self.response.first_token().unwrap_or(Duration::MAX).min(self.patience_ends);
        let bypasses = |other: &&StreamedResponse| {
            other.sent >= self.response.sent + SURELY_LATER
                && other.first_token().is_some_and(|first| first < until)
        };
        others.iter().filter(bypasses).count()
    }
}

/// A visit with its evaluation.
struct Judged<'a> {
    visit: &'a Visit,
    bypassing: usize,
}

impl Judged<'_> {
    /// Requests that run may end and free blocks for a request in another slot; no other request may bypass the prompt.
    fn is_beyond_the_bound(&self) -> bool {
        self.bypassing > self.visit.taken
    }
}

/// Returns rows for each requested slot, and for prompts that requested none.
pub(super) fn judge(visits: &[Visit], others: &[StreamedResponse]) -> Measured {
    let judge = |visit| Judged { visit, bypassing: visit.bypassing(others) };
    let judged: Vec<Judged<'_>> = visits.iter().map(judge).collect();
    Measured {
        rows: kinds().flat_map(|kind| rows(kind, &judged)).collect(),
        json: judged.iter().map(to_json).collect(),
        failures: failures(&judged, others),
    }
}

/// Iterates over the slots that a large prompt can request; `None` is any slot.
pub(super) fn kinds() -> impl Iterator<Item = Option<usize>> + Clone {
    (0..SLOTS).map(Some).chain([None])
}

fn name(kind: Option<usize>) -> String {
    kind.map_or("any slot".to_string(), |slot| format!("slot {slot}"))
}

fn rows(kind: Option<usize>, judged: &[Judged<'_>]) -> Vec<Row> {
    let of_kind: Vec<&Judged<'_>> = judged.iter().filter(|one| one.visit.slot == kind).collect();
    let Some(longest) = spans::longest(of_kind.iter().map(|one| one.visit.wait())) else {
        return Vec::new();
    };
    let what = |words: &str| format!("{}: {words}", name(kind));
    let waits = of_kind.iter().map(|one| one.visit.wait().seconds).collect();
    let beyond = of_kind.iter().filter(|one| one.is_beyond_the_bound()).count();
    let most = of_kind.iter().max_by_key(|one| one.bypassing);
    vec![
        Row::seconds(&what("waited, median"), median_of(waits).unwrap_or_default()),
        Row { what: what("waited, longest"), value: Some(longest.seconds), shown: longest.text() },
        Row {
            what: what("bypassed at most by (slots taken when it arrived)"),
            value: most.map(|one| one.bypassing as f64),
            shown: most.map_or(String::new(), |one| format!("{} ({})", one.bypassing, one.visit.taken)),
        },
        Row {
            what: what("bypassed by more than were running"),
            value: None,
            shown: format!("{beyond} of {}", of_kind.len()),
        },
    ]
}

fn to_json(one: &Judged<'_>) -> Value {
    json!({
        "slot": one.visit.slot,
        "slots_taken": one.visit.taken,
        "wait": one.visit.wait().json(),
        "overtakers": one.bypassing,
        "is_beyond_the_bound": one.is_beyond_the_bound(),
        "answered_in_slot": one.visit.response.slot,
    })
}

fn failures(judged: &[Judged<'_>], others: &[StreamedResponse]) -> Vec<String> {
    let beyond = judged.iter().filter(|one| one.is_beyond_the_bound()).count();
    let words = format!("{beyond} of {} large prompts were bypassed by more than were running", judged.len());
    let errors = judged.iter().map(|one| &one.visit.response).chain(others);
    let error = errors.filter_map(|response| response.error.clone()).next();
    (beyond > 0).then_some(words).into_iter().chain(error).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::fairness::spans::tests::response;

    fn visit(slot: Option<usize>, sent: u64, first: u64) -> Visit {
        let patience_ends = Duration::from_millis(sent + 5000);
        Visit { slot, taken: 2, patience_ends, response: response(3, sent, &[first], Some(first)) }
    }

    fn others() -> Vec<StreamedResponse> {
        vec![
            response(0, 900, &[1100], Some(1300)),  // sent before it
            response(0, 1010, &[1100], Some(1300)), // at the same time
            response(0, 1100, &[1200], None),
            response(1, 1200, &[1300], Some(1400)),
            response(2, 1300, &[2000], Some(2100)),
            response(2, 1300, &[7000], Some(7100)),
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
        refused.response.error = Some("503".to_string());
        assert_eq!(judge(&[refused], &[]).failures, ["503"]);
    }
}
