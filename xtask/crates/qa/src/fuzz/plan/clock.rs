//! The act of the timing theme: each prompt is sent cold by one tenant, then again by another one.

use std::time::Duration;

use espalier_core::http::Disconnect;

use super::Act;
use super::actions::{Action, ActionKind, Generate};
use super::prompts::Prompt;
use super::server::{ADAPTERS, ServerPlan};

/// Number of prompts.
const TIMES: u64 = 7;

/// Builds the act: for each prompt, one tenant sends it cold, then another one sends the same.
pub fn act(server: &ServerPlan, seed: u64) -> Act {
    let length = server.cells().min(1024) - 64;
    let ask = |prompt: &Prompt, tenant: usize| Action {
        pause: Duration::ZERO,
        key: server.keys.then_some(tenant),
        what: ActionKind::Generate(Generate {
            salt: (!server.keys).then_some(tenant),
            ..Generate::plain(prompt.clone(), 1)
        }),
        leave: Disconnect::Never,
    };
    let pair = |number: u64| {
        let family = seed.wrapping_mul(64) + number;
        let prompt = Prompt { family, kept: length, rest: 0, own: 0, images: Vec::new() };
        [ask(&prompt, 0), ask(&prompt, 1)]
    };
    Act {
        own_scales: [1.0; ADAPTERS],
        after_sleep: false,
        clients: vec![(0..TIMES).flat_map(pair).collect()],
    }
}
