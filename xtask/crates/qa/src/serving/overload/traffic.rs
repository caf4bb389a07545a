//! PURE: the requests of each client, and when it disconnects. The same seed yields the same visits.

use std::time::Duration;

use espalier_core::random::Random;
use serde_json::Value;

use crate::serving::cases;
use crate::serving::load::Patience;

/// Maximum number of tokens of an answer.
pub const MAX_PREDICTED: usize = 96;

/// Tokens of KV cache of a pool that fits the longest request, but hardly a second one.
pub const CELLS: usize = 1024;

/// Numbers of leading tokens shared within each family of prompts: just over one, two and seven blocks, and less than
/// one.
const BEGINNINGS: [usize; 4] = [90, 150, 450, 40];

/// Number of prompts per family.
const RELATED: usize = 6;

/// Number of prompts that share no prefix with others.
const STRANGERS: usize = 16;

/// Maximum number of tokens of a prompt's suffix, and of a prompt without a shared prefix.
const LONGEST: [usize; 2] = [130, 620];

/// Returns all prompts, of mixed lengths; most share a prefix with others.
pub fn prompts() -> Vec<Vec<u32>> {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let mut number = 100;
    let mut any = |length: usize| {
        number += 1;
        cases::numbered_prompt(number, length)
    };
    let mut prompts = Vec::new();
    for beginning in BEGINNINGS.map(&mut any) {
        for _ in 0..RELATED {
            prompts.push([&beginning[..], &any(1 + random.below(LONGEST[0]))].concat());
        }
    }
    prompts.extend((0..STRANGERS).map(|_| any(1 + random.below(LONGEST[1]))));
    prompts
}

/// Returns a request for the longest answer to each of `prompts`.
pub fn longest_requests(prompts: &[Vec<u32>]) -> Vec<Value> {
    prompts.iter().map(|prompt| cases::request_for(prompt, MAX_PREDICTED)).collect()
}

/// One request of one client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visit {
    /// Index into the prompts.
    pub prompt: usize,
    /// Number of requested tokens.
    pub predict: usize,
    /// Condition on which the client disconnects.
    pub patience: Patience,
    /// Cache salt: shares blocks only with requests of the same salt.
    salt: Option<usize>,
    /// Whether it shares no blocks at all.
    alone: bool,
}

impl Visit {
    /// Returns the visit with an answer of at most `most` tokens.
    pub fn asking_at_most(&self, most: usize) -> Visit {
        Visit { predict: self.predict.min(most), ..self.clone() }
    }
}

/// The endless sequence of one client's visits.
pub struct Client {
    random: Random,
    prompts: usize,
}

impl Client {
    /// Creates client `number` of the seed `seed`, which chooses among `prompts` prompts.
    pub fn new(seed: u64, number: usize, prompts: usize) -> Client {
        let mixed = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
            ^ (number as u64 + 1).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let random = Random(mixed | 1);
        Client { random, prompts }
    }

    fn patience(&mut self, predict: usize) -> Patience {
        match self.random.below(10) {
            0 => Patience::Time(Duration::from_millis(self.random.below(20) as u64)),
            1 | 2 => Patience::Tokens(1 + self.random.below(predict)),
            _ => Patience::Whole,
        }
    }
}

impl Iterator for Client {
    type Item = Visit;

    /// Three in ten disconnect, one in five has a salt, one in ten shares no blocks.
    fn next(&mut self) -> Option<Visit> {
        let predict = 1 + self.random.below(MAX_PREDICTED);
        Some(Visit {
            prompt: self.random.below(self.prompts),
            predict,
            patience: self.patience(predict),
            salt: Some(self.random.below(10)).filter(|salt| *salt < 2),
            alone: self.random.below(10) == 0,
        })
    }
}

/// Returns the streaming request of a visit.
pub fn request(visit: &Visit, prompt: &[u32]) -> Value {
    let mut request = cases::stream_of(prompt, visit.predict);
    request["cache_prompt"] = (!visit.alone).into();
    if let Some(salt) = visit.salt {
        request["cache_salt"] = format!("tenant {salt}").into();
    }
    request
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(tokens: usize) -> usize {
        tokens.div_ceil(cases::BLOCK)
    }

    #[test]
    fn each_prompt_fits_into_the_pool_and_a_few_do_not() {
        let prompts = prompts();
        let needed: Vec<usize> = prompts.iter().map(|one| blocks(one.len() + MAX_PREDICTED + 1)).collect();
        assert_eq!(prompts.len(), BEGINNINGS.len() * RELATED + STRANGERS);
        assert!(needed.iter().max().unwrap() <= &(CELLS / cases::BLOCK), "{needed:?}");
        assert!(needed.iter().sum::<usize>() > 10 * CELLS / cases::BLOCK);
    }

    #[test]
    fn families_share_a_prefix_and_no_two_prompts_are_equal() {
        let prompts = prompts();
        assert_eq!(prompts[0][..BEGINNINGS[0]], prompts[RELATED - 1][..BEGINNINGS[0]]);
        assert_ne!(prompts[0][..30], prompts[RELATED][..30]);
        let all: std::collections::BTreeSet<_> = prompts.iter().collect();
        assert_eq!(all.len(), prompts.len());
    }

    #[test]
    fn a_seed_repeats_and_clients_differ() {
        let visits = |seed, number| Client::new(seed, number, 40).take(20).collect::<Vec<_>>();
        assert_eq!(visits(1, 0), visits(1, 0));
        assert_ne!(visits(1, 0), visits(1, 1));
        assert_ne!(visits(1, 0), visits(2, 0));
    }

    #[test]
    fn every_kind_of_visit_comes() {
        let visits: Vec<Visit> = Client::new(1, 0, 40).take(200).collect();
        assert!(visits.iter().any(|visit| matches!(visit.patience, Patience::Tokens(_))));
        assert!(visits.iter().any(|visit| matches!(visit.patience, Patience::Time(_))));
        assert!(visits.iter().filter(|visit| visit.patience == Patience::Whole).count() > 100);
        assert!(visits.iter().any(|visit| visit.alone) && visits.iter().any(|visit| visit.salt.is_some()));
        let request = request(&visits[0], &[7]);
        assert_eq!((&request["prompt"], &request["stream"]), (&serde_json::json!([7]), &true.into()));
    }
}
