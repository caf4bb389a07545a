//! Prompts with images: prefix-cache hits on them, and whether the answers match stock's. On a model that counts all
//! tokens of an image, and on one in which they share a position (M-RoPE).

use espalier_core::error::Result;
use espalier_core::sys::machine::process::Run;
use espalier_core::sys::net::server::Server;
use espalier_modelgen::{Architecture, ModelSpec, VisionSpec, WeightType};
use serde_json::{Value, json};

use super::{Compared, ServerGate, nothing_shared, pool_is_held};
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

/// A model that sees, and its prefix-cache hits.
struct Seeing {
    /// Name for reports.
    name: &'static str,
    model: ModelSpec,
    vision: VisionSpec,
    /// Tokens that each prompt finds if they are sent one after the other; `None`: not counted.
    found: Option<[usize; 8]>,
}

/// The second prompt finds the four blocks of the first one up to its last full one; the third, with another image,
/// nothing; the fourth, with another question, everything up to the end of the image. The sixth finds the blocks up to
/// the end of its last image, the seventh those up to the end of its second one.
const FOUND: [usize; 8] = [0, 236, 0, 108, 0, 422, 206, 0];

impl Seeing {
    fn all() -> [Seeing; 2] {
        let model = |architecture| ModelSpec::small(architecture, WeightType::F16);
        let (plain, shared) = (model(Architecture::Llama), model(Architecture::Qwen2Vl));
        [
            Seeing {
                name: "images",
                vision: VisionSpec::small(plain.n_embd),
                model: plain,
                found: Some(FOUND),
            },
            // Its images have words around them, so the numbers are others.
            Seeing {
                name: "images, M-RoPE",
                vision: VisionSpec::small_qwen2vl(shared.n_embd),
                model: shared,
                found: None,
            },
        ]
    }
}

/// Compares the answers to prompts with images, sent one at a time and then all at once with preemption.
pub fn compare(gate: &ServerGate<'_>, compared: &mut Compared) -> Result<()> {
    gate.context.ui.status("Comparing", "the servers' answers to images");
    Seeing::all().iter().try_for_each(|seeing| compare_one(gate, seeing, compared))
}

fn compare_one(gate: &ServerGate<'_>, seeing: &Seeing, compared: &mut Compared) -> Result<()> {
    let (model, vision) = (gate.folder.join("model.gguf"), gate.folder.join("vision.gguf"));
    models::write(&model, &seeing.model)?;
    models::write_vision(&vision, &seeing.vision)?;
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
    one_after_the_other(&ample, seeing, &alone, compared)?;
    drop(ample);
    crowd(&start(&gate.ours, &CROWD)?, seeing, &alone, compared)
}

/// Checks that exactly the common prefix is found in the cache: as many tokens as full blocks and whole images cover.
fn one_after_the_other(
    server: &Server,
    seeing: &Seeing,
    alone: &[Answer],
    compared: &mut Compared,
) -> Result<()> {
    let name = seeing.name;
    for (at, request) in requests(server)?.iter().enumerate() {
        let (status, body) = server.post("/completion", request)?;
        compared.hold(&format!("{name}: request {at}"), &alone[at], verdict::tolerance(&[]), (status, &body));
        let (reported, expected) = (&body["timings"]["cache_n"], seeing.found.map(|found| found[at]));
        if let Some(expected) = expected.filter(|expected| *reported != json!(expected)) {
            compared
                .failures
                .push(format!("{name}: request {at} found {reported} tokens instead of {expected}"));
        }
    }
    let pool = pool_at_rest(server)?;
    compared.failures.extend(nothing_shared(&pool)?.map(|wrong| format!("{name}: {wrong}")));
    Ok(())
}

/// Sends all requests at once, twice: blocks are evicted, requests preempted and their images computed again.
fn crowd(server: &Server, seeing: &Seeing, alone: &[Answer], compared: &mut Compared) -> Result<()> {
    let name = format!("a crowd with {}", seeing.name);
    for _ in 0..2 {
        let answers = server.post_at_once("/completion", &requests(server)?)?.answers;
        for (at, (status, body)) in answers.iter().enumerate() {
            let what = format!("{name}: request {at}");
            compared.hold(&what, &alone[at], verdict::tolerance(&[]), (*status, body));
        }
    }
    let pool = pool_at_rest(server)?;
    compared.failures.extend(pool_is_held(&pool).map(|wrong| format!("{name}: {wrong}")));
    if pool.evicted_blocks == 0 {
        compared.failures.push(format!("{name}: nothing was evicted: {pool}"));
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
