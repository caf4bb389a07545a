//! PURE: requests of the server gate, and the servers that it sends them to.

use espalier_core::random::Random;
use espalier_modelgen::Architecture;
use serde_json::{Value, json};

/// Number of tokens of every answer.
const ANSWER: usize = 24;

/// Enough tokens of KV cache for all prompts at once.
pub const AMPLE_CELLS: &str = "8192";

/// Number of leading tokens that all but a few prompts share: two blocks and part of a third.
const SHARED: usize = 150;

/// Models of the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// The trained model of the smoke test.
    Trained,
    /// Random weights.
    Random(Architecture),
}

impl Model {
    /// Every model of the gate.
    pub const ALL: [Model; 5] = [
        Model::Trained,
        Model::Random(Architecture::Llama),
        Model::Random(Architecture::Qwen3),
        Model::Random(Architecture::Gemma3),
        Model::Random(Architecture::Qwen35),
    ];

    /// Name for reports.
    pub fn name(self) -> &'static str {
        match self {
            Model::Trained => "trained",
            Model::Random(architecture) => architecture.name(),
        }
    }

    /// Whether sequences have a recurrent state.
    pub fn has_state(self) -> bool {
        self == Model::Random(Architecture::Qwen35)
    }

    /// Returns the largest number of tokens of all prompts that are computed a second time in a pool that is large
    /// enough; `None`: that is not bounded.
    ///
    /// A model with a recurrent state shares blocks only where a snapshot of it exists. One is taken where a request
    /// waits for the blocks of another one, so a few are computed again: those of the first request that is too early
    /// to be waited for, once more at most for the next one, and of the first of two prompts with one shared block,
    /// which takes the snapshot there: 3 blocks at most, in 360 volleys in random orders. With a few slots, most requests
    /// are not known yet when the stops are chosen, and one block behind a snapshot there is no other one, so each may
    /// lose a block: 11 at most, in 240 volleys. One request at a time waits for none, and learns late where prompts
    /// branch.
    pub fn computed_again(self, case: &Case) -> Option<u64> {
        match (self.has_state(), case.parallel) {
            (true, "1") => None,
            (true, "16") => Some(6 * BLOCK as u64),
            (true, _) => Some(14 * BLOCK as u64),
            (false, _) => Some(0),
        }
    }

    /// Returns the largest number of tokens of all prompts that are computed when they are sent once more: of each
    /// prompt the last block; `None`: that is not bounded.
    ///
    /// With a recurrent state a few compute more, and most less: there is no snapshot at the end of a short one. With a
    /// few slots there is memory for fewer snapshots than these prompts leave, and the order in which the requests
    /// arrive decides which ones are evicted.
    pub fn computed_when_sent_again(self, case: &Case) -> Option<u64> {
        let are_enough = !self.has_state() || case.parallel == "16";
        are_enough.then(|| (prompts().len() * BLOCK) as u64)
    }
}

/// One configuration of our server; stock answers the same prompts one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// Name for reports.
    pub name: &'static str,
    /// Number of slots.
    pub parallel: &'static str,
    /// Tokens of KV cache: a pool of `cells / 64` blocks.
    pub cells: &'static str,
    /// Number of clients that disconnect halfway, before each volley.
    pub dropped: usize,
}

/// Every case: one slot, a few, many; a pool with hardly enough blocks for three requests, so that blocks are evicted
/// and requests preempted; clients that disconnect. Each runs twice, the second time with the blocks that the first
/// left in the pool.
pub const CASES: [Case; 5] = [
    Case { name: "1 sequence", parallel: "1", cells: AMPLE_CELLS, dropped: 0 },
    Case { name: "4 sequences", parallel: "4", cells: AMPLE_CELLS, dropped: 0 },
    Case { name: "16 sequences", parallel: "16", cells: AMPLE_CELLS, dropped: 0 },
    Case { name: "a small pool", parallel: "8", cells: "768", dropped: 0 },
    Case { name: "dropped clients", parallel: "8", cells: "2048", dropped: 6 },
];

/// Types of K and V that are compared.
pub const KV_TYPES: [&str; 2] = ["f16", "q8_0"];

/// Returns the prompts: most share a prefix, some only a part of it, some none.
pub fn prompts() -> Vec<Vec<u32>> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let shared = tokens(&mut random, SHARED);
    let own = |random: &mut Random| {
        let length = 5 + random.below(60);
        tokens(random, length)
    };
    let mut prompts: Vec<Vec<u32>> =
        [SHARED; 10].map(|kept| [&shared[..kept], &own(&mut random)].concat()).into();
    prompts.extend([64, 70, 128].map(|kept| [&shared[..kept], &own(&mut random)].concat()));
    prompts.extend([1, 33, 200].map(|length| tokens(&mut random, length)));
    prompts
}

/// Returns a prompt that shares nothing with the others.
pub fn any_prompt(length: usize) -> Vec<u32> {
    numbered_prompt(0, length)
}

