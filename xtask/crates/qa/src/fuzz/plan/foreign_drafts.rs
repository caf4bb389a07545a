//! The act of the foreign-drafts theme: one owner sends a prompt, then another one sends the same, or one with the same
//! prefix, in the same slot. Every source of drafts comes, draft models that read hidden states too.

use std::time::Duration;

use espalier_core::http::Disconnect;

use super::Act;
use super::actions::{Action, ActionKind, Generate};
use super::dice::Dice;
use super::prompts::{MAX_PREDICTED, Prompt};
use super::server::{ADAPTERS, KEYS, ServerPlan};

/// Number of prompts.
const TIMES: usize = 6;

/// Maximum difference in length of two prompts, in tokens.
const LONGER: usize = 200;

/// Salts from this index on are used once: a request with one comes from an owner without earlier requests.
const FRESH: usize = 100;

/// Builds the act: for each prompt, one owner sends it once or twice, then another owner without earlier requests sends
/// the same or one with the same prefix.
pub fn act(dice: &mut Dice, server: &ServerPlan, seed: u64) -> Act {
    let actions = (0..TIMES).flat_map(|number| ask_in_turn(dice, server, seed, number)).collect();
    Act { own_scales: [1.0; ADAPTERS], after_sleep: false, clients: vec![actions] }
}

fn ask_in_turn(dice: &mut Dice, server: &ServerPlan, seed: u64, number: usize) -> Vec<Action> {
    let most = (server.cells() - MAX_PREDICTED - LONGER - 1).min(400);
    let family = seed.wrapping_mul(64) + number as u64;
    let prompt = Prompt { family, kept: dice.between(20, most), rest: 0, own: family, images: Vec::new() };
    let longer = Prompt { rest: dice.between(1, LONGER), ..prompt.clone() };
    // Leaked slot state shows differently if the next prompt is as long, longer, or shorter.
    let (theirs, own) = match dice.below(4) {
        0 | 1 => (&prompt, &prompt),
        2 => (&prompt, &longer),
        _ => (&longer, &prompt),
    };
    let slot = dice.below(server.slots);
    let first = dice.below(KEYS.len());
    // Another key, or the same key with a salt of its own; mostly in the slot that has state from the same prompt.
    let second = dice.below(KEYS.len());
    let other_slot = if dice.chance(70) { slot } else { dice.below(server.slots) };
    let mut actions = vec![of(first, ask(theirs, None, slot)); dice.between(1, 2)];
    actions.push(match number % 3 {
        // A request without sharing is an owner of its own, beside other requests of its key too.
        2 => of(first, Generate { cache: false, ..ask(own, None, other_slot) }),
        _ => of(second, ask(own, Some(FRESH + number), other_slot)),
    });
    actions
}

fn ask(prompt: &Prompt, salt: Option<usize>, slot: usize) -> Generate {
    Generate { salt, slot: Some(slot), ..Generate::plain(prompt.clone(), MAX_PREDICTED) }
}

fn of(key: usize, generate: Generate) -> Action {
    Action {
        pause: Duration::ZERO,
        key: Some(key),
        what: ActionKind::Generate(generate),
        leave: Disconnect::Never,
    }
}
