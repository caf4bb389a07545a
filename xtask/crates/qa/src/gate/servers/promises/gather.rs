//! Sparse attention over a paged cache (`--kv-gather`): the bound of the cells that a step sees, on any machine.

use espalier_core::error::Result;
use espalier_core::sys::net::server::Server;
use serde_json::Value;

use super::asking::{ask, plain, post};
use super::fixture::{Model, PromiseFixture};
use super::meanwhile::meanwhile;
use crate::serving::cases;
use crate::serving::switches;

/// A pool that the prompts fill: most cells that a step could read belong to other requests.
const ARGUMENTS: [&str; 5] = ["-np", "4", "-c", "2048", "--kv-paged"];

/// Sets the bound for every backend and node, so that the server compares it with the mask of each step.
const CHECK: (&str, &str) = (switches::GATHER_CHECK, "1");

/// No token sees more cells than the bound of its step, and a backend that ignores it answers as without the option.
pub fn bounds_every_step(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let gathering = [&ARGUMENTS[..], &["--kv-gather"]].concat();
    for model in [Model::Random, Model::Windowed, Model::Recurrent] {
        let expected = answers(&fixture.serve(model, &ARGUMENTS)?)?;
        let server = fixture.serve_with(model, &gathering, &[CHECK])?;
        let found = answers(&server)?;
        fixture.must(found == expected, || format!("{model:?}: other answers with --kv-gather"));
        beside_a_stream(fixture, model, &server)?;
    }
    let server = fixture.serve_with(Model::Random, &gathering, &[CHECK])?;
    let choices = post(&server, "/v1/completions", &cases::request_for_choices(&cases::any_prompt(200), 3))?;
    fixture.must_return("three choices with --kv-gather", &choices, 200);
    Ok(())
}

/// Sends the prompts one after the other, and returns the tokens of the answers.
fn answers(server: &Server) -> Result<Vec<(u16, Value)>> {
    cases::prompts().iter().map(|prompt| answer_to(server, prompt)).collect()
}

fn answer_to(server: &Server, prompt: &[u32]) -> Result<(u16, Value)> {
    let (status, mut body) = ask(server, &plain(prompt, 8))?;
    Ok((status, body["tokens"].take()))
}

/// Two sequences of different lengths share the batches.
fn beside_a_stream(fixture: &mut PromiseFixture<'_>, model: Model, server: &Server) -> Result<()> {
    let (stream, short) = (plain(&cases::any_prompt(700), 60), plain(&cases::numbered_prompt(1, 20), 20));
    let (beside, answer) = meanwhile(server, &stream, |_| ask(server, &short))?;
    fixture.must_return(&format!("{model:?}: beside a stream with --kv-gather"), &answer, 200);
    let failed = beside.last.get("error").is_some();
    fixture.must(!failed, || format!("{model:?}: the stream with --kv-gather got {}", beside.last));
    Ok(())
}
