//! Retained sequences of slots belong to their tenant: no other tenant can save, restore or erase them, or infer their
//! content from any answer.

use espalier_core::error::Result;
use espalier_core::http::Request;
use espalier_core::sys::machine::threads::result_of;
use espalier_core::sys::net::server::Server;
use serde_json::{Value, json};

use super::asking::{LIMIT, ask_as, plain, post_as, with};
use super::fixture::{Model, PromiseFixture};
use super::meanwhile::meanwhile;
use super::tenants::{ALICE, BOB, KEYS, MOMENT, PROMPT, question};
use crate::serving::cases;

fn keeping(fixture: &PromiseFixture<'_>) -> Result<Server> {
    keeping_as(fixture, Model::Trained, &["--kv-paged"])
}

fn keeping_as(fixture: &PromiseFixture<'_>, model: Model, mode: &[&str]) -> Result<Server> {
    let saves = fixture.empty_folder("slots")?;
    let arguments = ["-np", "3", "-c", "4096", "--api-key", KEYS, "--slot-save-path", &saves];
    fixture.serve(model, &[&arguments[..], mode].concat())
}

/// Servers that cannot page their cache, and those without `--kv-paged`.
const UNPAGED: [(&str, Model, &[&str]); 4] = [
    ("a window, asked to page", Model::Windowed, &["--kv-paged", "--no-kv-unified"]),
    ("a recurrent state, asked to page", Model::Recurrent, &["--kv-paged", "--no-kv-unified"]),
    ("unpaged", Model::Trained, &[]),
    ("unpaged, unified, no cache of prompts", Model::Trained, &["--kv-unified", "--cache-ram", "0"]),
];

/// Tenant isolation is enforced by the server, not by the pool: it holds without paging.
pub fn unpaged_slots_of_others(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    for (what, model, mode) in UNPAGED {
        let server = keeping_as(fixture, model, mode)?;
        nothing_is_found(fixture, &server, what)?;
        actions_are_refused(fixture, &server, what)?;
    }
    Ok(())
}

/// Sends all requests to one slot, one after the other, so that each meets the sequence of the one before; and then
/// without a slot.
fn nothing_is_found(fixture: &mut PromiseFixture<'_>, server: &Server, what: &str) -> Result<()> {
    for (place, first) in [(in_slot_0 as fn(Value) -> Value, 10), (|request| request, 20)] {
        let salted = |salt: &str| with(question(first + 1), "cache_salt", salt);
        let (other, bare) = (question(first), question(first + 2));
        let orders = [
            ("alice's", ALICE, other.clone(), BOB, other),
            ("a salt's", ALICE, salted("a"), ALICE, salted("b")),
            ("no salt's", ALICE, bare.clone(), ALICE, with(bare, "cache_salt", "a")),
        ];
        for (whose, first, hers, second, his) in orders {
            let answer = ask_as(server, first, &place(hers))?;
            fixture.must(answer.0 == 200, || format!("{what}: {whose} returned {}: {}", answer.0, answer.1));
            let answer = ask_as(server, second, &place(his))?;
            fixture.must_have_found(&format!("{what}: after {whose} prompt, another owner"), &answer, 0);
        }
    }
    // The owner's own sequence is found; otherwise this check would pass on a server that finds nothing.
    ask_as(server, ALICE, &in_slot_0(question(4)))?;
    let answer = ask_as(server, ALICE, &in_slot_0(question(4)))?;
    let found = answer.1["timings"]["cache_n"].as_u64().unwrap_or_default();
    fixture.must(found > 0, || format!("{what}: alice finds nothing of her own prompt: {}", answer.1));
    Ok(())
}

fn actions_are_refused(fixture: &mut PromiseFixture<'_>, server: &Server, what: &str) -> Result<()> {
    ask_as(server, ALICE, &in_slot_0(question(5)))?;
    for (key, action, file, expected) in [
        (ALICE, "save", "hers", 200),
        (BOB, "save", "his", 403),
        (BOB, "erase", "", 403),
        (BOB, "restore", "hers", 403),
        (ALICE, "erase", "", 200),
        (BOB, "restore", "hers", 403),
        (BOB, "save", "hers", 403),
        (ALICE, "restore", "hers", 200),
    ] {
        let answer = act(server, key, action, file)?;
        fixture.must_return(&format!("{what}: {action} of {file:?} as {key}"), &answer, expected);
    }
    let longer = [&cases::numbered_prompt(5, PROMPT)[..], &[7; 20]].concat();
    let answer = ask_as(server, BOB, &in_slot_0(plain(&longer, 1)))?;
    fixture.must_have_found(&format!("{what}: bob, in the slot that alice restored"), &answer, 0);
    Ok(())
}

