//! Requests that cannot share a batch take turns, and what is cached does not push out other prompts.

use espalier_core::error::Result;
use serde_json::Value;

use super::asking::{ask, plain, scaled, with};
use super::fixture::{Model, PromiseFixture};
use super::meanwhile::meanwhile;
use super::retained::keeping;
use crate::serving::cases::{self, BLOCK};

/// While a long stream runs, requests with other adapter scales are answered, and so are those after them, with the
/// same tokens as alone.
pub fn batch_keys_take_turns(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    const EXACT: [&str; 2] = ["-fa", "off"];
    let mut reference = fixture.reference(Model::Adapted, &EXACT)?;
    let arguments = ["-fa", "off", "-np", "4", "-c", cases::AMPLE_CELLS, "--kv-paged"];
    let server = fixture.serve(Model::Adapted, &arguments)?;
    let requests: Vec<Value> = (0..24)
        .map(|number| {
            let scale = f64::from(number as u8 % 3) / 2.0;
            scaled(cases::request(&cases::numbered_prompt(number, 20)), &[scale])
        })
        .collect();
    let expected = requests.iter().map(|one| reference.expect(one)).collect::<Result<Vec<_>>>()?;
    let stream = scaled(plain(&cases::numbered_prompt(100, 20), 3900), &[0.0]);
    let (response, answers) = meanwhile(&server, &stream, |running| {
        let mut answers = Vec::new();
        for request in &requests {
            answers.push((ask(&server, request), running.is_over()));
        }
        Ok(answers)
    })?;
    for (number, (answer, was_over)) in answers.into_iter().enumerate() {
        let (status, body) = answer?;
        fixture.arose(!was_over, || format!("the stream was over before request {number}"));
        fixture.hold(&format!("request {number}"), &expected[number], reference.tolerance, (status, &body));
    }
    let tokens = response.tokens.len();
    fixture.must(tokens > 24, || format!("the stream got {tokens} tokens"));
    Ok(())
}

/// Duplicate blocks of an answer that is computed repeatedly do not evict the rest of the cache.
pub fn copies_push_nothing_out(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let server = fixture.serve(Model::Trained, &["-np", "1", "-c", "4096", "--kv-paged"])?;
    let other = cases::numbered_prompt(1, 20 * BLOCK + 1);
    ask(&server, &plain(&other, 1))?;
    for _ in 0..20 {
        ask(&server, &plain(&cases::numbered_prompt(2, 70), 200))?;
    }
    let answer = ask(&server, &plain(&other, 1))?;
    fixture.must_have_found("after 20 copies of another answer", &answer, 20 * BLOCK);
    Ok(())
}

/// A request whose slot's retained sequence is dropped to free blocks looks its prefix up in the pool, and caches its
/// own blocks.
pub fn dropped_sequences_are_looked_up(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let server = keeping(fixture, Model::Trained, &["-np", "2", "-c", "1024"])?;
    let in_slot = |request: Value, slot: u64| with(request, "id_slot", slot);
    let shared = cases::numbered_prompt(1, 8 * BLOCK);
    let longer = [&shared[..], &cases::numbered_prompt(2, 6 * BLOCK)].concat();
    ask(&server, &in_slot(plain(&shared, 1), 0))?;
    // Three of sixteen blocks and fourteen do not fit together: slot 0's retained sequence is dropped while its request
    // waits.
    let stream = in_slot(plain(&cases::numbered_prompt(3, 2 * BLOCK + 1), 60), 1);
    let (_, (answer, waited)) = meanwhile(&server, &stream, |running| {
        let answer = ask(&server, &in_slot(plain(&longer, 1), 0))?;
        Ok((answer, running.is_over()))
    })?;
    fixture.arose(waited, || "the request did not wait for the stream's blocks".to_string());
    // The last token of the shared part was not computed as a part of a full block.
    let found = |(_, body): &(u16, Value)| body["timings"]["cache_n"].as_u64().unwrap_or(0);
    let (first, again) = (found(&answer), found(&ask(&server, &in_slot(plain(&longer, 1), 1))?));
    fixture.must(first >= 7 * BLOCK as u64, || format!("found {first} of {} retained tokens", shared.len()));
    fixture
        .must(again >= 13 * BLOCK as u64, || format!("the same prompt in another slot found {again} tokens"));
    Ok(())
}
