//! Servers of embeddings, which answer completions too.

use espalier_core::error::Result;
use espalier_modelgen::Architecture;
use serde_json::json;

use super::asking::{ask, post};
use super::fixture::{Model, PromiseFixture};
use crate::serving::cases::{self, AMPLE_CELLS, BLOCK};

/// Batches that are smaller than a prompt, and sums that do not depend on the order of the cells.
const BATCHES: [&str; 6] = ["-b", "64", "-ub", "64", "-fa", "off"];

/// Length of a prompt of several batches: only the last one has an output.
const PROMPT: usize = 3 * BLOCK + 8;

/// Completions between embeddings are answered as on a server without embeddings. The graph of this model has as many
/// operations for embeddings as for completions, which ended the process at the first batch without an output.
pub fn completions_between(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    const PAGED: [&str; 8] =
        ["--embedding", "--pooling", "last", "-np", "1", "-c", AMPLE_CELLS, "--kv-paged"];
    let model = Model::Small(Architecture::Lfm2);
    let mut reference = fixture.reference(model, &BATCHES)?;
    let server = fixture.serve(model, &[&BATCHES[..], &PAGED].concat())?;
    for number in 0..4 {
        let request = cases::request(&cases::numbered_prompt(2 * number, PROMPT));
        let expected = reference.expect(&request)?;
        let (status, body) = ask(&server, &request)?;
        fixture.hold(&format!("completion {number}"), &expected, reference.tolerance, (status, &body));
        let content = cases::numbered_prompt(2 * number + 1, PROMPT);
        let embedding = post(&server, "/embedding", &json!({ "content": content }))?;
        fixture.must_return(&format!("embedding {number}"), &embedding, 200);
    }
    Ok(())
}
