//! PURE: whether a server's greedy answer is the one that stock gives.

use serde_json::Value;

/// How much less likely than stock's choice a token may be, in natural logarithms, and still come out of rounding
/// alone. Stock itself moves by half of it when it computes a token in a prompt and not by itself.
pub const NEAR_TIE: f64 = 0.06;

/// A greedy answer with the likeliest tokens at each place.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The tokens, in order.
    pub tokens: Vec<i64>,
    /// For each: tokens with their log probabilities, the likeliest first.
    pub likeliest: Vec<Vec<(i64, f64)>>,
}

/// What became of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All tokens are stock's.
    Same,
    /// The first other token, at this place, was as likely as stock's within [`NEAR_TIE`].
    NearTie(usize),
    /// It was not.
    Wrong(usize),
}

/// Reads what `/completion` answers to `return_tokens` and `n_probs`; nothing when it is something else.
pub fn read(body: &Value) -> Option<Answer> {
    let tokens = body["tokens"].as_array()?.iter().map(Value::as_i64).collect::<Option<Vec<i64>>>()?;
    let places = body["completion_probabilities"].as_array().map_or(&[][..], Vec::as_slice);
    let likeliest = places.iter().map(read_place).collect::<Option<Vec<_>>>()?;
    (!tokens.is_empty()).then_some(Answer { tokens, likeliest })
}

fn read_place(place: &Value) -> Option<Vec<(i64, f64)>> {
    let all = place["top_logprobs"].as_array()?;
    all.iter().map(|one| Some((one["id"].as_i64()?, one["logprob"].as_f64()?))).collect()
}

/// Compares up to the first other token: what follows is an answer to another text.
pub fn judge(stock: &Answer, tokens: &[i64]) -> Verdict {
    let differing = stock.tokens.iter().zip(tokens).position(|(ours, theirs)| ours != theirs);
    match differing {
        None if stock.tokens.len() == tokens.len() => Verdict::Same,
        None => Verdict::Wrong(stock.tokens.len().min(tokens.len())),
        Some(at) if is_near_tie(stock, at, tokens) => Verdict::NearTie(at),
        Some(at) => Verdict::Wrong(at),
    }
}

fn is_near_tie(stock: &Answer, at: usize, tokens: &[i64]) -> bool {
    let (Some(likeliest), Some(token)) = (stock.likeliest.get(at), tokens.get(at)) else { return false };
    let best = likeliest.first().map(|(_, logprob)| *logprob);
    let found = likeliest.iter().find(|(id, _)| id == token).map(|(_, logprob)| *logprob);
    matches!((best, found), (Some(best), Some(found)) if best - found <= NEAR_TIE)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn stock() -> Answer {
        let place = |id: i64, other: f64| json!({ "top_logprobs": [
            { "id": id, "logprob": -1.0 }, { "id": 90, "logprob": other } ] });
        let body = json!({ "tokens": [1, 2, 3],
            "completion_probabilities": [place(1, -1.5), place(2, -1.05), place(3, -3.0)] });
        read(&body).unwrap()
    }

    #[test]
    fn the_same_tokens_are_the_same() {
        assert_eq!(judge(&stock(), &[1, 2, 3]), Verdict::Same);
    }

    #[test]
    fn a_token_that_was_as_likely_is_a_near_tie_and_what_follows_is_not_looked_at() {
        assert_eq!(judge(&stock(), &[1, 90, 7]), Verdict::NearTie(1));
    }

    #[test]
    fn another_token_is_wrong() {
        assert_eq!(judge(&stock(), &[90, 2, 3]), Verdict::Wrong(0));
        assert_eq!(judge(&stock(), &[1, 2, 91]), Verdict::Wrong(2));
    }

    #[test]
    fn a_shorter_or_longer_answer_is_wrong() {
        assert_eq!(judge(&stock(), &[1, 2]), Verdict::Wrong(2));
        assert_eq!(judge(&stock(), &[1, 2, 3, 4]), Verdict::Wrong(3));
    }

    #[test]
    fn an_error_is_no_answer() {
        assert_eq!(read(&json!({ "error": { "code": 500 } })), None);
        assert_eq!(read(&json!({ "tokens": [] })), None);
    }
}
