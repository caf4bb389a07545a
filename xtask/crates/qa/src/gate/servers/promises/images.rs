//! Images need free blocks for all of their tokens, and are computed once for all questions about them.

use espalier_core::error::Result;
use espalier_core::sys::net::server::Server;
use serde_json::{Value, json};

use super::asking::{ask, plain, with};
use super::fixture::{Drafting, Model, PromiseFixture};
use super::meanwhile::meanwhile;
use super::tenants::MOMENT;
use crate::gate::servers::fixture::times_logged;
use crate::gate::servers::media;
use crate::serving::cases::{self, BLOCK};
use crate::serving::kv_pool::{self, Pool};
use crate::serving::switches;

/// Number of attempts to reproduce a situation on a busy machine.
const TRIES: usize = 10;

/// Length of the text before the image, in tokens: with its 100 tokens the image ends in the third block, which is
/// closed there.
const BEFORE: usize = 40;

/// Returns a request with an image, followed by `letters` letters of one token each.
fn request(marker: &str, image: &[u64], letters: usize, predict: usize) -> Value {
    let text = format!("{}{marker}{}", "t".repeat(BEFORE), "u".repeat(letters));
    let request = with(media::request(&text, image), "n_predict", predict);
    with(with(request, "n_probs", 0), "logit_bias", json!([]))
}

/// A request waits until there are free blocks for all tokens of its image.
pub fn waits_for_blocks(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let server = fixture.serve(Model::Seeing, &["-np", "2", "-c", "512", "--kv-paged"])?;
    let marker = media::marker(&server)?;
    let mut met = false;
    for _ in 0..TRIES {
        // Three blocks up to the end of the image and three behind it: six of eight. The other image needs four.
        let holder = request(&marker, &[1], 130, 60);
        let asked = request(&marker, &[2], 3, 4);
        let (_, (in_time, (status, body))) = meanwhile(&server, &holder, |running| {
            let has_six = blocks_are(&server, 6)?;
            Ok((has_six && !running.is_over(), ask(&server, &asked)?))
        })?;
        fixture.must(status == 200, || format!("an image beside another returned {status}: {body}"));
        met |= in_time;
        if met || !fixture.holds_so_far() {
            break;
        }
    }
    fixture.arose(met, || "the image did not wait".to_string());
    Ok(())
}

