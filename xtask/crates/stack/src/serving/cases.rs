//! PURE: what the server gate asks, and of which servers.

use serde_json::{Value, json};

use crate::modelgen::Architecture;
use crate::plan::random::Random;

/// Tokens of every answer.
const ANSWER: usize = 24;

/// Cells that are enough for all prompts at once.
pub const ROOMY: &str = "8192";

/// Tokens that all but a few prompts begin with: two blocks and a bit.
const SHARED: usize = 150;

/// The model that answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// The trained one that the smoke test has.
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

    /// For reports.
    pub fn name(self) -> &'static str {
        match self {
            Model::Trained => "trained",
            Model::Random(architecture) => architecture.name(),
        }
    }

    /// Whether its memory can be paged; the others have to say that they are not.
    pub fn can_be_paged(self) -> bool {
        !matches!(self, Model::Random(Architecture::Gemma3 | Architecture::Qwen35))
    }
}

/// One server of ours; stock answers the same prompts one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// For reports.
    pub name: &'static str,
    /// Slots.
    pub parallel: &'static str,
    /// Cells, a pool of `cells / 64` blocks.
    pub cells: &'static str,
    /// Clients that go away in the middle, before each volley.
    pub dropped: usize,
}

/// Every case: alone, a few, many; a pool with hardly room for three, so that blocks are evicted and requests
/// preempted; clients that go away. Each is asked twice, the second time with what the first left in the pool.
pub const CASES: [Case; 5] = [
    Case { name: "1 sequence", parallel: "1", cells: ROOMY, dropped: 0 },
    Case { name: "4 sequences", parallel: "4", cells: ROOMY, dropped: 0 },
    Case { name: "16 sequences", parallel: "16", cells: ROOMY, dropped: 0 },
    Case { name: "a small pool", parallel: "8", cells: "768", dropped: 0 },
    Case { name: "dropped clients", parallel: "8", cells: "2048", dropped: 6 },
];

/// The types of keys and values that are compared.
pub const KV_TYPES: [&str; 2] = ["f16", "q8_0"];

/// The prompts: most begin alike, some in part, some do not.
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

/// A prompt that shares nothing with the others.
pub fn any_prompt(length: usize) -> Vec<u32> {
    numbered_prompt(0, length)
}

/// The same; prompts of two numbers share nothing either.
pub fn numbered_prompt(number: u64, length: usize) -> Vec<u32> {
    tokens(&mut Random(0x5851_f42d_4c95_7f2d ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15)), length)
}

/// How many tokens of all prompts have to be computed when every block is computed once.
pub fn tokens_that_nobody_else_has() -> u64 {
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

/// Tokens of a block.
pub const BLOCK: usize = 64;

/// A request for a greedy answer with the likeliest tokens beside it. Tokens that are no text by themselves are left
/// out: the server says no probabilities for them.
pub fn request(prompt: &[u32]) -> Value {
    request_for(prompt, ANSWER)
}

/// How many of the likeliest tokens are said: those that cannot be chosen are among them.
const LIKELIEST: usize = 40;

/// The same, for `predict` tokens.
pub fn request_for(prompt: &[u32], predict: usize) -> Value {
    json!({ "prompt": prompt, "n_predict": predict, "temperature": 0, "n_probs": LIKELIEST, "return_tokens": true,
            "ignore_eos": true, "logit_bias": only_text() })
}

fn only_text() -> Vec<Value> {
    SPECIAL.chain(BYTES_ABOVE_ASCII).map(|token| json!([token, false])).collect()
}

/// Whether such a request can be answered with this token: it is text by itself.
pub fn can_be_chosen(token: i64) -> bool {
    let is_no_text = |token| SPECIAL.contains(&token) || BYTES_ABOVE_ASCII.contains(&token);
    !u32::try_from(token).is_ok_and(is_no_text)
}

/// The same for every request of a server: a stream that begins with half a letter begins otherwise in upstream.
pub fn only_text_arguments() -> Vec<String> {
    SPECIAL.chain(BYTES_ABOVE_ASCII).flat_map(|token| ["-l".to_string(), format!("{token}-100")]).collect()
}

/// The same question in OpenAI's words, with several answers.
pub fn request_for_choices(prompt: &[u32], choices: usize) -> Value {
    json!({ "prompt": prompt, "n": choices, "max_tokens": ANSWER, "temperature": 0, "logprobs": 8,
            "ignore_eos": true, "logit_bias": only_text() })
}

/// In every model here.
const SPECIAL: std::ops::RangeInclusive<u32> = 0..=2;

/// In the tokenizer of the random models; in the trained one these are as good as any.
const BYTES_ABOVE_ASCII: std::ops::RangeInclusive<u32> = 131..=258;

/// The same, computed anew.
pub fn cold_request(prompt: &[u32]) -> Value {
    cold(request(prompt))
}

/// A request whose prompt is computed whole.
pub fn cold(mut request: Value) -> Value {
    request["cache_prompt"] = false.into();
    request
}

/// A request that goes on until the client goes away.
pub fn long_request(prompt: &[u32]) -> Value {
    json!({ "prompt": prompt, "n_predict": 400, "temperature": 0, "stream": true, "ignore_eos": true })
}

/// Ordinary tokens: the first three are special in every model here.
fn tokens(random: &mut Random, count: usize) -> Vec<u32> {
    (0..count).map(|_| 3 + random.below(300) as u32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_else_has_is_counted_once() {
        let total: usize = prompts().iter().map(Vec::len).sum();
        // Nine of ten share two blocks; the prompts that begin with 64 and 70 of these tokens share one, 128 two.
        assert_eq!(tokens_that_nobody_else_has(), (total - 9 * 128 - 64 - 64 - 128) as u64);
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
