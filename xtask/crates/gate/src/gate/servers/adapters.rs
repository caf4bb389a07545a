//! LoRA: what was computed with an adapter belongs to that adapter and scale, and to nobody else.

use serde_json::{Value, json};

use super::scene::Scene;
use crate::error::Result;
use crate::serving::cases::{self, BLOCK};
use crate::serving::verdict::Answer;
use crate::sys::net::server::Server;

/// The base model, and two scales of the adapter.
const SCALES: [f64; 3] = [0.0, 0.5, 1.0];

/// Blocks of the prompt.
const BLOCKS: usize = 4;

/// Each scale is asked for, first cold and then with what it left; then all at once; then as the server's own scale.
pub fn check(scene: &mut Scene<'_>) -> Result<()> {
    let prompt = cases::numbered_prompt(1, BLOCKS * BLOCK + 1);
    let requests = SCALES.map(|scale| scaled(&prompt, scale));
    let stock = scene.expect_each(&requests)?;
    for pair in stock.windows(2) {
        scene.must(pair[0].tokens != pair[1].tokens, || "the adapter changes nothing in stock".to_string());
    }
    let server = scene.ours(&["-np", "3", "-c", cases::ROOMY, "--kv-paged"])?;
    for found in [0, BLOCKS * BLOCK] {
        for (scale, (request, stock)) in SCALES.iter().zip(requests.iter().zip(&stock)) {
            let what = format!("scale {scale}");
            let body = scene.ask(&what, &server, request, stock)?;
            scene.must_have_found(&what, &body, found);
        }
    }
    let answers = server.post_at_once("/completion", &requests)?.answers;
    for ((status, body), stock) in answers.iter().zip(&stock) {
        scene.hold("all at once", stock, (*status, body));
    }
    check_own_scale(scene, &server, &prompt, &stock)?;
    scene.must_be_at_rest(server)
}

/// A request that names no scale has the one that `/lora-adapters` was given last.
fn check_own_scale(scene: &mut Scene<'_>, server: &Server, prompt: &[u32], stock: &[Answer]) -> Result<()> {
    for (scale, stock) in SCALES.iter().zip(stock) {
        server.post("/lora-adapters", &json!([{ "id": 0, "scale": scale }]))?;
        let what = format!("own scale {scale}");
        let body = scene.ask(&what, server, &cases::request(prompt), stock)?;
        scene.must_have_found(&what, &body, BLOCKS * BLOCK);
    }
    Ok(())
}

fn scaled(prompt: &[u32], scale: f64) -> Value {
    let mut request = cases::request(prompt);
    request["lora"] = json!([{ "id": 0, "scale": scale }]);
    request
}
