//! Draft models that read hidden states of the target (EAGLE-3, MTP, DFlash): they draft after a prefix-cache hit as if
//! the prompt had been computed, in every slot and beside others.

use espalier_core::error::Result;
use espalier_core::sys::net::server::Server;
use serde_json::Value;

use super::asking::{ask, plain, post};
use super::fixture::{Drafting, PromiseFixture};
use super::tenants::MOMENT;
use crate::serving::cases::{self, BLOCK};

/// Blocks of a prompt that is long enough for a snapshot at its last boundary.
const BLOCKS: usize = 5;

/// Tokens of an answer.
const ANSWER: usize = 24;

/// The draft model proposes the same tokens with the same probabilities after a hit as on a cold server. All batches of
/// a prompt end where a block ends, so both servers compute the same batches.
pub fn after_a_hit(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    const ARGUMENTS: [&str; 11] =
        ["-np", "1", "-c", "4096", "-b", "64", "-ub", "64", "--kv-paged", "-lv", "5"];
    let tokens = cases::numbered_prompt(1, BLOCKS * BLOCK + 17);
    for drafting in Drafting::ALL {
        let what = format!("{drafting:?}");
        let cold = fixture.serve_drafting(drafting, &ARGUMENTS)?;
        let expected = ask(&cold, &plain(&tokens, ANSWER))?;
        let candidates = candidates(&cold)?;
        fixture.must_have_found(&format!("{what}, cold"), &expected, 0);
        fixture.must(!candidates.is_empty(), || format!("{what} drafted nothing"));
        drop(cold);
        let warm = fixture.serve_drafting(drafting, &ARGUMENTS)?;
        // An answer of one token needs no drafts.
        ask(&warm, &plain(&tokens, 1))?;
        let answer = ask(&warm, &plain(&tokens, ANSWER))?;
        fixture.must_have_found(&format!("{what}, warm"), &answer, BLOCKS * BLOCK);
        let after = self::candidates(&warm)?;
        let differs = candidates.iter().zip(&after).position(|(cold, warm)| cold != warm);
        fixture.must(after == candidates, || {
            format!(
                "{what}: after a hit it has {} candidates, cold {}; the first difference is {differs:?}",
                after.len(),
                candidates.len()
            )
        });
        fixture.must(answer.1["tokens"] == expected.1["tokens"], || format!("{what}: the answers differ"));
    }
    Ok(())
}

/// Returns the tokens that the server's draft model considered, with their probabilities, as the log has them. The log
/// is written with a delay, so this waits until it has no more.
fn candidates(server: &Server) -> Result<Vec<String>> {
    let mut before = Vec::new();
    for _ in 0..100 {
        let said = server.said()?;
        let now: Vec<String> = said
            .lines()
            .filter_map(|line| line.split_once("draft candidate"))
            .map(|(_, rest)| rest.to_string())
            .collect();
        if !now.is_empty() && now == before {
            return Ok(now);
        }
        before = now;
        std::thread::sleep(MOMENT);
    }
    Ok(before)
}

/// Each choice continues the drafts of the prompt that they share.
pub fn of_choices(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    for drafting in Drafting::ALL {
        let server = fixture.serve_drafting(drafting, &["-np", "4", "-c", "4096", "--kv-paged"])?;
        for length in [BLOCK, BLOCK + 20] {
            let request = cases::request_for_choices(&cases::numbered_prompt(1, length), 3);
            let (status, body) = post(&server, "/v1/completions", &request)?;
            let texts: Vec<&Value> =
                body["choices"].as_array().into_iter().flatten().map(|one| &one["text"]).collect();
            let is_same = texts.len() == 3 && texts.iter().all(|text| text.is_string() && *text == texts[0]);
            fixture.must(status == 200 && is_same, || {
                format!("{drafting:?}, {length} tokens: returned {status}: {body}")
            });
        }
    }
    Ok(())
}

/// Requests are preempted and resumed with their drafts, blocks that drafts need are counted, and what is evicted is
/// evicted in both models. Answers are those of a server without drafts.
pub fn in_a_small_pool(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    const EXACT: [&str; 2] = ["-fa", "off"];
    for drafting in Drafting::ALL {
        let mut reference = fixture.reference(drafting.model, &EXACT)?;
        let server =
            fixture.serve_drafting(drafting, &["-fa", "off", "-np", "4", "-c", "1024", "--kv-paged"])?;
        let shared = cases::numbered_prompt(1, 2 * BLOCK);
        // Five blocks each with its answer; the pool has sixteen.
        let requests: Vec<Value> = (2..8)
            .map(|own| [&shared[..], &cases::numbered_prompt(own, 58)].concat())
            .chain((8..12).map(|own| cases::numbered_prompt(own, 186)))
            .map(|prompt| cases::request_for(&prompt, 80))
            .collect();
        let expected = requests.iter().map(|one| reference.expect(one)).collect::<Result<Vec<_>>>()?;
        for volley in 0..2 {
            let answers = server.post_at_once("/completion", &requests)?.answers;
            for (at, (status, body)) in answers.iter().enumerate() {
                let what = format!("{drafting:?}, volley {volley}, request {at}");
                fixture.hold(&what, &expected[at], reference.tolerance, (*status, body));
            }
        }
        let is_preempted = server.said()?.contains("preempted with");
        fixture.arose(is_preempted, || format!("{drafting:?}: no request was preempted"));
    }
    Ok(())
}
