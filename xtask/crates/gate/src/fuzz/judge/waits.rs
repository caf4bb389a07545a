//! How long clients wait: not without an end, and not while others overtake them without one.

use std::time::Duration;

use super::heard::Heard;
use super::{Evidence, Finding, Played, finding};
use crate::fuzz::plan::Round;
use crate::fuzz::plan::actions::What;
use crate::fuzz::plan::server::ServerPlan;
use crate::sys::net::exchange::{Ending, Leave};

/// Seconds that a token takes at most, on a machine that is not busy.
const SLOWEST: f64 = 0.01;

/// In a crowd, with tokens computed twice, each may take so many times as long as for one client alone.
const IN_A_CROWD: f64 = 4.0;

/// What is before somebody may not count for more than so many times the patience: somebody has to be told in the end.
const MOST_PATIENCE: u32 = 3;

/// Later requests that may be answered before somebody, besides one in each slot: those of another kind that its
/// patience allows. On a server that keeps the order 6 were seen at most, slots and all.
const MOST_OVERTAKERS: usize = 16;

/// The end of an answer of so many tokens tells when it began.
const SOON: usize = 8;

/// Who was sent so much later has not come at the same time.
const LATER: Duration = Duration::from_millis(100);

/// How long nothing may come: what was asked before has to be answered first, if slowly. The random model is slower
/// than the trained one, and what has other scales cannot be computed in one batch with it, in stock neither.
/// `pace` is how long a token took when nobody else was there, in seconds: that tells how busy the machine is.
pub fn longest_silence(server: &ServerPlan, patience: Duration, tokens_before: u64, pace: f64) -> Duration {
    let patience = if server.is_random() { patience * 3 } else { patience };
    let before = Duration::from_secs_f64(tokens_before as f64 * SLOWEST.max(pace * IN_A_CROWD));
    patience + before.min(patience * MOST_PATIENCE)
}

/// Tokens that an action may cost.
pub fn cost(what: &What) -> u64 {
    let tokens = match what {
        What::Generate(one) => one.prompt.length() + one.predict * one.choices,
        What::Embed(prompt) | What::Mistake(_, prompt) => prompt.length(),
        What::Slot(_) | What::Conversation(_) => 0,
    };
    tokens as u64
}

/// Nobody waits in silence for longer than was allowed, and nobody is overtaken by many.
pub fn judge(round: &Round, evidence: &Evidence, patience: Duration) -> Vec<Finding> {
    let silent = evidence.played.iter().filter(|one| one.exchange.ending == Ending::Silent).map(|one| {
        let came = format!("{} bytes, then nothing for longer than that", one.exchange.bytes.len());
        let patience = patience.as_secs();
        finding(
            "wait",
            one,
            format!("an answer or its next event within {patience} s and what is before it"),
            came,
        )
    });
    let most = MOST_OVERTAKERS + round.server.slots;
    let overtaken = evidence.played.iter().filter(|one| is_free(round, one)).filter_map(|one| {
        let first = first_token(one)?;
        let is_before = |other: &&Played| {
            other.sent > one.sent + LATER && first_token(other).is_some_and(|theirs| theirs < first)
        };
        let others = evidence.played.iter().filter(is_before).count();
        let expected = format!("at most {most} later requests answered before");
        (others > most).then(|| finding("wait", one, expected, format!("{others} were")))
    });
    silent.chain(overtaken).collect()
}

/// A wanted slot has to become free first, a budget makes prompts wait, and of a long answer that comes at once it is
/// not known when it began.
fn is_free(round: &Round, played: &Played) -> bool {
    let What::Generate(generate) = &played.action.what else { return false };
    let shows_its_first_token = generate.stream || generate.predict <= SOON;
    let may_begin = generate.slot.is_none() && round.server.prefill_budget.is_none();
    shows_its_first_token && may_begin && played.action.leave == Leave::Never
}

/// When the first token or the whole answer came.
fn first_token(played: &Played) -> Option<Duration> {
    let What::Generate(generate) = &played.action.what else { return None };
    if Heard::read(generate, &played.exchange).status != Some(200) {
        return None;
    }
    // The first event may be no more than a beginning.
    let arrivals = &played.exchange.arrivals;
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
        played.exchange.ending = Ending::Silent;
        let evidence = Evidence { played: vec![played], ..Evidence::default() };
        assert_eq!(judge(&samples::round(0), &evidence, Duration::from_secs(20)).len(), 1);
    }

    #[test]
    fn who_is_overtaken_by_many_is_found() {
        let ask = |number: usize, took: u64| {
            let mut played = samples::played(samples::generate());
            played.place.2 = number;
            played.sent = Duration::from_secs(number as u64);
            played.exchange.arrivals[0].0 = Duration::from_secs(took);
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
    fn what_is_before_makes_the_bound_longer() {
        let server = ServerPlan { adapters: false, vision: false, ..Round::draw(0).server };
        assert_eq!(longest_silence(&server, Duration::from_secs(20), 500, 0.0), Duration::from_secs(25));
        assert_eq!(longest_silence(&server, Duration::from_secs(20), 500, 0.01), Duration::from_secs(40));
        assert_eq!(longest_silence(&server, Duration::from_secs(20), 5000, 1.0), Duration::from_secs(80));
    }
}
