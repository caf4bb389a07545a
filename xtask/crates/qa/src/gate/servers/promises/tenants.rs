//! Tenant isolation: holders of different keys share nothing, also not indirectly.

use std::time::Duration;

use espalier_core::error::Result;
use espalier_core::http::Request;
use espalier_core::sys::machine::disk;
use espalier_core::sys::net::client::Client;
use espalier_core::sys::net::server::Server;
use serde_json::{Value, json};

use super::asking::{LIMIT, ask_as, plain, post_as, scaled, with};
use super::fixture::{Model, PromiseFixture};
use crate::serving::cases;

/// API key of the first tenant.
pub const ALICE: &str = "key-of-alice";
/// API key of the second tenant.
pub const BOB: &str = "key-of-bob";
/// Both keys, for `--api-key`.
pub const KEYS: &str = "key-of-alice,key-of-bob";

/// Length of a prompt, in tokens; requests that may share it find all but one of them.
pub const PROMPT: usize = 321;

/// Returns a request for one token, with the prompt of that number.
pub fn question(number: u64) -> Value {
    plain(&cases::numbered_prompt(number, PROMPT), 1)
}

/// A request with two keys is refused: only one of them would be checked.
pub fn one_key_each(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let server =
        fixture.serve(Model::Trained, &["-np", "1", "-c", "4096", "--kv-paged", "--api-key", KEYS])?;
    let both = format!("{ALICE}\r\nauthorization: Bearer unknown-key");
    let (status, body) = ask_as(&server, &both, &question(1))?;
    fixture.must(status == 400, || {
        format!("two keys, one of them unknown: returned {status} instead of 400: {body}")
    });
    let (status, body) = ask_as(&server, ALICE, &question(1))?;
    fixture.must(status == 200, || format!("one key: returned {status}: {body}"));
    Ok(())
}

/// Timeout that covers loading the model in a child.
pub const LOADING: Duration = Duration::from_secs(60);

/// Sends a completion request to a router, as the holder of an API key.
fn ask_router(server: &Server, key: &str, request: &Value) -> Result<(u16, Value)> {
    server.json(&Request::post("/completion", request).with_key(Some(key)), LOADING)
}

/// Returns the text that the holder of an API key sees at `path` of a router.
fn seen(server: &Server, key: &str, path: &str) -> Result<String> {
    server.request(&Request::get(path).with_key(Some(key)), LOADING).map(|response| response.text())
}

/// A router forwards the key, so that its children can tell tenants apart.
pub fn behind_a_router(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let folder = fixture.folder_of_models("tiny.gguf")?;
    let server = fixture.serve_nothing(&[
        "--models-dir",
        &folder,
        "--api-key",
        KEYS,
        "-np",
        "2",
        "-c",
        "4096",
        "--kv-paged",
    ])?;
    let request = with(question(1), "model", "tiny");
    for (what, key, found) in [("alice", ALICE, 0), ("alice again", ALICE, PROMPT - 1), ("bob", BOB, 0)] {
        let answer = ask_router(&server, key, &request)?;
        fixture.must_have_found(what, &answer, found);
    }
    Ok(())
}

/// A router's children know that there are several tenants, though only the router has their keys.
pub fn children_know_of_several_keys(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let folder = fixture.folder_of_models("tiny.gguf")?;
    let saves = fixture.empty_folder("slots")?;
    let kept = ["-np", "1", "-c", "4096", "--kv-paged", "--slot-save-path", &saves];
    let router = ["--models-dir", &folder, "--api-key", KEYS, "--hf-token", "secret-token"];
    let server = fixture.serve_nothing(&[&router[..], &kept].concat())?;
    let request = with(question(1), "model", "tiny");
    ask_router(&server, ALICE, &request)?;
    let shown = seen(&server, BOB, "/props?model=tiny")?;
    fixture.must(shown.contains("kv_pool") && !shown.contains("hit_tokens"), || {
        format!("bob sees how much of alice's prompts was found: {shown}")
    });
    let save = json!({ "filename": "file", "model": "tiny" });
    let saved = post_as(&server, ALICE, "/slots/0?action=save", &save)?;
    fixture.must(saved.0 == 200, || format!("alice's save returned {}: {}", saved.0, saved.1));
    let path = std::path::Path::new(&saves).join("file");
    let mut bytes = disk::read(&path)?;
    bytes.pop();
    disk::write_atomically(&path, &bytes)?;
    ask_router(&server, BOB, &with(question(2), "model", "tiny"))?;
    let replaced = post_as(&server, BOB, "/slots/0?action=save", &save)?;
    fixture.must(replaced.0 == 403, || {
        format!("bob's save over a damaged file returned {}: {}", replaced.0, replaced.1)
    });
    let models = seen(&server, BOB, "/models")?;
    fixture.must(
        models.contains("tiny") && !models.contains("secret-token") && !models.contains("--models-dir"),
        || format!("bob sees the operator's command line: {models}"),
    );
    for second in
        ["authorization: Bearer unknown-key", "authorization: ", "Authorization: Bearer key-of-alice"]
    {
        let both = format!("{BOB}\r\n{second}");
        let (status, body) = ask_router(&server, &both, &request)?;
        fixture.must(status == 400, || format!("`{second}` beside bob's key: returned {status}: {body}"));
    }
    Ok(())
}

