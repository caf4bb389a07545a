//! Oracle for drafts: what is drafted for an owner must not depend on what other owners sent, since `draft_n` and
//! `draft_n_accepted` would reveal it.

use super::completion::Completion;
use super::{Evidence, Finding, Played, act_of, finding};
use crate::fuzz::plan::Round;
use crate::fuzz::plan::actions::{ActionKind, Api, Generate};
use crate::fuzz::plan::server::{Drafts, Theme};

/// Maximum number of requests that are repeated: each needs a server of its own.
const MAX_REPEATED: usize = 8;

/// Returns each owner's first request that ran alone. A server without earlier requests has to draft the same for it.
///
/// With drafts from hidden states only in the theme of foreign drafts. Those draft models keep no text of other
/// requests: their cells belong to a sequence, the hidden state of a slot is reset when its owner changes, and the
/// other ones that are kept belong to blocks, which owners do not share. The counts show whether drafts are lost after
/// other owners, or accepted from them. They cannot show other drafts, because these models always draft as many tokens
/// as they may and hardly one is accepted: the promise `draft-models-of-others` compares the drafted tokens themselves.
pub fn first_of_owners<'a>(round: &'a Round, evidence: &'a Evidence) -> impl Iterator<Item = &'a Played> {
    let is_first = move |one: &&Played| {
        let Some((owner, generate)) = owner_of(one) else { return false };
        let others = evidence.played.iter().filter(|other| other.place != one.place);
        let mut others = others.filter_map(|other| Some((owner_of(other)?.0, other.sent)));
        round.server.drafts != Drafts::None
            && (!round.server.drafts.reads_hidden_states() || round.server.theme == Theme::ForeignDrafts)
            && act_of(round, one).is_alone()
            && (generate.api, generate.choices) == (Api::Completion, 1)
            && !others.any(|(other, sent)| other == owner && sent <= one.sent)
    };
    evidence.played.iter().filter(is_first).take(MAX_REPEATED)
}

/// Key and salt; for a request without sharing also its position, since it is an owner of its own.
type Owner = (Option<usize>, Option<usize>, Option<(usize, usize, usize)>);

fn owner_of(played: &Played) -> Option<(Owner, &Generate)> {
    match &played.action.what {
        ActionKind::Generate(generate) => {
            let alone = (!generate.cache).then_some(played.place);
            Some(((played.action.key, generate.salt, alone), generate))
        }
        _ => None,
    }
}

/// Maximum differences of the drafted and of the accepted tokens of two equal requests, if drafts depend on how sums are
/// rounded: at a tie one more draft is accepted, which moves the steps after it.
const ROUNDED: (u64, u64) = (8, 1);

/// Whether the numbers of drafted and accepted tokens of two equal requests agree.
fn are_alike(drafts: Drafts, one: (u64, u64), other: (u64, u64)) -> bool {
    let (drafted, accepted) = if drafts.reads_hidden_states() { ROUNDED } else { (0, 0) };
    one.0.abs_diff(other.0) <= drafted && one.1.abs_diff(other.1) <= accepted
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
            (is_same_answer && !are_alike(round.server.drafts, drafted.0, drafted.1)).then(|| {
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
    fn a_request_without_sharing_has_a_witness() {
        let mut alone = asked(1, 0, None, 9);
        let ActionKind::Generate(generate) = &mut alone.action.what else { panic!("a generation") };
        generate.cache = false;
        let played = vec![asked(0, 0, None, 9), alone, asked(2, 0, None, 9)];
        let evidence = Evidence { played, ..Evidence::default() };
        let numbers: Vec<usize> = first_of_owners(&round(), &evidence).map(|one| one.place.2).collect();
        assert_eq!(numbers, [0, 1]);
    }

    #[test]
    fn draft_models_are_compared_in_the_theme_of_two_owners() {
        let count = |theme| {
            let mut round = round();
            (round.server.theme, round.server.drafts) = (theme, Drafts::Eagle3);
            let evidence = Evidence { played: vec![asked(0, 0, None, 9)], ..Evidence::default() };
            first_of_owners(&round, &evidence).count()
        };
        assert_eq!((count(Theme::Drafts), count(Theme::ForeignDrafts)), (0, 1));
    }

    #[test]
    fn drafts_from_hidden_states_may_differ_by_a_tie() {
        let alike = |drafts, one, other| are_alike(drafts, one, other) && are_alike(drafts, other, one);
        assert!(alike(Drafts::NgramMod, (90, 3), (90, 3)) && !alike(Drafts::NgramMod, (90, 3), (91, 3)));
        assert!(alike(Drafts::Eagle3, (90, 3), (87, 4)) && !alike(Drafts::Eagle3, (90, 3), (90, 5)));
        assert!(!alike(Drafts::Mtp, (90, 0), (0, 0)), "lost");
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