/// `/slots` shows bob whether alice's slot is busy, and nothing of her prompt.
pub fn slots_shown_to_others(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    for (what, model, mode) in [("paged", Model::Trained, &["--kv-paged"][..]), UNPAGED[0], UNPAGED[2]] {
        let server = keeping_as(fixture, model, mode)?;
        ask_as(&server, ALICE, &in_slot_0(question(1)))?;
        let (hers, his) = (slots_shown_to(&server, ALICE)?, slots_shown_to(&server, BOB)?);
        let (hers, his) = (&hers[0], &his[0]);
        fixture.must(hers["n_prompt_tokens"].as_u64() > Some(0), || {
            format!("{what}: alice sees nothing of her own slot: {hers}")
        });
        fixture.must(shows_load_only(his), || format!("{what}: bob sees of alice's slot {his}"));
    }
    Ok(())
}

/// Returns `/slots` as the holder of this key sees it.
fn slots_shown_to(server: &Server, key: &str) -> Result<Value> {
    Ok(server.json(&Request::get("/slots").with_key(Some(key)), LIMIT)?.1)
}

/// Whether nothing of a slot is shown but its load.
fn shows_load_only(slot: &Value) -> bool {
    let mut names: Vec<&String> = slot.as_object().into_iter().flatten().map(|(name, _)| name).collect();
    names.sort();
    names == ["id", "is_processing", "n_ctx", "speculative"]
}

/// Length of a prompt that takes more than half of a pool of 64 blocks.
const LARGE: usize = 2100;

/// Maximum number of looks at `/slots` until both requests have begun to wait, a [`MOMENT`] apart.
const MAX_LOOKS: usize = 40;

/// `/slots` says for what alice's requests wait, and says it to her alone. The server has no keys, and so distinguishes
/// the keys that requests send; the stream that holds the blocks sends none.
pub fn waits_shown_to_others(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let server = fixture.serve(Model::Random, &["-np", "3", "-c", "4096", "--kv-paged"])?;
    let holder = plain(&cases::numbered_prompt(1, LARGE), 1500);
    std::thread::scope(|threads| {
        let (_, (shown, in_time, waiting)) = meanwhile(&server, &holder, |running| {
            let waiting = [2, 3].map(|number| {
                let server = &server;
                let request = plain(&cases::numbered_prompt(number, LARGE), 1);
                let waiting = threads.spawn(move || ask_as(server, ALICE, &request));
                std::thread::sleep(2 * MOMENT);
                waiting
            });
            let mut shown = (slots_shown_to(&server, ALICE)?, slots_shown_to(&server, BOB)?);
            for _ in 0..MAX_LOOKS {
                if running.is_over() || waits_in(&shown.0).len() == 2 {
                    break;
                }
                std::thread::sleep(MOMENT);
                shown = (slots_shown_to(&server, ALICE)?, slots_shown_to(&server, BOB)?);
            }
            Ok((shown, !running.is_over(), waiting))
        })?;
        for one in waiting {
            fixture.must_return("one that waited", &result_of(one)?, 200);
        }
        let (hers, his) = shown;
        // Waits that are shown arose, whatever ended the stream.
        let waits = waits_in(&hers);
        let arose = in_time || waits.len() == 2;
        if fixture.arose(arose, || "the stream was over before".to_string()) {
            fixture.must(waits == ["free blocks", "the queue head"], || {
                format!("alice's two requests wait for {waits:?}: {hers}")
            });
            let slots = his.as_array().map_or(&[][..], Vec::as_slice);
            fixture.must(slots.len() == 3 && slots.iter().all(shows_load_only), || {
                format!("bob sees of the slots of others {his}")
            });
        }
        Ok(())
    })
}

/// Returns the reasons for which requests wait, in the order of the alphabet.
fn waits_in(slots: &Value) -> Vec<&str> {
    let reasons = slots.as_array().into_iter().flatten().filter_map(|slot| slot["waits_for"].as_str());
    let mut reasons: Vec<&str> = reasons.collect();
    reasons.sort_unstable();
    reasons
}

fn act(server: &Server, key: &str, action: &str, file: &str) -> Result<(u16, Value)> {
    post_as(server, key, &format!("/slots/0?action={action}"), &json!({ "filename": file }))
}

fn in_slot_0(request: Value) -> Value {
    with(request, "id_slot", 0)
}

