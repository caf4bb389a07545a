//! Saving a slot to a file, erasing and restoring it.

use espalier_core::error::Result;
use espalier_core::sys::machine::disk;
use espalier_core::sys::net::server::Server;
use serde_json::{Value, json};

use super::fixture::Fixture;
use crate::serving::cases::{self, BLOCK};

/// Length of the first prompt, in tokens. Its answer ends just after a block, so that the pool has fewer tokens cached
/// than the file, and a model with a recurrent state has a snapshot in its answer.
const PROMPT: usize = 170;

/// Checks that a conversation continues from the file if the slot was restored, and from the pool's full blocks
/// otherwise.
pub fn check(fixture: &mut Fixture<'_>) -> Result<()> {
    let folder = fixture.folder("slots")?;
    let path = folder.display().to_string();
    let server =
        fixture.ours(&["-np", "2", "-c", cases::AMPLE_CELLS, "--kv-paged", "--slot-save-path", &path])?;
    let prompt = cases::numbered_prompt(1, PROMPT);
    let first = in_slot(cases::request(&prompt));
    let stock = fixture.expect(&first)?;
    let answer = fixture.ask("the first answer", &server, &first, &stock)?;
    let tokens: Vec<u32> = serde_json::from_value(answer["tokens"].clone()).unwrap_or_default();
    let next = in_slot(cases::request(&[prompt, tokens, cases::numbered_prompt(2, 20)].concat()));
    let stock = fixture.expect(&next)?;
    // The last generated token is not in the cache: it was never decoded.
    let kept = answer["tokens"].as_array().map_or(0, Vec::len) + PROMPT - 1;

    act(fixture, &server, "save", "n_saved", kept)?;
    act(fixture, &server, "erase", "n_erased", kept)?;
    let body = fixture.ask("after erasing", &server, &next, &stock)?;
    fixture.must_have_found("after erasing", &body, kept / BLOCK * BLOCK);
    act(fixture, &server, "restore", "n_restored", kept)?;
    let body = fixture.ask("after restoring", &server, &next, &stock)?;
    fixture.must_have_found("after restoring", &body, kept);
    disk::remove_file(&folder.join(FILE))
}

const FILE: &str = "gate.bin";

fn in_slot(mut request: Value) -> Value {
    request["id_slot"] = 0.into();
    request
}

fn act(fixture: &mut Fixture<'_>, server: &Server, action: &str, key: &str, tokens: usize) -> Result<()> {
    let (status, body) = server.post(&format!("/slots/0?action={action}"), &json!({ "filename": FILE }))?;
    fixture.must(body[key].as_u64() == u64::try_from(tokens).ok(), || {
        format!("{action}: expected {tokens} tokens, returned {status}: {body}")
    });
    Ok(())
}
