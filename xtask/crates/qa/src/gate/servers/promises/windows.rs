//! Layers with a sliding window that have fewer cells than the others: their memory, and answers past the window.

use espalier_core::error::{Error, Result};
use espalier_core::sys::machine::threads::result_of;
use espalier_core::sys::net::server::Server;
use serde_json::Value;

use super::asking::{ask, metric, plain, post, with};
use super::fixture::{Model, PromiseFixture};
use super::retained::{act, held_and_found};
use super::tenants::PROMPT;
use crate::gate::servers::fixture::times_logged;
use crate::serving::asking::pool_at_rest;
use crate::serving::cases::{self, BLOCK};
use crate::serving::kv_pool::{self, Pool};
use crate::serving::switches;
use crate::serving::verdict::{self, Answer};

/// Gives windows cells of their own.
const WINDOWS: (&str, &str) = (switches::WINDOWS, "12");

/// A context of which the windows take less than half: in a smaller one they would have cells for all tokens.
const ARGUMENTS: [&str; 9] = ["-np", "2", "-c", "16384", "-b", "64", "-ub", "64", "--kv-paged"];

/// The same for batches of the default size, beside which windows of many blocks take less than half.
const LARGE: [&str; 5] = ["-np", "2", "-c", "32768", "--kv-paged"];

/// Log message of a server on which the variable has no effect, before the reason.
const NO_EFFECT: &str = "ESPALIER_KV_WINDOWS has no effect, because ";

/// Full blocks of the conversation's first prompt.
const BLOCKS: usize = 10;

/// Other prompts: their windows take all blocks of the layers with a window, and not those of the other layers.
const OTHERS: u64 = 40;

/// Returns `kv_pool` of `/props`.
fn pool_of(server: &Server) -> Result<Value> {
    let props = server.get("/props")?.1;
    props.get("kv_pool").cloned().ok_or_else(|| Error::no(format!("/props has no kv_pool: {props}")))
}

/// The cache is smaller than with `--swa-full`, which gives all layers the same cells. So does a small context, and the
/// log says that the variable has no effect there. So do 0 windows, and the default.
pub fn take_less_memory(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let small = pool_of(&fixture.serve_with(Model::Windowed, &ARGUMENTS, &[WINDOWS])?)?;
    let full_size = [&ARGUMENTS[..], &["--swa-full"]].concat();
    let full = pool_of(&fixture.serve(Model::Windowed, &full_size)?)?;
    // Half of the layers have a window.
    let (mib, mib_of_full) = (small["mib"].as_f64().unwrap_or(f64::MAX), full["mib"].as_f64().unwrap_or(0.0));
    fixture.must(mib < 0.75 * mib_of_full, || format!("{mib} MiB, with --swa-full {mib_of_full} MiB"));
    let count = small["window_block_count"].as_u64();
    fixture.must(count.is_some_and(|count| (1..=128).contains(&count)), || format!("of its own: {small}"));
    let of_12 = &[WINDOWS][..];
    let of_none = &[(switches::WINDOWS, "0")][..];
    let not_set: &[(&str, &str)] = &[];
    let small_context = ["-np", "2", "-c", "4096", "--kv-paged"];
    for (arguments, variables, reason) in [
        (&full_size[..], of_12, Some("of --swa-full")),
        (&small_context[..], of_12, Some("12 windows and a batch would take")),
        (&ARGUMENTS[..], of_none, None),
        (&ARGUMENTS[..], not_set, None),
    ] {
        let server = fixture.serve_with(Model::Windowed, arguments, variables)?;
        let pool = pool_of(&server)?;
        let what = format!("{arguments:?} with {variables:?}");
        fixture.must(pool.get("window_block_count").is_none(), || format!("{what}: {pool}"));
        let words = format!("{NO_EFFECT}{}", reason.unwrap_or_default());
        let times = times_logged(&server, &words)?;
        fixture.must(times == usize::from(reason.is_some()), || format!("{what}: `{words}` {times} times"));
    }
    Ok(())
}

/// Answers past the window are those of a plain cache: computed, after a hit, in the next turn, after a branch, and
/// after the window was evicted while the blocks of the other layers were not.
pub fn answer_as_a_plain_cache(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    for (model, arguments) in [
        (Model::Windowed, &ARGUMENTS[..]),
        (Model::WidelyWindowed, &ARGUMENTS[..]),
        (Model::LongWindowed, &LARGE[..]),
    ] {
        let mut reference = fixture.reference(model, &["-fa", "off"])?;
        let server = fixture.serve_with(model, &[arguments, &["-fa", "off"]].concat(), &[WINDOWS])?;
        kv_pool::must_have_own_windows(&server)?;
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
    let Pool { blocks_empty, evicted_blocks, .. } = Pool::of_server(&server)?;
    fixture
        .must(blocks_empty > 0, || "the other layers have no empty block: they were evicted too".to_string());
    fixture.must(evicted_blocks > 0, || "no eviction of a window is counted".to_string());
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
        let prompt = cases::any_prompt(5 * BLOCK + 50);
        let expected = reference.expect(&cases::request(&prompt))?;
        let answer = post(&server, "/v1/completions", &cases::request_for_choices(&prompt, 2))?;
        hold_choices(fixture, &format!("{model:?}"), &expected, reference.tolerance, &answer);
    }
    Ok(())
}

