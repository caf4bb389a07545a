//! Oracle for drafts: what is drafted for an owner must not depend on what other owners sent, since `draft_n` and
//! `draft_n_accepted` would reveal it.

use super::completion::Completion;
use super::{Evidence, Finding, Played, act_of, finding};
use crate::fuzz::plan::Round;
use crate::fuzz::plan::actions::{Api, Generate, What};
use crate::fuzz::plan::server::Drafts;

/// Maximum number of requests that are repeated: each needs a server of its own.
const MOST: usize = 8;

/// Returns each owner's first request that ran alone. A server without earlier requests has to draft the same for it.
/// None with drafts from hidden states: those learn nothing from other requests.
pub fn first_of_owners<'a>(round: &'a Round, evidence: &'a Evidence) -> impl Iterator<Item = &'a Played> {
    let is_first = move |one: &&Played| {
        let Some((owner, generate)) = owner_of(one) else { return false };
        let others = evidence.played.iter().filter(|other| other.place != one.place);
        let mut others = others.filter_map(|other| Some((owner_of(other)?.0, other.sent)));
        round.server.drafts != Drafts::None
            && !round.server.drafts.reads_hidden_states()
            && act_of(round, one).is_alone()
            && (generate.api, generate.choices) == (Api::Completion, 1)
            && !others.any(|(other, sent)| other == owner && sent <= one.sent)
    };
    evidence.played.iter().filter(is_first).take(MOST)
}

type Owner = (Option<usize>, Option<usize>);

fn owner_of(played: &Played) -> Option<(Owner, &Generate)> {
    match &played.action.what {
        What::Generate(generate) => Some(((played.action.key, generate.salt), generate)),
        _ => None,
    }
}

/// Checks that requests with equal answers have equal draft counts.
pub fn judge(round: &Round, evidence: &Evidence) -> Vec<Finding> {
    let pairs = first_of_owners(round, evidence).zip(&evidence.witnesses);
    pairs
        .filter_map(|(played, witness)| {
            let generate = owner_of(played)?.1;
            let asked = Completion::read(generate, &played.response);
            let alone = Completion::read(generate, witness);
            let tokens =
                |completion: &Completion| completion.choices.first().and_then(|choice| choice.tokens.clone());
            let is_same_answer = asked.is_whole && alone.is_whole && tokens(&asked)? == tokens(&alone)?;
            let drafted = (asked.numbers.drafted, alone.numbers.drafted);
            (is_same_answer && drafted.0 != drafted.1).then(|| {
                let expected = format!(
                    "(drafted, accepted) {:?}, as by a server that was asked nothing else",
                    drafted.1
                );
                finding("drafts", played, expected, format!("{:?}", drafted.0))
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::fuzz::judge::samples;

    fn answer(drafted: u64, accepted: u64, token: u64) -> espalier_core::http::Response {
        let timings = format!("{{\"draft_n\":{drafted},\"draft_n_accepted\":{accepted}}}");
        samples::response(200, &format!("{{\"tokens\":[1,{token}],\"timings\":{timings}}}"))
    }

    fn asked(number: u64, key: usize, salt: Option<usize>, drafted: u64) -> Played {
        let mut played = samples::played(Generate { salt, ..samples::generate() });
        played.place.2 = usize::try_from(number).unwrap();
        (played.action.key, played.sent) = (Some(key), Duration::from_secs(number));
        played.response = answer(drafted, 5, 2);
        played
    }

    fn round() -> Round {
        let mut round = samples::round(0);
        round.acts[0].clients = vec![Vec::new()];
        round.server.drafts = Drafts::NgramMod;
        round
    }

    #[test]
    fn only_who_has_asked_nothing_before_has_a_witness() {
        let played =
            vec![asked(0, 0, None, 9), asked(1, 0, None, 9), asked(2, 1, None, 9), asked(3, 0, Some(7), 9)];
        let evidence = Evidence { played, ..Evidence::default() };
        let numbers: Vec<usize> = first_of_owners(&round(), &evidence).map(|one| one.place.2).collect();
        assert_eq!(numbers, [0, 2, 3]);
        let mut crowded = round();
        crowded.acts[0].clients.push(Vec::new());
        assert_eq!(first_of_owners(&crowded, &evidence).count(), 0);
    }

    #[test]
    fn drafts_that_come_from_others_are_found() {
        let judged = |drafted, token| {
            let played = vec![asked(0, 0, None, 9), asked(1, 1, None, drafted)];
            let witnesses = vec![answer(9, 5, 2), answer(9, 5, token)];
            judge(&round(), &Evidence { played, witnesses, ..Evidence::default() }).len()
        };
        assert_eq!((judged(9, 2), judged(17, 2)), (0, 1));
        assert_eq!(judged(17, 3), 0, "after a tie within tolerance other tokens are drafted");
    }
}
