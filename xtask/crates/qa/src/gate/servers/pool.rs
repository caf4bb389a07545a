//! The block pool under pressure: scattered free blocks, evicted prompts, and requests that outgrow it together.

use espalier_core::error::{Error, Result};
use espalier_core::sys::machine::threads::result_of;
use espalier_core::sys::net::server::Server;
use serde_json::Value;

use super::fixture::{Fixture, times_logged};
use crate::serving::asking::busy_slots;
use crate::serving::cases::{self, BLOCK};
use crate::serving::kv_pool::Pool;
use crate::serving::verdict::Answer;

/// Number of blocks that each prompt leaves cached in a pool of 64, in order of arrival.
const LENGTHS: [usize; 8] = [5, 9, 6, 8, 4, 10, 7, 9];

/// Builds a prompt of `blocks` full blocks and one token.
fn prompt_of(number: usize, blocks: usize) -> Vec<u32> {
    cases::numbered_prompt(number as u64 + 1, blocks * BLOCK + 1)
}

/// A prompt with stock's answer.
struct Asked {
    request: Value,
    stock: Answer,
    blocks: usize,
}

fn asked(fixture: &mut Fixture<'_>, number: usize, blocks: usize) -> Result<Asked> {
    let request = cases::request(&prompt_of(number, blocks));
    Ok(Asked { stock: fixture.expect(&request)?, request, blocks })
}

/// Fragments the pool: prompts fill it in sequence, and every other one is sent again; a long prompt then gets the
/// blocks between those that were. Which prompts are still cached shows that the evicted blocks were scattered.
pub fn check_fragments(fixture: &mut Fixture<'_>) -> Result<()> {
    let prompts = (0..).zip(LENGTHS).map(|(number, blocks)| asked(fixture, number, blocks));
    let prompts = prompts.collect::<Result<Vec<Asked>>>()?;
    // Two threads, which divide the visible tokens of KV cache between them.
    let server = fixture.ours(&["-np", "2", "-c", "4096", "-t", "2", "--kv-paged"])?;
    for prompt in &prompts {
        let body = fixture.ask("filling", &server, &prompt.request, &prompt.stock)?;
        fixture.must_have_found("filling", &body, 0);
    }
    for prompt in prompts.iter().step_by(2) {
        let body = fixture.ask("keeping", &server, &prompt.request, &prompt.stock)?;
        fixture.must_have_found("keeping", &body, prompt.blocks * BLOCK);
    }
    let dropped: usize = LENGTHS.iter().skip(1).step_by(2).sum();
    check_long_prompt(fixture, &server, dropped)?;
    for prompt in prompts.iter().step_by(2) {
        let body = fixture.ask("kept", &server, &prompt.request, &prompt.stock)?;
        fixture.must_have_found("kept", &body, prompt.blocks * BLOCK);
    }
    let body = fixture.ask("dropped", &server, &prompts[1].request, &prompts[1].stock)?;
    fixture.must_have_found("dropped", &body, 0);
    fixture.must_be_at_rest(server)
}

/// Sends a prompt that needs all empty blocks and nearly all blocks left by the `dropped` prompts. Sent again it finds
/// its own blocks, wherever they are.
fn check_long_prompt(fixture: &mut Fixture<'_>, server: &Server, dropped: usize) -> Result<()> {
    let before = Pool::of_server(server)?;
    let blocks = usize::try_from(before.blocks_empty).unwrap_or_default() + dropped - 2;
    let long = asked(fixture, LENGTHS.len(), blocks)?;
    let body = fixture.ask("the long prompt", server, &long.request, &long.stock)?;
    fixture.must_have_found("the long prompt", &body, 0);
    let evicted = Pool::of_server(server)?.evicted_blocks - before.evicted_blocks;
    fixture.must(evicted == dropped as u64 - 1, || {
        format!("the long prompt evicted {evicted} blocks, of {dropped} that were to lie scattered")
    });
    let body = fixture.ask("the long prompt again", server, &long.request, &long.stock)?;
    fixture.must_have_found("the long prompt again", &body, blocks * BLOCK);
    Ok(())
}