/// Polls until `wanted` blocks are in use, for a limited time.
fn blocks_are(server: &Server, wanted: u64) -> Result<bool> {
    for _ in 0..40 {
        if Pool::of_server(server)?.blocks_used == wanted {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Size of the context in two promises, in tokens: a pool of 16 blocks.
const CONTEXT: usize = 16 * BLOCK;

/// Length of a prompt up to the end of its image, in tokens.
const WITH_IMAGE: usize = BEFORE + 100;

/// Length of a prompt with an image, in tokens: three blocks with the one that is closed behind the image, and eleven
/// full ones but for one token.
const LONG: usize = WITH_IMAGE + 11 * BLOCK - 1;

/// A request with an image that has grown to within a block of the pool's size, and is preempted there, resumes.
pub fn resumes_near_the_context(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let server = fixture.serve(Model::Seeing, &["-np", "2", "-c", &CONTEXT.to_string(), "--kv-paged"])?;
    let marker = media::marker(&server)?;
    let asked = with(request(&marker, &[1], LONG - WITH_IMAGE, 90), "id_slot", 1);
    let mut preempted = false;
    for number in 0..TRIES as u64 {
        let (status, body) = beside_two_neighbours(&server, number, &asked)?;
        let tokens = body["tokens"].as_array().map_or(0, Vec::len);
        fixture.must(status == 200 && tokens == 90, || {
            format!("the image returned {status} with {tokens} tokens: {body}")
        });
        preempted |= was_preempted(&server)?;
        if preempted || !fixture.holds_so_far() {
            break;
        }
    }
    fixture.arose(preempted, || "it was not preempted".to_string());
    Ok(())
}

/// A request with an image that fits into the context is answered, also if it would not fit with a block that is closed
/// behind the image: a prompt of nearly the context's length, and an answer that ends with the context, 52 tokens after
/// the last one that closed blocks have space for.
pub fn fills_the_context(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let server = fixture.serve(Model::Seeing, &["-np", "1", "-c", &CONTEXT.to_string(), "--kv-paged"])?;
    let marker = media::marker(&server)?;
    let (status, body) = ask(&server, &request(&marker, &[1], CONTEXT - WITH_IMAGE - 44, 4))?;
    fixture.must(status == 200 && body["tokens_predicted"] == 4, || {
        format!("a prompt that fits returned {status}: {body}")
    });
    let endless = with(request(&marker, &[2], 700, 0), "n_predict", -1);
    let (status, body) = ask(&server, &endless)?;
    let length = ["tokens_evaluated", "tokens_predicted"].map(|name| body[name].as_u64().unwrap_or(0));
    let is_whole = body["stop_type"] == "limit" && length.iter().sum::<u64>() + 1 >= CONTEXT as u64;
    fixture.must(status == 200 && is_whole, || {
        format!("an answer that ends with the context returned {status}, {length:?} tokens: {body}")
    });
    Ok(())
}

/// Sends two neighbours, one after the other, that hold one block each. Both arrive before the image, so that the image
/// is the latest request when it needs the last block, 66 tokens after its prompt. A single neighbour would outgrow its
/// block before that.
fn beside_two_neighbours(server: &Server, number: u64, asked: &Value) -> Result<(u16, Value)> {
    let neighbour =
        |number: u64, predict: usize| with(plain(&cases::numbered_prompt(number, 3), predict), "id_slot", 0);
    std::thread::scope(|threads| {
        let (_, (second, answer)) = meanwhile(server, &neighbour(2 * number, 45), |_| {
            let second = threads.spawn(|| ask(server, &neighbour(2 * number + 1, 58)));
            std::thread::sleep(MOMENT / 10);
            Ok((second, ask(server, asked)?))
        })?;
        drop(second.join());
        Ok(answer)
    })
}

/// Letters of a question about an image.
const QUESTION: usize = 20;

/// More tokens than a question has, with the words that some models have behind an image.
const MAX_COMPUTED: u64 = 64;

/// Another question about the same image does not compute it again: its tokens are found in the cache, and its encoder
/// is not run. With a recurrent state the first question saves the state behind the image, and with a window that has
/// cells of its own it keeps the window there. Answers are those of a server without a cache.
pub fn image_once(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    const EXACT: [&str; 2] = ["-fa", "off"];
    for model in [Model::Seeing, Model::SeeingInPlace, Model::SeeingRecurrent, Model::SeeingWindowed] {
        let reference = fixture.reference(model, &EXACT)?;
        let server = server_for_images(fixture, model)?;
        let markers = [media::marker(&reference.stock)?, media::marker(&server)?];
        let mut computed = Vec::new();
        for letter in ["u", "v", "w"] {
            let [expected, asked] = markers.each_ref().map(|marker| question(marker, letter));
            let expected = crate::serving::asking::ask(&reference.stock, &cases::cold(expected))?;
            let answer = ask(&server, &asked)?;
            let what = format!("{model:?}, question {letter}");
            fixture.hold(&what, &expected, reference.tolerance, (answer.0, &answer.1));
            computed.push(answer.1["timings"]["prompt_n"].as_u64().unwrap_or(u64::MAX));
        }
        let times = times_logged(&server, "encoding mtmd batch")?;
        let are_hits = computed[1..].iter().all(|computed| *computed < MAX_COMPUTED);
        fixture.must(are_hits && times == 1, || {
            format!("{model:?}: the questions computed {computed:?} tokens; {times} images were encoded")
        });
    }
    Ok(())
}

/// Starts a server with one slot. Windows with cells of their own need a larger context, and a batch that an image fits
/// into.
fn server_for_images(fixture: &PromiseFixture<'_>, model: Model) -> Result<Server> {
    let arguments = ["-fa", "off", "-np", "1", "--kv-paged", "-lv", "4"];
    if model != Model::SeeingWindowed {
        return fixture.serve(model, &[&arguments[..], &["-c", "4096"]].concat());
    }
    let own = ["-c", "16384", "-b", "128", "-ub", "128"];
    let server = fixture.serve_with(model, &[&arguments[..], &own].concat(), &[(switches::WINDOWS, "12")])?;
    kv_pool::must_have_own_windows(&server)?;
    Ok(server)
}

/// Returns a question about an image that fills more than a block; `letter` makes it another question.
pub fn question(marker: &str, letter: &str) -> Value {
    let text = format!("{}{marker}{}", "t".repeat(BEFORE), letter.repeat(QUESTION));
    with(media::request(&text, &[1]), "n_predict", 24)
}

/// Draft models that read hidden states are not paged together with images, for which not every upstream tree computes
/// their cells: with an encoder the server runs unpaged, and logs that.
pub fn drafts_and_images(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    const WORDS: &str = "runs unpaged, because a paged KV cache does not support drafts of this kind";
    let server =
        fixture.serve_drafting_unpaged(Drafting::SEEING, &["-np", "2", "-c", "4096", "--kv-paged"])?;
    let (status, body) = ask(&server, &plain(&cases::any_prompt(20), 4))?;
    fixture.must(status == 200, || format!("a text beside drafts returned {status}: {body}"));
    let times = times_logged(&server, WORDS)?;
    fixture.must(times > 0, || format!("the log does not say `{WORDS}`"));
    Ok(())
}

fn was_preempted(server: &Server) -> Result<bool> {
    Ok(server.log_text()?.contains("preempted with"))
}
