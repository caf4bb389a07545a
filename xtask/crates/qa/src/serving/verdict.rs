//! PURE: comparison of a server's greedy answer with stock's.

use std::ops::Range;

use serde_json::Value;

/// Multiple of stock's own rounding by which a token may be less likely than stock's choice and still count as a tie
/// within tolerance: both servers may have moved, and the worst of a few answers is not the worst of all.
const ROUNDINGS: f64 = 3.0;

/// Minimum tolerance, in natural logarithms: a few answers may happen to be computed identically in all their parts.
const MIN_TOLERANCE: f64 = 0.02;

/// A greedy answer with the top tokens at each place.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The tokens, in order.
    pub tokens: Vec<i64>,
    /// For each place: tokens with their log probabilities, most likely first.
    pub likeliest: Vec<Vec<(i64, f64)>>,
}

impl Answer {
    /// Returns the answer to the same prompt for fewer requested tokens.
    pub fn first(&self, tokens: usize) -> Answer {
        let count = tokens.min(self.tokens.len());
        Answer { tokens: self.tokens[..count].to_vec(), likeliest: self.likeliest[..count].to_vec() }
    }

    /// Returns the part of the answer at these places, as far as it goes; `None` if it is shorter.
    pub fn part(&self, places: Range<usize>) -> Option<Answer> {
        let places = places.start..places.end.min(self.tokens.len());
        let part = || Answer {
            tokens: self.tokens[places.clone()].to_vec(),
            likeliest: self.likeliest[places.clone()].to_vec(),
        };
        (!places.is_empty()).then(part)
    }

    /// Returns the number of tokens before the first place at which rounding may choose another token for which
    /// `can_be_chosen` holds. The tolerance is that of [`judge`].
    pub fn clear_length(&self, tolerance: f64, can_be_chosen: impl Fn(i64) -> bool) -> usize {
        let is_clear = |(token, likeliest): &(&i64, &Vec<(i64, f64)>)| {
            let chosen = likeliest.iter().find(|(id, _)| id == *token).map(|(_, logprob)| *logprob);
            let mut others = likeliest.iter().filter(|(id, _)| id != *token && can_be_chosen(*id));
            let next = others.next().map_or(f64::NEG_INFINITY, |(_, logprob)| *logprob);
            chosen.is_some_and(|chosen| chosen - next > tolerance / ROUNDINGS)
        };
        self.tokens.iter().zip(&self.likeliest).take_while(is_clear).count()
    }
}

/// Verdict on one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerVerdict {
    /// All tokens are stock's.
    Same,
    /// Tie within tolerance: the first different token, at this place, was as likely as stock's within rounding.
    Tie(usize),
    /// The first different token, at this place, was less likely than rounding explains.
    Wrong(usize),
}

/// Parses an answer of `/completion` with `return_tokens` and `n_probs`; `None` if it is malformed, or lacks the top
/// tokens of any place.
pub fn read(body: &Value) -> Option<Answer> {
    let tokens = body["tokens"].as_array()?.iter().map(Value::as_i64).collect::<Option<Vec<i64>>>()?;
    let places = body["completion_probabilities"].as_array().map_or(&[][..], Vec::as_slice);
    let likeliest = places.iter().map(read_place).collect::<Option<Vec<_>>>()?;
    (!tokens.is_empty() && likeliest.len() == tokens.len()).then_some(Answer { tokens, likeliest })
}

/// Parses the tokens of one choice of `/v1/completions` with `logprobs`.
pub fn tokens_of_choice(choice: &Value) -> Option<Vec<i64>> {
    choice["logprobs"]["content"].as_array()?.iter().map(|place| place["id"].as_i64()).collect()
}

fn read_place(place: &Value) -> Option<Vec<(i64, f64)>> {
    let all = place["top_logprobs"].as_array()?;
    all.iter().map(|one| Some((one["id"].as_i64()?, one["logprob"].as_f64()?))).collect()
}

/// Returns the tolerance of a model, in natural logarithms, from pairs of answers of the same server to the same
/// prompts computed in other parts. Places after the first different token belong to different sequences and are
/// ignored.
pub fn tolerance(pairs: &[(&Answer, &Answer)]) -> f64 {
    pairs.iter().map(|(one, other)| moved(one, other)).fold(MIN_TOLERANCE / ROUNDINGS, f64::max) * ROUNDINGS
}

/// Number of tolerances by which an answer may move. Correct ones moved by at most 0.85; counting a part of the KV
/// cache twice moved stock's tokens by 5.
pub const MAX_MOVED: f64 = 2.0;

/// Returns the maximum movement of the two top tokens, up to the first place where the sequences differ.
pub fn moved(one: &Answer, other: &Answer) -> f64 {
    let alike = one.tokens.iter().zip(&other.tokens).take_while(|(one, other)| one == other).count();
    let places = one.likeliest.iter().zip(&other.likeliest).take(alike + 1);
    places.map(|(one, other)| farthest(one, other)).fold(0.0, f64::max)
}

