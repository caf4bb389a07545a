//! The round that looks at the clock: one prompt cold, by its owner again, and by somebody else.

use std::time::Duration;

use super::Act;
use super::actions::{Action, Generate, What};
use super::prompts::Prompt;
use super::server::{ADAPTERS, ServerPlan};
use crate::sys::net::exchange::Leave;

/// How often.
const TIMES: u64 = 7;

/// For each of some prompts: one tenant asks cold, another one the same.
pub fn act(server: &ServerPlan, seed: u64) -> Act {
    let length = server.cells().min(1024) - 64;
    let ask = |prompt: &Prompt, tenant: usize| Action {
        pause: Duration::ZERO,
        key: server.keys.then_some(tenant),
        what: What::Generate(Generate {
            salt: (!server.keys).then_some(tenant),
            ..Generate::plain(prompt.clone(), 1)
        }),
        leave: Leave::Never,
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
