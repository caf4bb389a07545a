//! Servers of embeddings, which answer completions too.

use espalier_core::error::Result;
use espalier_core::sys::net::server::Server;
use espalier_modelgen::Architecture;
use serde_json::json;

use super::asking::{ask, metric, post};
use super::fixture::{Model, PromiseFixture};
use super::retained::keeping;
use super::tenants::{MOMENT, PROMPT as QUESTION, question};
use crate::serving::cases::{self, AMPLE_CELLS, BLOCK};
use crate::serving::kv_pool::Pool;

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

/// Prompt tokens of all requests that were looked up in the prefix cache, and those that were found in any cache.
fn looked_up_and_found(server: &Server) -> Result<(f64, f64)> {
    Ok((metric(server, "prefix_cache_query_tokens_total")?, metric(server, "prompt_tokens_cached_total")?))
}

/// Checks that no block has content. The blocks of a request are freed at about the time of its answer, so this waits.
fn must_be_empty(fixture: &mut PromiseFixture<'_>, server: &Server, what: &str) -> Result<()> {
    let mut pool = Pool::of_server(server)?;
    for _ in 0..40 {
        if pool.blocks_empty == pool.block_count {
            break;
        }
        std::thread::sleep(MOMENT);
        pool = Pool::of_server(server)?;
    }
    fixture.must(pool.blocks_empty == pool.block_count, || format!("{what} left something: {pool}"));
    Ok(())
}

/// Embeddings and rankings look up no cached block, find none, and leave neither a block nor the sequence of a slot, also
/// in a server whose slots retain their sequences.
pub fn leave_nothing(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    const EMBEDDING: [&str; 8] = ["--embedding", "--pooling", "last", "-np", "1", "-c", "4096", "--metrics"];
    let server = keeping(fixture, Model::Trained, &EMBEDDING)?;
    let tokens = question(1)["prompt"].clone();
    let requests = [
        ("/embedding", json!({ "content": tokens })),
        ("/embeddings", json!({ "input": tokens })),
        ("/v1/embeddings", json!({ "input": tokens })),
    ];
    for (path, request) in &requests {
        fixture.must_return(path, &post(&server, path, request)?, 200);
        must_be_empty(fixture, &server, path)?;
    }
    // Completions between them do look up, and find what a completion has left.
    for found in [0, QUESTION - 1] {
        fixture.must_have_found("a completion", &ask(&server, &question(1))?, found);
    }
    let before = looked_up_and_found(&server)?;
    fixture.must(before == ((2 * QUESTION) as f64, (QUESTION - 1) as f64), || {
        format!("two completions after three embeddings looked up and found {before:?} tokens")
    });
    for (path, request) in &requests {
        fixture.must_return(path, &post(&server, path, request)?, 200);
        let after = looked_up_and_found(&server)?;
        fixture.must(after == before, || {
            format!("{path} after completions: looked up and found {after:?} tokens instead of {before:?}")
        });
    }
    drop(server);
    rankings_leave_nothing(fixture)
}

/// Documents with a common query of two blocks and more, each sent twice.
fn rankings_leave_nothing(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    const RANKING: [&str; 6] = ["--reranking", "-np", "2", "-c", "4096", "--metrics"];
    let server = keeping(fixture, Model::Random, &RANKING)?;
    let documents: Vec<String> = ["b", "c", "c"].map(|letter| letter.repeat(100)).into();
    let request = json!({ "query": "a".repeat(2 * BLOCK + 20), "documents": documents });
    for path in ["/rerank", "/v1/rerank", "/reranking", "/v1/reranking"] {
        let answer = post(&server, path, &request)?;
        fixture.must_return(path, &answer, 200);
        let count = answer.1["results"].as_array().map(Vec::len);
        fixture.must(count == Some(documents.len()), || format!("{path}: it ranks {count:?}: {}", answer.1));
        must_be_empty(fixture, &server, path)?;
    }
    let all = looked_up_and_found(&server)?;
    fixture.must(all == (0.0, 0.0), || format!("rankings looked up and found {all:?} tokens"));
    Ok(())
}
