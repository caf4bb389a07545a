//! Capacity: whatever fits into the pool is answered, at once or after a wait, and never at the cost of other requests.

use espalier_core::error::Result;
use espalier_core::sys::machine::threads::result_of;
use espalier_core::sys::net::server::Server;
use serde_json::{Value, json};

use super::asking::{ask, metric, plain, post, with};
use super::fixture::{Model, PromiseFixture};
use super::meanwhile::meanwhile;
use super::retained::keeping;
use super::tenants::MOMENT;
use crate::serving::cases::{self, BLOCK};

/// Context size, in tokens: a pool of 16 blocks.
const CELLS: &str = "1024";

/// Number of attempts to reproduce a situation on a busy machine.
const TRIES: usize = 20;

/// Number of clients that disconnect while they wait, each after a different time.
const LEAVERS: u64 = 8;

fn prompt(number: u64, length: usize) -> Vec<u32> {
    cases::numbered_prompt(number, length)
}

fn must_be_answered(fixture: &mut PromiseFixture<'_>, what: &str, (status, body): &(u16, Value)) {
    fixture.must(*status == 200, || format!("{what}: returned {status}: {body}"));
}

/// A retained sequence whose blocks were needed is dropped as a whole: an embedding with the same prefix is computed.
pub fn forgotten_retained_sequence(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let arguments = ["-np", "2", "-c", CELLS, "-ub", "1024", "--embedding", "--pooling", "last"];
    let text = prompt(1, 500);
    for path in ["/embedding", "/completion"] {
        let mut server = keeping(fixture, Model::Trained, &arguments)?;
        let expected = embed(&server, &text)?.1;
        // Four of sixteen blocks and eleven: the embedding lacks four, and one is free.
        for tokens in [&text[..250], &prompt(2, 700)] {
            post(&server, path, &with(plain(tokens, 1), "content", tokens))?;
        }
        let answer = embed_at_last(&server, &text)?;
        fixture.must(answer.0 == 200 && is_near(&expected, &answer.1), || {
            format!("after {path} the embedding returned {}: {}", answer.0, answer.1)
        });
        server.still_runs()?;
    }
    Ok(())
}

fn embed(server: &Server, tokens: &[u32]) -> Result<(u16, Value)> {
    post(server, "/embedding", &json!({ "content": tokens }))
}

/// Sends an embedding request, and erases the slot that holds more blocks if the request has to wait for them.
fn embed_at_last(server: &Server, text: &[u32]) -> Result<(u16, Value)> {
    std::thread::scope(|threads| {
        let embedded = threads.spawn(|| embed(server, text));
        for _ in 0..20 {
            if embedded.is_finished() {
                break;
            }
            std::thread::sleep(MOMENT);
        }
        if !embedded.is_finished() {
            let slots = server.get("/slots")?.1;
            let larger = usize::from(slots[1]["kv_blocks"].as_u64() > slots[0]["kv_blocks"].as_u64());
            post(server, &format!("/slots/{larger}?action=erase"), &json!({}))?;
        }
        result_of(embedded)
    })
}

fn numbers(body: &Value) -> Vec<f64> {
    let found = body.pointer("/0/embedding/0").and_then(Value::as_array);
    found.into_iter().flatten().filter_map(Value::as_f64).collect()
}

/// Whether two embeddings agree within 0.01; paging moves an embedding by 0.0015 at most.
fn is_near(one: &Value, other: &Value) -> bool {
    let (one, other) = (numbers(one), numbers(other));
    one.len() == other.len()
        && !one.is_empty()
        && one.iter().zip(&other).all(|(one, other)| (one - other).abs() < 0.01)
}

/// Requests do not wait for blocks that only an idle slot retains.
pub fn capacity_of_idle_slots(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let server = keeping(fixture, Model::Trained, &["-np", "2", "-c", CELLS])?;
    for (slot, what) in [(1, "the first"), (0, "the second")] {
        let request = with(plain(&prompt(slot, 700), 4), "id_slot", slot);
        must_be_answered(fixture, what, &ask(&server, &request)?);
    }
    Ok(())
}

/// A prompt that ends at a block boundary and needs the last block of the pool.
pub fn last_block(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let server = fixture.serve(Model::Trained, &["-np", "1", "-c", CELLS, "--kv-paged"])?;
    for length in [15 * BLOCK - 1, 15 * BLOCK, 15 * BLOCK + 1] {
        let answer = ask(&server, &plain(&prompt(length as u64, length), 8))?;
        must_be_answered(fixture, &format!("{length} tokens"), &answer);
    }
    drop(server);
    last_block_beside_another(fixture)
}

/// A request for fourteen blocks and one more, beside a request that holds one: exactly all of the pool, so it must
/// fit.
fn last_block_beside_another(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let server = fixture.serve(Model::Random, &["-np", "2", "-c", CELLS, "--kv-paged"])?;
    let mut met = false;
    for number in 0..TRIES as u64 {
        let neighbour = plain(&prompt(1000 + number, 3), BLOCK - 4);
        let (_, (answer, in_time)) = meanwhile(&server, &neighbour, |running| {
            let answer = ask(&server, &plain(&prompt(number, 14 * BLOCK), 4))?;
            Ok((answer, !running.is_over()))
        })?;
        must_be_answered(fixture, "beside another", &answer);
        let times = server.log_text()?.matches("preempted with").count();
        fixture.must(times == 0, || format!("it fits beside another, and was preempted {times} times"));
        met |= in_time;
        if met || times > 0 {
            break;
        }
    }
    fixture.arose(met, || "no request ran beside it".to_string());
    Ok(())
}

