//! Counts of the events that oracles judge: a round without them finds nothing.

use std::collections::BTreeMap;

use super::completion::Completion;
use super::{Evidence, Played, metrics, status};
use crate::fuzz::plan::actions::{ActionKind, Order};

/// Counts by name.
pub type Tally = BTreeMap<&'static str, u64>;

/// Counts the events of a round.
pub fn of(evidence: &Evidence) -> Tally {
    let mut tally = Tally::new();
    for played in &evidence.played {
        for (name, count) in counts_of(evidence, played) {
            *tally.entry(name).or_default() += count;
        }
        *tally.entry("requests refused by a full queue").or_default() +=
            u64::from(status::is_refused(played));
    }
    *tally.entry("requests of owners asked of a fresh server too").or_default() +=
        evidence.witnesses.len() as u64;
    for (name, count) in counts_of_snapshots(evidence) {
        *tally.entry(name).or_default() += count;
    }
    tally.retain(|_, count| *count > 0);
    tally
}

/// Metrics of snapshots, by the name of their tally.
const SNAPSHOTS: [(&str, &str); 3] = [
    ("snapshots restored", "llamacpp:kv_snapshot_hits_total"),
    ("snapshots evicted", "llamacpp:kv_snapshot_evictions_total"),
    ("snapshots refused", "llamacpp:kv_snapshot_refusals_total"),
];

/// Reads the counters of snapshots in the last scrape of `/metrics`; none without one.
fn counts_of_snapshots(evidence: &Evidence) -> Vec<(&'static str, u64)> {
    let mut scrapes = evidence.rests.iter().rev().filter_map(|rest| rest.scrape.as_deref());
    let samples = scrapes.find_map(|text| metrics::read(text).ok()).unwrap_or_default();
    let count = |metric: &str| samples.get(metric).map_or(0, |count| *count as u64);
    SNAPSHOTS.into_iter().map(|(name, metric)| (name, count(metric))).collect()
}

fn counts_of(evidence: &Evidence, played: &Played) -> Vec<(&'static str, u64)> {
    let (status, body) = (played.response.status, played.response.json());
    let is_ok = status == Some(200);
    match &played.action.what {
        ActionKind::Generate(generate) => {
            let completion = Completion::read(generate, &played.response);
            let has_reference =
                played.reference.as_ref().is_some_and(|name| evidence.references.contains_key(name));
            let is_judged = completion.is_whole && completion.status == Some(200) && has_reference;
            let (drafted, accepted) = completion.numbers.drafted;
            vec![
                ("answers judged", u64::from(is_judged)),
                ("tokens found in a cache", completion.numbers.found().unwrap_or(0)),
                ("tokens drafted", drafted),
                ("tokens accepted", accepted),
            ]
        }
        ActionKind::Embed(_) => vec![("vectors judged", u64::from(is_ok))],
        ActionKind::Slot(slot) => {
            let tokens = |name: &str| u64::from(is_ok && body[name].as_u64() > Some(0));
            vec![
                ("slots saved", tokens("n_saved")),
                ("slots restored", tokens("n_restored")),
                ("slots erased", tokens("n_erased")),
                ("files and slots of another key refused", u64::from(status == Some(403))),
                ("restores refused", u64::from(!is_ok && slot.action == "restore")),
            ]
        }
        ActionKind::Conversation(one) => {
            let is_resume = one.order == Order::Resume;
            vec![
                ("streams resumed", u64::from(is_resume && is_ok)),
                ("streams not found", u64::from(is_resume && status == Some(404))),
                ("streams looked up", u64::from(one.order == Order::LookUp && is_ok)),
                ("streams ended", u64::from(one.order == Order::End && status == Some(204))),
            ]
        }
        ActionKind::Mistake(..) => Vec::new(),
    }
}

/// Adds the counts of a round to a total.
pub fn add(to: &mut Tally, more: &Tally) {
    for (name, count) in more {
        *to.entry(name).or_default() += count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::judge::{Rest, samples};
    use crate::fuzz::plan::actions::SlotAction;

    #[test]
    fn events_are_counted_and_others_left_out() {
        let restore = ActionKind::Slot(SlotAction { slot: 0, action: "restore", owner: 0, file: 0 });
        let with = |status, body: &str| Played {
            response: samples::response(status, body),
            ..samples::of_what(restore.clone())
        };
        let played = vec![with(200, "{\"n_restored\":5}"), with(200, "{\"n_restored\":0}"), with(403, "{}")];
        let mut all = of(&Evidence { played, ..Evidence::default() });
        let expected =
            [("slots restored", 1), ("files and slots of another key refused", 1), ("restores refused", 1)];
        assert_eq!(all, Tally::from(expected));
        let more = all.clone();
        add(&mut all, &more);
        assert_eq!(all["slots restored"], 2);
    }

    #[test]
    fn snapshots_are_counted_in_the_last_scrape() {
        let scrape = |hits: u64| {
            let text =
                format!("llamacpp:kv_snapshot_hits_total {hits}\nllamacpp:kv_snapshot_refusals_total 1\n");
            Rest { scrape: Some(text), ..Rest::default() }
        };
        let rests = vec![scrape(2), scrape(7), Rest::default()];
        let expected = [("snapshots restored", 7), ("snapshots refused", 1)];
        assert_eq!(of(&Evidence { rests, ..Evidence::default() }), Tally::from(expected));
    }
}
