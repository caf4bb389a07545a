//! Idle slots without a text hold nothing, whatever became of their last request.

use serde_json::{Value, json};

use super::asking::{ask, plain, with};
use super::fixture::{Model, PromiseFixture};
use super::retained::keeping;
use super::tenants::MOMENT;
use crate::error::Result;
use crate::serving::cases;
use crate::sys::net::server::Server;

/// How often a situation is tried to be met.
const TRIES: u64 = 4;

/// What is held by slots without a text that nobody uses.
fn held_for_nothing(slots: &Value) -> Value {
    let is_leak = |slot: &&Value| {
        slot["is_processing"] == false && slot["n_prompt_tokens"] == 0 && slot["kv_blocks"] != 0
    };
    let leaks = slots.as_array().into_iter().flatten().filter(is_leak);
    leaks.map(|slot| json!([slot["id"], slot["kv_blocks"]])).collect()
}

/// Steps so small, and attention so slow, that who goes away is noticed before a long prompt is computed: the server
/// looks once a second, and then only if nobody asked it anything meanwhile.
const SLOW: [&str; 6] = ["-b", "2", "-ub", "1", "-fa", "off"];

/// A client goes away while it waits for what another one computes.
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
    fixture.must(met || !fixture.holds_so_far(), || "not reproduced: nobody computed any more".to_string());
    Ok(())
}

/// Slot 1 computes, the client of slot 0, which has its turn first, waits for it, leaves, and is noticed.
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

/// A request for other adapters is refused, after the text of its slot was given up for it.
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