/// Checks that both choices of an answer have the tokens of a single one.
fn hold_choices(
    fixture: &mut PromiseFixture<'_>,
    what: &str,
    expected: &Answer,
    tolerance: f64,
    (status, body): &(u16, Value),
) {
    let choices = body["choices"].as_array().map_or(&[][..], Vec::as_slice);
    fixture.must(choices.len() == 2, || format!("{what}: n: 2 returned {status}: {body}"));
    for choice in choices {
        let tokens = verdict::tokens_of_choice(choice).unwrap_or_default();
        fixture.hold_tokens(&format!("{what}, one of two choices"), expected, tolerance, &tokens);
    }
}

/// Tokens of each answer with which requests outgrow the pool.
const GROWN: usize = 120;

/// Number of attempts to reproduce a situation on a busy machine.
const TRIES: usize = 3;

/// Requests outgrow the other layers' blocks while their windows slide, with as few windows as the server allows: four
/// prompts of 22 blocks and two choices of one with ten fill a pool of 100. Whichever is preempted, all are answered as
/// with a plain cache, alone or at once, also when they are sent again.
pub fn outgrow_the_pool(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    // Two windows for each slot, of one block and three more, and a batch: 49 blocks, at most half of the pool.
    let arguments = ["-np", "6", "-c", "6400", "-b", "64", "-ub", "64", "-fa", "off", "--kv-paged"];
    let mut reference = fixture.reference(Model::Windowed, &["-fa", "off"])?;
    let prompts = [1, 2, 3, 4].map(|number| cases::numbered_prompt(number, 1400));
    let requests = prompts.map(|prompt| cases::request_for(&prompt, GROWN));
    let shared = cases::numbered_prompt(5, 600);
    let choices = with(cases::request_for_choices(&shared, 2), "max_tokens", GROWN);
    let all = [&requests[..], &[cases::request_for(&shared, GROWN)]].concat();
    // Both servers have one log, so this one ends first.
    let many = fixture.serve(Model::Windowed, &["-np", "6", "-c", "8192", "--kv-unified", "-fa", "off"])?;
    let mut expected = reference.expect_each(&many, &all)?;
    drop(many);
    let expected_choice = expected.pop().ok_or_else(|| Error::no("no answer is expected"))?;
    let server = fixture.serve_with(Model::Windowed, &arguments, &[(switches::WINDOWS, "1")])?;
    kv_pool::must_have_own_windows(&server)?;
    let mut preempted = false;
    for volley in 0..TRIES {
        let (answers, choices) = std::thread::scope(|threads| {
            let choices = threads.spawn(|| server.post("/v1/completions", &choices));
            let answers = server.post_at_once("/completion", &requests)?.answers;
            Ok::<_, Error>((answers, result_of(choices)?))
        })?;
        for (expected, (status, body)) in expected.iter().zip(&answers) {
            let what = format!("volley {volley}, a long prompt");
            fixture.hold(&what, expected, reference.tolerance, (*status, body));
        }
        let what = format!("volley {volley}");
        hold_choices(fixture, &what, &expected_choice, reference.tolerance, &choices);
        preempted |= times_logged(&server, "preempted with")? > 0;
        if preempted && volley > 0 || !fixture.holds_so_far() {
            break;
        }
    }
    fixture.arose(preempted, || "no request was preempted".to_string());
    let pool = pool_at_rest(&server)?;
    fixture.must(pool.is_at_rest(), || format!("blocks are in use after all requests ended: {pool}"));
    Ok(())
}

/// The gauges of the layers with a window are those of `/props`. A long prompt holds the blocks of its window and of one
/// batch, and recycles those behind it, which are no evictions.
pub fn are_counted(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let arguments = [&ARGUMENTS[..], &["--metrics"]].concat();
    let server = fixture.serve_with(Model::Windowed, &arguments, &[WINDOWS])?;
    ask(&server, &plain(&cases::numbered_prompt(1, 40 * BLOCK), 1))?;
    pool_at_rest(&server)?;
    let pool = pool_of(&server)?;
    for (name, field) in [
        ("kv_cache_window_blocks", "window_block_count"),
        ("kv_cache_window_blocks_used", "window_blocks_used"),
        ("kv_cache_window_blocks_used_peak", "window_blocks_used_peak"),
    ] {
        let (gauge, shown) = (metric(&server, name)?, pool[field].as_f64());
        fixture.must(shown == Some(gauge), || format!("{name} is {gauge}, {field} of /props is {shown:?}"));
    }
    let peak = pool["window_blocks_used_peak"].as_u64().unwrap_or_default();
    fixture.must((2..=4).contains(&peak), || format!("a prompt of 40 blocks held {peak} of its window"));
    let evicted = metric(&server, "kv_cache_evicted_blocks_total")?;
    fixture.must(evicted == 0.0, || format!("{evicted} blocks were evicted on an empty server"));
    Ok(())
}
