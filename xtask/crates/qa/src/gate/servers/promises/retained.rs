//! Retained sequences of idle slots (`--slot-save-path`): what is retained, and which requests may reuse it.

use std::path::Path;

use espalier_core::error::Result;
use espalier_core::http::Request;
use espalier_core::sys::machine::disk;
use espalier_core::sys::net::server::Server;
use serde_json::{Value, json};

use super::asking::{LIMIT, ask, plain, post, scaled, with};
use super::fixture::{Model, PromiseFixture};
use super::slot_files::as_stock_saves_it;
use super::tenants::{PROMPT, question};
use crate::serving::cases::{self, BLOCK};
use crate::serving::reference::Reference;

/// Starts a server that retains sequences, with these additional arguments.
pub fn keeping(fixture: &PromiseFixture<'_>, model: Model, arguments: &[&str]) -> Result<Server> {
    let saves = fixture.empty_folder("slots")?;
    fixture.serve(model, &[&["--kv-paged", "--slot-save-path", &saves], arguments].concat())
}

fn in_slot(request: Value, slot: usize) -> Value {
    with(request, "id_slot", slot)
}

/// `cache_prompt: false` leaves no sequence in any slot.
pub fn leaves_nothing(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let server = keeping(fixture, Model::Trained, &["-np", "1", "-c", "4096"])?;
    ask(&server, &with(question(1), "cache_prompt", false))?;
    let answer = ask(&server, &question(1))?;
    fixture.must_have_found("after cache_prompt: false", &answer, 0);
    let answer = ask(&server, &question(1))?;
    fixture.must_have_found("after cache_prompt", &answer, PROMPT - 1);
    Ok(())
}

const EXACT: [&str; 2] = ["-fa", "off"];

/// A sequence computed with other adapters is not reused, however the adapters were named.
pub fn switched_adapters(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let mut reference = fixture.reference(Model::Adapted, &EXACT)?;
    let server = keeping(fixture, Model::Adapted, &["-np", "1", "-c", "4096", "-fa", "off"])?;
    let set_own =
        |server: &Server, scale: f64| post(server, "/lora-adapters", &json!([{ "id": 0, "scale": scale }]));
    set_own(&reference.stock, 0.0)?;
    set_own(&server, 0.0)?;
    let request = cases::request(&cases::numbered_prompt(1, PROMPT));
    ask(&server, &scaled(request.clone(), &[1.0]))?;
    held_and_found(fixture, &mut reference, &server, "without a scale after scale 1", &request, 0)?;
    held_and_found(fixture, &mut reference, &server, "without a scale again", &request, PROMPT - 1)?;
    set_own(&reference.stock, 1.0)?;
    set_own(&server, 1.0)?;
    let other = cases::request(&cases::numbered_prompt(2, PROMPT));
    ask(&server, &scaled(other.clone(), &[0.0]))?;
    held_and_found(fixture, &mut reference, &server, "with the server's own scale after scale 0", &other, 0)
}

/// A slot file records the adapters of its sequence, and is reused only with the same.
pub fn file_of_other_adapters(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let mut reference = fixture.reference(Model::Adapted, &EXACT)?;
    let server = keeping(fixture, Model::Adapted, &["-np", "1", "-c", "4096", "-fa", "off"])?;
    let own = json!([{ "id": 0, "scale": 0.0 }]);
    post(&reference.stock, "/lora-adapters", &own)?;
    post(&server, "/lora-adapters", &own)?;
    let prompt = cases::numbered_prompt(1, PROMPT + 20);
    ask(&server, &scaled(plain(&prompt[..PROMPT], 1), &[1.0]))?;
    for action in ["save", "erase", "restore"] {
        act(fixture, &server, action)?;
    }
    let request = cases::request(&prompt);
    let same = scaled(request.clone(), &[1.0]);
    held_and_found(fixture, &mut reference, &server, "from its file", &same, PROMPT)?;
    act(fixture, &server, "restore")?;
    held_and_found(fixture, &mut reference, &server, "without a scale from a file of scale 1", &request, 0)
}

/// Sends an action of slot 0 that must succeed.
pub fn act(fixture: &mut PromiseFixture<'_>, server: &Server, action: &str) -> Result<()> {
    let (status, body) = post(server, &format!("/slots/0?action={action}"), &json!({ "filename": "file" }))?;
    fixture.must(status == 200, || format!("{action} returned {status}: {body}"));
    Ok(())
}

/// Checks an answer, and the number of prompt tokens that it found in the cache.
pub fn held_and_found(
    fixture: &mut PromiseFixture<'_>,
    reference: &mut Reference,
    server: &Server,
    what: &str,
    request: &Value,
    found: usize,
) -> Result<()> {
    let expected = reference.expect(request)?;
    let answer = ask(server, request)?;
    fixture.must_have_found(what, &answer, found);
    fixture.hold(what, &expected, reference.tolerance, (answer.0, &answer.1));
    Ok(())
}

