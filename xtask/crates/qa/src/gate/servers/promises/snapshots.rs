//! Snapshots of recurrent states: where a prompt of such a model is a prefix-cache hit, and that a hit changes nothing.

use espalier_core::error::{Error, Result};
use espalier_core::sys::machine::threads::result_of;
use espalier_core::sys::net::server::Server;
use espalier_modelgen::Architecture;
use serde_json::{Value, json};

use super::asking::{ask, metric, plain, post, with};
use super::fixture::{IN_PLACE, Model, PLAIN, PromiseFixture, Variables};
use super::tenants::MOMENT;
use crate::serving::asking::pool_at_rest;
use crate::serving::cases::{self, AMPLE_CELLS, BLOCK};
use crate::serving::reference::Reference;

/// Blocks of a prompt that is long enough for a snapshot at its last boundary, and its length: one token is left.
const BLOCKS: usize = 5;
const PROMPT: usize = BLOCKS * BLOCK + 1;

/// Number of attempts to reproduce a situation on a busy machine.
const TRIES: u64 = 5;

/// Sums that do not depend on the order of the cells.
const EXACT: [&str; 2] = ["-fa", "off"];

fn prompt(number: u64) -> Vec<u32> {
    cases::numbered_prompt(number, PROMPT)
}

/// Returns `kv_snapshots` of `/props`.
///
/// # Errors
///
/// If the server does not report them.
fn snapshots(server: &Server) -> Result<Value> {
    let props = server.get("/props")?.1;
    props
        .get("kv_snapshots")
        .cloned()
        .ok_or_else(|| Error::no(format!("/props has no kv_snapshots: {props}")))
}

/// Every kind of memory that is paged, with each kind of state. Models with gated delta nets come twice, the second
/// time with their states in place.
const MODELS: [(Model, Variables); 14] = [
    (Model::Trained, PLAIN),
    (Model::Random, PLAIN),
    (Model::Windowed, PLAIN),
    (Model::WidelyWindowed, PLAIN),
    (Model::Recurrent, PLAIN),
    (Model::Recurrent, IN_PLACE),
    (Model::Small(Architecture::Qwen3Next), PLAIN),
    (Model::Small(Architecture::Qwen3Next), IN_PLACE),
    (Model::Small(Architecture::GptOss), PLAIN),
    (Model::Small(Architecture::Lfm2), PLAIN),
    (Model::Small(Architecture::GraniteHybrid), PLAIN),
    (Model::Small(Architecture::Jamba), PLAIN),
    (Model::Small(Architecture::DeepSeek2), PLAIN),
    (Model::Small(Architecture::Qwen2Vl), PLAIN),
];

/// An answer after a prefix-cache hit is that of a cold server, bit by bit: the same tokens with the same log
/// probabilities. All batches of a prompt end where a block ends, so both servers compute the same batches.
pub fn hit_is_exact(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let mut before: Option<(Model, Value)> = None;
    for (model, variables) in MODELS {
        let cold = hit_is_exact_with(fixture, model, variables)?;
        // The sums of our kernel have another order than upstream's.
        let is_same = before.is_some_and(|(other, bits)| other == model && bits == cold);
        fixture.must(!is_same, || format!("{model:?}: {variables:?} changes no bit, so it is not used"));
        before = Some((model, cold));
    }
    Ok(())
}

/// Returns the log probabilities of the cold server.
fn hit_is_exact_with(fixture: &mut PromiseFixture<'_>, model: Model, variables: Variables) -> Result<Value> {
    const ARGUMENTS: [&str; 9] = ["-np", "1", "-c", "4096", "-b", "64", "-ub", "64", "--kv-paged"];
    const PARTS: [&str; 2] = ["tokens", "completion_probabilities"];
    let tokens = cases::numbered_prompt(1, BLOCKS * BLOCK + 17);
    let what = format!("{model:?} {variables:?}");
    let cold = fixture.serve_with(model, &ARGUMENTS, variables)?;
    let expected = ask(&cold, &cases::request(&tokens))?;
    fixture.must_have_found(&format!("{what}, cold"), &expected, 0);
    drop(cold);
    let warm = fixture.serve_with(model, &ARGUMENTS, variables)?;
    ask(&warm, &plain(&tokens, 1))?;
    let answer = ask(&warm, &cases::request(&tokens))?;
    fixture.must_have_found(&format!("{what}, warm"), &answer, BLOCKS * BLOCK);
    for part in PARTS {
        let (cold, warm) = (&expected.1[part], &answer.1[part]);
        let is_same = cold.is_array() && cold == warm;
        fixture.must(is_same, || format!("{what}: {part} are {warm} after a hit, and {cold} cold"));
    }
    Ok(expected.1[PARTS[1]].clone())
}

