//! Activations that overflow: the request gets an error, and what it leaves in the KV cache or in a recurrent state
//! changes no answer of another tenant.

use espalier_core::error::Result;
use espalier_core::sys::machine::threads::result_of;
use espalier_core::sys::net::server::Server;
use serde_json::{Value, json};

use super::asking::{ask, ask_as, metric, plain, post, scaled, with};
use super::fixture::{Model, PromiseFixture};
use super::tenants::{ALICE, BOB, KEYS, MOMENT};
use crate::serving::asking::pool_at_rest;
use crate::serving::cases::{self, BLOCK};
use crate::serving::kv_pool::Pool;
use crate::serving::reference::Reference;

/// Model, flash attention, and kind of KV cache.
const SERVERS: [(Model, &str, &str); 8] = [
    (Model::Overflowing, "off", "--kv-paged"),
    (Model::Overflowing, "on", "--kv-paged"),
    (Model::Overflowing, "off", "--kv-unified"),
    (Model::Overflowing, "on", "--kv-unified"),
    (Model::Overflowing, "off", "--no-kv-unified"),
    (Model::RecurrentOverflowing, "on", "--kv-paged"),
    (Model::RecurrentOverflowing, "on", "--kv-unified"),
    (Model::RecurrentOverflowing, "off", "--no-kv-unified"),
];

/// Number of slots; alice leaves something in each of them.
const SLOTS: usize = 2;

/// Lengths of bob's prompts, in tokens. Upstream's attention computes 64 rows and more with another kernel.
const LENGTHS: [usize; 2] = [20, 150];

/// Length of alice's prompt, in tokens.
const LONGER: usize = 400;

fn request(number: u64, length: usize, scale: f64) -> Value {
    scaled(cases::request(&cases::numbered_prompt(number, length)), &[scale])
}

/// Alice's requests overflow with an adapter; bob, who does not use it, gets the answers of a server that computed
/// nothing else.
pub fn stays_in_its_request(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    for (model, attention, cache) in SERVERS {
        let what = format!("{model:?}, -fa {attention}, {cache}");
        let mut reference = fixture.reference(model, &["-fa", attention])?;
        let two_keys = ["-np", "2", "-c", cases::AMPLE_CELLS, "--api-key", KEYS];
        let server = fixture.serve(model, &[&two_keys[..], &["-fa", attention, cache]].concat())?;
        for (number, length) in (1..).zip(LENGTHS) {
            overflow(fixture, &server, &what)?;
            answers_are_right(fixture, &mut reference, &server, &what, &request(number, length, 0.0))?;
        }
    }
    Ok(())
}

/// The server gives alice's requests the slot that was idle longest.
fn overflow(fixture: &mut PromiseFixture<'_>, server: &Server, what: &str) -> Result<()> {
    for number in (10..).take(SLOTS) {
        let (status, body) = ask_as(server, ALICE, &request(number, LONGER, 1000.0))?;
        fixture.must(status == 500 && body.to_string().contains("not finite"), || {
            format!("{what}: alice's request returned {status} instead of 500: {body}")
        });
    }
    Ok(())
}

fn answers_are_right(
    fixture: &mut PromiseFixture<'_>,
    reference: &mut Reference,
    server: &Server,
    what: &str,
    request: &Value,
) -> Result<()> {
    let expected = reference.expect(request)?;
    for _ in 0..SLOTS {
        let (status, body) = ask_as(server, BOB, request)?;
        fixture.hold(&format!("{what}: bob"), &expected, reference.tolerance, (status, &body));
    }
    Ok(())
}

/// No prompt continues from what a request computed whose output is not finite, also not from its first batches: none of
/// its blocks stays cached, and no snapshot that was taken before any output was looked at. A pool that never held its
/// blocks breaks this promise too.
pub fn leaves_nothing_cached(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    const ARGUMENTS: [&str; 10] =
        ["-np", "1", "-c", "4096", "-b", "64", "-ub", "64", "--kv-paged", "--metrics"];
    for model in [Model::Overflowing, Model::RecurrentOverflowing] {
        let server = fixture.serve(model, &ARGUMENTS)?;
        let (status, body) = ask(&server, &request(1, LONGER, 1000.0))?;
        is_forgotten(fixture, model, &server, (status, &body))?;
        there_was_something_to_forget(fixture, model, &server)?;
    }
    Ok(())
}

/// Checks that this is the answer of a request whose output is not finite, and that nothing is held or cached.
fn is_forgotten(
    fixture: &mut PromiseFixture<'_>,
    model: Model,
    server: &Server,
    (status, body): (u16, &Value),
) -> Result<()> {
    fixture.must(status == 500 && body.to_string().contains("not finite"), || {
        format!("{model:?}: the request returned {status} instead of 500: {body}")
    });
    let cached = cached_after_a_moment(server)?;
    fixture.must(cached == (0, 0), || {
        format!("{model:?}: {} blocks and {} snapshots stay held or cached", cached.0, cached.1)
    });
    Ok(())
}

