//! Requests with a timeout: one that takes longer than [`LIMIT`] is a violation.

use std::time::Duration;

use espalier_core::error::Result;
use espalier_core::http::{Disconnect, Request};
use espalier_core::sys::net::server::Server;
use serde_json::{Value, json};

pub use crate::serving::metrics::{metric, metric_text, metrics};

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
