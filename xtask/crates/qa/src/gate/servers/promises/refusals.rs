//! Refused requests have no side effects: the stream of the conversation continues, and the slot keeps its sequence. The
//! wait of an action for a busy slot is bounded.

use std::path::Path;
use std::time::{Duration, Instant};

use espalier_core::error::Result;
use espalier_core::http::{Disconnect, Request};
use espalier_core::sys::machine::disk;
use espalier_core::sys::machine::threads::result_of;
use espalier_core::sys::net::server::Server;
use serde_json::{Value, json};

use super::asking::{LIMIT, ask, plain, post, read_to_end, with};
use super::fixture::{Model, PromiseFixture};
use super::meanwhile::meanwhile;
use super::slot_files::as_stock_saves_it;
use super::tenants::MOMENT;
use crate::fuzz::plan::body::CONVERSATION_ID;
use crate::serving::cases;

const PAGED_OR_NOT: [&str; 2] = ["--kv-paged", "--kv-unified"];

/// The id of the conversation.
const CONVERSATION: &str = "chat-1";

fn prompt(number: u64) -> Vec<u32> {
    cases::numbered_prompt(number, 20)
}

/// Sends a request of the conversation. Returns the status and the text of the response.
fn converse(server: &Server, body: &Value) -> (u16, String) {
    let request = Request::post("/completion", body).with_header(CONVERSATION_ID, CONVERSATION);
    read_to_end(server, &request, 4 * LIMIT)
}

fn looked_up(server: &Server) -> Result<Value> {
    Ok(post(server, "/v1/streams/lookup", &json!({ "conversation_ids": [CONVERSATION] }))?.1[0].clone())
}

/// Waits until the conversation has a stream.
fn wait_for_stream(server: &Server) -> Result<()> {
    for _ in 0..50 {
        if looked_up(server)?["total_bytes"].as_u64().unwrap_or(0) > 0 {
            break;
        }
        std::thread::sleep(MOMENT);
    }
    Ok(())
}

/// A request that the queue, the context or the pool refuses leaves the stream of its conversation alone.
pub fn streams_outlive_refusals(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    PAGED_OR_NOT.into_iter().try_for_each(|paging| streams_outlive_refusals_with(fixture, paging))
}

fn streams_outlive_refusals_with(fixture: &mut PromiseFixture<'_>, paging: &str) -> Result<()> {
    let arguments = ["-np", "2", "-c", "4096", paging, "--max-queued", "1"];
    let server = fixture.serve(Model::Random, &arguments)?;
    let stream = with(plain(&prompt(1), 3000), "stream", true);
    std::thread::scope(|threads| {
        let server = &server;
        let streamed = threads.spawn(move || converse(server, &stream));
        wait_for_stream(server)?;
        let too_long = plain(&cases::numbered_prompt(9, 5000), 2);
        let (status, body) = converse(server, &too_long);
        fixture.must(status == 400, || format!("{paging}: a prompt that does not fit got {status}: {body}"));
        // Two requests with slots and one queued: the next exceeds the limit.
        let (_, queued) = meanwhile(server, &plain(&prompt(2), 3000), |_| {
            let queued = threads.spawn(move || ask(server, &plain(&prompt(3), 2)));
            std::thread::sleep(2 * MOMENT);
            for streams in [false, true] {
                let (status, body) = converse(server, &with(plain(&prompt(4), 2), "stream", streams));
                fixture.must(status == 429, || format!("{paging}: one too many got {status}: {body}"));
            }
            Ok(queued)
        })?;
        let found = looked_up(server)?;
        fixture.must(found["conversation_id"] == CONVERSATION, || {
            format!("{paging}: the stream is gone after refusals: {found}")
        });
        result_of(queued)?;
        let (status, body) = streamed.join().unwrap_or_default();
        fixture.must(status == 200 && body.contains("\"stop\":true"), || {
            format!("{paging}: the stream ended with {status} before its last token")
        });
        Ok(())
    })
}

/// A request that may wait for the slot or the blocks of its conversation's stream replaces that stream.
pub fn waiting_replaces_its_stream(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    // Waiting for a slot, and for blocks.
    for (what, arguments, length) in [
        ("one slot", ["-np", "1", "-c", "4096", "--kv-paged"], 20),
        ("one slot, unpaged", ["-np", "1", "-c", "4096", "--kv-unified"], 20),
        ("few blocks", ["-np", "2", "-c", "1024", "--kv-paged"], 600),
    ] {
        let server = fixture.serve(Model::Random, &arguments)?;
        let stream = with(plain(&cases::numbered_prompt(1, length), 3000), "stream", true);
        std::thread::scope(|threads| {
            let server = &server;
            let streamed = threads.spawn(move || converse(server, &stream));
            wait_for_stream(server)?;
            let (status, body) = converse(server, &plain(&cases::numbered_prompt(2, length), 2));
            fixture.must(status == 200, || format!("{what}: the later request got {status}: {body}"));
            let (_, body) = streamed.join().unwrap_or_default();
            fixture.must(!body.contains("\"stop\":true"), || {
                format!("{what}: the stream went on to its end, and the later request waited")
            });
            Ok::<(), espalier_core::error::Error>(())
        })?;
    }
    Ok(())
}