/// Tokens that requests share, and tokens of their own.
const SHARED: usize = 16 * BLOCK;
const OWN: usize = 30;

/// Returns a request that shares its prefix with those of the same family.
fn request_of(family: u64, number: u64, own: usize) -> Value {
    let shared = cases::numbered_prompt(family, SHARED);
    plain(&[shared, cases::numbered_prompt(100 * family + number, own)].concat(), 1)
}

/// Requests that arrive while another one computes their common prefix wait, and continue with its state where they
/// diverge: the prefix is computed once. So it is if its blocks are cached without a state there.
pub fn waits_for_a_boundary(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let arguments = ["-np", "3", "-c", AMPLE_CELLS, "-b", "16", "-ub", "16", "--kv-paged", "--metrics"];
    let server = fixture.serve(Model::Recurrent, &arguments)?;
    for (what, is_cached) in [("cold", false), ("cached blocks", true)] {
        let met = prefix_is_computed_once(fixture, &server, what, is_cached)?;
        fixture.arose(met, || format!("{what}: no two requests waited"));
    }
    let taken = metric(&server, "kv_snapshots_total{reason=\"awaited\"}")?;
    fixture.must(taken > 0.0, || "no snapshot is counted as awaited".to_string());
    Ok(())
}

/// Returns whether the others waited. `is_cached`: another request has left the blocks of the prefix, and its state
/// behind them.
fn prefix_is_computed_once(
    fixture: &mut PromiseFixture<'_>,
    server: &Server,
    what: &str,
    is_cached: bool,
) -> Result<bool> {
    for volley in 1..=TRIES {
        let family = volley + if is_cached { TRIES } else { 0 };
        if is_cached {
            ask(server, &request_of(family, 9, 2 * BLOCK))?;
        }
        let before = metric(server, "prefix_cache_inflight_waits_total")?;
        let (first, others) = send_three(server, family);
        let (first, others) = (first?, others.into_iter().collect::<Result<Vec<_>>>()?);
        let waits = metric(server, "prefix_cache_inflight_waits_total")? - before;
        if waits < 2.0 {
            continue; // the first one was over before the others arrived
        }
        fixture.must_have_found(&format!("{what}: the first"), &first, 0);
        for other in others {
            fixture.must_have_found(&format!("{what}: one that waited"), &other, SHARED);
        }
        return Ok(true);
    }
    Ok(false)
}

type Asked = Result<(u16, Value)>;

/// Sends a request of a family, and two others while it is computed.
fn send_three(server: &Server, family: u64) -> (Asked, [Asked; 2]) {
    std::thread::scope(|threads| {
        let send = |number: u64| threads.spawn(move || ask(server, &request_of(family, number, OWN)));
        let first = send(1);
        std::thread::sleep(MOMENT / 5);
        let others = [send(2), send(3)];
        (result_of(first), others.map(result_of))
    })
}

