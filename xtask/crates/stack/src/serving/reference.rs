//! Stock as the reference: its answers, and how far it moves by itself.

use serde_json::Value;

use super::asking::{ask, read_answer};
use super::cases;
use super::verdict::{self, Answer};
use crate::error::Result;
use crate::sys::net::server::Server;

/// A stock server that answers one request at a time.
pub struct Reference {
    /// The server; it keeps no more than one text.
    pub stock: Server,
    /// How much less likely than stock's choice a token may be, in natural logarithms; it grows with what is asked.
    pub tolerance: f64,
}

impl Reference {
    /// Stock's answer to a request, computed whole; from here on the tolerance covers how far it moves when the
    /// prompt is computed in two parts.
    pub fn expect(&mut self, request: &Value) -> Result<Answer> {
        let whole = ask(&self.stock, &cases::cold(request.clone()))?;
        ask(&self.stock, &cases::cold(first_half(request)))?;
        let in_parts = ask(&self.stock, request)?;
        self.tolerance = self.tolerance.max(verdict::tolerance(&[(&whole, &in_parts)]));
        Ok(whole)
    }

    /// The same for each of `prompts`, with `predict` tokens.
    pub fn expect_all(&mut self, prompts: Vec<Vec<u32>>, predict: usize) -> Result<Vec<(Vec<u32>, Answer)>> {
        let known = |prompt: Vec<u32>| {
            let answer = self.expect(&cases::request_for(&prompt, predict))?;
            Ok((prompt, answer))
        };
        prompts.into_iter().map(known).collect()
    }

    /// Each answer up to where rounding may choose another token: what follows there could not be compared.
    pub fn clear(&self, known: Vec<(Vec<u32>, Answer)>) -> Vec<(Vec<u32>, Answer)> {
        let clear = |(prompt, answer): (Vec<u32>, Answer)| {
            let length = answer.clear_length(self.tolerance, cases::can_be_chosen);
            (prompt, answer.first(length.max(1)))
        };
        known.into_iter().map(clear).collect()
    }

    /// From here on the tolerance covers how stock has answered the same with neighbours.
    ///
    /// # Errors
    ///
    /// Stock left one of them unanswered.
    pub fn widen(&mut self, known: &[(Vec<u32>, Answer)], with_neighbours: &[(u16, Value)]) -> Result<()> {
        for ((_, alone), other) in known.iter().zip(with_neighbours) {
            let other = read_answer(other)?;
            self.tolerance = self.tolerance.max(verdict::tolerance(&[(alone, &other)]));
        }
        Ok(())
    }
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
    fn half_a_prompt_is_asked_for_one_token() {
        let half = first_half(&cases::request(&[5, 6, 7]));
        assert_eq!(half["prompt"], serde_json::json!([5, 6]));
        assert_eq!(half["n_predict"], 1);
    }
}
