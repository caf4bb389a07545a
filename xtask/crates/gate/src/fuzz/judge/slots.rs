//! Slots that keep their text belong to who filled them.

use std::collections::BTreeMap;

use super::heard::Heard;
use super::{Evidence, Finding, Played, act_of, finding};
use crate::fuzz::plan::Round;
use crate::fuzz::plan::actions::What;

/// Nobody may save or erase the text of another key's slot. Only where one client asks alone is it known whose a text
/// is.
pub fn judge(round: &Round, evidence: &Evidence) -> Vec<Finding> {
    let mut alone: Vec<&Played> =
        evidence.played.iter().filter(|one| one.place.0 == 0 && act_of(round, one).is_alone()).collect();
    alone.sort_by_key(|one| one.place);
    let mut owners: BTreeMap<usize, Option<usize>> = BTreeMap::new();
    let mut findings = Vec::new();
    for played in alone {
        match &played.action.what {
            What::Generate(generate) => match Heard::read(generate, &played.exchange).slot {
                Some(slot) => {
                    owners.insert(slot, played.action.key);
                }
                // Where it was is not said: any slot may be its own now.
                None => owners.clear(),
            },
            What::Slot(slot) if slot.action == "restore" => {
                owners.remove(&slot.slot);
            }
            What::Slot(slot) => {
                let (status, body) = Heard::status_and_body(&played.exchange);
                let tokens = body["n_saved"].as_u64().or(body["n_erased"].as_u64()).unwrap_or(0);
                let is_foreign = owners.get(&slot.slot).is_some_and(|owner| *owner != played.action.key);
                if status == Some(200) && tokens > 0 && is_foreign {
                    let expected = "403: what the slot keeps is another key's";
                    findings.push(finding("slots", played, expected, body.to_string()));
                }
            }
            What::Embed(_) => owners.clear(),
            What::Mistake(..) => {}
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::judge::samples;
    use crate::fuzz::plan::actions::SlotAction;

    fn findings(saver: usize) -> usize {
        let mut asked = samples::played(samples::generate());
        asked.exchange = samples::exchange(200, "{\"id_slot\":1,\"tokens\":[]}");
        asked.action.key = Some(0);
        let save = SlotAction { slot: 1, action: "save", owner: saver, file: 0 };
        let mut saved = samples::of_what(What::Slot(save));
        saved.place = (0, 0, 1);
        saved.action.key = Some(saver);
        saved.exchange = samples::exchange(200, "{\"n_saved\":100}");
        let evidence = Evidence { played: vec![asked, saved], ..Evidence::default() };
        judge(&samples::round(1), &evidence).len()
    }

    #[test]
    fn a_slot_is_saved_by_its_owner_only() {
        assert_eq!((findings(0), findings(1)), (0, 1));
    }
}
