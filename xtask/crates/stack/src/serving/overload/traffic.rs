//! PURE: who asks what, and when who goes away. The same seed gives each client the same visits.

use std::time::Duration;

use serde_json::Value;

use crate::plan::random::Random;
use crate::serving::cases;

/// The most tokens of an answer.
pub const MOST_PREDICTED: usize = 96;

/// Cells of a pool in which the longest request fits with hardly another one.
pub const CELLS: usize = 1024;

/// Tokens that the prompts of a family begin with: one and a bit, two and a bit and seven blocks, and less than one.
const BEGINNINGS: [usize; 4] = [90, 150, 450, 40];

/// Prompts of a family.
const RELATED: usize = 6;

/// Prompts that begin like no other.
const STRANGERS: usize = 16;

/// The longest end of a prompt, or prompt of a stranger, in tokens.
const LONGEST: [usize; 2] = [130, 620];

/// All prompts, mixed in length; most share a beginning with others.
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

/// A request for the longest answer to each of `prompts`.
pub fn longest_requests(prompts: &[Vec<u32>]) -> Vec<Value> {
    prompts.iter().map(|prompt| cases::request_for(prompt, MOST_PREDICTED)).collect()
}

/// One request of one client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visit {
    /// Index into the prompts.
    pub prompt: usize,
    /// Tokens that are asked for.
    pub predict: usize,
    /// Whether the client waits for the whole answer.
    pub patience: Patience,
    /// Shares only with who has the same.
    salt: Option<usize>,
    /// Shares with nobody.
    alone: bool,
}

impl Visit {
    /// The same visit where an answer has no more than `most` tokens.
    pub fn asking_at_most(&self, most: usize) -> Visit {
        Visit { predict: self.predict.min(most), ..self.clone() }
    }
}

/// How long a client waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// To the end.
    Whole,
    /// Until so many tokens have come, from 1.
    Tokens(usize),
    /// So long, also when nothing has come.
    Time(Duration),
}

/// What one client asks, for ever.
pub struct Client {
    random: Random,
    prompts: usize,
}

impl Client {
    /// Client `number` of those that `seed` gives, who knows so many prompts.
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

    /// Three in ten go away, one in five has a salt, one in ten shares with nobody.
    fn next(&mut self) -> Option<Visit> {
        let predict = 1 + self.random.below(MOST_PREDICTED);
        Some(Visit {
            prompt: self.random.below(self.prompts),
            predict,
            patience: self.patience(predict),
            salt: Some(self.random.below(10)).filter(|salt| *salt < 2),
            alone: self.random.below(10) == 0,
        })
    }
}

/// The request of a visit, as a stream.
pub fn request(visit: &Visit, prompt: &[u32]) -> Value {
    let mut request = cases::request_for(prompt, visit.predict);
    request["stream"] = true.into();
    request["n_probs"] = 0.into();
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
        let needed: Vec<usize> = prompts.iter().map(|one| blocks(one.len() + MOST_PREDICTED + 1)).collect();
        assert_eq!(prompts.len(), BEGINNINGS.len() * RELATED + STRANGERS);
        assert!(needed.iter().max().unwrap() <= &(CELLS / cases::BLOCK), "{needed:?}");
        assert!(needed.iter().sum::<usize>() > 10 * CELLS / cases::BLOCK);
    }

    #[test]
    fn families_share_their_beginning_and_no_two_prompts_are_alike() {
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
