//! Oracle for admission control: `--max-queued` refuses a request only if the queue is full, a refusal says when to send
//! the request again, and the gauges of running and queued requests stay within what the server can hold.

use std::time::Duration;

use espalier_core::http::Ending;

use super::{Evidence, Finding, Played, finding, metrics, status};
use crate::fuzz::plan::Round;
use crate::fuzz::plan::actions::ActionKind;
use crate::fuzz::plan::server::ServerPlan;

const RUNNING: &str = "llamacpp:requests_processing";
const QUEUED: &str = "llamacpp:requests_deferred";

/// Time after its answer in which a request may still count as running: its client can be faster than the server.
const GRACE: Duration = Duration::from_secs(2);

/// Returns the numbers of running and of queued requests; `None` if the scrape lacks one of them.
pub fn gauges(scrape: &str) -> Option<(f64, f64)> {
    let samples = metrics::read(scrape).ok()?;
    Some((*samples.get(RUNNING)?, *samples.get(QUEUED)?))
}

/// Checks every refusal and every scrape.
pub fn judge(round: &Round, evidence: &Evidence) -> Vec<Finding> {
    let scrapes = evidence.scrapes.iter().enumerate();
    let mut findings: Vec<Finding> =
        scrapes.filter_map(|(number, scrape)| wrong_gauges(&round.server, number, scrape)).collect();
    if let Some(most) = round.server.max_queued {
        let refused = evidence.played.iter().filter(|one| status::is_refused(one));
        findings.extend(refused.filter_map(|one| wrong_refusal(evidence, one, most)));
    }
    findings
}

/// Each running request has a slot, and so has each that waits, except for as many as `--max-queued` allows. Every
/// request of the fuzzer is one task with its further choices, so none runs in part.
fn wrong_gauges(server: &ServerPlan, number: usize, scrape: &str) -> Option<Finding> {
    let (running, queued) = gauges(scrape)?;
    let slots = server.slots;
    let max_requests = server.max_queued.map(|most| most + slots);
    let is_within = |count: f64, most: Option<usize>| most.is_none_or(|most| count <= most as f64);
    if is_within(running, Some(slots)) && is_within(running + queued, max_requests) {
        return None;
    }
    let of_queue = max_requests.map_or(String::new(), |most| format!(", and {most} with the queued ones"));
    Some(Finding {
        oracle: "queue",
        asked: format!("/metrics, number {number}"),
        expected: format!("at most {slots} running requests{of_queue}"),
        came: format!("{running} running, {queued} queued"),
    })
}

/// The queue is full only while one request runs and as many as allowed are queued. Slots may be busy with more than
/// one, which the client does not know, so the number that the refusal states has to agree too.
fn wrong_refusal(evidence: &Evidence, refused: &Played, most: usize) -> Option<Finding> {
    let others = evidence.played.iter().filter(|other| is_open_beside(other, refused)).count();
    if others <= most {
        let expected = format!("no 429: at most {most} may be queued, and one of the others runs");
        return Some(finding("queue", refused, expected, format!("429 beside {others} other requests")));
    }
    let reason = status::read(refused).1;
    if stated_queue(&reason).is_none_or(|stated| stated < most) {
        return Some(finding("queue", refused, format!("429 with at least {most} queued requests"), reason));
    }
    let says_when = refused.response.headers.iter().any(|(name, _)| name == "retry-after");
    (!says_when).then(|| finding("queue", refused, "`Retry-After` beside 429", "no such header"))
}

/// Returns the number of queued requests that a refusal states.
pub fn stated_queue(reason: &str) -> Option<usize> {
    let (_, rest) = reason.split_once("the queue is full: ")?;
    rest.split_once(' ')?.0.parse().ok()
}

