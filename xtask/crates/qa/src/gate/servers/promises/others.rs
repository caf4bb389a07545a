//! Tenant isolation of resources that outlive a request, other than slots: resumable streams and running completions.

use espalier_core::error::Result;
use espalier_core::http::Request;
use espalier_core::sys::net::client::stop_if;
use espalier_core::sys::net::server::Server;
use serde_json::{Value, json};

use super::asking::{LIMIT, plain, post_as, read_to_end, with};
use super::fixture::{Model, PromiseFixture};
use super::tenants::{ALICE, BOB, KEYS};
use crate::fuzz::plan::actions::Order;
use crate::fuzz::plan::body::{CONVERSATION_ID, of_conversation};
use crate::serving::cases;

/// The conversation id that both tenants use.
const CONVERSATION: &str = "chat-1";

/// Starts a stream with the conversation's id, and waits for its end.
fn converse(server: &Server, key: &str, number: u64) -> (u16, String) {
    let request = with(plain(&cases::numbered_prompt(number, 20), 8), "stream", true);
    let request = with(request, "model", "tiny");
    let request = Request::post("/completion", request).with_key(Some(key));
    read_to_end(server, &request.with_header(CONVERSATION_ID, CONVERSATION), LIMIT)
}

fn order(server: &Server, key: &str, order: Order) -> (u16, String) {
    read_to_end(server, &of_conversation(order, CONVERSATION).with_key(Some(key)), LIMIT)
}

fn resume(server: &Server, key: &str) -> (u16, String) {
    order(server, key, Order::Resume)
}

fn found(server: &Server, key: &str) -> usize {
    let (_, body) = order(server, key, Order::LookUp);
    serde_json::from_str::<Value>(&body)
        .ok()
        .and_then(|found| found.as_array().map(Vec::len))
        .unwrap_or(usize::MAX)
}

fn end(server: &Server, key: &str) -> u16 {
    order(server, key, Order::End).0
}

/// The same conversation id names different streams for different keys.
pub fn streams(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    for mode in [&["--kv-paged"][..], &[]] {
        let arguments = ["-np", "2", "-c", "2048", "--api-key", KEYS];
        let server = fixture.serve(Model::Trained, &[&arguments[..], mode].concat())?;
        streams_are_divided(fixture, &server);
    }
    Ok(())
}

/// A router finds a stream's child by the caller's key, and forwards the key.
pub fn streams_behind_a_router(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let folder = fixture.folder_of_models("tiny.gguf")?;
    let server =
        fixture.serve_nothing(&["--models-dir", &folder, "--api-key", KEYS, "-np", "2", "-c", "2048"])?;
    // The first request waits until a child has loaded the model.
    let first = with(plain(&cases::numbered_prompt(1, 20), 1), "model", "tiny");
    let first = Request::post("/completion", first).with_key(Some(ALICE));
    let (status, body) = server.json(&first, 4 * LIMIT)?;
    fixture.must(status == 200, || format!("the model was not loaded: {status}: {body}"));
    streams_are_divided(fixture, &server);
    Ok(())
}

fn streams_are_divided(fixture: &mut PromiseFixture<'_>, server: &Server) {
    let mut must = |what: &str, is: String, expected: &str| {
        fixture.must(is == expected, || format!("{what}: {is} instead of {expected}"));
    };
    must("alice starts a stream", converse(server, ALICE, 1).0.to_string(), "200");
    let (status, hers) = resume(server, ALICE);
    must("alice resumes it", status.to_string(), "200");
    must("her stream has text", hers.contains("data:").to_string(), "true");
    must("bob resumes it", resume(server, BOB).0.to_string(), "404");
    must("bob looks it up and finds", found(server, BOB).to_string(), "0");
    must("alice looks it up and finds", found(server, ALICE).to_string(), "1");
    must("bob ends it", end(server, BOB).to_string(), "204");
    must("alice resumes it after that", (resume(server, ALICE).1 == hers).to_string(), "true");
    must("bob starts one with the same id", converse(server, BOB, 2).0.to_string(), "200");
    must("alice resumes hers after that", (resume(server, ALICE).1 == hers).to_string(), "true");
    must("alice ends it", end(server, ALICE).to_string(), "204");
    must("alice resumes what she ended", resume(server, ALICE).0.to_string(), "404");
    must("bob resumes his after that", resume(server, BOB).0.to_string(), "200");
}

/// A caller that knows the id of another key's completion cannot control it.
pub fn control(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let server = fixture.serve(Model::Random, &["-np", "2", "-c", "2048", "--api-key", KEYS])?;
    let request = json!({
        "messages": [{ "role": "user", "content": "one two three" }], "max_tokens": 1000, "stream": true,
    });
    let mut answers = Vec::new();
    let request = Request::post("/v1/chat/completions", request).with_key(Some(ALICE));
    server.follow(&request, LIMIT, |event| {
        let order = json!({ "id": event["id"], "action": "reasoning_end" });
        for key in [BOB, ALICE] {
            let answer = post_as(&server, key, "/v1/chat/completions/control", &order);
            answers.push(answer.map_or_else(|error| error.to_string(), |(_, body)| body.to_string()));
        }
        stop_if(true)
    })?;
    fixture.must(answers.len() == 2, || format!("the stream had no event: {answers:?}"));
    let is_unknown =
        |answer: Option<&String>| answer.is_some_and(|answer| answer.contains("no active completion"));
    fixture.must(is_unknown(answers.first()), || format!("bob controls alice's completion: {answers:?}"));
    fixture.must(!is_unknown(answers.get(1)), || format!("alice does not control hers: {answers:?}"));
    Ok(())
}
