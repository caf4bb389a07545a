//! LoRA: blocks computed with an adapter may be reused only with the same adapter and scale.

use espalier_core::error::Result;
use espalier_core::sys::net::server::Server;
use serde_json::{Value, json};

use super::fixture::Fixture;
use crate::serving::cases::{self, BLOCK};
use crate::serving::verdict::Answer;

/// Scales of the adapter; 0 is the base model.
const SCALES: [f64; 3] = [0.0, 0.5, 1.0];

/// Length of the prompt, in blocks.
const BLOCKS: usize = 4;

/// Sends a request with each scale, first cold and then with its blocks cached; then all at once; then with the scale
/// as the server's own.
pub fn check(fixture: &mut Fixture<'_>) -> Result<()> {
    let prompt = cases::numbered_prompt(1, BLOCKS * BLOCK + 1);
    let requests = SCALES.map(|scale| scaled(&prompt, scale));
    let stock = fixture.expect_each(&requests)?;
    for pair in stock.windows(2) {
        fixture.must(pair[0].tokens != pair[1].tokens, || "the adapter changes nothing in stock".to_string());
    }
    let server = fixture.ours(&["-np", "3", "-c", cases::AMPLE_CELLS, "--kv-paged"])?;
    for found in [0, BLOCKS * BLOCK] {
        for (scale, (request, stock)) in SCALES.iter().zip(requests.iter().zip(&stock)) {
            let what = format!("scale {scale}");
            let body = fixture.ask(&what, &server, request, stock)?;
            fixture.must_have_found(&what, &body, found);
        }
    }
    let answers = server.post_at_once("/completion", &requests)?.answers;
    for ((status, body), stock) in answers.iter().zip(&stock) {
        fixture.hold("all at once", stock, (*status, body));
    }
    check_own_scale(fixture, &server, &prompt, &stock)?;
    fixture.must_be_at_rest(server)
}

/// Checks that a request without a scale uses the one last set by `/lora-adapters`.
fn check_own_scale(
    fixture: &mut Fixture<'_>,
    server: &Server,
    prompt: &[u32],
    stock: &[Answer],
) -> Result<()> {
    for (scale, stock) in SCALES.iter().zip(stock) {
        server.post("/lora-adapters", &json!([{ "id": 0, "scale": scale }]))?;
        let what = format!("own scale {scale}");
        let body = fixture.ask(&what, server, &cases::request(prompt), stock)?;
        fixture.must_have_found(&what, &body, BLOCKS * BLOCK);
    }
    Ok(())
}

fn scaled(prompt: &[u32], scale: f64) -> Value {
    let mut request = cases::request(prompt);
    request["lora"] = json!([{ "id": 0, "scale": scale }]);
    request
}
