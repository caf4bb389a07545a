//! Sample requests for the tests of this module.

use std::time::Duration;

use espalier_core::http::{Disconnect, Ending, Response};

use super::Played;
use crate::fuzz::plan::actions::{Action, ActionKind, Generate};
use crate::fuzz::plan::prompts::Prompt;
use crate::fuzz::plan::{Act, Round};

pub fn generate() -> Generate {
    Generate::plain(Prompt { family: 1, kept: 100, rest: 0, own: 0, images: Vec::new() }, 3)
}

pub fn response(status: u16, body: &str) -> Response {
    let head = format!("HTTP/1.1 {status} OK\r\nContent-Length: {}\r\n\r\n", body.len());
    let mut response = Response::none(Ending::Closed);
    response.took = Duration::from_millis(50);
    response.push(format!("{head}{body}").as_bytes(), response.took);
    response
}

pub fn played(generate: Generate) -> Played {
    of_what(ActionKind::Generate(generate))
}

pub fn of_what(what: ActionKind) -> Played {
    Played {
        place: (0, 0, 0),
        action: Action { pause: Duration::ZERO, key: None, what, leave: Disconnect::Never },
        own_scales: [1.0, 1.0],
        sent: Duration::ZERO,
        response: response(200, "{}"),
        reference: None,
    }
}

/// Builds a round with one act and one client without actions.
pub fn round(seed: u64) -> Round {
    let mut round = Round::draw(seed);
    let act = Act { own_scales: [1.0, 1.0], after_sleep: false, clients: vec![Vec::new()] };
    round.acts = vec![act];
    (round.server.keys, round.server.max_queued) = (false, None);
    round
}
