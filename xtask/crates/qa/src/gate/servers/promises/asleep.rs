//! A sleeping server stays asleep: a request that can be refused without the model does not load it.

use std::ops::RangeInclusive;

use espalier_core::error::Result;
use espalier_core::http::Request;
use espalier_core::sys::machine::disk;
use espalier_core::sys::net::server::Server;
use serde_json::{Value, json};

use super::asking::{LIMIT, ask, plain, read_to_end, with};
use super::fixture::{Model, PromiseFixture};
use super::routes::registered;
use super::tenants::MOMENT;
use crate::serving::cases;

/// A path, a body, and the status of its refusal.
type Refusal = (&'static str, Value, u16);

/// Requests that every server refuses do not load the model of a sleeping server: invalid JSON on any route, and
/// invalid fields on each route that computes something or acts on a slot.
pub fn refused_while_asleep(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let folder = fixture.empty_folder("asleep")?;
    let server = sleeping(fixture, Model::Trained, &["--slot-save-path", &folder])?;
    for path in paths_of_posts(fixture)? {
        must_stay_asleep(fixture, &server, &Request::post(path, "{"), 400..=599)?;
    }
    refuse_all(fixture, &server, invalid_fields())?;
    if fixture.holds_so_far() {
        let (status, body) = ask(&server, &valid())?;
        fixture.must(status == 200, || format!("a valid request returned {status}: {body}"));
    }
    let server = sleeping(fixture, Model::Random, &["--reranking"])?;
    refuse_all(fixture, &server, invalid_fields_of_documents())
}

/// Starts a server with these arguments, and waits until it sleeps.
fn sleeping(fixture: &PromiseFixture<'_>, model: Model, arguments: &[&str]) -> Result<Server> {
    let common = ["-np", "2", "-c", "1024", "--kv-paged", "--sleep-idle-seconds", "1"];
    let server = fixture.serve(model, &[&common[..], arguments].concat())?;
    for _ in 0..200 {
        if is_sleeping(&server)? {
            break;
        }
        std::thread::sleep(MOMENT);
    }
    Ok(server)
}

fn is_sleeping(server: &Server) -> Result<bool> {
    Ok(server.get("/props")?.1["is_sleeping"] == true)
}

/// Returns the path of each route to which clients post, as the server's source registers them.
fn paths_of_posts(fixture: &PromiseFixture<'_>) -> Result<Vec<String>> {
    let source = disk::read_text(&fixture.source("tools/server/server.cpp"))?;
    let routes = registered(&source)?;
    let paths = routes.iter().filter_map(|route| route.strip_prefix("POST "));
    Ok(paths.map(|path| path.replace(":id_slot", "0")).collect())
}

/// Sends the requests, up to the first violation.
fn refuse_all(fixture: &mut PromiseFixture<'_>, server: &Server, refusals: Vec<Refusal>) -> Result<()> {
    for (path, body, status) in refusals {
        must_stay_asleep(fixture, server, &Request::post(path, body), status..=status)?;
    }
    Ok(())
}

/// Sends a request that has to be refused with one of these statuses. Once there is a violation, the server is awake,
/// and nothing is sent.
fn must_stay_asleep(
    fixture: &mut PromiseFixture<'_>,
    server: &Server,
    request: &Request,
    statuses: RangeInclusive<u16>,
) -> Result<()> {
    if !fixture.holds_so_far() {
        return Ok(());
    }
    let (status, answer) = read_to_end(server, request, LIMIT);
    let Request { path, body, .. } = request;
    fixture.must(statuses.contains(&status), || format!("{path} {body}: returned {status}: {answer}"));
    let stays_asleep = is_sleeping(server)?;
    fixture.must(stays_asleep, || format!("{path} {body}: it woke the server"));
    Ok(())
}

fn valid() -> Value {
    plain(&cases::numbered_prompt(1, 20), 1)
}

/// Requests to a server of completions with two slots. Its model does not support infill.
fn invalid_fields() -> Vec<Refusal> {
    let chat = json!({ "messages": [{ "role": "user", "content": "a" }], "max_tokens": 1 });
    let infill = json!({ "input_prefix": "a", "input_suffix": "b" });
    vec![
        ("/completion", with(valid(), "id_slot", 7), 400),
        ("/completion", with(valid(), "n", 3), 400),
        ("/completion", with(valid(), "cache_salt", 1), 400),
        ("/completion", json!({ "n_predict": 1 }), 400),
        ("/completion", with(valid(), "n_predict", "y"), 400),
        ("/completion", with(valid(), "stop", json!([5])), 400),
        ("/completion", with(valid(), "prompt", vec!["a"; 5000]), 400),
        ("/tokenize", json!({ "content": 5 }), 400),
        ("/v1/completions", json!({ "prompt": "a", "max_tokens": 1, "n": 3 }), 400),
        ("/v1/chat/completions", with(chat.clone(), "id_slot", -3), 400),
        ("/v1/chat/completions", with(chat.clone(), "top_logprobs", 1), 400),
        ("/v1/responses", json!({ "input": "a", "id_slot": -3 }), 400),
        ("/v1/messages", with(chat, "id_slot", -3), 400),
        ("/infill", with(infill, "id_slot", -3), 501),
        ("/apply-template", json!({ "messages": "a" }), 400),
        ("/chat/completions/input_tokens", json!({ "messages": "a" }), 400),
        ("/v1/responses/input_tokens", json!({}), 400),
        ("/v1/messages/count_tokens", json!({}), 400),
        ("/lora-adapters", json!([{ "id": 5, "scale": 1 }]), 400),
        ("/slots/2?action=erase", json!({}), 400),
        ("/slots/0?action=other", json!({}), 400),
        ("/slots/0?action=save", json!({ "filename": "file", "cache_salt": 1 }), 400),
        ("/slots/0?action=restore", json!({ "filename": "../file" }), 400),
    ]
}

/// Requests to a server that ranks documents.
fn invalid_fields_of_documents() -> Vec<Refusal> {
    vec![
        ("/rerank", json!({ "query": "a", "documents": ["a"], "cache_salt": 1 }), 400),
        ("/v1/embeddings", json!({ "input": "a", "cache_salt": 1 }), 400),
        ("/v1/embeddings", json!({ "input": "a", "embd_normalize": "a" }), 400),
    ]
}