/// Whether the server may have had `other` when it refused the request. It goes on with a request for a moment after
/// the client has disconnected; the client does not know for how long.
fn is_open_beside(other: &Played, refused: &Played) -> bool {
    let is_request = !matches!(other.action.what, ActionKind::Slot(_) | ActionKind::Conversation(_));
    let may_go_on = other.response.ending != Ending::Closed;
    let is_at_once = other.sent <= refused.end() && (may_go_on || refused.sent <= other.end() + GRACE);
    let (of_other, of_refused) = (other.place, refused.place);
    is_request && is_at_once && of_other.0 == of_refused.0 && of_other != of_refused
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::judge::samples;

    /// Builds a request that was sent after `sent` milliseconds and answered 50 ms later.
    fn asked(client: usize, sent: u64, status: u16) -> Played {
        let mut played = samples::played(samples::generate());
        played.response = samples::response(status, "{}");
        played.place.1 = client;
        played.sent = Duration::from_millis(sent);
        played
    }

    fn refused(retry_after: &str) -> Played {
        refused_by(1, retry_after)
    }

    /// Builds the refusal of a server that states this number of queued requests.
    fn refused_by(queued: usize, retry_after: &str) -> Played {
        let mut played = asked(9, 40, status::REFUSED);
        let message = format!("the queue is full: {queued} requests are queued and --max-queued is 1");
        let body = serde_json::json!({ "error": { "message": message } }).to_string();
        played.response = samples::response(status::REFUSED, &body);
        played.response.headers.push((retry_after.to_string(), "1".to_string()));
        played
    }

    fn judged(played: Vec<Played>, scrapes: &[String]) -> usize {
        let mut round = samples::round(0);
        (round.server.slots, round.server.max_queued) = (2, Some(1));
        judge(&round, &Evidence { played, scrapes: scrapes.to_vec(), ..Evidence::default() }).len()
    }

    #[test]
    fn a_refusal_needs_a_full_queue_and_says_when_to_come_back() {
        let beside = |count: usize| (0..count).map(|client| asked(client, 20, 200)).collect::<Vec<_>>();
        let with = |mut played: Vec<Played>, refused: Played| {
            played.push(refused);
            judged(played, &[])
        };
        assert_eq!(with(beside(2), refused("retry-after")), 0);
        assert_eq!(with(beside(2), refused("other")), 1);
        assert_eq!(with(beside(9), refused_by(0, "retry-after")), 1, "one more may wait");
        assert_eq!(with(beside(1), refused("retry-after")), 1, "one runs, none is queued");
        assert_eq!(with(Vec::new(), refused("retry-after")), 1, "alone");
        let later: Vec<Played> = (0..3).map(|client| asked(client, 2000, 200)).collect();
        assert_eq!(with(later, refused("retry-after")), 1, "the others were sent later");
    }

    #[test]
    fn a_request_whose_client_left_may_still_be_queued() {
        let mut late = refused("retry-after");
        late.sent = Duration::from_secs(3);
        let with = |ending: Ending| {
            let gone = (0..2).map(|client| {
                let mut gone = asked(client, 20, 200);
                gone.response.ending = ending.clone();
                gone
            });
            judged(gone.chain([late.clone()]).collect(), &[])
        };
        assert_eq!((with(Ending::Left), with(Ending::Closed)), (0, 1));
    }

    #[test]
    fn gauges_stay_within_slots_and_queue() {
        let scrape = |running: u64, queued: u64| vec![format!("{RUNNING} {running}\n{QUEUED} {queued}\n")];
        assert_eq!(judged(Vec::new(), &scrape(2, 1)), 0);
        assert_eq!(judged(Vec::new(), &scrape(0, 3)), 0, "in slots, they wait for blocks");
        assert_eq!(judged(Vec::new(), &scrape(3, 0)), 1, "queued requests counted as running");
        assert_eq!(judged(Vec::new(), &scrape(2, 2)), 1, "more than slots and --max-queued");
        assert_eq!(judged(Vec::new(), &["x 1\n".to_string()]), 0, "a server without these gauges");
    }
}
