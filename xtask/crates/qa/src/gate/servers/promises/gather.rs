//! Sparse attention over a paged cache (`--kv-gather`): the bound of the cells that a step sees, on any machine.

use espalier_core::error::Result;
use espalier_core::sys::net::server::Server;
use serde_json::Value;

use super::asking::{ask, plain, post};
use super::fixture::{Drafting, Model, PromiseFixture};
use super::images;
use super::meanwhile::meanwhile;
use crate::gate::servers::fixture::times_logged;
use crate::gate::servers::media;
use crate::serving::cases;
use crate::serving::kv_pool;
use crate::serving::switches;
use crate::serving::verdict::{self, Answer};

/// A pool that the prompts fill: most cells that a step could read belong to other requests.
const ARGUMENTS: [&str; 5] = ["-np", "4", "-c", "2048", "--kv-paged"];

/// Sets the bound for every backend and node, so that the server compares it with the mask of each step.
const CHECK: (&str, &str) = (switches::GATHER_CHECK, "1");

/// No token sees more cells than the bound of its step, also with drafts and images, and answers are those without the
/// option: a backend that uses the bound may round in another way.
pub fn bounds_every_step(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let gathering = [&ARGUMENTS[..], &["--kv-gather"]].concat();
    let requests = text_requests();
    for model in [Model::Random, Model::Windowed, Model::Recurrent] {
        let expected = answers(&fixture.serve(model, &ARGUMENTS)?, &requests)?;
        let server = fixture.serve_with(model, &gathering, &[CHECK])?;
        hold_answers(fixture, &format!("{model:?}"), &server, &requests, &expected)?;
        beside_a_stream(fixture, model, &server)?;
    }
    let server = fixture.serve_with(Model::Random, &gathering, &[CHECK])?;
    let choices = post(&server, "/v1/completions", &cases::request_for_choices(&cases::any_prompt(200), 3))?;
    fixture.must_return("three choices with --kv-gather", &choices, 200);
    drop(server);
    with_own_windows(fixture)?;
    with_drafts(fixture, &gathering)?;
    with_images(fixture, &gathering)?;
    without_effect(fixture)
}

/// Layers with a window have cells of their own, and a bound of their own, which is that of the window's blocks.
fn with_own_windows(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    const WINDOWS: (&str, &str) = (switches::WINDOWS, "12");
    let arguments = ["-np", "4", "-c", "16384", "-b", "64", "-ub", "64", "--kv-paged"];
    let gathering = [&arguments[..], &["--kv-gather"]].concat();
    let requests = text_requests();
    for model in [Model::Windowed, Model::WidelyWindowed] {
        let expected = answers(&fixture.serve_with(model, &arguments, &[WINDOWS])?, &requests)?;
        let server = fixture.serve_with(model, &gathering, &[WINDOWS, CHECK])?;
        kv_pool::must_have_own_windows(&server)?;
        hold_answers(fixture, &format!("{model:?} with its own cells"), &server, &requests, &expected)?;
        beside_a_stream(fixture, model, &server)?;
    }
    Ok(())
}

/// The memory of the draft model is placed in blocks too, each token one cell further (EAGLE-3), and drafts are
/// verified in steps of several tokens.
fn with_drafts(fixture: &mut PromiseFixture<'_>, gathering: &[&str]) -> Result<()> {
    let [drafting, ..] = Drafting::ALL;
    let requests = text_requests();
    let expected = answers(&fixture.serve_drafting(drafting, &ARGUMENTS)?, &requests)?;
    let server = fixture.serve_drafting_with(drafting, gathering, &[CHECK])?;
    hold_answers(fixture, "with drafts", &server, &requests, &expected)
}

/// The tokens of an image share a position (M-RoPE), and the block in which it ends is not filled.
fn with_images(fixture: &mut PromiseFixture<'_>, gathering: &[&str]) -> Result<()> {
    let questions = |server: &Server| -> Result<Vec<Value>> {
        let marker = media::marker(server)?;
        Ok(["u", "v"].map(|letter| images::question(&marker, letter)).into())
    };
    let without = fixture.serve(Model::SeeingInPlace, &ARGUMENTS)?;
    let expected = answers(&without, &questions(&without)?)?;
    drop(without);
    let server = fixture.serve_with(Model::SeeingInPlace, gathering, &[CHECK])?;
    let asked = questions(&server)?;
    hold_answers(fixture, "with an image", &server, &asked, &expected)
}

/// A server on which the option has no effect logs the reason.
fn without_effect(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    for (arguments, reason) in [
        (&["--kv-gather"][..], "the KV cache is not paged"),
        (&["--kv-paged", "--kv-gather", "-fa", "off"][..], "flash attention is off"),
    ] {
        let server = fixture.serve(Model::Random, &[&["-np", "1", "-c", "2048"], arguments].concat())?;
        let words = format!("--kv-gather has no effect: {reason}");
        let times = times_logged(&server, &words)?;
        fixture.must(times > 0, || format!("the log does not say `{words}`"));
    }
    Ok(())
}

fn text_requests() -> Vec<Value> {
    cases::prompts().iter().map(|prompt| cases::request_for(prompt, 8)).collect()
}

/// Sends the requests one after the other.
fn answers(server: &Server, requests: &[Value]) -> Result<Vec<Answer>> {
    requests.iter().map(|request| crate::serving::asking::ask(server, request)).collect()
}

/// Sends the requests one after the other, and compares the answers with those of a server without the option.
fn hold_answers(
    fixture: &mut PromiseFixture<'_>,
    what: &str,
    server: &Server,
    requests: &[Value],
    expected: &[Answer],
) -> Result<()> {
    for (at, (request, expected)) in requests.iter().zip(expected).enumerate() {
        let (status, body) = ask(server, request)?;
        let what = format!("{what}, request {at} with --kv-gather");
        fixture.hold(&what, expected, verdict::tolerance(&[]), (status, &body));
    }
    Ok(())
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
