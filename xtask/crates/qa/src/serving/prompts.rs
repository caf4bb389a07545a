//! Prompts as token ids: a shared prefix, then a suffix that is unique to each request.

use espalier_core::error::{Error, Result};
use espalier_modelgen::SMALLEST_VOCAB;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Requests whose prompts share a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prompts {
    /// Number of requests.
    pub requests: usize,
    /// Number of tokens of the shared prefix.
    pub prefix: usize,
    /// Number of tokens after the prefix; they differ between requests from the first one on.
    pub suffix: usize,
    /// Number of tokens of each answer.
    pub predict: usize,
    /// Families with different numbers have different prefixes.
    #[serde(skip)]
    pub family: u64,
}

/// Upstream's `LLAMA_MAX_SEQ`.
pub const MAX_SEQUENCES: usize = 256;

impl Prompts {
    /// Returns an error for values that no server supports.
    pub fn check(&self) -> Result<()> {
        let wrong = if !(1..=MAX_SEQUENCES).contains(&self.requests) {
            format!("`--requests` has to be a number from 1 to {MAX_SEQUENCES}")
        } else if self.suffix == 0 || self.predict == 0 {
            "`--suffix` and `--predict` must be at least 1".to_string()
        } else {
            return Ok(());
        };
        Err(Error::usage(wrong).hint("cargo xtask bench --help"))
    }

    /// Returns the prompt of one request.
    pub fn prompt(&self, request: usize) -> Vec<u64> {
        let shared = tokens(self.family, 0, self.prefix);
        let first = SMALLEST_VOCAB + request as u64;
        let rest = tokens(self.family, 1 + request as u64, self.suffix).skip(1);
        shared.chain(std::iter::once(first)).chain(rest).collect()
    }

    /// Returns the body of one request: greedy, exactly `predict` tokens, with the tokens in the answer.
    pub fn body(&self, request: usize) -> Value {
        body_of(&self.prompt(request), self.predict)
    }

    /// Returns the bodies of all requests.
    pub fn bodies(&self) -> Vec<Value> {
        (0..self.requests).map(|request| self.body(request)).collect()
    }

    /// Returns the bodies of all requests, each assigned to its own slot: with its own choice, stock assigns all
    /// prompts with a common prefix to the same slot, and recomputes them when they arrive at once.
    pub fn bodies_by_slot(&self) -> Vec<Value> {
        self.bodies_with("id_slot", |request| json!(request))
    }

    /// Returns the bodies of all requests, each with its own salt: a cache must not share their blocks.
    pub fn salted_bodies(&self) -> Vec<Value> {
        self.bodies_with("cache_salt", |request| json!(format!("tenant-{request}")))
    }

    fn bodies_with(&self, key: &str, value: impl Fn(usize) -> Value) -> Vec<Value> {
        let mut bodies = self.bodies();
        bodies.iter_mut().enumerate().for_each(|(request, body)| body[key] = value(request));
        bodies
    }

    /// Returns the number of tokens of one request with its answer.
    pub fn length(&self) -> usize {
        self.prefix + self.suffix + self.predict
    }

    /// Returns a context size that fits all of them, even when it is divided among the sequences.
    pub fn cells(&self) -> usize {
        self.requests * self.length().next_multiple_of(CELLS_STEP)
    }
}

/// Returns the body of a greedy request for exactly `predict` tokens, with the tokens in the answer.
pub fn body_of(prompt: &[u64], predict: usize) -> Value {
    json!({
        "prompt": prompt,
        "n_predict": predict,
        "temperature": 0,
        "ignore_eos": true,
        "return_tokens": true,
    })
}

/// Returns the same request for a stream.
pub fn as_stream(mut body: Value) -> Value {
    body["stream"] = true.into();
    body
}

/// llama.cpp rounds the context of a sequence to a multiple of this.
pub const CELLS_STEP: usize = 256;

/// Number of ordinary tokens in the benchmarks' models: neither bytes nor control tokens.
const WORDS: u64 = 31_000;

/// Returns ordinary tokens; other families and other streams of a family have other tokens.
pub fn tokens(family: u64, stream: u64, count: usize) -> impl Iterator<Item = u64> {
    (0..count).map(move |at| token(family, stream, at))
}

fn token(family: u64, stream: u64, at: usize) -> u64 {
    let mut mixed = (family << 48 ^ stream << 32 ^ at as u64).wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    SMALLEST_VOCAB + (mixed ^ (mixed >> 31)) % WORDS
}

#[cfg(test)]
mod tests {
    use super::*;
    use espalier_modelgen::ModelSpec;

    const PROMPTS: Prompts = Prompts { requests: 16, prefix: 100, suffix: 16, predict: 8, family: 0 };

    #[test]
    fn prompts_share_the_prefix_and_not_one_token_more() {
        let first = PROMPTS.prompt(0);
        assert_eq!(first.len(), 116);
        for request in 1..16 {
            let other = PROMPTS.prompt(request);
            assert_eq!(first[..100], other[..100]);
            assert_ne!(first[100], other[100]);
        }
        let other_family = Prompts { family: 1, ..PROMPTS };
        assert_ne!(first[0], other_family.prompt(0)[0]);
    }

    #[test]
    fn tokens_are_words_of_the_model() {
        let vocab = ModelSpec::plain_70_million().n_vocab;
        let prompts = Prompts { requests: 256, ..PROMPTS };
        let mut tokens = (0..256).flat_map(|request| prompts.prompt(request));
        assert!(tokens.all(|token| (SMALLEST_VOCAB..vocab).contains(&token)));
    }

    #[test]
    fn a_divided_context_fits_each_request() {
        let prompts = Prompts { prefix: 1600, ..PROMPTS };
        assert_eq!((prompts.length(), prompts.cells()), (1624, 16 * 1792));
    }

    #[test]
    fn only_salted_bodies_have_salts_and_each_its_own() {
        assert_eq!(PROMPTS.bodies()[3]["cache_salt"], Value::Null);
        let salted = PROMPTS.salted_bodies();
        assert_ne!(salted[3]["cache_salt"], salted[4]["cache_salt"]);
        assert_eq!(salted[3]["prompt"], PROMPTS.bodies()[3]["prompt"]);
    }

    #[test]
    fn each_of_them_can_have_its_slot() {
        let bodies = PROMPTS.bodies_by_slot();
        assert_eq!((&bodies[0]["id_slot"], &bodies[15]["id_slot"]), (&json!(0), &json!(15)));
        assert_eq!(PROMPTS.bodies()[3]["id_slot"], Value::Null);
    }

    #[test]
    fn impossible_prompts_are_refused() {
        assert!(PROMPTS.check().is_ok());
        assert!(Prompts { requests: 256, prefix: 0, ..PROMPTS }.check().is_ok());
        let wrong = |prompts: Prompts| prompts.check().unwrap_err().what;
        assert!(wrong(Prompts { requests: 0, ..PROMPTS }).contains("`--requests`"));
        assert!(wrong(Prompts { requests: 257, ..PROMPTS }).contains("from 1 to 256"));
        assert!(wrong(Prompts { predict: 0, ..PROMPTS }).contains("`--predict`"));
    }
}
