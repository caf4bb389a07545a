//! The computation of the fake server: a number for each token of a sequence, and from all of them the next token.

use std::ops::Range;

use serde_json::Value;

use super::config::Config;
use super::pool::{BLOCK, Key};

/// A prompt, and later also its answer.
#[derive(Clone, Default)]
pub struct Text {
    /// The tokens that the keys of its blocks are computed from.
    pub tokens: Vec<u64>,
    /// The computed value of each token.
    pub cells: Vec<u64>,
    /// Ranges of its images; a block ends where one of them ends.
    images: Vec<Range<usize>>,
    /// The adapter's scale, which changes every cell.
    scale: u64,
}

/// Placeholder of an image in a text prompt.
pub const MARKER: &str = "<an image>";

/// Number of tokens of an image.
const IMAGE: usize = 100;

impl Text {
    /// Returns the prompt of a request, computed with an adapter of this scale.
    pub fn of(prompt: &Value, scale: f64, config: &Config) -> Text {
        let mut text = Text { scale: scale.to_bits(), ..Text::default() };
        match prompt {
            Value::Array(tokens) => {
                tokens.iter().filter_map(Value::as_u64).for_each(|token| text.push(token))
            }
            Value::String(words) => text.push_words(words),
            mixed => text.push_parts(mixed, config),
        }
        text
    }

    /// Returns a sequence that was already computed.
    pub fn computed(tokens: Vec<u64>, cells: Vec<u64>) -> Text {
        Text { tokens, cells, ..Text::default() }
    }

    fn push_parts(&mut self, prompt: &Value, config: &Config) {
        let images = prompt["multimodal_data"].as_array().unwrap();
        let words = prompt["prompt_string"].as_str().unwrap().split(MARKER);
        for (at, words) in words.enumerate() {
            if let Some(image) = at.checked_sub(1) {
                self.push_image(images[image].as_str().unwrap(), config);
            }
            self.push_words(words);
        }
        if config.is_broken("closes no block") {
            self.images.clear();
        }
    }

    /// Tokenizes a text: a letter is one token, and a space three, because it is written as a character of three bytes.
    /// A chat has one token for every four of them, as with the tokenizer of a large model.
    fn push_words(&mut self, words: &str) {
        let step = if words.starts_with("<|im_start|>") { 4 } else { 1 };
        words.replace(' ', "\u{2581}").bytes().step_by(step).for_each(|byte| self.push(3 + u64::from(byte)));
    }

    fn push_image(&mut self, data: &str, config: &Config) {
        let hash = data.bytes().fold(5, |hash, byte| mixed(hash ^ u64::from(byte)));
        self.images.push(self.len()..self.len() + IMAGE);
        for at in 0..IMAGE as u64 {
            let token = mixed(hash ^ at);
            self.push(token);
            if config.is_broken("forgets the image") {
                *self.tokens.last_mut().unwrap() = 0;
            }
        }
    }

    pub fn push(&mut self, token: u64) {
        self.tokens.push(token);
        self.cells.push(if self.scale == 0 { token } else { mixed(token ^ self.scale) });
    }

    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Returns the key of block `at`, which follows a block with the key `before`.
    pub fn key(&self, before: Key, at: usize) -> Key {
        self.tokens[self.block(at)].iter().fold(before, |hash, token| mixed(hash ^ token))
    }

    /// Returns the places that block `at` has for tokens.
    pub fn block(&self, at: usize) -> Range<usize> {
        if self.images.is_empty() {
            return at * BLOCK..(at + 1) * BLOCK;
        }
        (0..at).fold(0..self.block_end(0), |block, _| block.end..self.block_end(block.end))
    }

    fn block_end(&self, start: usize) -> usize {
        let closed = self.images.iter().map(|image| image.end).find(|end| *end > start);
        closed.map_or(start + BLOCK, |end| end.min(start + BLOCK))
    }

    /// Returns the number of blocks that the first `length` tokens fill or close.
    pub fn complete_blocks(&self, length: usize) -> usize {
        (0..).take_while(|at| self.block(*at).end <= length).count()
    }

    /// Returns the number of blocks that `length` tokens need.
    pub fn needed_blocks(&self, length: usize) -> usize {
        let complete = self.complete_blocks(length);
        complete + usize::from(self.block(complete).start < length)
    }

    /// Returns how many of the first `found` tokens can be reused: an image is computed as a whole.
    pub fn without_half_an_image(&self, found: usize) -> usize {
        let cut = self.images.iter().find(|image| image.start < found && found < image.end);
        cut.map_or(found, |image| image.start)
    }

    /// Returns the length of the common prefix with `other`.
    pub fn common(&self, other: &Text) -> usize {
        self.tokens.iter().zip(&other.tokens).take_while(|(one, other)| one == other).count()
    }
}

/// A greedy choice: the token, and the two most likely ones with their log-probabilities.
pub struct Choice {
    pub token: u64,
    pub likeliest: [(u64, f64); 2],
}

/// The position at which the two most likely tokens tie, so that rounding may choose the second.
const TIE: usize = 3;

/// Length of a part: the tie recurs in each part, because the gate requests stock's answer in parts of this many
/// tokens, and the answer may not depend on where a part begins.
const PART: usize = 16;

/// Returns the choice for the token at `place` of an answer, given the hash of everything before it.
pub fn choose(hash: u64, place: usize, config: &Config) -> Choice {
    let (first, second) = (3 + hash % 100, 103 + hash % 20);
    let is_tie = place % PART == TIE;
    let attends_otherwise = config.attends() && config.is_broken("attends otherwise");
    let is_wrong =
        config.breaks("a wrong token", true) || config.breaks("another token", false) || attends_otherwise;
    let drafted = config.has("--spec-type") && config.is_broken("accepts wrong drafts");
    let reads_quants =
        config.value("--kv-recent") == Some("65536") && config.is_broken("reads the quantized cache");
    let lacks_a_row = config.has("-ub") && config.is_broken("recycles a row too early");
    let token = match is_tie {
        true if config.breaks("ties", true) => second,
        true if is_wrong || drafted || reads_quants || lacks_a_row => 299,
        _ => first,
    };
    let moved = match place {
        1 if config.breaks("moves", true) || config.enabled == "gdn-flat-output" && config.is_paged() => 0.2,
        1 if config.breaks("rounds otherwise", false) => 0.001,
        _ => 0.0,
    };
    let other = if is_tie { -0.51 } else { -3.0 };
    Choice { token, likeliest: [(first, -0.5 - moved), (second, other)] }
}

pub fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb)
}
