//! Oracle for prefix caching: tokens found in the cache must have been computed for the same tenant, salt and adapters,
//! by another request.

use super::completion::Completion;
use super::{Evidence, Finding, Played, Reference, finding};
use crate::fuzz::plan::Round;
use crate::fuzz::plan::actions::{ActionKind, Generate};

/// Tokens by which units may be off for prompts with images: the beginning of a text, and its tokenization.
const SLACK_OF_IMAGES: u64 = 16;

/// Cache domain: requests share blocks only if all fields match.
#[derive(Clone, Debug, PartialEq)]
struct Circle {
    key: Option<usize>,
    salt: Option<usize>,
    scales: Vec<f64>,
}

/// A request that may have cached blocks, or reused them.
struct Asked<'a> {
    played: &'a Played,
    generate: &'a Generate,
    reference: &'a Reference,
    circle: Circle,
    /// Whether other requests can reuse what it computed.
    leaves: bool,
}

/// Checks `cache_n` against what could have been cached.
pub fn judge(round: &Round, evidence: &Evidence) -> Vec<Finding> {
    let all: Vec<Asked<'_>> =
        evidence.played.iter().filter_map(|one| Asked::of(round, evidence, one)).collect();
    all.iter().filter_map(|one| one.judge(&all)).collect()
}

impl<'a> Asked<'a> {
    fn of(round: &Round, evidence: &'a Evidence, played: &'a Played) -> Option<Asked<'a>> {
        let ActionKind::Generate(generate) = &played.action.what else { return None };
        let reference = evidence.references.get(played.reference.as_ref()?)?;
        let scales = played.scales(&round.server).to_vec();
        let circle = Circle { key: played.action.key, salt: generate.salt, scales };
        // An unpaged slot keeps its last sequence whatever `cache_prompt` says.
        let leaves = generate.cache || !round.server.is_paged();
        Some(Asked { played, generate, reference, circle, leaves })
    }

    fn judge(&self, all: &[Asked<'_>]) -> Option<Finding> {
        let found = Completion::read(self.generate, &self.played.response).numbers.found()?;
        let (most, why) = self.most(all);
        (found > most).then(|| {
            let expected = format!("at most {most} cached tokens: {why}");
            finding("sharing", self.played, expected, format!("{found} cached tokens"))
        })
    }

    fn most(&self, all: &[Asked<'_>]) -> (u64, String) {
        if !self.generate.cache {
            return (0, "cache_prompt is false".to_string());
        }
        let end = self.played.end();
        let others = all.iter().filter(|other| {
            other.played.place != self.played.place
                && other.leaves
                && other.circle == self.circle
                && other.played.sent <= end
        });
        let best = others.map(|other| (self.common(other), other)).max_by_key(|(most, _)| *most);
        match best {
            None => (0, "no request that may share with it was sent".to_string()),
            Some((most, other)) => (most, format!("the most in common has {}", other.played.name())),
        }
    }

    /// Length of the common prefix with the other request's prompt and answer.
    fn common(&self, other: &Asked<'_>) -> u64 {
        let answer = other.reference.answer.iter().flat_map(|answer| &answer.tokens);
        let theirs = other.reference.units.iter().chain(answer);
        let common = self.reference.units.iter().zip(theirs).take_while(|(one, other)| one == other).count();
        let slack = if self.generate.prompt.images.is_empty() { 0 } else { SLACK_OF_IMAGES };
        common as u64 + slack
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::fuzz::judge::samples;

    fn played(number: usize, generate: Generate, key: usize, found: u64) -> Played {
        let body = format!("{{\"timings\":{{\"cache_n\":{found},\"prompt_n\":1}},\"tokens\":[]}}");
        let mut played = Played {
            place: (0, 0, number),
            sent: Duration::from_secs(number as u64),
            response: samples::response(200, &body),
            reference: Some("prompt".to_string()),
            ..samples::played(generate)
        };
        played.action.key = Some(key);
        played
    }

    fn findings(played: Vec<Played>) -> usize {
        findings_in(&samples::round(0), played)
    }

    fn findings_in(round: &Round, played: Vec<Played>) -> usize {
        let reference = Reference { units: (0..100).collect(), prompt_tokens: 100, ..Reference::default() };
        let references = [("prompt".to_string(), reference)].into();
        judge(round, &Evidence { played, references, ..Evidence::default() }).len()
    }

    #[test]
    fn without_paging_a_key_hits_no_tokens_of_another_one() {
        let mut round = samples::round(0);
        round.server.is_split = true;
        let ask = samples::generate;
        let private = Generate { cache: false, ..ask() };
        let judged = |first: &Generate, key| {
            findings_in(&round, vec![played(0, first.clone(), 0, 0), played(1, ask(), key, 64)])
        };
        assert_eq!((judged(&ask(), 0), judged(&ask(), 1)), (0, 1));
        assert_eq!((judged(&private, 0), judged(&private, 1)), (0, 1), "a slot has its last sequence");
    }

    #[test]
    fn prompts_of_the_same_tenant_may_be_hit() {
        let ask = samples::generate;
        assert_eq!(findings(vec![played(0, ask(), 0, 0), played(1, ask(), 0, 64)]), 0);
        assert_eq!(findings(vec![played(0, ask(), 0, 0), played(1, ask(), 1, 64)]), 1, "another key");
        let salted = Generate { salt: Some(1), ..ask() };
        assert_eq!(findings(vec![played(0, ask(), 0, 0), played(1, salted, 0, 64)]), 1, "a salt");
    }

    #[test]
    fn a_request_without_cache_neither_hits_nor_fills_it() {
        let private = Generate { cache: false, ..samples::generate() };
        assert_eq!(
            findings(vec![played(0, private.clone(), 0, 0), played(1, samples::generate(), 0, 64)]),
            1
        );
        assert_eq!(findings(vec![played(0, samples::generate(), 0, 0), played(1, private, 0, 64)]), 1);
    }

    #[test]
    fn tokens_that_a_request_computed_itself_do_not_count() {
        assert_eq!(findings(vec![played(0, samples::generate(), 0, 64)]), 1);
        assert_eq!(
            findings(vec![played(0, samples::generate(), 0, 64), played(1, samples::generate(), 0, 64)]),
            1
        );
    }
}