/// A router's child listens on its own port, and requires a key there too.
pub fn children_refuse_without_a_key(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let folder = fixture.folder_of_models("tiny.gguf")?;
    let server =
        fixture.serve_nothing(&["--models-dir", &folder, "--api-key", KEYS, "-np", "1", "-c", "2048"])?;
    let request = with(question(1), "model", "tiny");
    let (status, body) = ask_router(&server, ALICE, &request)?;
    fixture.must(status == 200, || format!("through the router: returned {status}: {body}"));
    let log = fixture.log_text()?;
    let port = log.lines().find_map(|line| {
        line.split_once("name=tiny on port ")?.1.split_whitespace().next()?.parse::<u16>().ok()
    });
    let Some(port) = port else {
        fixture.must(false, || "the router logs no port of its child: nothing is tested".to_string());
        return Ok(());
    };
    for (key, expected) in [(None, 401), (Some("unknown-key"), 401), (Some(BOB), 200)] {
        let request = Request::post("/completion", &request).with_key(key);
        let status = Client::on_port(port).request(&request, LIMIT)?.status.unwrap_or_default();
        fixture.must(status == expected, || format!("the child, with the key {key:?}: returned {status}"));
    }
    Ok(())
}

/// Requests of alice in a slot that retains its sequence, none of which makes the sequence bob's.
pub fn retained_slot_has_an_owner(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let saves = fixture.empty_folder("slots")?;
    let kept = ["-np", "1", "-c", "4096", "--kv-paged", "--api-key", KEYS, "--slot-save-path", &saves];
    let server = fixture.serve(Model::Adapted, &kept)?;
    let orders: [(&str, [Value; 2], Value); 3] = [
        ("twice", [question(1), question(1)], question(1)),
        ("cache_prompt off", [question(2), with(question(2), "cache_prompt", false)], question(2)),
        ("another scale", [1.0, 0.5].map(|scale| scaled(question(3), &[scale])), scaled(question(3), &[0.5])),
    ];
    for (what, alices, bobs) in orders {
        for request in &alices {
            ask_as(&server, ALICE, request)?;
        }
        let answer = ask_as(&server, BOB, &bobs)?;
        fixture.must_have_found(&format!("bob, after alice's {what}"), &answer, 0);
    }
    drop(server);
    let embedding =
        fixture.serve(Model::Trained, &[&kept[..], &["--embedding", "--pooling", "last"]].concat())?;
    after_an_embedding(fixture, &embedding)
}

fn after_an_embedding(fixture: &mut PromiseFixture<'_>, server: &Server) -> Result<()> {
    let (status, body) =
        post_as(server, ALICE, "/embedding", &json!({ "content": question(4)["prompt"].clone() }))?;
    fixture.must(status == 200, || format!("alice's embedding returned {status}: {body}"));
    let answer = ask_as(server, BOB, &question(4))?;
    fixture.must_have_found("bob, after alice's embedding", &answer, 0);
    Ok(())
}

/// A `cache_salt` whose field name is written with a JSON escape isolates like any other.
pub fn escaped_salt(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let server = fixture.serve(Model::Trained, &["-np", "2", "-c", "4096", "--kv-paged"])?;
    let says = |text: &str, salt: &str| {
        format!(r#"{{"model":"m","max_tokens":1,"messages":[{{"role":"user","content":"{text}"}}]{salt}}}"#)
    };
    let found = |body: String| -> Result<Option<u64>> {
        let (_, answer) = server.json(&Request::post("/v1/messages", body), LIMIT)?;
        Ok(answer.pointer("/usage/cache_read_input_tokens").and_then(Value::as_u64))
    };
    let (first, second) = ("one two three four ".repeat(40), "five six seven eight ".repeat(40));
    let escaped = ",\"cache_\\u0073alt\":\"a\"";
    let (salted, bare) = (found(says(&first, escaped))?, found(says(&first, ""))?);
    fixture.must(salted == Some(0) && bare == Some(0), || {
        format!("with an escaped salt {salted:?} tokens were found, and then without a salt {bare:?}")
    });
    let again = found(says(&first, escaped))?;
    fixture.must(again.is_some_and(|tokens| tokens > 0), || {
        format!("the same salt again found {again:?} tokens")
    });
    found(says(&second, ""))?;
    let shared = found(says(&second, ""))?;
    fixture.must(shared.is_some_and(|tokens| tokens > 0), || {
        format!("without a salt {shared:?} tokens were found")
    });
    Ok(())
}

/// Delay that gives the server time to finish after an answer.
pub const MOMENT: Duration = Duration::from_millis(50);