/// The second turn of a conversation in a retained slot is a prefix-cache hit from another slot, too.
pub fn second_turn(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let server = keeping(fixture, Model::Trained, &["-np", "2", "-c", "4096"])?;
    let turns = cases::numbered_prompt(1, 6 * BLOCK + 1);
    ask(&server, &in_slot(plain(&turns[..4 * BLOCK + 10], 1), 0))?;
    let answer = ask(&server, &in_slot(plain(&turns, 1), 0))?;
    fixture.must_have_found("the second turn in its slot", &answer, 4 * BLOCK + 10);
    let answer = ask(&server, &in_slot(plain(&turns, 1), 1))?;
    fixture.must_have_found("the second turn from another slot", &answer, 6 * BLOCK);
    Ok(())
}

/// A retained sequence of a model with a recurrent state continues with all of its tokens or not at all: its state is
/// that of the last one, and the memory aborts the process if tokens before it are removed. What does not continue is
/// answered from cached blocks, as far as there is a snapshot.
pub fn whole_or_nothing(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let mut reference = fixture.reference(Model::Recurrent, &EXACT)?;
    let server = keeping(fixture, Model::Recurrent, &["-np", "1", "-c", "4096", "-fa", "off", "-lv", "4"])?;
    let turns = cases::numbered_prompt(1, PROMPT + 20);
    ask(&server, &plain(&turns[..PROMPT], 1))?;
    for (what, tokens, found) in [
        ("after all retained tokens", PROMPT + 20, PROMPT),
        ("after some of the retained tokens", PROMPT + 10, PROMPT - 1),
        ("the same prompt again", PROMPT + 10, PROMPT - 1),
    ] {
        let request = cases::request(&turns[..tokens]);
        held_and_found(fixture, &mut reference, &server, what, &request, found)?;
    }
    let log = fixture.log_text()?;
    for words in ["prefix caching with up to", "context checkpoints disabled"] {
        fixture.must(log.contains(words), || format!("the server did not report `{words}`"));
    }
    Ok(())
}

/// A sequence whose blocks do not lie in the order of its tokens continues from its file as it was saved. With M-RoPE
/// the index of a token, by which it is placed, is not in the file.
pub fn restored_out_of_order(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    for model in [Model::Recurrent, Model::SeeingInPlace] {
        let mut reference = fixture.reference(model, &EXACT)?;
        let server = keeping(fixture, model, &["-np", "1", "-c", "1024", "-fa", "off"])?;
        let turns = cases::numbered_prompt(1, PROMPT + 20);
        // Its blocks are freed from the last one on, and are allocated next in that order.
        ask(&server, &with(plain(&cases::numbered_prompt(2, PROMPT), 1), "cache_prompt", false))?;
        ask(&server, &plain(&turns[..PROMPT], 1))?;
        for action in ["save", "erase", "restore"] {
            act(fixture, &server, action)?;
        }
        let what = format!("{model:?}, from its file");
        held_and_found(fixture, &mut reference, &server, &what, &cases::request(&turns), PROMPT)?;
    }
    Ok(())
}

/// A slot file has the cells of layers with a sliding window for its last window only. The restored sequence continues
/// at its end; a prompt that leaves it before that is answered from cached blocks, which have all cells.
pub fn window_of_a_slot_file(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    const COMMON: usize = 3 * BLOCK + 8;
    let mut reference = fixture.reference(Model::Windowed, &EXACT)?;
    let server = keeping(fixture, Model::Windowed, &["-np", "1", "-c", "4096", "-fa", "off"])?;
    let turns = cases::numbered_prompt(1, PROMPT + 20);
    let other = [&turns[..COMMON], &cases::numbered_prompt(2, 20)].concat();
    ask(&server, &plain(&turns[..PROMPT], 1))?;
    act(fixture, &server, "save")?;
    for (what, prompt, found) in
        [("after the restored tokens", &turns, PROMPT), ("after some of them", &other, 3 * BLOCK)]
    {
        act(fixture, &server, "erase")?;
        act(fixture, &server, "restore")?;
        held_and_found(fixture, &mut reference, &server, what, &cases::request(prompt), found)?;
    }
    Ok(())
}

