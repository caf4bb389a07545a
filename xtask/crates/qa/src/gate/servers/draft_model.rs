//! Draft models: their memory is paged with the main model's, and they must draft as if they had computed every prompt
//! themselves.

use espalier_core::error::{Error, Result};
use espalier_core::sys::net::server::Server;
use serde_json::{Value, json};

use super::{Compared, ServerGate, Setup, nothing_shared, pool_is_held};
use crate::serving::asking::pool_at_rest;
use crate::serving::cases::{self, Case, Model};
use crate::serving::verdict::{self, Answer};

/// Cases with ample and with scarce pool capacity.
const CASES: [Case; 2] = [
    Case { name: "a draft model, 4 sequences", parallel: "4", cells: cases::AMPLE_CELLS, dropped: 0 },
    Case { name: "a draft model, a small pool", parallel: "8", cells: "1024", dropped: 0 },
];

/// Number of tokens drafted for an answer, and how many of them the model accepted.
type Drafted = (u64, u64);

/// Compares answers with drafts. The trained model drafts for itself, and half of its vocabulary is made less likely
/// after it has drafted, so that some drafts are accepted and some are not.
pub fn compare(gate: &ServerGate<'_>, compared: &mut Compared) -> Result<()> {
    gate.context.ui.status("Comparing", "the servers' answers with a draft model");
    let setup = Setup { model: Model::Trained, kv_type: "f16", file: gate.model(Model::Trained)? };
    let file = setup.file.display().to_string();
    let draft = ["-md", &file, "--spec-type", "draft-simple", "--spec-draft-n-max", "8"];
    let stock = gate.start(&gate.stock, &setup, &[&super::ALONE[..], &["--kv-unified"], &draft].concat())?;
    let (alone, drafted) = answers_alone(&stock)?;
    drop(stock);
    // Unreported counts would be equal on both sides too, so require that they are not zero.
    for (what, count) in [
        ("drafted", drafted.iter().map(|one| one.0).sum::<u64>()),
        ("accepted", drafted.iter().map(|one| one.1).sum()),
    ] {
        if count == 0 {
            compared.failures.push(format!("a draft model: stock reports no token as {what}"));
        }
    }
    for case in CASES {
        let ours = ["-np", case.parallel, "-c", case.cells, "--kv-paged"];
        let server = gate.start(&gate.ours, &setup, &[&ours[..], &draft].concat())?;
        for _ in 0..2 {
            volley(&server, case.name, &alone, &drafted, compared)?;
        }
        let pool = pool_at_rest(&server)?;
        compared.failures.extend(pool_is_held(&pool).map(|wrong| format!("{}: {wrong}", case.name)));
        compared.failures.extend(nothing_shared(&pool)?.map(|wrong| format!("{}: {wrong}", case.name)));
    }
    Ok(())
}

fn answers_alone(stock: &Server) -> Result<(Vec<Answer>, Vec<Drafted>)> {
    let ask = |prompt: &Vec<u32>| {
        let (status, body) = stock.post("/completion", &request(cases::cold_request(prompt)))?;
        let answer = verdict::read(&body);
        let answer =
            answer.ok_or_else(|| Error::no(format!("stock with a draft model answered {status}")))?;
        Ok((answer, drafted_for(&body)))
    };
    Ok(cases::prompts().iter().map(ask).collect::<Result<Vec<_>>>()?.into_iter().unzip())
}

fn volley(
    server: &Server,
    name: &str,
    alone: &[Answer],
    drafted: &[Drafted],
    compared: &mut Compared,
) -> Result<()> {
    let requests: Vec<Value> =
        cases::prompts().iter().map(|prompt| request(cases::request(prompt))).collect();
    let answers = server.post_at_once("/completion", &requests)?.answers;
    for (at, (status, body)) in answers.iter().enumerate() {
        let same_before = compared.same;
        compared.hold(&format!("{name}: request {at}"), &alone[at], verdict::tolerance(&[]), (*status, body));
        // After a tie it drafts for another sequence.
        if compared.same > same_before && drafted_for(body) != drafted[at] {
            compared.failures.push(format!(
                "{name}: request {at}: (drafted, accepted) is {:?}, stock has {:?}",
                drafted_for(body),
                drafted[at]
            ));
        }
    }
    Ok(())
}

fn drafted_for(body: &Value) -> Drafted {
    let number = |name: &str| body["timings"][name].as_u64().unwrap_or(0);
    (number("draft_n"), number("draft_n_accepted"))
}

fn request(mut request: Value) -> Value {
    if let Some(bias) = request["logit_bias"].as_array_mut() {
        bias.extend((3..BYTES).chain(259..400).step_by(2).map(|token| json!([token, -3.0])));
    }
    request
}

/// First token id after the byte tokens that are valid text by themselves.
const BYTES: i32 = 131;