/// Alice may act on her slot and her file as bob may not.
pub fn actions_of_others(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let server = keeping(fixture)?;
    let hers = in_slot_0(question(1));
    ask_as(&server, ALICE, &hers)?;
    fixture.must_return("alice saves her slot", &act(&server, ALICE, "save", "hers")?, 200);
    fixture.must_return("bob saves alice's slot", &act(&server, BOB, "save", "his")?, 403);
    fixture.must_return("bob erases alice's slot", &act(&server, BOB, "erase", "")?, 403);
    let answer = ask_as(&server, ALICE, &hers)?;
    fixture.must_have_found("alice, after bob wanted to erase her slot", &answer, PROMPT - 1);
    fixture.must_return("bob restores into alice's slot", &act(&server, BOB, "restore", "hers")?, 403);
    fixture.must_return("alice erases her slot", &act(&server, ALICE, "erase", "")?, 200);
    fixture.must_return("bob restores alice's file", &act(&server, BOB, "restore", "hers")?, 403);
    let answer = ask_as(&server, BOB, &hers)?;
    fixture.must_have_found("bob, after he wanted to restore alice's file", &answer, 0);
    fixture.must_return("alice restores into bob's slot", &act(&server, ALICE, "restore", "hers")?, 403);
    fixture.must_return("bob erases his slot", &act(&server, BOB, "erase", "")?, 200);
    fixture.must_return("alice restores her file", &act(&server, ALICE, "restore", "hers")?, 200);
    // More tokens follow, so that no full block of the pool has all of them.
    let longer = [&cases::numbered_prompt(1, PROMPT)[..], &[7; 20]].concat();
    let answer = ask_as(&server, ALICE, &in_slot_0(plain(&longer, 1)))?;
    fixture.must_have_found("alice, from her restored file", &answer, PROMPT);
    Ok(())
}

/// Number of tokens that bob guesses, one after the other.
const GUESSED: usize = 6;

/// Bob saves alice's slot once, restores it repeatedly, and sends one token more than he knows: a right guess must look
/// like a wrong one.
pub fn reading_token_by_token(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let server = keeping(fixture)?;
    let secret = cases::numbered_prompt(1, PROMPT);
    ask_as(&server, ALICE, &in_slot_0(plain(&secret, 1)))?;
    // Neither this nor the restores have to succeed.
    act(&server, BOB, "save", "his")?;
    // A hit on bob's own prompt reveals nothing: he knows those tokens.
    ask_as(&server, BOB, &in_slot_0(plain(&secret[..PROMPT - 1 - GUESSED], 1)))?;
    let mut revealed = 0;
    for known in PROMPT - 1 - GUESSED..PROMPT - 1 {
        let wrong = [&secret[..known], &[303]].concat();
        let right = &secret[..=known];
        let found = |guess: &[u32]| -> Result<Option<u64>> {
            act(&server, BOB, "restore", "his")?;
            let asked = [guess, &[304]].concat();
            Ok(ask_as(&server, BOB, &in_slot_0(plain(&asked, 1)))?.1["timings"]["cache_n"].as_u64())
        };
        revealed += usize::from(found(&wrong)? != found(right)?);
    }
    fixture.must(revealed == 0, || format!("bob read {revealed} of {GUESSED} tokens of alice's prompt"));
    Ok(())
}

/// Number of tokens of alice's prompt that bob knows. With one more, his prompt has a tenth in common with hers, the
/// threshold at which slot selection prefers a slot for its sequence.
const KNOWN: usize = 12;

/// The slot selected for bob's request reveals nothing about alice's sequence.
pub fn choice_of_slot(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let secret = cases::numbered_prompt(1, PROMPT);
    let guess = |token: u32| {
        let rest = cases::numbered_prompt(2, 10 * (KNOWN + 1) - 1 - KNOWN - 1);
        [&secret[..KNOWN], &[token], &rest].concat()
    };
    let mut chosen = Vec::new();
    for token in [secret[KNOWN], 303] {
        let server = keeping(fixture)?;
        ask_as(&server, ALICE, &with(plain(&secret, 1), "id_slot", 2))?;
        let (status, answer) = ask_as(&server, BOB, &plain(&guess(token), 1))?;
        fixture.must(status == 200, || format!("bob returned {status}: {answer}"));
        chosen.push(answer["id_slot"].clone());
    }
    fixture.must(chosen[0] == chosen[1], || {
        format!("a right guess is answered by slot {}, a wrong one by slot {}", chosen[0], chosen[1])
    });
    // Slot selection does follow the tenant's own sequence.
    let server = keeping(fixture)?;
    ask_as(&server, ALICE, &with(plain(&secret, 1), "id_slot", 2))?;
    let own = ask_as(&server, ALICE, &plain(&guess(secret[KNOWN]), 1))?.1["id_slot"].clone();
    fixture.must(own == 2, || format!("alice's own next turn is answered by slot {own} instead of 2"));
    Ok(())
}
