//! Oracle for waiting times: requests do not starve, and are not bypassed without limit.

use std::time::Duration;

use espalier_core::http::{Disconnect, Ending};

use super::completion::Completion;
use super::{Evidence, Finding, Played, finding};
use crate::fuzz::plan::Round;
use crate::fuzz::plan::actions::ActionKind;
use crate::fuzz::plan::server::ServerPlan;

/// Maximum seconds per token on an idle machine.
const SLOWEST: f64 = 0.01;

/// Maximum slowdown per token under load, including recomputation after preemption, relative to a single client.
const IN_A_CROWD: f64 = 4.0;

/// Maximum allowance for requests ahead in the queue, in multiples of the patience: in the end the client must get an
/// answer.
const MAX_PATIENCE: u32 = 3;

/// Maximum number of later requests that may be answered first, besides one in each slot: those with another batch key
/// that may bypass the queue head until its patience runs out. On a server that keeps the order at most 6 were
/// observed, including those in slots.
const MAX_BYPASSES: usize = 16;

/// For answers of at most this many tokens, the end of the answer shows when it began.
const SOON: usize = 8;

/// Requests sent at least this much later count as later arrivals.
const LATER: Duration = Duration::from_millis(100);

/// Maximum time without data: earlier requests have to be answered first, possibly slowly. The random model is slower
/// than the trained one, and requests with different adapter scales cannot share a batch, not in stock either. `pace`
/// is the time per token with a single client, in seconds, which shows how busy the machine is.
pub fn longest_silence(server: &ServerPlan, patience: Duration, tokens_before: u64, pace: f64) -> Duration {
    let patience = if server.is_random() { patience * 3 } else { patience };
    let before = Duration::from_secs_f64(tokens_before as f64 * SLOWEST.max(pace * IN_A_CROWD));
    patience + before.min(patience * MAX_PATIENCE)
}

/// Maximum number of tokens that an action computes.
pub fn cost(what: &ActionKind) -> u64 {
    let tokens = match what {
        ActionKind::Generate(one) => one.prompt.length() + one.predict * one.choices,
        ActionKind::Embed(prompt) | ActionKind::Mistake(_, prompt) => prompt.length(),
        ActionKind::Slot(_) | ActionKind::Conversation(_) => 0,
    };
    tokens as u64
}

/// Checks that no client waits without data for longer than allowed, and that no request is bypassed by many.
pub fn judge(round: &Round, evidence: &Evidence, patience: Duration) -> Vec<Finding> {
    let silent = evidence.played.iter().filter(|one| one.response.ending == Ending::Silent).map(|one| {
        let came = format!("{} bytes, then nothing for longer than that", one.response.bytes.len());
        let patience = patience.as_secs();
        finding(
            "wait",
            one,
            format!("an answer or its next event within {patience} s and what is before it"),
            came,
        )
    });
    let most = MAX_BYPASSES + round.server.slots;
    let bypassed = evidence.played.iter().filter(|one| is_free(round, one)).filter_map(|one| {
        let first = first_token(one)?;
        let is_before = |other: &&Played| {
            other.sent > one.sent + LATER && first_token(other).is_some_and(|theirs| theirs < first)
        };
        let others = evidence.played.iter().filter(is_before).count();
        let expected = format!("at most {most} later requests answered before");
        (others > most).then(|| finding("wait", one, expected, format!("{others} were")))
    });
    silent.chain(bypassed).collect()
}

/// Whether the request could start at once and the time of its first token is known. A requested slot has to become
/// free first, a prefill budget delays prompts, and a long answer that arrives at once does not show when it began.
fn is_free(round: &Round, played: &Played) -> bool {
    let ActionKind::Generate(generate) = &played.action.what else { return false };
    let shows_its_first_token = generate.stream || generate.predict <= SOON;
    let may_begin = generate.slot.is_none() && round.server.prefill_budget.is_none();
    shows_its_first_token && may_begin && played.action.leave == Disconnect::Never
}

/// Returns the time at which the first token or the whole answer arrived.
fn first_token(played: &Played) -> Option<Duration> {
    let ActionKind::Generate(generate) = &played.action.what else { return None };
    if Completion::read(generate, &played.response).status != Some(200) {
        return None;
    }
    // The first event may be the start event without a token.
    let arrivals = &played.response.arrivals;
    let first = if generate.stream { arrivals.get(1).or(arrivals.first()) } else { arrivals.last() };
    first.map(|(time, _)| played.sent + *time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::judge::samples;

    #[test]
    fn silence_is_found() {
        let mut played = samples::played(samples::generate());
        played.response.ending = Ending::Silent;
        let evidence = Evidence { played: vec![played], ..Evidence::default() };
        assert_eq!(judge(&samples::round(0), &evidence, Duration::from_secs(20)).len(), 1);
    }

    #[test]
    fn a_request_that_many_bypass_is_reported() {
        let ask = |number: usize, took: u64| {
            let mut played = samples::played(samples::generate());
            played.place.2 = number;
            played.sent = Duration::from_secs(number as u64);
            played.response.arrivals[0].0 = Duration::from_secs(took);
            played
        };
        let mut round = samples::round(0);
        (round.server.slots, round.server.prefill_budget) = (2, None);
        let mut played: Vec<Played> = (1..40).map(|number| ask(number, 1)).collect();
        let judged = |played: Vec<Played>| {
            judge(&round, &Evidence { played, ..Evidence::default() }, Duration::from_secs(20)).len()
        };
        assert_eq!(judged(played.clone()), 0);
        played.push(ask(90, 100));
        played.extend((100..118).map(|number| ask(number, 1)));
        assert_eq!(judged(played.clone()), 0, "16, and 2 in slots");
        played.push(ask(118, 1));
        assert_eq!(judged(played), 1);
    }

    #[test]
    fn requests_ahead_make_the_bound_longer() {
        let server = ServerPlan { adapters: false, vision: false, ..Round::draw(0).server };
        assert_eq!(longest_silence(&server, Duration::from_secs(20), 500, 0.0), Duration::from_secs(25));
        assert_eq!(longest_silence(&server, Duration::from_secs(20), 500, 0.01), Duration::from_secs(40));
        assert_eq!(longest_silence(&server, Duration::from_secs(20), 5000, 1.0), Duration::from_secs(80));
    }
}