/// Several choices of one prompt, as many as fit: the shared blocks of the prompt, and the blocks that each choice
/// needs for itself.
pub fn several_choices(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    for (choices, length) in [(2, 14 * BLOCK), (4, 10 * BLOCK), (4, 12 * BLOCK + 2)] {
        let server = fixture.serve(Model::Trained, &["-np", "4", "-c", CELLS, "--kv-paged"])?;
        let request = json!({ "prompt": prompt(1, length), "n": choices, "max_tokens": 20, "temperature": 0,
                              "ignore_eos": true });
        let answer = post(&server, "/v1/completions", &request)?;
        must_be_answered(fixture, &format!("n: {choices}, {length} tokens"), &answer);
    }
    Ok(())
}

/// A request reuses half of its slot's retained sequence, in a pool that the new sequence fills.
pub fn resumed_from_half(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    for batch in ["2048", "128"] {
        let server = keeping(fixture, Model::Trained, &["-np", "1", "-c", CELLS, "-b", batch])?;
        let first = prompt(1, 1000);
        let second = [&first[..520], &prompt(2, 480)].concat();
        for (what, text) in [("the first", &first), ("the second", &second)] {
            must_be_answered(fixture, &format!("-b {batch}, {what}"), &ask(&server, &plain(text, 4))?);
        }
    }
    let server = keeping(fixture, Model::Trained, &["-np", "2", "-c", CELLS])?;
    beside_a_neighbour(fixture, &server)
}

fn beside_a_neighbour(fixture: &mut PromiseFixture<'_>, server: &Server) -> Result<()> {
    let first = prompt(1, 700);
    let second = [&first[..360], &prompt(2, 340)].concat();
    let in_slot = |text: &[u32], slot: usize| with(plain(text, 4), "id_slot", slot);
    must_be_answered(fixture, "alone", &ask(server, &in_slot(&first, 0))?);
    let neighbour = with(plain(&prompt(3, 200), 90), "id_slot", 1);
    let (beside, answer) = meanwhile(server, &neighbour, |_| {
        let answer = ask(server, &in_slot(&second, 0))?;
        Ok(answer)
    })?;
    must_be_answered(fixture, "beside a neighbour", &answer);
    fixture.must(beside.last.get("error").is_none(), || format!("its neighbour got {}", beside.last));
    Ok(())
}

/// A slot is restored after its draft model has computed another sequence.
pub fn drafts_after_a_restore(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let draft = fixture.trained_model();
    let arguments = ["-np", "2", "-c", "2048", "-md", &draft, "--spec-type", "draft-simple"];
    let server = keeping(fixture, Model::Trained, &arguments)?;
    let in_slot =
        |number: u64, length: usize, slot: usize| with(plain(&prompt(number, length), 8), "id_slot", slot);
    let act =
        |action: &str| post(&server, &format!("/slots/0?action={action}"), &json!({ "filename": "file" }));
    must_be_answered(fixture, "before", &ask(&server, &in_slot(1, 150, 0))?);
    must_be_answered(fixture, "saving", &act("save")?);
    must_be_answered(fixture, "something else", &ask(&server, &in_slot(2, 900, 0))?);
    must_be_answered(fixture, "restoring", &act("restore")?);
    for number in 3..9 {
        let what = format!("request {} in another slot", number - 2);
        must_be_answered(fixture, &what, &ask(&server, &in_slot(number, 600, 1))?);
    }
    Ok(())
}

/// A client that disconnects while its request waits for another's prefix, in a slot whose retained sequence had to be
/// dropped, leaves no wrong tokens there.
pub fn left_while_waiting(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let mut reference = fixture.reference(Model::Random, &["-fa", "off"])?;
    let arguments = ["-np", "3", "-c", CELLS, "-b", "16", "-ub", "16", "-fa", "off", "--metrics"];
    let mut server = keeping(fixture, Model::Random, &arguments)?;
    let in_first = |request: Value| with(request, "id_slot", 0);
    let again = cases::request(&prompt(1, 330));
    let expected = reference.expect(&again)?;
    for number in 0..LEAVERS {
        // Six of sixteen blocks are retained, and thirteen are needed.
        ask(&server, &in_first(plain(&prompt(1, 330), 1)))?;
        let long = prompt(10 + number, 830);
        std::thread::scope(|threads| {
            let computing = threads.spawn(|| ask(&server, &with(plain(&long, 1), "id_slot", 1)));
            std::thread::sleep(MOMENT);
            let patience = MOMENT * u32::try_from(number).unwrap_or(0) / 2;
            server.post_and_leave("/completion", &in_first(plain(&long, 1)), patience)?;
            result_of(computing)
        })?;
        let (status, body) = ask(&server, &in_first(again.clone()))?;
        fixture.hold(
            &format!("after {number} half moments"),
            &expected,
            reference.tolerance,
            (status, &body),
        );
    }
    let waited = metric(&server, "prefix_cache_inflight_waits_total")?;
    fixture.arose(waited > 0.0, || "no request waited for a prefix".to_string());
    server.still_runs()
}
