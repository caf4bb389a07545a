//! The prefill budget: while a long prompt is computed, other requests continue decoding.
//!
//! Nothing is timed. The server reports after each step how much of the prompt is computed, and a decoding request gets
//! a token in each of these steps, so the steps are counted.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use espalier_core::error::{Error, Result};
use espalier_core::sys::machine::threads::result_of;
use espalier_core::sys::net::client::stop_if;
use espalier_core::sys::net::server::Server;
use serde_json::{Value, json};

use super::fixture::Fixture;
use crate::serving::cases;
use crate::serving::request_record::{self, RequestRecord};

/// Prompt tokens per step.
const BUDGET: usize = 16;

/// Length of the long prompt, in tokens: less than a batch, so it is computed in one step without a budget.
const LONG: usize = 2000;

/// Number of tokens of the stream that are compared.
const COMPARED: usize = 150;

/// Length of the stream, in tokens: as many as fit into the context, so that it outlives the prompt.
const STREAMED: usize = 3900;

/// Maximum number of steps without a budget: the server may compute the last tokens of a prompt separately.
const FEW: usize = 4;

/// Checks both caches, with and without the budget: without it the number of steps must be small, or the count proves
/// nothing.
pub fn check(fixture: &mut Fixture<'_>) -> Result<()> {
    for cache in ["--kv-paged", "--kv-unified"] {
        for budget in [BUDGET, 0] {
            let server = fixture.ours(&[
                "-np",
                "2",
                "-c",
                cases::AMPLE_CELLS,
                cache,
                "--prefill-budget",
                &budget.to_string(),
            ])?;
            check_meeting(fixture, &format!("{cache}, budget {budget}"), budget, &server)?;
        }
    }
    Ok(())
}

fn check_meeting(fixture: &mut Fixture<'_>, what: &str, budget: usize, server: &Server) -> Result<()> {
    let short = cases::numbered_prompt(1, 30);
    let long = cases::cold_request(&cases::numbered_prompt(2, LONG));
    let stream = fixture.expect(&cases::request_for(&short, COMPARED))?;
    let answer = fixture.expect(&long)?;
    let Some(meeting) = meet_until_met(server, &short, &long)? else {
        fixture.must(false, || format!("{what}: the stream ended before the long prompt was computed"));
        return Ok(());
    };
    fixture.hold_tokens(&format!("{what}: the stream"), &stream, &meeting.stream[..COMPARED]);
    fixture.hold_tokens(&format!("{what}: the long prompt"), &answer, &meeting.answer);
    let wrong = violation(&meeting, budget);
    fixture.must(wrong.is_none(), || format!("{what}: {}", wrong.unwrap_or_default()));
    Ok(())
}

/// Observations while the long prompt was computed.
#[derive(Debug, Default)]
struct Meeting {
    /// Tokens of the stream.
    stream: Vec<i64>,
    /// Tokens of the long prompt that each step computed.
    steps: Vec<u64>,
    /// Tokens of the answer to the long prompt.
    answer: Vec<i64>,
    /// Number of tokens that the stream got from before the prompt arrived until after it was answered.
    streamed_meanwhile: u64,
}

/// Returns the violation of the budget, if any; a budget of 0 means no limit.
fn violation(meeting: &Meeting, budget: usize) -> Option<String> {
    let steps = meeting.steps.len();
    let largest = meeting.steps.iter().max().copied().unwrap_or_default();
    if budget == 0 {
        return (steps == 0 || steps > FEW).then(|| {
            format!("without a budget the prompt took {steps} steps, so counting them proves nothing")
        });
    }
    if largest > budget as u64 || steps < LONG / budget {
        return Some(format!("the prompt took {steps} steps, the largest of {largest} tokens"));
    }
    (meeting.streamed_meanwhile < steps as u64)
        .then(|| format!("the stream got {} tokens in {steps} steps", meeting.streamed_meanwhile))
}

/// Repeats the meeting if the stream ended too early, as it may on a very busy machine.
fn meet_until_met(server: &Server, short: &[u32], long: &Value) -> Result<Option<Meeting>> {
    for _ in 0..5 {
        if let Some(meeting) = meet(server, short, long)? {
            return Ok(Some(meeting));
        }
    }
    Ok(None)
}

