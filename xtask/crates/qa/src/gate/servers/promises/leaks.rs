//! Idle slots without a sequence hold no blocks, however their last request ended.

use espalier_core::error::Result;
use espalier_core::sys::net::server::Server;
use serde_json::{Value, json};

use super::asking::{ask, plain, with};
use super::fixture::{Model, PromiseFixture};
use super::retained::keeping;
use super::tenants::MOMENT;
use crate::serving::cases;

/// Number of attempts to reproduce a situation.
const TRIES: u64 = 4;

/// Returns the idle slots without a sequence that hold blocks, as `[slot, blocks]`.
fn held_for_nothing(slots: &Value) -> Value {
    let is_leak = |slot: &&Value| {
        slot["is_processing"] == false && slot["n_prompt_tokens"] == 0 && slot["kv_blocks"] != 0
    };
    let leaks = slots.as_array().into_iter().flatten().filter(is_leak);
    leaks.map(|slot| json!([slot["id"], slot["kv_blocks"]])).collect()
}

/// Small batches and slow attention, so that a disconnected client is noticed before a long prompt is computed: the
/// server polls its connections once a second, and only if it received no other request meanwhile.
const SLOW: [&str; 6] = ["-b", "2", "-ub", "1", "-fa", "off"];

/// A client disconnects while its request waits for in-flight blocks of another.
pub fn client_that_waits_for_a_prefix(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let mut met = false;
    for number in 1..=TRIES {
        let server = keeping(fixture, Model::Random, &[&["-np", "2", "-c", "4096"], &SLOW[..]].concat())?;
        let long = cases::numbered_prompt(number, 3900);
        let slots = slots_after_leaving(&server, &long)?;
        met = slots[1]["is_processing"] == true && slots[0]["is_processing"] == false;
        let held = held_for_nothing(&slots);
        fixture.must(held == json!([]), || {
            format!("idle slots without a text hold blocks, [slot, blocks]: {held}")
        });
        if met || !fixture.holds_so_far() {
            break;
        }
    }
    fixture.arose(met, || "no request was computing any more".to_string());
    Ok(())
}

/// Slot 1 computes the prompt. The client of slot 0, which is scheduled first, waits for it and disconnects, and the
/// server notices.
fn slots_after_leaving(server: &Server, prompt: &[u32]) -> Result<Value> {
    let in_slot = |slot: usize| with(plain(prompt, 1), "id_slot", slot);
    std::thread::scope(|threads| {
        let first = threads.spawn(|| server.post_and_leave("/completion", &in_slot(1), MOMENT * 40));
        std::thread::sleep(MOMENT);
        server.post_and_leave("/completion", &in_slot(0), MOMENT * 4)?;
        std::thread::sleep(MOMENT * 22);
        let slots = server.get("/slots")?.1;
        first.join().unwrap_or(Ok(()))?;
        Ok(slots)
    })
}

/// A request with other adapter scales is refused after its slot's sequence was dropped for it.
pub fn refused_after_a_switch(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let server = keeping(fixture, Model::Adapted, &["-np", "1", "-c", "4096"])?;
    let request = |scale: f64| {
        let named = json!([{ "id": 0, "scale": scale }]);
        with(plain(&cases::numbered_prompt(1, 300), 1), "lora", named)
    };
    let (status, body) = ask(&server, &request(1.0))?;
    fixture.must(status == 200, || format!("the first request returned {status}: {body}"));
    let (status, body) = ask(&server, &with(request(0.5), "grammar", "root ::= ("))?;
    fixture.must(status == 400, || format!("a bad grammar returned {status}: {body}"));
    let held = held_for_nothing(&server.get("/slots")?.1);
    fixture
        .must(held == json!([]), || format!("idle slots without a text hold blocks, [slot, blocks]: {held}"));
    Ok(())
}
