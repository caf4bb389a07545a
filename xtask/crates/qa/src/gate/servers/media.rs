//! Prompts with images: prefix-cache hits on them, and whether the answers match stock's.

use espalier_core::error::Result;
use espalier_core::sys::machine::process::Run;
use espalier_core::sys::net::server::Server;
use espalier_modelgen::{Architecture, ModelSpec, VisionSpec, WeightType};
use serde_json::{Value, json};

use super::{Compared, ServerGate, pool_is_held};
use crate::serving::asking::{ask, pool_at_rest};
use crate::serving::cases;
use crate::serving::image::encoded_image;
use crate::serving::switches;
use crate::serving::verdict::{self, Answer};
use crate::sys::models;

/// Length of an answer, in tokens: enough to outgrow the small pool.
const ANSWER: usize = 100;

/// Arguments of a server with concurrent requests, in a pool with capacity for about three.
const CROWD: [&str; 5] = ["-np", "6", "-c", "1280", "--kv-paged"];

const ALONE: [&str; 7] = ["-np", "1", "-c", cases::AMPLE_CELLS, "--cache-ram", "0", "--kv-unified"];

/// Text of more than one block.
const LONG: &str =
    "and a text that is much longer, so that it fills more than one block of the cache by itself";

/// A prompt: text with `@` for each image, and the images' seeds.
type Prompt = (String, &'static [u64]);

fn prompts() -> Vec<Prompt> {
    let pair = "one @@ two, ".repeat(2);
    vec![
        (format!("look: @ {LONG}"), &[1]),
        (format!("look: @ {LONG}!"), &[1]),
        (format!("look: @ {LONG}"), &[2]),
        ("look: @ what?".to_owned(), &[1]),
        (format!("{pair}what?"), &[1, 2, 1, 2]),
        (format!("{pair}{LONG}"), &[1, 2, 1, 2]),
        (format!("{pair}{LONG}"), &[1, 2, 2, 1]),
        (format!("no image: {LONG}"), &[]),
    ]
}

/// Compares the answers to prompts with images, sent one at a time and then all at once with preemption.
pub fn compare(gate: &ServerGate<'_>, compared: &mut Compared) -> Result<()> {
    gate.context.ui.status("Comparing", "the servers' answers to images");
    let (model, vision) = (gate.folder.join("model.gguf"), gate.folder.join("vision.gguf"));
    let spec = ModelSpec::small(Architecture::Llama, WeightType::F16);
    models::write(&model, &spec)?;
    models::write_vision(&vision, &VisionSpec::small(spec.n_embd))?;
    let start = |program, arguments: &[&str]| {
        let run = switches::without_features(Run::new(program)).args(["-t", "1"]).args(arguments);
        Server::start(run.arg("--model").arg(&model).arg("--mmproj").arg(&vision), &gate.log())
    };
    let stock = start(&gate.stock, &ALONE)?;
    let alone = requests(&stock)?
        .iter()
        .map(|request| ask(&stock, &uncached(request)))
        .collect::<Result<Vec<_>>>()?;
    drop(stock);
    let ample = start(&gate.ours, &["-np", "1", "-c", cases::AMPLE_CELLS, "--kv-paged"])?;
    one_after_the_other(&ample, &alone, compared)?;
    drop(ample);
    crowd(&start(&gate.ours, &CROWD)?, &alone, compared)
}

/// Checks that exactly the common prefix is found in the cache: as many tokens as full blocks and whole images cover.
fn one_after_the_other(server: &Server, alone: &[Answer], compared: &mut Compared) -> Result<()> {
    // The second prompt finds the three full blocks of the first one; the third, with another image, nothing. For the
    // fourth one block is cached, which ends inside its image: the image is computed again, and 8 bytes are left. The
    // sixth finds six blocks, up to the middle of its last image, which begins at 322; the seventh three, up to the
    // middle of its second image, which begins at 106.
    let found = [0, 192, 0, 8, 0, 322, 106, 0];
    for (at, (request, found)) in requests(server)?.iter().zip(found).enumerate() {
        let (status, body) = server.post("/completion", request)?;
        compared.hold(&format!("images: request {at}"), &alone[at], verdict::tolerance(&[]), (status, &body));
        if body["timings"]["cache_n"] != json!(found) {
            let said = &body["timings"]["cache_n"];
            compared.failures.push(format!("images: request {at} found {said} tokens instead of {found}"));
        }
    }
    Ok(())
}

/// Sends all requests at once, twice: blocks are evicted, requests preempted and their images computed again.
fn crowd(server: &Server, alone: &[Answer], compared: &mut Compared) -> Result<()> {
    for _ in 0..2 {
        let answers = server.post_at_once("/completion", &requests(server)?)?.answers;
        for (at, (status, body)) in answers.iter().enumerate() {
            compared.hold(
                &format!("a crowd with images: request {at}"),
                &alone[at],
                verdict::tolerance(&[]),
                (*status, body),
            );
        }
    }
    let pool = pool_at_rest(server)?;
    compared.failures.extend(pool_is_held(&pool).map(|wrong| format!("a crowd with images: {wrong}")));
    if pool.evicted_blocks == 0 {
        compared.failures.push(format!("a crowd with images: nothing was evicted: {pool}"));
    }
    Ok(())
}

/// Builds the requests. The placeholder of an image differs in each process, so that no text can contain it by chance.
fn requests(server: &Server) -> Result<Vec<Value>> {
    let marker = marker(server)?;
    Ok(prompts().iter().map(|(text, images)| request(&text.replace('@', &marker), images)).collect())
}

/// Returns the placeholder for an image in a prompt of this server.
pub fn marker(server: &Server) -> Result<String> {
    let properties = server.get("/props")?.1;
    Ok(properties["media_marker"].as_str().unwrap_or("<__media__>").to_string())
}

/// Builds a request with images, given by their seeds; `text` contains the placeholder of each.
pub fn request(text: &str, images: &[u64]) -> Value {
    let images: Vec<String> = images.iter().map(|seed| encoded_image(*seed)).collect();
    let mut request = cases::request(&[]);
    request["prompt"] = json!({ "prompt_string": text, "multimodal_data": images });
    request["n_predict"] = ANSWER.into();
    request
}

fn uncached(request: &Value) -> Value {
    let mut request = request.clone();
    request["cache_prompt"] = false.into();
    request
}
