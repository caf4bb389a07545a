//! Layers with a sliding window that have fewer cells than the others: their memory, and answers past the window.

use espalier_core::error::{Error, Result};
use espalier_core::sys::net::server::Server;
use serde_json::Value;

use super::asking::{ask, plain, post, with};
use super::fixture::{Model, PromiseFixture};
use super::retained::{act, held_and_found};
use super::tenants::PROMPT;
use crate::serving::cases::{self, BLOCK};
use crate::serving::kv_pool::Pool;
use crate::serving::switches;

/// Gives windows cells of their own.
const WINDOWS: (&str, &str) = (switches::WINDOWS, "12");

/// A context of which the windows take less than half: in a smaller one they would have cells for all tokens.
const ARGUMENTS: [&str; 9] = ["-np", "2", "-c", "16384", "-b", "64", "-ub", "64", "--kv-paged"];

/// Full blocks of the conversation's first prompt.
const BLOCKS: usize = 10;

/// Other prompts: their windows take all blocks of the layers with a window, and not those of the other layers.
const OTHERS: u64 = 40;

/// Returns `kv_pool` of `/props`.
fn pool_of(server: &Server) -> Result<Value> {
    let props = server.get("/props")?.1;
    props.get("kv_pool").cloned().ok_or_else(|| Error::no(format!("/props has no kv_pool: {props}")))
}

/// The cache is smaller than with `--swa-full`, which gives all layers the same cells. So do a small context, and the
/// default.
pub fn take_less_memory(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let pool_with =
        |arguments: &[&str]| pool_of(&fixture.serve_with(Model::Windowed, arguments, &[WINDOWS])?);
    let small = pool_with(&ARGUMENTS)?;
    let full = pool_with(&[&ARGUMENTS[..], &["--swa-full"]].concat())?;
    let short = pool_with(&["-np", "2", "-c", "4096", "--kv-paged"])?;
    let by_default = pool_of(&fixture.serve(Model::Windowed, &ARGUMENTS)?)?;
    // Half of the layers have a window.
    let (mib, mib_of_full) = (small["mib"].as_f64().unwrap_or(f64::MAX), full["mib"].as_f64().unwrap_or(0.0));
    fixture.must(mib < 0.75 * mib_of_full, || format!("{mib} MiB, with --swa-full {mib_of_full} MiB"));
    let count = small["window_block_count"].as_u64();
    fixture.must(count.is_some_and(|count| (1..=128).contains(&count)), || format!("of its own: {small}"));
    for (what, pool) in [("--swa-full", full), ("a small context", short), ("by default", by_default)] {
        fixture.must(pool.get("window_block_count").is_none(), || format!("{what}: {pool}"));
    }
    Ok(())
}

/// Answers past the window are those of a plain cache: computed, after a hit, in the next turn, after a branch, and
/// after the window was evicted while the blocks of the other layers were not.
pub fn answer_as_a_plain_cache(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    for model in [Model::Windowed, Model::WidelyWindowed] {
        let mut reference = fixture.reference(model, &["-fa", "off"])?;
        let server = fixture.serve_with(model, &[&ARGUMENTS[..], &["-fa", "off"]].concat(), &[WINDOWS])?;
        let turns = cases::numbered_prompt(1, (BLOCKS + 2) * BLOCK);
        let first = cases::request(&turns[..BLOCKS * BLOCK + 5]);
        let mut held = |fixture: &mut PromiseFixture<'_>, what: &str, request: &Value, found: usize| {
            held_and_found(fixture, &mut reference, &server, &format!("{model:?}, {what}"), request, found)
        };
        held(fixture, "computed", &first, 0)?;
        held(fixture, "sent again", &first, BLOCKS * BLOCK)?;
        held(fixture, "the next turn", &cases::request(&turns), BLOCKS * BLOCK)?;
        // The first prompt that branches at a new place may find nothing, and keeps the window there.
        let branch = |number: u64| {
            cases::request(&[&turns[..5 * BLOCK + 8], &cases::numbered_prompt(number, 20)].concat())
        };
        ask(&server, &branch(2))?;
        held(fixture, "the second branch", &branch(3), 5 * BLOCK)?;
    }
    evicted_windows(fixture)
}

/// A prompt whose window was evicted is computed again, and found from then on.
fn evicted_windows(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let model = Model::WidelyWindowed;
    let mut reference = fixture.reference(model, &["-fa", "off"])?;
    let server = fixture.serve_with(model, &[&ARGUMENTS[..], &["-fa", "off"]].concat(), &[WINDOWS])?;
    let first = cases::request(&cases::numbered_prompt(1, BLOCKS * BLOCK + 5));
    ask(&server, &first)?;
    for number in 0..OTHERS {
        ask(&server, &plain(&cases::numbered_prompt(100 + number, 5 * BLOCK + 5), 1))?;
    }
    let empty = Pool::of_server(&server)?.blocks_empty;
    fixture.must(empty > 0, || "the other layers have no empty block: they were evicted too".to_string());
    for (what, found) in [("after its window was evicted", 0), ("once more", BLOCKS * BLOCK)] {
        held_and_found(fixture, &mut reference, &server, what, &first, found)?;
    }
    Ok(())
}

/// A sequence continues from its slot file, which has the cells of its last window, and further choices continue after
/// the window of the first one.
pub fn continue_from_a_file(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let arguments = ["-np", "2", "-c", "16384", "-b", "64", "-ub", "64", "-fa", "off"];
    for model in [Model::Windowed, Model::WidelyWindowed] {
        let mut reference = fixture.reference(model, &["-fa", "off"])?;
        let saves = fixture.empty_folder("slots")?;
        let keeping = [&arguments[..], &["--kv-paged", "--slot-save-path", &saves]].concat();
        let server = fixture.serve_with(model, &keeping, &[WINDOWS])?;
        let turns = cases::numbered_prompt(1, PROMPT + 2 * BLOCK);
        ask(&server, &with(plain(&turns[..PROMPT], 1), "id_slot", 0))?;
        for action in ["save", "erase", "restore"] {
            act(fixture, &server, action)?;
        }
        let request = with(cases::request(&turns), "id_slot", 0);
        held_and_found(
            fixture,
            &mut reference,
            &server,
            &format!("{model:?}, from a file"),
            &request,
            PROMPT,
        )?;
        let choices = cases::request_for_choices(&cases::any_prompt(5 * BLOCK + 50), 2);
        let answer = post(&server, "/v1/completions", &choices)?;
        fixture.must_return(&format!("{model:?}: two choices"), &answer, 200);
    }
    Ok(())
}