/// The next turn of a conversation computes at most one block of the turns before it, with and without drafts, which
/// would jump over the end of a block.
pub fn turns_of_a_state(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    const ANSWER: usize = 300;
    let asked = cases::numbered_prompt(1, 20).repeat(5);
    let kinds: [(&str, &[&str]); 2] = [("alone", &[]), ("with drafts", &["--spec-type", "ngram-mod"])];
    for (what, options) in kinds {
        let arguments = [&["-np", "1", "-c", "1024", "--kv-paged"], options].concat();
        let server = fixture.serve(Model::Recurrent, &arguments)?;
        if !options.is_empty() {
            // Drafts are taken from an earlier answer, whose blocks another prompt evicts.
            ask(&server, &plain(&asked, ANSWER))?;
            ask(&server, &plain(&cases::numbered_prompt(3, 1000), 1))?;
        }
        let (status, first) = ask(&server, &plain(&asked, ANSWER))?;
        let tokens: Vec<u32> = serde_json::from_value(first["tokens"].clone()).unwrap_or_default();
        fixture.must(tokens.len() == ANSWER, || format!("{what}: returned {status}: {first}"));
        let drafted = first["timings"]["draft_n"].as_u64().unwrap_or_default();
        fixture.must(options.is_empty() || drafted > 0, || "nothing was drafted".to_string());
        // The last token of the answer was not decoded.
        let past = asked.len() + ANSWER - 1;
        let next = [&asked[..], &tokens, &cases::numbered_prompt(2, 20)].concat();
        let answer = ask(&server, &plain(&next, 1))?;
        fixture.must_have_found(&format!("{what}: the next turn"), &answer, past / BLOCK * BLOCK);
    }
    Ok(())
}

/// A conversation finds the system prompt of the one before it, which ends where the first message of a user begins.
pub fn system_prompt_of_a_state(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    const USER: &str = "<|im_start|>user";
    let template = ["-np", "1", "-c", "4096", "--kv-paged", "--metrics", "--chat-template", "chatml"];
    let server = fixture.serve(Model::Recurrent, &template)?;
    let system = "system words and more ".repeat(10);
    let chat = |user: &str| {
        json!({ "max_tokens": 1, "messages": [
            { "role": "system", "content": system },
            { "role": "user", "content": user },
        ] })
    };
    let prompt = post(&server, "/apply-template", &chat("any"))?.1;
    let before_user = prompt["prompt"].as_str().and_then(|prompt| Some(prompt.split_once(USER)?.0));
    let body = json!({ "content": before_user, "parse_special": true, "add_special": true });
    let tokens = post(&server, "/tokenize", &body)?.1["tokens"].as_array().map_or(0, Vec::len);
    let shared = tokens / BLOCK * BLOCK;
    fixture.must(shared >= 2 * BLOCK, || format!("a system prompt of {tokens} tokens"));
    for (user, found) in [("hello there friend", 0), ("another question", shared)] {
        let answer = post(&server, "/v1/chat/completions", &chat(user))?;
        fixture.must_have_found(&format!("a conversation that begins with `{user}`"), &answer, found);
    }
    let taken = metric(&server, "kv_snapshots_total{reason=\"system_prompt\"}")?;
    fixture.must(taken == 1.0, || format!("{taken} snapshots of a system prompt are counted"));
    Ok(())
}

/// The memory of snapshots stays in its budget: the ones that were not used for longest are removed. Their prompts are
/// computed again, although their blocks are still cached.
pub fn in_budget(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let mut reference = fixture.reference(Model::Recurrent, &EXACT)?;
    let arguments = ["-np", "1", "-c", "4096", "-fa", "off", "--kv-paged", "--kv-snapshots", "1"];
    let server = fixture.serve(Model::Recurrent, &arguments)?;
    let mut most = 0;
    for number in 1..=6 {
        ask(&server, &plain(&prompt(number), 1))?;
        let now = snapshots(&server)?;
        let number_of = |name: &str| now[name].as_u64().unwrap_or(u64::MAX);
        most = most.max(number_of("count"));
        fixture.must(number_of("bytes") <= 1 << 20 && number_of("max_bytes") == 1 << 20, || {
            format!("with a budget of 1 MiB: {now}")
        });
    }
    let evicted = snapshots(&server)?["evicted"].as_u64().unwrap_or_default();
    fixture.must(most > 0 && evicted > 0, || format!("{most} snapshots at once, {evicted} evicted"));
    for (what, number, found) in [("the last prompt", 6, PROMPT - 1), ("the first prompt", 1, 0)] {
        hold(fixture, &mut reference, &server, what, number, found)?;
    }
    Ok(())
}

