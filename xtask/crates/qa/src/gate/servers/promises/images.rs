//! Images need free blocks for all of their tokens, even if the cache has a part of them.

use espalier_core::error::Result;
use espalier_core::sys::net::server::Server;
use serde_json::{Value, json};

use super::asking::{ask, plain, with};
use super::fixture::{Model, PromiseFixture};
use super::meanwhile::meanwhile;
use super::tenants::MOMENT;
use crate::gate::servers::media;
use crate::serving::cases;
use crate::serving::kv_pool::Pool;

/// Number of attempts to reproduce a situation on a busy machine.
const TRIES: usize = 10;

/// Length of the text before the image, in tokens: with its 100 tokens the image ends in the third block, so it begins
/// and ends inside of blocks.
const BEFORE: usize = 40;

/// Returns a request with an image, followed by `letters` letters of one token each.
fn request(marker: &str, letters: usize, predict: usize) -> Value {
    let text = format!("{}{marker}{}", "t".repeat(BEFORE), "u".repeat(letters));
    let request = with(media::request(&text, &[1]), "n_predict", predict);
    with(with(request, "n_probs", 0), "logit_bias", json!([]))
}

/// Blocks that another request holds, up to the middle of an image, do not count as free for that image: its request
/// waits.
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

/// Length of a prompt with an image, in tokens: fourteen blocks, and fifteen with the additional block that an image
/// may need.
const LONG: usize = 895;

/// A request with an image that has grown to within a block of the pool's size, and is preempted there, resumes.
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
    fixture.arose(preempted, || "it was not preempted".to_string());
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

fn was_preempted(server: &Server) -> Result<bool> {
    Ok(server.said()?.contains("preempted with"))
}
