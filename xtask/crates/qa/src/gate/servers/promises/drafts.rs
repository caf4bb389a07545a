//! Tenant isolation of speculative decoding: what it learns from a sequence is used only for the owner of that
//! sequence.

use espalier_core::error::{Error, Result};
use espalier_core::http::Request;
use espalier_core::sys::net::server::Server;
use serde_json::Value;

use super::asking::{LIMIT, ask, ask_as, plain, with};
use super::fixture::{Model, PromiseFixture};
use super::tenants::{ALICE, BOB, KEYS};
use crate::fuzz::plan::server::Drafts;
use crate::serving::cases;

/// Tokens of the common prompt.
const PROMPT: usize = 40;
/// Tokens of an answer.
const ANSWER: usize = 48;

/// Another tenant, or the same tenant with another salt, gets the drafts of the first user of a server, whatever others
/// have sent before to the same slot. The tenant that sent it gets other drafts, if that kind of drafting has a memory.
pub fn of_others(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let texts = Texts::generate(fixture)?;
    for mode in [&[][..], &["--kv-paged"]] {
        for kind in Drafts::KINDS.into_iter().filter(|kind| *kind != Drafts::Model) {
            // A slot for each owner below: there are as many tables as slots, and the least recently used one is
            // recycled.
            let arguments = ["-np", "4", "-c", "4096", "--api-key", KEYS];
            let options = kind.arguments("");
            let options: Vec<&str> = options.iter().map(String::as_str).collect();
            let server = fixture.serve(Model::Trained, &[&arguments[..], &options, mode].concat())?;
            let name = format!("{kind:?}{}", if mode.is_empty() { ", unpaged" } else { "" });
            are_divided(fixture, &server, &name, (kind, &texts))?;
        }
    }
    Ok(())
}

/// A prompt, and the same with one and with two answers of the model.
struct Texts {
    prompt: Vec<u32>,
    known: Vec<u32>,
    longer: Vec<u32>,
}

impl Texts {
    fn generate(fixture: &PromiseFixture<'_>) -> Result<Texts> {
        let server = fixture.serve(Model::Trained, &["-np", "1", "-c", "4096"])?;
        let go_on = |text: &[u32]| -> Result<Vec<u32>> {
            let (_, answer) = counted(ask(&server, &plain(text, ANSWER))?)?;
            Ok([text, &answer[..]].concat())
        };
        let prompt = cases::numbered_prompt(1, PROMPT);
        let known = go_on(&prompt)?;
        let longer = go_on(&known)?;
        Ok(Texts { prompt, known, longer })
    }

    /// Returns the prompt whose drafts depend on an earlier request with `known`, if that kind has a memory.
    fn asked(&self, kind: Drafts) -> &[u32] {
        match kind {
            // These draft from the sequence alone, by what they noted of its beginning: which drafts were accepted.
            Drafts::NgramMapK | Drafts::NgramMapK4v => &self.longer,
            _ => &self.prompt,
        }
    }
}

/// `"cache_prompt": false` adds nothing to the drafting tables, and reads nothing that other requests added: wherever
/// requests have owners, and also between those of one owner.
pub fn without_sharing(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    share_nothing(fixture, &["--kv-paged"], None)?;
    share_nothing(fixture, &["--api-key", ALICE], Some(ALICE))
}

fn share_nothing(fixture: &mut PromiseFixture<'_>, mode: &[&str], key: Option<&str>) -> Result<()> {
    let kind = Drafts::NgramMod;
    let options = kind.arguments("");
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let arguments = [&["-np", "4", "-c", "4096"][..], &options, mode].concat();
    let server = fixture.serve(Model::Trained, &arguments)?;
    let sent = |request: &Value| server.json(&Request::post("/completion", request).with_key(key), LIMIT);
    let unshared = |prompt: &[u32]| with(plain(prompt, ANSWER), "cache_prompt", false);
    let prompt = cases::numbered_prompt(1, PROMPT);
    let (cold, answer) = counted(sent(&unshared(&prompt))?)?;
    let known = [&prompt[..], &answer[..]].concat();
    for _ in 0..2 {
        sent(&unshared(&known))?;
    }
    let (taught, _) = counted(sent(&plain(&prompt, ANSWER))?)?;
    sent(&plain(&known, ANSWER))?;
    let (shared, _) = counted(sent(&plain(&prompt, ANSWER))?)?;
    let (learned, _) = counted(sent(&unshared(&prompt))?)?;
    fixture.must([taught, learned] == [cold; 2], || {
        format!("{mode:?}: cold {cold} tokens are drafted, after requests that share nothing {taught}, for one that shares nothing {learned}")
    });
    fixture.must(shared > cold, || {
        format!("{mode:?}: {shared} tokens are drafted where much is known: nothing is tested")
    });
    Ok(())
}

/// Sends all requests to one slot: what a kind remembers, it remembers of a slot or of an owner.
fn are_divided(
    fixture: &mut PromiseFixture<'_>,
    server: &Server,
    name: &str,
    (kind, texts): (Drafts, &Texts),
) -> Result<()> {
    let drafted = |key: &str, salt: &str, prompt: &[u32]| -> Result<u64> {
        let request = with(with(plain(prompt, ANSWER), "cache_salt", salt), "id_slot", 0);
        Ok(counted(ask_as(server, key, &request)?)?.0)
    };
    let asked = texts.asked(kind);
    let alone = drafted(BOB, "first", asked)?;
    for _ in 0..2 {
        drafted(ALICE, "", &texts.known)?;
    }
    let own = drafted(ALICE, "", asked)?;
    let others = drafted(BOB, "second", asked)?;
    let salted = drafted(ALICE, "third", asked)?;
    fixture.must([others, salted] == [alone; 2], || {
        format!("{name}: after alice's request bob drafts {others} tokens, alice with another salt {salted}, and bob before it {alone}")
    });
    is_remembered(fixture, name, kind, (own, alone));
    Ok(())
}

/// The positive control: alice's own drafts show that this kind remembers something that others must not get.
fn is_remembered(fixture: &mut PromiseFixture<'_>, name: &str, kind: Drafts, (own, alone): (u64, u64)) {
    let otherwise = || {
        format!(
            "{name}: alice drafts {own} tokens of what she sent, and another key {alone}: nothing is tested"
        )
    };
    match kind {
        // The table has what followed each n-gram, and drafts it whenever it is known.
        Drafts::NgramMod => fixture.must(own > alone, otherwise),
        // The counts have the whole answer, which makes drafts longer and fewer.
        Drafts::NgramCache => fixture.must(own != alone, otherwise),
        // Whether notes of earlier drafts change a count depends on the answer of the model.
        Drafts::NgramMapK | Drafts::NgramMapK4v => {
            fixture.arose(own != alone, otherwise);
        }
        Drafts::None
        | Drafts::NgramSimple
        | Drafts::Model
        | Drafts::Eagle3
        | Drafts::DFlash
        | Drafts::Mtp => {}
    }
}

/// Returns the number of tokens drafted for an answer, and its tokens.
fn counted((status, body): (u16, Value)) -> Result<(u64, Vec<u32>)> {
    let tokens = serde_json::from_value(body["tokens"].clone()).ok().filter(|_| status == 200);
    let tokens =
        tokens.ok_or_else(|| Error::no(format!("a request with drafts returned {status}: {body}")))?;
    Ok((body["timings"]["draft_n"].as_u64().unwrap_or(0), tokens))
}