/// A slot file records its cache types, and a cache of other types refuses it: the bytes would be decoded wrongly.
pub fn file_of_another_type(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let saves = fixture.empty_folder("slots")?;
    let serve = |fixture: &PromiseFixture<'_>, values: &str| {
        let types = ["--cache-type-k", "q8_0", "--cache-type-v", values];
        let keeps = ["-np", "1", "-c", "4096", "--kv-paged", "--slot-save-path", &saves];
        fixture.serve(Model::Trained, &[&keeps[..], &types].concat())
    };
    let prompt = cases::numbered_prompt(1, PROMPT + 20);
    let server = serve(fixture, "tcq3")?;
    ask(&server, &plain(&prompt[..PROMPT], 1))?;
    act(fixture, &server, "save")?;
    drop(server);

    let server = serve(fixture, "turbo3")?;
    let (status, body) = post(&server, "/slots/0?action=restore", &json!({ "filename": "file" }))?;
    fixture.must(status == 400, || format!("a cache of turbo3 restored one of tcq3: {status}, {body}"));
    let says = body.to_string();
    let names = says.contains("-ctv") && says.contains("tcq3") && says.contains("turbo3");
    fixture.must(names, || format!("it does not name both types: {body}"));
    let answer = ask(&server, &plain(&prompt, 1))?;
    fixture.must_have_found("after a file of another type", &answer, 0);
    drop(server);

    let server = serve(fixture, "tcq3")?;
    act(fixture, &server, "restore")?;
    let answer = ask(&server, &plain(&prompt, 1))?;
    fixture.must_have_found("from a file of the same type", &answer, PROMPT);
    Ok(())
}

/// Number of tokens after those in the file.
const MORE: usize = 100;

/// Tokens computed after a restore are shared only if the file records that the same server configuration computed it.
pub fn file_of_no_origin(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let saves = fixture.empty_folder("slots")?;
    let serve = |fixture: &PromiseFixture<'_>, arguments: &[&str]| {
        let keeps = ["-np", "3", "-c", "4096", "--kv-paged", "--slot-save-path", &saves];
        fixture.serve(Model::Trained, &[&keeps[..], arguments].concat())
    };
    let prompt = cases::numbered_prompt(1, PROMPT + MORE);
    let server = serve(fixture, &[])?;
    ask(&server, &in_slot(plain(&prompt[..PROMPT], 1), 0))?;
    act(fixture, &server, "save")?;
    drop(server);

    let (of_file, whole) = (PROMPT / BLOCK * BLOCK, (PROMPT + MORE - 1) / BLOCK * BLOCK);
    let server = serve(fixture, &[])?;
    goes_on_from_the_file(fixture, &server, "a file of the same server", &prompt, whole)?;
    drop(server);
    let server = serve(fixture, &["-c", "2048"])?;
    goes_on_from_the_file(fixture, &server, "a file of another size of the context", &prompt, of_file)?;
    drop(server);

    // As a stock server saves it: the file records neither its owner nor its configuration. Saved once more, it still
    // has no origin.
    let unpaged = fixture
        .serve(Model::Trained, &["-np", "3", "-c", "4096", "--kv-unified", "--slot-save-path", &saves])?;
    ask(&unpaged, &in_slot(plain(&prompt[..PROMPT], 1), 0))?;
    act(fixture, &unpaged, "save")?;
    drop(unpaged);
    forget_record(&saves)?;
    let server = serve(fixture, &[])?;
    act(fixture, &server, "restore")?;
    act(fixture, &server, "save")?;
    goes_on_from_the_file(fixture, &server, "a file without an owner, saved again", &prompt, of_file)
}

/// Turns the saved file into one of a stock server.
fn forget_record(saves: &str) -> Result<()> {
    let path = Path::new(saves).join("file");
    disk::write_atomically(&path, &as_stock_saves_it(&disk::read(&path)?)?)
}

fn restore_as(server: &Server, key: Option<&str>) -> Result<(u16, Value)> {
    let request = Request::post("/slots/0?action=restore", json!({ "filename": "file" }));
    server.json(&request.with_key(key), LIMIT)
}

