//! Stock as the reference: its answers, and its own numerical variation.

use std::iter;
use std::ops::Range;

use espalier_core::error::Result;
use espalier_core::sys::net::server::Server;
use serde_json::Value;

use super::asking::{ask, read_answer};
use super::cases;
use super::verdict::{self, Answer};

/// Number of tokens of the parts in which answers are requested again.
const PART: usize = 16;

/// A stock server that answers one request at a time.
pub struct Reference {
    /// The server; it retains at most one sequence.
    pub stock: Server,
    /// Maximum by which a token may be less likely than stock's choice, in natural logarithms; it grows with each
    /// comparison.
    pub tolerance: f64,
}

impl Reference {
    /// Returns stock's answer to a request, computed in one part; widens the tolerance by the variation when the
    /// prompt is computed in two parts.
    pub fn expect(&mut self, request: &Value) -> Result<Answer> {
        let whole = ask(&self.stock, &cases::cold(request.clone()))?;
        ask(&self.stock, &cases::cold(first_half(request)))?;
        let in_parts = ask(&self.stock, request)?;
        self.widen(&whole, &in_parts);
        Ok(whole)
    }

    /// As [`Reference::expect`], for each of `requests`; also widens the tolerance by the variation of `many`, a
    /// stock server with several slots that answers all of them at once. Compares complete answers, for variation
    /// that accumulates along an answer, and parts of them, each with everything before it as its prompt: complete
    /// answers can be compared only up to the first token that rounding decided, and how far that is depends on the
    /// order of arrival.
    pub fn expect_each(&mut self, many: &Server, requests: &[Value]) -> Result<Vec<Answer>> {
        let alone = requests.iter().map(|request| self.expect(request)).collect::<Result<Vec<Answer>>>()?;
        let longest = alone.iter().map(|answer| answer.tokens.len()).max().unwrap_or_default();
        let parts = (0..longest).step_by(PART).map(|begin| begin..begin + PART);
        for places in iter::once(0..longest).chain(parts) {
            let parts = requests.iter().zip(&alone);
            let parts = parts.filter_map(|(request, alone)| part_of(request, alone, &places));
            self.widen_by_neighbours(many, parts.unzip())?;
        }
        Ok(alone)
    }

    fn widen_by_neighbours(&mut self, many: &Server, asked: (Vec<Value>, Vec<Answer>)) -> Result<()> {
        let (requests, alone) = asked;
        let answers = many.post_at_once("/completion", &requests)?.answers;
        for (alone, answer) in alone.iter().zip(&answers) {
            self.widen(alone, &read_answer(answer)?);
        }
        Ok(())
    }

    /// Truncates each answer before the first place at which rounding may choose another token: what follows could
    /// not be compared.
    pub fn clear(&self, known: Vec<(Vec<u32>, Answer)>) -> Vec<(Vec<u32>, Answer)> {
        let clear = |(prompt, answer): (Vec<u32>, Answer)| {
            let length = answer.clear_length(self.tolerance, cases::can_be_chosen);
            (prompt, answer.first(length.max(1)))
        };
        known.into_iter().map(clear).collect()
    }

    fn widen(&mut self, one: &Answer, other: &Answer) {
        self.tolerance = self.tolerance.max(verdict::tolerance(&[(one, other)]));
    }
}

/// Returns a request for these places of an answer, and that part of it; `None` if the answer is shorter, or if the
/// prompt is not given in tokens.
fn part_of(request: &Value, answer: &Answer, places: &Range<usize>) -> Option<(Value, Answer)> {
    let part = answer.part(places.clone())?;
    let mut going_on = request.clone();
    going_on["prompt"]
        .as_array_mut()?
        .extend(answer.tokens[..places.start].iter().map(|token| Value::from(*token)));
    going_on["n_predict"] = part.tokens.len().into();
    Some((going_on, part))
}

fn first_half(request: &Value) -> Value {
    let mut half = request.clone();
    if let Some(prompt) = half["prompt"].as_array_mut() {
        prompt.truncate(prompt.len().div_ceil(2));
    }
    half["n_predict"] = 1.into();
    half
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_asked_for_after_what_was_answered_before_it() {
        let tokens: Vec<i64> = (0..20).collect();
        let answer = Answer { likeliest: vec![vec![]; tokens.len()], tokens };
        let (request, part) = part_of(&cases::request(&[5, 6]), &answer, &(PART..2 * PART)).unwrap();
        assert_eq!(part.tokens, [16, 17, 18, 19]);
        assert_eq!(request["prompt"].as_array().unwrap().len(), 2 + PART);
        assert_eq!(request["n_predict"], 4);
        assert_eq!(part_of(&request, &answer, &(2 * PART..3 * PART)), None);
        assert_eq!(part_of(&serde_json::json!({ "prompt": "a text" }), &answer, &(PART..2 * PART)), None);
    }

    #[test]
    fn half_a_prompt_is_asked_for_one_token() {
        let half = first_half(&cases::request(&[5, 6, 7]));
        assert_eq!(half["prompt"], serde_json::json!([5, 6]));
        assert_eq!(half["n_predict"], 1);
    }
}