/// Returns a request with finite output that uses the same server and leaves nothing in its cache.
fn unshared(length: usize, predict: usize) -> Value {
    let request = scaled(plain(&cases::numbered_prompt(2, length), predict), &[0.0]);
    with(request, "cache_prompt", false)
}

/// The state that a request restored may be the cause, and the blocks before it are of the same origin. The client of
/// the request that saved it had left before any output was looked at, so it is cached.
pub fn leaves_no_restored_state(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    const MODEL: Model = Model::RecurrentOverflowing;
    // One token of a prompt in a step: a server notices a closed connection once in a second.
    const ARGUMENTS: [&str; 7] = ["-np", "2", "-c", "8192", "--prefill-budget", "1", "--kv-paged"];
    // The state is saved where the first block ends, in the system prompt.
    const SYSTEM: usize = BLOCK + 20;
    const REST: usize = 2000;
    const DELIMITER: &str = "<user>";
    let server = fixture.serve(MODEL, &ARGUMENTS)?;
    let user = post(&server, "/tokenize", &json!({ "content": DELIMITER, "parse_special": true }))?.1;
    let user: Vec<u32> = serde_json::from_value(user["tokens"].clone()).unwrap_or_default();
    fixture.must(!user.is_empty(), || "the delimiter has no tokens".to_string());
    let (system, rest) = (cases::numbered_prompt(1, SYSTEM), cases::numbered_prompt(3, REST));
    let delimiters = json!([{ "role": "user", "delimiter": DELIMITER }]);
    let request = with(plain(&[system, user, rest].concat(), 1), "message_delimiters", delimiters);
    let request = scaled(request, &[1000.0]);
    let beside = std::thread::scope(|threads| {
        let growing = threads.spawn(|| ask(&server, &unshared(20, REST)));
        std::thread::sleep(MOMENT / 5);
        server.post_and_leave("/completion", &request, MOMENT)?;
        result_of(growing)
    })?;
    fixture.must_return("the request beside it", &beside, 200);
    pool_at_rest(&server)?;
    let saved = server.get("/props")?.1["kv_snapshots"]["count"].as_u64().unwrap_or_default();
    if !fixture.arose(saved > 0, || "no state was saved before the request ended".to_string()) {
        return Ok(());
    }
    let (status, body) = ask(&server, &request)?;
    let hits = server.get("/props")?.1["kv_snapshots"]["hits"].as_u64().unwrap_or_default();
    fixture.must(hits > 0, || "the state that was saved is not restored".to_string());
    is_forgotten(fixture, MODEL, &server, (status, &body))
}

/// Checks that the request before this one held the blocks of its whole prompt, and a snapshot if the model has a
/// state; and that a request of that length leaves its full blocks in the cache if its output is finite. Without that,
/// an empty cache would prove nothing.
fn there_was_something_to_forget(
    fixture: &mut PromiseFixture<'_>,
    model: Model,
    server: &Server,
) -> Result<()> {
    let (held, needed) = (Pool::of_server(server)?.blocks_used_peak, LONGER.div_ceil(BLOCK) as u64);
    fixture.must(held >= needed, || {
        format!(
            "{model:?}: the request held {held} blocks, and its prompt takes {needed}: none was forgotten"
        )
    });
    if model == Model::RecurrentOverflowing {
        let taken = metric(server, "kv_snapshots_total{reason=\"prompt_end\"}")?;
        fixture.must(taken > 0.0, || "no snapshot was taken".to_string());
    }
    let (status, body) = ask(server, &request(1, LONGER, 0.0))?;
    fixture.must(status == 200, || format!("{model:?}: a finite request returned {status}: {body}"));
    let (cached, full) = (pool_at_rest(server)?.blocks_retained, (LONGER / BLOCK) as u64);
    fixture.must(cached >= full, || {
        format!(
            "{model:?}: a finite request leaves {cached} blocks instead of {full}: none would be forgotten"
        )
    });
    Ok(())
}

/// Returns the numbers of blocks that are held or cached, and of snapshots, as soon as both are 0 or after half a
/// second: the client is answered before the slot releases its blocks, and a held block is not counted as cached.
fn cached_after_a_moment(server: &Server) -> Result<(u64, u64)> {
    let mut cached = (0, 0);
    for _ in 0..10 {
        let props = server.get("/props")?.1;
        let snapshots = props["kv_snapshots"]["count"].as_u64().unwrap_or_default();
        let pool = Pool::of_props(&props)?;
        cached = (pool.blocks_used + pool.blocks_retained, snapshots);
        if cached == (0, 0) {
            break;
        }
        std::thread::sleep(MOMENT);
    }
    Ok(cached)
}
