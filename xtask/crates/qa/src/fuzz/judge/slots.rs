//! Oracle for retained sequences in slots: they belong to the API key that filled the slot.

use std::collections::BTreeMap;

use serde_json::Value;

use super::completion::Completion;
use super::{Evidence, Finding, Played, act_of, finding};
use crate::fuzz::plan::Round;
use crate::fuzz::plan::actions::{ActionKind, SlotAction};

/// State that a single client has left in slots and files.
#[derive(Default)]
struct Left {
    /// The key whose sequence a slot holds, if known.
    slots: BTreeMap<usize, Option<usize>>,
    /// For each file, by owner and index in its name: the key that saved it, and its number of tokens.
    files: BTreeMap<(usize, usize), (Option<usize>, u64)>,
}

/// Checks that a key does not save or erase the tokens of another key's slot, restore another key's file, or overwrite
/// it. Owners are known only where a single client sends requests.
pub fn judge(round: &Round, evidence: &Evidence) -> Vec<Finding> {
    let mut alone: Vec<&Played> =
        evidence.played.iter().filter(|one| one.place.0 == 0 && act_of(round, one).is_alone()).collect();
    alone.sort_by_key(|one| one.place);
    let mut left = Left::default();
    let mut findings = Vec::new();
    for played in alone {
        match &played.action.what {
            ActionKind::Generate(generate) => match Completion::read(generate, &played.response).slot {
                Some(slot) => {
                    left.slots.insert(slot, played.action.key);
                }
                // The slot is not reported, so any slot may hold this key's sequence now.
                None => left.slots.clear(),
            },
            ActionKind::Slot(slot) => {
                if played.response.status == Some(200) {
                    let body = played.response.json();
                    findings.extend(left.wrong_with(*slot, played, &body));
                    left.follow(*slot, played.action.key, &body);
                }
            }
            ActionKind::Embed(_) => left.slots.clear(),
            ActionKind::Mistake(..) | ActionKind::Conversation(_) => {}
        }
    }
    findings
}

impl Left {
    fn wrong_with(&self, slot: SlotAction, played: &Played, body: &Value) -> Option<Finding> {
        let key = played.action.key;
        let tokens = |name: &str| body[name].as_u64().unwrap_or(0);
        let file = self.files.get(&(slot.owner, slot.file));
        let is_foreign_file = file.is_some_and(|(saver, _)| *saver != key);
        let is_foreign_slot = self.slots.get(&slot.slot).is_some_and(|owner| *owner != key);
        let expected = match slot.action {
            "save" | "restore" if is_foreign_file => "403: the file is another key's".to_string(),
            "restore" => {
                let saved = file.map(|(_, saved)| *saved)?;
                if tokens("n_restored") == saved {
                    return None;
                }
                format!("the {saved} tokens that were saved")
            }
            _ if is_foreign_slot && tokens("n_saved") + tokens("n_erased") > 0 => {
                "403: what the slot keeps is another key's".to_string()
            }
            _ => return None,
        };
        Some(finding("slots", played, expected, body.to_string()))
    }

    fn follow(&mut self, slot: SlotAction, key: Option<usize>, body: &Value) {
        match slot.action {
            "save" => {
                let saved = body["n_saved"].as_u64().unwrap_or(0);
                self.files.insert((slot.owner, slot.file), (key, saved));
            }
            "restore" => {
                self.slots.insert(slot.slot, key);
            }
            _ => {
                self.slots.remove(&slot.slot);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::judge::samples;

    fn findings(saver: usize) -> usize {
        let mut asked = samples::played(samples::generate());
        asked.response = samples::response(200, "{\"id_slot\":1,\"tokens\":[]}");
        asked.action.key = Some(0);
        let save = SlotAction { slot: 1, action: "save", owner: saver, file: 0 };
        let mut saved = samples::of_what(ActionKind::Slot(save));
        saved.place = (0, 0, 1);
        saved.action.key = Some(saver);
        saved.response = samples::response(200, "{\"n_saved\":100}");
        let evidence = Evidence { played: vec![asked, saved], ..Evidence::default() };
        judge(&samples::round(1), &evidence).len()
    }

    #[test]
    fn a_slot_is_saved_by_its_owner_only() {
        assert_eq!((findings(0), findings(1)), (0, 1));
    }

    fn acts(orders: &[(usize, &'static str, &str)]) -> usize {
        let play = |(number, (key, action, body)): (usize, &(usize, &'static str, &str))| {
            let mut played =
                samples::of_what(ActionKind::Slot(SlotAction { slot: 0, action, owner: 0, file: 0 }));
            (played.place, played.action.key) = ((0, 0, number), Some(*key));
            played.response = samples::response(200, body);
            played
        };
        let played = orders.iter().enumerate().map(play).collect();
        judge(&samples::round(1), &Evidence { played, ..Evidence::default() }).len()
    }

    #[test]
    fn a_file_is_restored_and_saved_again_by_its_owner_only() {
        let save = (0, "save", "{\"n_saved\":100}");
        let restore = |key, tokens| (key, "restore", tokens);
        assert_eq!(acts(&[save, restore(0, "{\"n_restored\":100}"), save]), 0);
        assert_eq!(acts(&[save, restore(1, "{\"n_restored\":100}")]), 1, "another key's file");
        assert_eq!(acts(&[save, restore(0, "{\"n_restored\":99}")]), 1, "other tokens");
        assert_eq!(acts(&[save, (1, "save", "{\"n_saved\":0}")]), 1, "over another key's file");
    }

    #[test]
    fn a_restored_slot_belongs_to_its_owner() {
        let restore = (0, "restore", "{\"n_restored\":100}");
        assert_eq!(acts(&[restore, (0, "erase", "{\"n_erased\":100}")]), 0);
        assert_eq!(acts(&[restore, (1, "erase", "{\"n_erased\":100}")]), 1);
    }
}
