//! The requests that look at what a slot file says of its owner: a sequence with a salt is saved and restored, then the
//! same key asks the same prompt with another salt, or without one.

use std::time::Duration;

use super::actions::{Action, Generate, SlotAction, What};
use super::dice::Dice;
use super::prompts::Prompt;
use super::server::{KEYS, ServerPlan};
use crate::serving::cases::BLOCK;
use crate::sys::net::exchange::Leave;

/// How many prompts.
const TIMES: usize = 4;

/// The first family: those below belong to the round's other prompts, so no other client sends these.
const FAMILY: u64 = 32;

/// Salts from this one on are used in one sequence only.
const FRESH: usize = 100;

/// Tokens of each answer.
const PREDICTED: usize = 4;

/// One key alone, so that it can use every slot. The dice are its own: the rest of the round stays as it is.
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
    // The first one without a salt: the owner that a file without one would have.
    let other = Some(FRESH + TIMES + number).filter(|_| number > 0 && dice.chance(40));
    let slot = |slot, action| of(key, What::Slot(SlotAction { slot, action, owner: key, file }));
    let ask = |salt, slot| {
        let plain = Generate::plain(prompt.clone(), PREDICTED);
        of(key, What::Generate(Generate { salt, slot: Some(slot), ..plain }))
    };
    [ask(Some(FRESH + number), from), slot(from, "save"), slot(to, "restore"), ask(other, to)]
}

fn of(key: usize, what: What) -> Action {
    Action { pause: Duration::ZERO, key: Some(key), what, leave: Leave::Never }
}
