//! Requests that test the owner stored in a slot file: a sequence with a salt is saved and restored, then the same key
//! sends the same prompt with another salt, or without one.

use std::time::Duration;

use espalier_core::http::Disconnect;

use super::actions::{Action, ActionKind, Generate, SlotAction};
use super::dice::Dice;
use super::prompts::Prompt;
use super::server::{KEYS, ServerPlan};
use crate::serving::cases::BLOCK;

/// Number of prompts.
const TIMES: usize = 4;

/// First prompt family: smaller ids belong to the round's other prompts, so no other client sends these.
const FAMILY: u64 = 32;

/// Salts from this index on are used in one sequence only.
const FRESH: usize = 100;

/// Length of each answer, in tokens.
const PREDICTED: usize = 4;

/// Builds the actions. All use one key, so that it can use every slot. They draw from their own random stream, so the
/// rest of the round is unaffected.
pub fn actions(server: &ServerPlan, seed: u64) -> Vec<Action> {
    let mut dice = Dice::new(seed, 1);
    let key = dice.below(KEYS.len());
    (0..TIMES).flat_map(|number| save_and_ask(&mut dice, server, key, seed, number)).collect()
}

fn save_and_ask(dice: &mut Dice, server: &ServerPlan, key: usize, seed: u64, number: usize) -> [Action; 4] {
    let family = seed.wrapping_mul(64) + FAMILY + number as u64;
    let kept = dice.between(BLOCK, 5 * BLOCK);
    let prompt = Prompt { family, kept, rest: 0, own: family, images: Vec::new() };
    let (from, to, file) = (dice.below(server.slots), dice.below(server.slots), dice.below(2));
    // The first one has no salt: the owner that a file without a stored owner would have.
    let other = Some(FRESH + TIMES + number).filter(|_| number > 0 && dice.chance(40));
    let slot = |slot, action| of(key, ActionKind::Slot(SlotAction { slot, action, owner: key, file }));
    let ask = |salt, slot| {
        let plain = Generate::plain(prompt.clone(), PREDICTED);
        of(key, ActionKind::Generate(Generate { salt, slot: Some(slot), ..plain }))
    };
    [ask(Some(FRESH + number), from), slot(from, "save"), slot(to, "restore"), ask(other, to)]
}

fn of(key: usize, what: ActionKind) -> Action {
    Action { pause: Duration::ZERO, key: Some(key), what, leave: Disconnect::Never }
}
