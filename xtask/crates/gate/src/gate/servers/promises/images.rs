//! Images need room for the whole of them, also where a part of them was found.

use serde_json::{Value, json};

use super::asking::{ask, plain, with};
use super::fixture::{Model, PromiseFixture};
use super::meanwhile::meanwhile;
use super::tenants::MOMENT;
use crate::error::Result;
use crate::gate::servers::media;
use crate::serving::cases;
use crate::serving::kv_pool::Pool;
use crate::sys::net::server::Server;

/// How often a situation is tried to be met, on a machine that is busy.
const TRIES: usize = 10;

/// Text before the image: with its 100 tokens it ends in the third block, and so begins and ends inside of blocks.
const BEFORE: usize = 40;

/// A request with an image and so many letters behind it, a token each.
fn request(marker: &str, letters: usize, predict: usize) -> Value {
    let text = format!("{}{marker}{}", "t".repeat(BEFORE), "u".repeat(letters));
    let request = with(media::request(&text, &[1]), "n_predict", predict);
    with(with(request, "n_probs", 0), "logit_bias", json!([]))
}

/// What others hold of a prompt up to the middle of an image is no room for the image: its request waits.
pub fn waits_for_blocks(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let server = fixture.serve(Model::Seeing, &["-np", "2", "-c", "512", "--kv-paged"])?;
    let marker = media::marker(&server)?;
    let mut met = false;
    for _ in 0..TRIES {
        // 140 tokens and these are five blocks; soon it has six of eight.
        let holder = request(&marker, 179, 60);
        let asked = request(&marker, 3, 4);
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
    fixture.must(met || !fixture.holds_so_far(), || "not reproduced: the image did not wait".to_string());
    Ok(())
}

/// Whether as many are in use, or not much later.
fn blocks_are(server: &Server, wanted: u64) -> Result<bool> {
    for _ in 0..40 {
        if Pool::of_server(server)?.blocks_used == wanted {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Tokens of a prompt with an image: fourteen blocks, and with the block more that an image may need fifteen.
const LONG: usize = 895;

/// A request with an image that has grown to within a block of the pool, and has to give way there, goes on.
pub fn resumes_near_the_context(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let server = fixture.serve(Model::Seeing, &["-np", "2", "-c", "1024", "--kv-paged"])?;
    let marker = media::marker(&server)?;
    let asked = with(request(&marker, LONG - BEFORE - 100, 90), "return_tokens", true);
    let asked = with(with(asked, "cache_prompt", false), "id_slot", 1);
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
    fixture.must(preempted || !fixture.holds_so_far(), || "not reproduced: it was not preempted".to_string());
    Ok(())
}

/// One neighbour after the other has one block; both came before the image, so that it is the latest when it wants the
/// last block, 66 tokens after its prompt. One neighbour alone would outgrow its block before.
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

fn was_preempted(server: &Server) -> Result<bool> {
    Ok(server.said()?.contains("preempted with"))
}