/// A file saved by a stock server names no adapters: a server that has some refuses it. Without API keys every client
/// may restore it, also one that sends a key. A file of a server that has adapters and one owner does not name them
/// either: a server that distinguishes owners refuses it, whatever its adapters, and so does one without adapters.
pub fn file_without_a_record(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let saves = fixture.empty_folder("slots")?;
    let serve = |fixture: &PromiseFixture<'_>, model: Model, mode: &str| {
        fixture.serve(model, &["-np", "1", "-c", "4096", mode, "--slot-save-path", &saves])
    };
    let unpaged = serve(fixture, Model::Adapted, "--kv-unified")?;
    ask(&unpaged, &plain(&cases::numbered_prompt(1, PROMPT), 1))?;
    act(fixture, &unpaged, "save")?;
    act(fixture, &unpaged, "restore")?;
    let answer = ask(&unpaged, &plain(&cases::numbered_prompt(1, PROMPT), 1))?;
    fixture.must_have_found("the same server, from its file", &answer, PROMPT - 1);
    drop(unpaged);
    for (of_stock, model, mode, expected) in [
        (false, Model::Adapted, "--kv-paged", 400),
        (false, Model::Random, "--kv-paged", 400),
        (false, Model::Random, "--kv-unified", 400),
        (true, Model::Adapted, "--kv-paged", 400),
        (true, Model::Random, "--kv-paged", 200),
    ] {
        if of_stock && model == Model::Adapted {
            forget_record(&saves)?;
        }
        let server = serve(fixture, model, mode)?;
        let key = of_stock.then_some("key-of-alice");
        let (status, body) = restore_as(&server, key)?;
        fixture.must(status == expected && (status == 200 || body.to_string().contains("LoRA")), || {
            format!("stock's: {of_stock}, {model:?} {mode}: returned {status} instead of {expected}: {body}")
        });
    }
    Ok(())
}

/// A slot file recorded by another configuration is refused, and the error names the difference.
pub fn file_of_another_server(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let saves = fixture.empty_folder("slots")?;
    let serve = |fixture: &PromiseFixture<'_>, model: Model, arguments: &[&str]| {
        let keeps = ["-np", "1", "-c", "4096", "--kv-paged", "--slot-save-path", &saves];
        fixture.serve(model, &[&keeps[..], arguments].concat())
    };
    let server = serve(fixture, Model::Random, &[])?;
    ask(&server, &plain(&cases::numbered_prompt(1, PROMPT), 1))?;
    act(fixture, &server, "save")?;
    drop(server);
    // Heads of 80 would not fit anyway: the error names the model before its state is read.
    let others: [(Model, &[&str], &str); 6] = [
        (Model::OddHeads, &[], "another model"),
        (Model::OtherBase, &[], "another model"),
        (Model::Random, &["--rope-freq-scale", "0.5"], "--rope-freq-scale"),
        (Model::Random, &["-fa", "off"], "with -fa on"),
        (Model::Random, &["-ctk", "q8_0"], "-ctk"),
        (Model::Seeing, &[], "mmproj"),
    ];
    for (model, arguments, named) in others {
        let server = serve(fixture, model, arguments)?;
        let (status, body) = post(&server, "/slots/0?action=restore", &json!({ "filename": "file" }))?;
        fixture.must(status == 400 && body.to_string().contains(named), || {
            format!("{model:?} {arguments:?}: returned {status} without naming {named}: {body}")
        });
    }
    let server = serve(fixture, Model::Random, &[])?;
    act(fixture, &server, "restore")
}

/// Restores the file and continues its sequence in one slot. Another slot computes the tokens in the file, which are
/// never shared, and a third slot must then find `found` tokens.
fn goes_on_from_the_file(
    fixture: &mut PromiseFixture<'_>,
    server: &Server,
    what: &str,
    prompt: &[u32],
    found: usize,
) -> Result<()> {
    act(fixture, server, "restore")?;
    let answer = ask(server, &in_slot(plain(prompt, 1), 0))?;
    fixture.must_have_found(&format!("{what}: its slot"), &answer, PROMPT);
    ask(server, &in_slot(plain(&prompt[..PROMPT], 1), 1))?;
    let answer = ask(server, &in_slot(plain(prompt, 1), 2))?;
    fixture.must_have_found(&format!("{what}: another slot"), &answer, found);
    Ok(())
}

/// Residual windows and attention sinks in f16 are unaffected by a restore into another slot: the answer is
/// bit-identical.
pub fn copies_of_others(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let prompt = cases::numbered_prompt(1, PROMPT);
    let mut answers = Vec::new();
    for restores in [false, true] {
        let server = keeping(fixture, Model::Trained, &["-np", "2", "-c", "4096", "--kv-quality", "small"])?;
        ask(&server, &in_slot(plain(&cases::numbered_prompt(2, BLOCK + 7), 1), 0))?;
        act(fixture, &server, "save")?;
        let first = in_slot(plain(&prompt[..PROMPT - 5], 1), 1);
        ask(&server, &first)?;
        if restores {
            act(fixture, &server, "restore")?;
        }
        let (status, body) = ask(&server, &in_slot(with(plain(&prompt, 4), "n_probs", 4), 1))?;
        fixture.must(status == 200, || format!("returned {status}: {body}"));
        answers.push(body["completion_probabilities"].clone());
    }
    fixture.must(answers[0].is_array() && answers[0] == answers[1], || {
        format!("{} with nothing restored, {} with a file restored into another slot", answers[0], answers[1])
    });
    Ok(())
}
