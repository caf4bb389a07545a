//! Tenant isolation of speculative decoding: what it learns from a sequence is used only for the owner of that
//! sequence.

use espalier_core::error::{Error, Result};
use espalier_core::sys::net::server::Server;
use serde_json::Value;

use super::asking::{ask, ask_as, plain, with};
use super::fixture::{Model, PromiseFixture};
use super::tenants::{ALICE, BOB, KEYS};
use crate::fuzz::plan::server::Drafts;
use crate::serving::cases;

/// Tokens of the common prompt.
const PROMPT: usize = 40;
/// Tokens of an answer.
const ANSWER: usize = 48;

/// Another tenant, or the same tenant with another salt, gets the drafts of the first user of a server, whatever others
/// have sent before. The tenant that sent it gets more, if that kind of drafting has a memory.
pub fn of_others(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    for mode in [&[][..], &["--kv-paged"]] {
        for kind in Drafts::KINDS.into_iter().filter(|kind| *kind != Drafts::Model) {
            // A slot for each owner below: there are as many tables as slots, and the least recently used one is
            // recycled.
            let arguments = ["-np", "4", "-c", "4096", "--api-key", KEYS];
            let options = kind.arguments("");
            let options: Vec<&str> = options.iter().map(String::as_str).collect();
            let server = fixture.serve(Model::Trained, &[&arguments[..], &options, mode].concat())?;
            let name = format!("{kind:?}{}", if mode.is_empty() { ", unpaged" } else { "" });
            // The table outlives the requests that filled it.
            are_divided(fixture, &server, &name, kind == Drafts::NgramMod)?;
        }
    }
    Ok(())
}

/// `"cache_prompt": false` adds nothing to the drafting tables, and reads nothing that other requests added.
pub fn without_sharing(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let kind = Drafts::NgramMod;
    let options = kind.arguments("");
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let arguments = [&["-np", "4", "-c", "4096", "--kv-paged"], &options[..]].concat();
    let server = fixture.serve(Model::Trained, &arguments)?;
    let unshared = |prompt: &[u32]| with(plain(prompt, ANSWER), "cache_prompt", false);
    let prompt = cases::numbered_prompt(1, PROMPT);
    let (cold, answer) = counted(ask(&server, &unshared(&prompt))?)?;
    let known = [&prompt[..], &answer[..]].concat();
    for _ in 0..2 {
        ask(&server, &unshared(&known))?;
    }
    let (taught, _) = counted(ask(&server, &plain(&prompt, ANSWER))?)?;
    ask(&server, &plain(&known, ANSWER))?;
    let (shared, _) = counted(ask(&server, &plain(&prompt, ANSWER))?)?;
    let (learned, _) = counted(ask(&server, &unshared(&prompt))?)?;
    fixture.must([taught, learned] == [cold; 2], || {
        format!("cold {cold} tokens are drafted, after requests that share nothing {taught}, for one that shares nothing {learned}")
    });
    fixture.must(shared > cold, || {
        format!("{shared} tokens are drafted where much is known: nothing is tested")
    });
    Ok(())
}

fn are_divided(fixture: &mut PromiseFixture<'_>, server: &Server, kind: &str, remembers: bool) -> Result<()> {
    let prompt = cases::numbered_prompt(1, PROMPT);
    let (alone, answer) = drafted(server, BOB, "first", &prompt)?;
    let known = [&prompt[..], &answer[..]].concat();
    for _ in 0..2 {
        drafted(server, ALICE, "", &known)?;
    }
    let (others, _) = drafted(server, BOB, "second", &prompt)?;
    let (salted, _) = drafted(server, ALICE, "third", &prompt)?;
    let (own, _) = drafted(server, ALICE, "", &prompt)?;
    fixture.must([others, salted] == [alone; 2], || {
        format!("{kind}: after alice's request bob drafts {others} tokens, alice with another salt {salted}, and bob before it {alone}")
    });
    fixture.must(!remembers || own > alone, || {
        format!(
            "{kind}: alice drafts {own} tokens of what she sent, as many as a stranger: nothing is tested"
        )
    });
    Ok(())
}

/// Returns the number of tokens drafted for a request, and the tokens of its answer.
fn drafted(server: &Server, key: &str, salt: &str, prompt: &[u32]) -> Result<(u64, Vec<u32>)> {
    counted(ask_as(server, key, &with(plain(prompt, ANSWER), "cache_salt", salt))?)
}

/// Returns the number of tokens drafted for an answer, and its tokens.
fn counted((status, body): (u16, Value)) -> Result<(u64, Vec<u32>)> {
    let tokens = serde_json::from_value(body["tokens"].clone()).ok().filter(|_| status == 200);
    let tokens =
        tokens.ok_or_else(|| Error::no(format!("a request with drafts returned {status}: {body}")))?;
    Ok((body["timings"]["draft_n"].as_u64().unwrap_or(0), tokens))
}