/// Sends the long prompt when the stream has its first token; `None` if the stream did not outlive it.
fn meet(server: &Server, short: &[u32], long: &Value) -> Result<Option<Meeting>> {
    let mut request = cases::stream_of(short, STREAMED);
    request["id_slot"] = 0.into();
    let is_over = AtomicBool::new(false);
    let (begins, has_begun) = mpsc::channel();
    std::thread::scope(|threads| {
        let stream = threads.spawn(|| follow_stream(server, &request, begins, &is_over));
        // An error here means that the stream failed; its own error is more specific.
        let _ = has_begun.recv();
        let met = send_long(server, long);
        is_over.store(true, Ordering::Relaxed);
        let tokens = result_of(stream)?;
        let met = met?;
        Ok((tokens.len() >= COMPARED)
            .then_some(tokens)
            .zip(met)
            .map(|(stream, met)| Meeting { stream, ..met }))
    })
}

fn follow_stream(
    server: &Server,
    request: &Value,
    begins: mpsc::Sender<()>,
    is_over: &AtomicBool,
) -> Result<Vec<i64>> {
    let response = RequestRecord::follow(server, request, request_record::LIMIT, |response| {
        if !response.tokens.is_empty() {
            // Only the first send matters; later ones fail if the receiver is gone.
            let _ = begins.send(());
        }
        let has_enough = is_over.load(Ordering::Relaxed) && response.tokens.len() >= COMPARED;
        stop_if(response.ended.is_some() || has_enough)
    })?;
    must_be_stream("the stream", &response)?;
    Ok(response.tokens)
}

fn send_long(server: &Server, long: &Value) -> Result<Option<Meeting>> {
    let mut request = long.clone();
    for (key, value) in [("stream", json!(true)), ("return_progress", json!(true)), ("id_slot", json!(1))] {
        request[key] = value;
    }
    let before = streamed(server)?;
    let mut processed = vec![0];
    let response = RequestRecord::follow(server, &request, request_record::LIMIT, |response| {
        processed.extend(response.last["prompt_progress"]["processed"].as_u64());
        stop_if(false)
    })?;
    must_be_stream("the long prompt", &response)?;
    let after = streamed(server)?;
    let steps = processed.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).filter(|step| *step > 0);
    Ok(before.zip(after).map(|(before, after)| Meeting {
        steps: steps.collect(),
        answer: response.tokens,
        streamed_meanwhile: after - before,
        ..Meeting::default()
    }))
}

/// Returns an error if the request was refused, which would say nothing about a budget.
fn must_be_stream(what: &str, RequestRecord { status, last, .. }: &RequestRecord) -> Result<()> {
    match status {
        200 => Ok(()),
        _ => Err(Error::no(format!("{what} returned {status}: {last}"))),
    }
}

/// Returns the stream's number of tokens as the server counts them; `None` when it has ended.
fn streamed(server: &Server) -> Result<Option<u64>> {
    let slot = server.get("/slots")?.1[0].take();
    let is_processing = slot["is_processing"] == true;
    Ok(is_processing.then(|| slot.pointer("/next_token/0/n_decoded")?.as_u64()).flatten())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meeting(steps: usize, size: u64, streamed_meanwhile: u64) -> Meeting {
        Meeting { steps: vec![size; steps], streamed_meanwhile, ..Meeting::default() }
    }

    #[test]
    fn a_budget_is_kept_in_every_step_and_the_stream_gets_a_token_in_each() {
        assert_eq!(violation(&meeting(125, 16, 125), 16), None);
        assert!(violation(&meeting(125, 17, 125), 16).is_some());
        assert!(violation(&meeting(1, 16, 125), 16).is_some());
        assert!(violation(&meeting(125, 16, 124), 16).is_some());
    }

    #[test]
    fn without_a_budget_there_are_few_steps() {
        assert_eq!(violation(&meeting(1, 2000, 3), 0), None);
        assert!(violation(&meeting(125, 16, 125), 0).is_some());
        assert!(violation(&meeting(0, 0, 0), 0).is_some());
    }
}
