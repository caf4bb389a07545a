//! Prompts of the clients, in families with common prefixes.

use super::dice::Dice;
use super::server::{ServerPlan, Theme};
use crate::serving::cases::BLOCK;

/// A prompt: a prefix shared by its family, and a suffix of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    /// Family whose prefix it has.
    pub family: u64,
    /// Length of the family's prefix, in tokens.
    pub kept: usize,
    /// Length of its own suffix, in tokens; the content is drawn from `own`.
    pub rest: usize,
    /// Seed of the suffix: prompts with different seeds continue differently.
    pub own: u64,
    /// Seeds of images, between prefix and suffix.
    pub images: Vec<u64>,
}

/// Number of prompts in a round: few, so that they are repeated.
const PROMPTS: usize = 10;

/// Number of families in a round.
const FAMILIES: usize = 3;

/// Tokens of KV cache per image; the images of the tests are 40 pixels wide and high.
const IMAGE: usize = 110;

/// Maximum length of an answer, in tokens.
pub const MAX_PREDICTED: usize = 100;

impl Prompt {
    /// Draws the prompts of a round.
    pub fn draw_all(dice: &mut Dice, server: &ServerPlan, round: u64) -> Vec<Prompt> {
        let base = round.wrapping_mul(64);
        let draw = |number: usize| Prompt::draw(dice, server, base, number as u64);
        (0..PROMPTS).map(draw).collect()
    }

    fn draw(dice: &mut Dice, server: &ServerPlan, base: u64, number: u64) -> Prompt {
        let images: Vec<u64> = match server.vision {
            true => (0..dice.pick(&[0, 1, 1, 2])).map(|_| 1 + dice.below(3) as u64).collect(),
            false => Vec::new(),
        };
        let most = server.cells() - 2 - images.len() * IMAGE;
        // With random weights a token is a byte, and an image must fit beside waiting requests.
        let most = if server.vision { most / 2 } else { most };
        let length = draw_length(dice, server.theme, most);
        let whole = dice.chance(40);
        let kept = if whole { length } else { draw_length(dice, server.theme, length).min(length) };
        let family = base + dice.below(FAMILIES) as u64;
        Prompt { family, kept, rest: length - kept, own: base + number, images }
    }

    /// Number of tokens; approximate with images.
    pub fn length(&self) -> usize {
        self.kept + self.rest + self.images.len() * IMAGE
    }

    /// Returns the token ids of the prompt, without its images.
    pub fn tokens(&self) -> Vec<u32> {
        let mut tokens = stretch(self.family, 0, self.kept);
        tokens.extend(stretch(self.own, 1, self.rest));
        tokens
    }

    /// Returns an equivalent text for APIs that accept no token ids. It has at most as many tokens.
    pub fn text(&self, server: &ServerPlan) -> String {
        // A word is at most three tokens of the trained model, or five bytes.
        let divisor = if server.is_random() { 6 } else { 3 };
        let words = |family, stream, count: usize| -> Vec<&str> {
            let word = |token: u32| WORDS[token as usize % WORDS.len()];
            stretch(family, stream, count / divisor).into_iter().map(word).collect()
        };
        [words(self.family, 0, self.kept), words(self.own, 1, self.rest)].concat().join(" ")
    }

    /// Returns the text with `marker` for each image.
    pub fn text_with_images(&self, server: &ServerPlan, marker: &str) -> String {
        let first = Prompt { rest: 0, images: Vec::new(), ..self.clone() }.text(server);
        let rest = Prompt { kept: 0, images: Vec::new(), ..self.clone() }.text(server);
        format!("{first} {} {rest}", marker.repeat(self.images.len()))
    }
}

/// Draws ordinary tokens: the first three ids are special in every model here.
fn stretch(number: u64, stream: u64, count: usize) -> Vec<u32> {
    let mut dice = Dice::new(number ^ 0x5851_f42d, 1000 + stream);
    (0..count).map(|_| 3 + dice.below(300) as u32).collect()
}

/// Draws a length: mostly a multiple of the block size, give or take a token; sometimes as long as the pool.
fn draw_length(dice: &mut Dice, theme: Theme, most: usize) -> usize {
    let blocks = (most / BLOCK).max(1);
    let around = |blocks: usize, dice: &mut Dice| (blocks * BLOCK + dice.below(3)).saturating_sub(1);
    let length = match (theme, dice.below(10)) {
        (Theme::Boundaries, 0..6) => dice.between(blocks.saturating_sub(3).max(1), blocks) * BLOCK,
        (Theme::Boundaries, _) => dice.between(1, blocks) * BLOCK,
        (_, 0..3) => around(dice.between(1, 3), dice),
        (_, 3..6) => around(dice.between(1, blocks.div_ceil(2)), dice),
        (_, 6..8) => dice.between(1, most / 2),
        (Theme::Choices, _) => around(dice.between(blocks / 2, blocks * 3 / 4), dice),
        _ => around(dice.between(blocks / 2, blocks), dice),
    };
    length.clamp(1, most)
}

const WORDS: [&str; 16] = [
    "the", "of", "and", "to", "a", "in", "is", "for", "that", "with", "this", "on", "as", "be", "file",
    "name",
];