/// Considers the two top tokens only: less likely ones are never chosen.
fn farthest(one: &[(i64, f64)], other: &[(i64, f64)]) -> f64 {
    let distance = |(id, logprob): &(i64, f64)| {
        other.iter().find(|(found, _)| found == id).map_or(0.0, |(_, found)| (found - logprob).abs())
    };
    one.iter().take(2).map(distance).fold(0.0, f64::max)
}

/// Compares up to the first different token: what follows belongs to a different sequence.
pub fn judge(stock: &Answer, tokens: &[i64], tolerance: f64) -> AnswerVerdict {
    let differing = stock.tokens.iter().zip(tokens).position(|(ours, theirs)| ours != theirs);
    match differing {
        None if stock.tokens.len() == tokens.len() => AnswerVerdict::Same,
        None => AnswerVerdict::Wrong(stock.tokens.len().min(tokens.len())),
        Some(at) if gap(stock, at, tokens) <= tolerance => AnswerVerdict::Tie(at),
        Some(at) => AnswerVerdict::Wrong(at),
    }
}

/// Returns how much less likely than stock's choice a token was there, in natural logarithms; infinite if stock did
/// not list it among the top tokens.
pub fn gap(stock: &Answer, at: usize, tokens: &[i64]) -> f64 {
    let logprob_of = |token: Option<&i64>| {
        let mut likeliest = stock.likeliest.get(at)?.iter();
        likeliest.find(|(id, _)| Some(id) == token).map(|(_, logprob)| *logprob)
    };
    match (logprob_of(stock.tokens.get(at)), logprob_of(tokens.get(at))) {
        (Some(chosen), Some(other)) => chosen - other,
        _ => f64::INFINITY,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn stock() -> Answer {
        let place = |id: i64, other: f64| {
            json!({ "top_logprobs": [
            { "id": id, "logprob": -1.0 }, { "id": 90, "logprob": other } ] })
        };
        let body = json!({ "tokens": [1, 2, 3],
            "completion_probabilities": [place(1, -1.5), place(2, -1.05), place(3, -3.0)] });
        read(&body).unwrap()
    }

    #[test]
    fn the_same_tokens_are_the_same() {
        assert_eq!(judge(&stock(), &[1, 2, 3], 0.06), AnswerVerdict::Same);
    }

    #[test]
    fn an_equally_likely_token_is_a_tie_and_later_tokens_are_not_compared() {
        assert_eq!(judge(&stock(), &[1, 90, 7], 0.06), AnswerVerdict::Tie(1));
    }

    #[test]
    fn another_token_is_wrong() {
        assert_eq!(judge(&stock(), &[90, 2, 3], 0.06), AnswerVerdict::Wrong(0));
        assert_eq!(judge(&stock(), &[1, 2, 91], 0.06), AnswerVerdict::Wrong(2));
    }

    #[test]
    fn a_shorter_or_longer_answer_is_wrong() {
        assert_eq!(judge(&stock(), &[1, 2], 0.06), AnswerVerdict::Wrong(2));
        assert_eq!(judge(&stock(), &[1, 2, 3, 4], 0.06), AnswerVerdict::Wrong(3));
    }

    #[test]
    fn the_tolerance_is_three_times_what_the_likeliest_tokens_moved() {
        let mut moved = stock();
        moved.likeliest[1][1].1 -= 0.02;
        assert!((tolerance(&[(&stock(), &moved)]) - 0.06).abs() < 1e-9);
        assert!((tolerance(&[(&stock(), &stock())]) - 0.02).abs() < 1e-9);
        moved.tokens[0] = 90;
        assert!((tolerance(&[(&stock(), &moved)]) - 0.02).abs() < 1e-9, "another text moves nothing");
    }

    #[test]
    fn moved_probabilities_are_found_up_to_the_first_different_token() {
        let mut other = stock();
        other.likeliest[1][0].1 -= 0.5;
        assert!((moved(&stock(), &other) - 0.5).abs() < 1e-9);
        other.tokens[0] = 90;
        assert!(moved(&stock(), &other) < 1e-9);
    }

    #[test]
    fn a_choice_has_its_tokens_beside_their_probabilities() {
        let choice = json!({ "logprobs": { "content": [{ "id": 4 }, { "id": 5 }] } });
        assert_eq!(tokens_of_choice(&choice), Some(vec![4, 5]));
        assert_eq!(tokens_of_choice(&json!({ "logprobs": null })), None);
    }

    #[test]
    fn a_shorter_answer_is_the_beginning_of_a_longer_one() {
        assert_eq!(judge(&stock().first(2), &[1, 2], 0.06), AnswerVerdict::Same);
        assert_eq!(stock().first(9), stock());
    }

    #[test]
    fn an_answer_is_clear_until_another_token_is_as_likely() {
        assert_eq!(stock().clear_length(0.06, |_| true), 3);
        assert_eq!(
            stock().clear_length(0.18, |_| true),
            1,
            "at the second place the next is 0.05 less likely"
        );
        assert_eq!(stock().clear_length(0.18, |token| token != 90), 3);
    }

    #[test]
    fn an_error_is_not_an_answer() {
        assert_eq!(read(&json!({ "error": { "code": 500 } })), None);
        assert_eq!(read(&json!({ "tokens": [] })), None);
        assert_eq!(read(&json!({ "tokens": [1], "completion_probabilities": [] })), None);
    }
}
