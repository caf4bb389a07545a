//! Requests with a timeout: one that takes longer than [`LIMIT`] is a violation.

use std::time::Duration;

use espalier_core::error::{Error, Result};
use espalier_core::http::{Disconnect, Request};
use espalier_core::sys::net::server::Server;
use serde_json::{Value, json};

/// Timeout of a request. Everything here takes well under a second on an idle machine.
pub const LIMIT: Duration = Duration::from_secs(15);

/// POSTs `body` to `path`.
pub fn post(server: &Server, path: &str, body: &Value) -> Result<(u16, Value)> {
    server.json(&Request::post(path, body), LIMIT)
}

/// Like [`post`], as the holder of an API key.
pub fn post_as(server: &Server, key: &str, path: &str, body: &Value) -> Result<(u16, Value)> {
    server.json(&Request::post(path, body).with_key(Some(key)), LIMIT)
}

/// Sends a completion request to `/completion`.
pub fn ask(server: &Server, body: &Value) -> Result<(u16, Value)> {
    post(server, "/completion", body)
}

/// Like [`ask`], as the holder of an API key.
pub fn ask_as(server: &Server, key: &str, body: &Value) -> Result<(u16, Value)> {
    post_as(server, key, "/completion", body)
}

/// Sends a request and reads until the server closes the connection, or sends nothing for `most_silence`. Returns the
/// status and the text of the response; status 0 if there is none.
pub fn read_to_end(server: &Server, request: &Request, most_silence: Duration) -> (u16, String) {
    server.send(request, Disconnect::Never, most_silence).status_and_text()
}

/// Returns the status and the text of `/metrics`.
pub fn metrics(server: &Server) -> Result<(u16, String)> {
    server.request(&Request::get("/metrics"), LIMIT).map(|response| response.status_and_text())
}

/// Returns a request for a greedy answer of `predict` tokens, without further fields.
pub fn plain(prompt: &[u32], predict: usize) -> Value {
    json!({ "prompt": prompt, "n_predict": predict, "temperature": 0, "ignore_eos": true, "return_tokens": true })
}

/// Returns `request` with one more field.
#[must_use]
pub fn with(mut request: Value, key: &str, value: impl Into<Value>) -> Value {
    request[key] = value.into();
    request
}

/// Returns `request` with a scale for each adapter, in their order.
#[must_use]
pub fn scaled(request: Value, scales: &[f64]) -> Value {
    let adapters = scales.iter().enumerate().map(|(id, scale)| json!({ "id": id, "scale": scale }));
    with(request, "lora", adapters.collect::<Vec<Value>>())
}

/// Returns a value of `/metrics`, by its name without `llamacpp:`.
///
/// # Errors
///
/// If there is no such metric: a missing one must not be read as 0.
pub fn metric(server: &Server, name: &str) -> Result<f64> {
    let (status, text) = metrics(server)?;
    let number = metric_text(&text, name).and_then(|number| number.parse().ok());
    number.ok_or_else(|| Error::no(format!("/metrics, answered {status}, has no number `llamacpp:{name}`")))
}

/// Returns the metric's value as the text has it.
pub fn metric_text<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let prefix = format!("llamacpp:{name} ");
    text.lines().find_map(|line| line.strip_prefix(&prefix)).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_is_found_by_its_whole_name() {
        let text = "# HELP llamacpp:a_total x\nllamacpp:a_total_more 2\nllamacpp:a_total 1.5\n";
        assert_eq!(metric_text(text, "a_total"), Some("1.5"));
        assert_eq!(metric_text(text, "b"), None);
    }
}
