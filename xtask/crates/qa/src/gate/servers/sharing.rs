//! Isolation of the prefix cache between tenants, measured in prompt tokens found in the cache.

use espalier_core::error::{Error, Result};
use espalier_core::sys::net::server::Server;
use serde_json::{Value, json};

use crate::serving::cases;

/// Length of the prompt, in tokens: five blocks of it are shared, one token is left.
const PROMPT: usize = 321;

/// A request with the same prompt: its description, API key and additional fields, and the expected number of cached
/// tokens.
struct Question {
    what: &'static str,
    key: &'static str,
    more: Value,
    found: usize,
}

/// API keys that the server has to be started with.
pub const KEYS: &str = "one-key,another-key";

/// Requests in order: each relies on the earlier ones.
fn questions() -> [Question; 8] {
    let ask = |what, key, more, found| Question { what, key, more, found };
    [
        ask("the first request", "one-key", json!({}), 0),
        ask("the same key", "one-key", json!({}), PROMPT - 1),
        ask("another key", "another-key", json!({}), 0),
        ask("a salt", "one-key", json!({ "cache_salt": "a" }), 0),
        ask("the same salt", "one-key", json!({ "cache_salt": "a" }), PROMPT - 1),
        ask("the same salt, another key", "another-key", json!({ "cache_salt": "a" }), 0),
        ask("cache_prompt off", "one-key", json!({ "cache_prompt": false }), 0),
        ask("the first key again", "one-key", json!({}), PROMPT - 1),
    ]
}

/// Returns the cases in which a request found tokens that it must not find, or missed tokens that it may.
pub fn leaks(server: &Server) -> Result<Vec<String>> {
    let prompt = cases::any_prompt(PROMPT);
    let mut wrong = Vec::new();
    for question in questions() {
        let mut body = json!({ "prompt": prompt, "n_predict": 1, "temperature": 0 });
        for (key, value) in question.more.as_object().into_iter().flatten() {
            body[key] = value.clone();
        }
        let (status, answer) = server.post_as(question.key, "/completion", &body)?;
        let found = answer["timings"]["cache_n"].as_u64();
        if found != u64::try_from(question.found).ok() {
            wrong.push(format!(
                "{}: expected {} cached tokens, status {status}, found {found:?}",
                question.what, question.found
            ));
        }
    }
    Ok(wrong)
}

/// Checks a server with `--slot-save-path`, which retains a slot's sequence after the answer: only the same key may
/// reuse it.
pub fn leaks_of_a_kept_slot(server: &Server) -> Result<Option<String>> {
    let body = json!({ "prompt": cases::any_prompt(PROMPT), "n_predict": 1, "temperature": 0, "id_slot": 0 });
    let found = |key| -> Result<Option<u64>> {
        Ok(server.post_as(key, "/completion", &body)?.1["timings"]["cache_n"].as_u64())
    };
    let (first, same, other) = (found("one-key")?, found("one-key")?, found("another-key")?);
    let is_right = first == Some(0) && same.is_some_and(|tokens| tokens > 0) && other == Some(0);
    Ok((!is_right)
        .then(|| format!("a kept slot: found {first:?}, {same:?} with the same key, {other:?} with another")))
}

/// Reports the prompt tokens computed for all `answers` if they are more than `most`.
pub fn computed_more(answers: &[(u16, Value)], most: u64) -> Option<String> {
    let count = |(_, body): &(u16, Value)| body["timings"]["prompt_n"].as_u64();
    let Some(computed) = answers.iter().map(count).sum::<Option<u64>>() else {
        return Some("an answer does not report in `timings.prompt_n` what was computed for it".to_string());
    };
    (computed > most).then(|| format!("{computed} prompt tokens were computed, expected at most {most}"))
}

/// Sends a request for four choices that cannot even start together: it must be refused with a clear message, and the
/// server must continue.
pub fn refuses_what_cannot_fit(server: &Server) -> Result<Option<String>> {
    let body = json!({ "prompt": cases::any_prompt(400), "n": 4, "max_tokens": 200, "temperature": 0,
                       "ignore_eos": true });
    let (status, answer) = server.post("/v1/completions", &body)?;
    let message = answer["error"]["message"].as_str().unwrap_or_default();
    if status != 400 || !message.contains("KV blocks") {
        return Ok(Some(format!("a request too large for the pool returned {status}: {answer}")));
    }
    let (status, _) = server.post("/completion", &cases::request(&cases::any_prompt(100)))?;
    match status {
        200 => Ok(None),
        _ => Err(Error::no(format!("after refusing a request the server answered {status}"))),
    }
}
