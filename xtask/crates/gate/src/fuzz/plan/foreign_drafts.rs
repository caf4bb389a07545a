//! The act that looks at drafts: one owner asks, then another one asks the same, or what begins alike, in the same slot.

use std::time::Duration;

use super::Act;
use super::actions::{Action, Generate, What};
use super::dice::Dice;
use super::prompts::{MOST_PREDICTED, Prompt};
use super::server::{ADAPTERS, KEYS, ServerPlan};
use crate::sys::net::exchange::Leave;

/// How many prompts.
const TIMES: usize = 6;

/// Tokens by which one of two prompts is longer at most.
const LONGER: usize = 200;

/// Salts from this one on are used once: who has one is an owner that has asked nothing before.
const FRESH: usize = 100;

/// For each of some prompts: one owner asks it once or twice, then another one, who has asked nothing before, the
/// same or what begins alike.
pub fn act(dice: &mut Dice, server: &ServerPlan, seed: u64) -> Act {
    let actions = (0..TIMES).flat_map(|number| ask_in_turn(dice, server, seed, number)).collect();
    Act { own_scales: [1.0; ADAPTERS], after_sleep: false, clients: vec![actions] }
}

fn ask_in_turn(dice: &mut Dice, server: &ServerPlan, seed: u64, number: usize) -> Vec<Action> {
    let most = (server.cells() - MOST_PREDICTED - LONGER - 1).min(400);
    let family = seed.wrapping_mul(64) + number as u64;
    let prompt = Prompt { family, kept: dice.between(20, most), rest: 0, own: family, images: Vec::new() };
    let longer = Prompt { rest: dice.between(1, LONGER), ..prompt.clone() };
    // What a slot has learned shows in another way when the next prompt is as long, longer, or shorter.
    let (theirs, own) = match dice.below(4) {
        0 | 1 => (&prompt, &prompt),
        2 => (&prompt, &longer),
        _ => (&longer, &prompt),
    };
    let slot = dice.below(server.slots);
    let first = dice.below(KEYS.len());
    // Another key, or the same key with a salt of its own; mostly in the slot that has learned the text.
    let second = dice.below(KEYS.len());
    let other_slot = if dice.chance(70) { slot } else { dice.below(server.slots) };
    let mut actions = vec![ask(theirs, first, None, slot); dice.between(1, 2)];
    actions.push(ask(own, second, Some(FRESH + number), other_slot));
    actions
}

fn ask(prompt: &Prompt, key: usize, salt: Option<usize>, slot: usize) -> Action {
    let generate = Generate { salt, slot: Some(slot), ..Generate::plain(prompt.clone(), MOST_PREDICTED) };
    Action { pause: Duration::ZERO, key: Some(key), what: What::Generate(generate), leave: Leave::Never }
}