/// The time after which an action on a busy slot is refused.
const BOUND: Duration = Duration::from_secs(5);

/// An action on a slot that stays busy is refused with 503 and `Retry-After`, and can be repeated.
pub fn slot_actions_are_bounded(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    for paging in PAGED_OR_NOT {
        let folder = fixture.empty_folder("bounded")?;
        let arguments = ["-np", "1", "-c", "16384", paging, "--max-queued", "4", "--slot-save-path", &folder];
        // The model's own context ends the stream before the bound on a fast machine.
        let slow = ["-b", "2", "-ub", "1", "-fa", "off", "--override-kv", "llama.context_length=int:16384"];
        let server = fixture.serve(Model::Random, &[&arguments[..], &slow].concat())?;
        let holder = plain(&cases::numbered_prompt(1, 10), 16000);
        let (_, (head, waited, is_over)) = meanwhile(&server, &holder, |running| {
            let begin = Instant::now();
            let request = Request::post("/slots/0?action=save", json!({ "filename": "file" }));
            let bytes = server.send(&request, Disconnect::AfterTime(2 * BOUND), 2 * BOUND).bytes;
            Ok((espalier_series::lossy(&bytes).into_owned(), begin.elapsed(), running.is_over()))
        })?;
        // An answer that comes later than the bound is a violation, whatever ended the wait.
        let is_busy = !is_over || waited > BOUND + BOUND / 2;
        if !fixture.arose(is_busy, || format!("{paging}: the stream was over before")) {
            continue;
        }
        let is_refused = head.contains(" 503 ") && head.to_ascii_lowercase().contains("\r\nretry-after: ");
        fixture.must(is_refused, || format!("{paging}: after {waited:?} a save of a busy slot got {head}"));
        let left = disk::files_in(Path::new(&folder))?;
        fixture.must(left.is_empty(), || format!("{paging}: the refused save left {left:?}"));
        std::thread::sleep(2 * MOMENT);
        let (status, body) = post(&server, "/slots/0?action=save", &json!({ "filename": "file" }))?;
        fixture.must(status == 200, || format!("{paging}: the same later got {status}: {body}"));
    }
    Ok(())
}

/// Tokens of a slot's own sequence.
const HELD: usize = 200;

/// A refused restore leaves the slot's sequence, whatever the reason.
pub fn refused_restores_keep_the_sequence(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    for paging in [&["--kv-paged"][..], &[]] {
        let saves = fixture.empty_folder("restores")?;
        let serve = |fixture: &PromiseFixture<'_>, model: Model, arguments: &[&str]| {
            fixture.serve(model, &[&["-np", "1", "--slot-save-path", &saves], paging, arguments].concat())
        };
        let fill = |server: &Server, number: u64, tokens: usize, file: &str| {
            ask(server, &plain(&cases::numbered_prompt(number, tokens), 1))?;
            post(server, "/slots/0?action=save", &json!({ "filename": file }))
        };
        // Files that cannot be restored below: damaged, too long, or saved by a stock server with another cache type.
        let server = serve(fixture, Model::Trained, &["-c", "1024"])?;
        fill(&server, 1, 900, "long")?;
        fill(&server, 2, 40, "damaged")?;
        drop(server);
        let bytes = disk::read(&Path::new(&saves).join("damaged"))?;
        disk::write_atomically(&Path::new(&saves).join("damaged"), &bytes[..bytes.len() - 9])?;
        let stock = ["-np", "1", "-c", "512", "-ctk", "q8_0", "--slot-save-path", &saves];
        let server = fixture.serve(Model::Trained, &stock)?;
        fill(&server, 3, 40, "stock")?;
        drop(server);
        let path = Path::new(&saves).join("stock");
        disk::write_atomically(&path, &as_stock_saves_it(&disk::read(&path)?)?)?;

        let server = serve(fixture, Model::Trained, &["-c", "512"])?;
        let held = cases::numbered_prompt(4, HELD + 20);
        for file in ["long", "damaged", "stock", "missing"] {
            ask(&server, &plain(&held[..HELD], 1))?;
            let (status, body) = post(&server, "/slots/0?action=restore", &json!({ "filename": file }))?;
            fixture.must(status == 400, || format!("{paging:?}, {file}: returned {status}: {body}"));
            let (status, body) = post(&server, "/slots/0?action=save", &json!({ "filename": "own" }))?;
            let saved = body["n_saved"].as_u64();
            fixture.must(status == 200 && saved == u64::try_from(HELD).ok(), || {
                format!("{paging:?}, {file}: after the refusal the slot has {saved:?} tokens instead of {HELD}: {body}")
            });
        }
        let answer = ask(&server, &plain(&held, 1))?;
        fixture.must_have_found(&format!("{paging:?}: after refused restores"), &answer, HELD);
    }
    Ok(())
}