/// As [`any_prompt`]; prompts with different numbers share nothing with each other either.
pub fn numbered_prompt(number: u64, length: usize) -> Vec<u32> {
    tokens(&mut Random(0x5851_f42d_4c95_7f2d ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15)), length)
}

/// Returns the number of tokens of all prompts that are computed if every block is computed exactly once.
pub fn unshared_tokens() -> u64 {
    let mut blocks = std::collections::BTreeSet::new();
    let mut computed = 0;
    for prompt in prompts() {
        let full = (prompt.len() - 1) / BLOCK;
        let had = (1..=full).take_while(|count| blocks.contains(&prompt[..count * BLOCK])).count();
        computed += prompt.len() - had * BLOCK;
        blocks.extend((1..=prompt.len() / BLOCK).map(|count| prompt[..count * BLOCK].to_vec()));
    }
    u64::try_from(computed).unwrap_or(u64::MAX)
}

/// Tokens per block.
pub const BLOCK: usize = 64;

/// Returns a request for a greedy answer with the top tokens at each place. Tokens that are not valid UTF-8 by
/// themselves are excluded: the server reports no probabilities for them.
pub fn request(prompt: &[u32]) -> Value {
    request_for(prompt, ANSWER)
}

/// Number of top tokens that are requested; it includes the tokens that are excluded from sampling.
const LIKELIEST: usize = 40;

/// As [`request`], for `predict` tokens.
pub fn request_for(prompt: &[u32], predict: usize) -> Value {
    json!({ "prompt": prompt, "n_predict": predict, "temperature": 0, "n_probs": LIKELIEST, "return_tokens": true,
            "ignore_eos": true, "logit_bias": only_text() })
}

/// As [`request_for`], for a stream without the top tokens.
pub fn stream_of(prompt: &[u32], predict: usize) -> Value {
    let mut request = request_for(prompt, predict);
    request["stream"] = true.into();
    request["n_probs"] = 0.into();
    request
}

fn only_text() -> Vec<Value> {
    SPECIAL.chain(BYTES_ABOVE_ASCII).map(|token| json!([token, false])).collect()
}

/// Whether the answer to such a request may contain this token: it is valid UTF-8 by itself.
pub fn can_be_chosen(token: i64) -> bool {
    let is_no_text = |token| SPECIAL.contains(&token) || BYTES_ABOVE_ASCII.contains(&token);
    !u32::try_from(token).is_ok_and(is_no_text)
}

/// Returns arguments that exclude these tokens for every request of a server: a stream that begins with an incomplete
/// character begins differently in upstream.
pub fn only_text_arguments() -> Vec<String> {
    SPECIAL.chain(BYTES_ABOVE_ASCII).flat_map(|token| ["-l".to_string(), format!("{token}-100")]).collect()
}

/// Returns the same request for the OpenAI API, with several choices.
pub fn request_for_choices(prompt: &[u32], choices: usize) -> Value {
    json!({ "prompt": prompt, "n": choices, "max_tokens": ANSWER, "temperature": 0, "logprobs": 8,
            "ignore_eos": true, "logit_bias": only_text() })
}

/// Special tokens of every model here.
const SPECIAL: std::ops::RangeInclusive<u32> = 0..=2;

/// Byte tokens of the random models' tokenizer; in the trained model these ids are ordinary tokens.
const BYTES_ABOVE_ASCII: std::ops::RangeInclusive<u32> = 131..=258;

/// As [`request`], computed without the cache.
pub fn cold_request(prompt: &[u32]) -> Value {
    cold(request(prompt))
}

/// Makes a request compute its whole prompt.
pub fn cold(mut request: Value) -> Value {
    request["cache_prompt"] = false.into();
    request
}

/// Returns a request that runs until the client disconnects.
pub fn long_request(prompt: &[u32]) -> Value {
    json!({ "prompt": prompt, "n_predict": 400, "temperature": 0, "stream": true, "ignore_eos": true })
}

/// Returns ordinary tokens: the first three are special in every model here.
fn tokens(random: &mut Random, count: usize) -> Vec<u32> {
    (0..count).map(|_| 3 + random.below(300) as u32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_blocks_are_counted_once() {
        let total: usize = prompts().iter().map(Vec::len).sum();
        // Nine of ten share two blocks; the prompts with 64 and 70 of the shared tokens share one block each, the one
        // with 128 shares two.
        assert_eq!(unshared_tokens(), (total - 9 * 128 - 64 - 64 - 128) as u64);
    }

    #[test]
    fn prompts_share_their_beginning_and_fit_the_small_pool() {
        let prompts = prompts();
        assert_eq!(prompts.len(), 16);
        assert!(prompts[..10].iter().all(|prompt| prompt[..SHARED] == prompts[0][..SHARED]));
        assert!(prompts.iter().all(|prompt| prompt.len() + ANSWER < 768 / 3 && !prompt.is_empty()));
        let blocks: usize = prompts[..8].iter().map(|prompt| (prompt.len() + ANSWER).div_ceil(64)).sum();
        assert!(blocks > 768 / 64, "a volley would fit, and nothing would be evicted");
    }
}