/// A snapshot whose blocks were evicted is not used, and is removed with the next one that is taken.
pub fn eviction_of_either_half(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let mut reference = fixture.reference(Model::Recurrent, &EXACT)?;
    let arguments = ["-np", "1", "-c", "1024", "-fa", "off", "--kv-paged"];
    let server = fixture.serve(Model::Recurrent, &arguments)?;
    for number in 1..=4 {
        ask(&server, &plain(&prompt(number), 1))?;
    }
    let now = snapshots(&server)?;
    let is_one_gone = now["count"] == 3 && now["evicted"] == 1;
    fixture.must(is_one_gone, || format!("not only the snapshot without its blocks was removed: {now}"));
    for (what, number, found) in [("with its blocks", 4, PROMPT - 1), ("without its blocks", 1, 0)] {
        hold(fixture, &mut reference, &server, what, number, found)?;
    }
    drop(server);
    only_the_blocks_are_evicted(fixture, &mut reference, &arguments)
}

/// A request that shares nothing takes no snapshot: the one whose blocks it evicts is still there when its prompt is
/// sent again.
fn only_the_blocks_are_evicted(
    fixture: &mut PromiseFixture<'_>,
    reference: &mut Reference,
    arguments: &[&str],
) -> Result<()> {
    let server = fixture.serve(Model::Recurrent, arguments)?;
    ask(&server, &plain(&prompt(1), 1))?;
    let all_blocks = cases::numbered_prompt(2, 15 * BLOCK + 10);
    let answer = ask(&server, &with(plain(&all_blocks, 1), "cache_prompt", false))?;
    fixture.must_return("a prompt that takes all blocks", &answer, 200);
    let (blocks, now) = (pool_at_rest(&server)?.blocks_retained, snapshots(&server)?);
    fixture.must(blocks == 0 && now["count"] == 1, || {
        format!("not only the blocks of the prompt were evicted: {blocks} are cached, and of snapshots {now}")
    });
    for (what, found) in [("a snapshot without blocks", 0), ("with blocks again", PROMPT - 1)] {
        hold(fixture, reference, &server, what, 1, found)?;
    }
    Ok(())
}

fn hold(
    fixture: &mut PromiseFixture<'_>,
    reference: &mut Reference,
    server: &Server,
    what: &str,
    number: u64,
    found: usize,
) -> Result<()> {
    let request = cases::request(&prompt(number));
    let expected = reference.expect(&request)?;
    let answer = ask(server, &request)?;
    fixture.must_have_found(what, &answer, found);
    fixture.hold(what, &expected, reference.tolerance, (answer.0, &answer.1));
    Ok(())
}

/// Without memory for a snapshot, nothing is shared, and the log says so. A model without a state needs none.
pub fn none_says_so(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    for (model, found, words) in [
        (Model::Recurrent, 0, "prefix caching is off"),
        (Model::Random, PROMPT - 1, "--kv-snapshots has no effect"),
    ] {
        let arguments = ["-np", "1", "-c", "4096", "--kv-paged", "--kv-snapshots", "0", "-lv", "4"];
        let server = fixture.serve(model, &arguments)?;
        ask(&server, &plain(&prompt(1), 1))?;
        let answer = ask(&server, &plain(&prompt(1), 1))?;
        fixture.must_have_found(&format!("{model:?}"), &answer, found);
        let log = fixture.log_text()?;
        fixture.must(log.contains(words), || format!("{model:?}: the log does not say `{words}`"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::fixture::OTHER_ARCHITECTURES;
    use super::*;

    #[test]
    fn hits_of_every_other_architecture_are_compared() {
        let compared: BTreeSet<String> = MODELS.iter().map(|(model, _)| format!("{model:?}")).collect();
        for architecture in OTHER_ARCHITECTURES {
            assert!(compared.contains(&format!("{:?}", Model::Small(architecture))), "{architecture:?}");
        }
    }
}
