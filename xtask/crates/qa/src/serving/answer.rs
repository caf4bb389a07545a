//! A server's answer to a completion.

use espalier_core::error::{Error, Result};
use serde_json::Value;

/// The measured values of one answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// Predicted tokens.
    pub tokens: Vec<u64>,
    /// Number of prompt tokens computed for it.
    pub computed: u64,
    /// Number of prompt tokens served from a cache.
    pub cached: u64,
    /// Time spent on the computed prompt tokens.
    pub prompt_seconds: f64,
    /// Tokens per second, excluding the first one.
    pub decode_rate: f64,
}

/// Parses an answer to `/completion`; an incomplete one is an error.
pub fn parse(status: u16, body: &Value) -> Result<Answer> {
    read(status, body).ok_or_else(|| {
        Error::no(format!("the server answered a completion with {status} and without tokens and timings"))
            .detail(body.to_string().chars().take(400).collect::<String>())
    })
}

fn read(status: u16, body: &Value) -> Option<Answer> {
    let timings = body.get("timings").filter(|_| status == 200)?;
    Some(Answer {
        tokens: body.get("tokens")?.as_array()?.iter().map_while(Value::as_u64).collect(),
        computed: timings.get("prompt_n")?.as_u64()?,
        // A server without prompt caching does not report it.
        cached: timings.get("cache_n").and_then(Value::as_u64).unwrap_or(0),
        prompt_seconds: timings.get("prompt_ms")?.as_f64()? / 1000.0,
        decode_rate: timings.get("predicted_per_second")?.as_f64()?,
    })
}

/// Parses all answers.
pub fn parse_all(answers: &[(u16, Value)]) -> Result<Vec<Answer>> {
    answers.iter().map(|(status, body)| parse(*status, body)).collect()
}

/// Returns the prompt tokens per second of answers that were computed one after the other.
pub fn prompt_rate(answers: &[Answer]) -> f64 {
    let seconds: f64 = answers.iter().map(|answer| answer.prompt_seconds).sum();
    computed(answers) as f64 / seconds
}

/// Returns the number of prompt tokens computed for all answers.
pub fn computed(answers: &[Answer]) -> u64 {
    answers.iter().map(|answer| answer.computed).sum()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_whole_answer() {
        let timings =
            json!({ "prompt_n": 16, "cache_n": 1600, "prompt_ms": 250.0, "predicted_per_second": 12.5 });
        let body = json!({ "tokens": [5, 6], "timings": timings });
        let expected = Answer {
            tokens: vec![5, 6],
            computed: 16,
            cached: 1600,
            prompt_seconds: 0.25,
            decode_rate: 12.5,
        };
        assert!((prompt_rate(&[expected.clone(), expected.clone()]) - 64.0).abs() < 1e-9);
        assert_eq!(parse_all(&[(200, body.clone())]).unwrap(), [expected]);
        assert!(parse(503, &body).unwrap_err().what.contains("503"));
    }

    #[test]
    fn an_error_is_shown() {
        let error = parse(500, &json!({ "error": { "message": "no room" } })).unwrap_err();
        assert!(error.to_string().contains("no room"), "{error}");
    }
}