/// Checks that an evicted prompt is computed again.
pub fn check_eviction(fixture: &mut Fixture<'_>) -> Result<()> {
    let first = asked(fixture, 0, 5)?;
    // Each prompt leaves five blocks cached, and needs six.
    let (cells, prompts) = if fixture.has_own_windows() { ("1280", 5) } else { ("1024", 4) };
    let server = fixture.ours(&["-np", "1", "-c", cells, "--kv-paged"])?;
    for found in [0, first.blocks * BLOCK] {
        let body = fixture.ask("the first prompt", &server, &first.request, &first.stock)?;
        fixture.must_have_found("the first prompt", &body, found);
    }
    for number in 1..prompts {
        let other = asked(fixture, number, 5)?;
        fixture.ask("another prompt", &server, &other.request, &other.stock)?;
    }
    let evicted = Pool::of_server(&server)?.evicted_blocks;
    fixture.must(evicted > 0, || "nothing was evicted".to_string());
    let body = fixture.ask("the evicted prompt", &server, &first.request, &first.stock)?;
    fixture.must_have_found("the evicted prompt", &body, 0);
    fixture.must_be_at_rest(server)
}

/// Length of an answer with which requests outgrow the pool, in tokens.
const GROWN: usize = 400;

/// Number of concurrent requests.
const RUNNING: usize = 4;

/// Log message of a preemption.
const PREEMPTED: &str = "preempted with";

/// Sends four requests that fit when they start and not when they end: at least one has to be preempted. On a very busy
/// machine they may run one by one; then they are sent again.
pub fn check_preemption(fixture: &mut Fixture<'_>) -> Result<()> {
    // Of 16 blocks each request needs two, and eight when it ends; of 68 eleven, and eighteen.
    let (cells, length) = if fixture.has_own_windows() { ("4352", 700) } else { ("1024", 100) };
    let requests: Vec<Value> = (1..=RUNNING as u64)
        .map(|number| cases::request_for(&cases::numbered_prompt(number, length), GROWN))
        .collect();
    let stock = fixture.expect_each(&requests)?;
    let server = fixture.ours(&["-np", &RUNNING.to_string(), "-c", cells, "--kv-paged"])?;
    for _ in 0..5 {
        let answers = server.post_at_once("/completion", &requests)?.answers;
        for (stock, (status, body)) in stock.iter().zip(&answers) {
            fixture.hold("a request that outgrows the pool", stock, (*status, body));
        }
        if server.log_text()?.contains(PREEMPTED) {
            break;
        }
    }
    let preempted = times_logged(&server, PREEMPTED)?;
    fixture.must(preempted > 0, || "no request was preempted".to_string());
    fixture.must_be_at_rest(server)
}

/// Length of a prompt that takes 37 steps of 16 tokens to compute, and of those that decode meanwhile: each of these is
/// about to need a second block.
const SLOW: usize = 590;
const NEARLY_A_BLOCK: [usize; 5] = [50, 53, 56, 59, 62];

/// Checks that a prompt preempted during prefill is computed again from its start. On a very busy machine it may arrive
/// too late; then all are sent again. They leave nothing cached for the next attempt, which would have less to compute.
pub fn check_preempted_prompt(fixture: &mut Fixture<'_>) -> Result<()> {
    let answered = NEARLY_A_BLOCK.map(|length| cases::request_for(&cases::numbered_prompt(1, length), 120));
    let slow = cases::request_for(&cases::numbered_prompt(2, SLOW), 24);
    let requests = [&answered[..], &[slow]].concat();
    let stock = fixture.expect_each(&requests)?;
    let cold: Vec<Value> = requests.into_iter().map(cases::cold).collect();
    let server = fixture.ours(&["-np", "8", "-c", "1024", "-b", "16", "-ub", "16", "--kv-paged"])?;
    let mut preempted = false;
    for _ in 0..50 {
        for (stock, (status, body)) in stock.iter().zip(&answers_with_the_last_one_last(&server, &cold)?) {
            fixture.hold("a crowd around a long prompt", stock, (*status, body));
        }
        preempted = server.log_text()?.contains(" prompt tokens: ");
        if preempted {
            break;
        }
    }
    fixture.must(preempted, || "no prompt was preempted while it was computed".to_string());
    fixture.must_be_at_rest(server)
}

/// Sends the last request after the others run: the latest arrival is preempted first.
fn answers_with_the_last_one_last(server: &Server, requests: &[Value]) -> Result<Vec<(u16, Value)>> {
    let (last, others) = requests.split_last().ok_or_else(|| Error::usage("there are no requests"))?;
    std::thread::scope(|threads| {
        let others_answers = threads.spawn(|| server.post_at_once("/completion", others));
        wait_for_running(server, others.len())?;
        let answer = server.post("/completion", last)?;
        let joined = result_of(others_answers)?;
        Ok([joined.answers, vec![answer]].concat())
    })
}

/// Waits until `count` requests run, with a timeout.
fn wait_for_running(server: &Server, count: usize) -> Result<()> {
    for _ in 0..100 {
        if busy_slots(server)? >= count {
            break;
        }
    }
    Ok(())
}
