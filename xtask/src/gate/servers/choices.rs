//! Several choices of one prompt: computed once, and each is the answer that one alone would get.

use super::scene::Scene;
use crate::error::Result;
use crate::serving::cases::{self, BLOCK};
use crate::serving::verdict;

/// Prompts that end inside of a block and with one: the choices write their next token into a block that they share,
/// or into one of their own.
const LENGTHS: [usize; 2] = [200, 3 * BLOCK];

pub fn check(scene: &mut Scene<'_>) -> Result<()> {
    let server = scene.ours(&["-np", "4", "-c", cases::ROOMY, "--kv-paged"])?;
    for length in LENGTHS {
        let prompt = cases::numbered_prompt(1, length);
        let stock = scene.expect(&cases::request(&prompt))?;
        for wanted in [2, 4] {
            let request = cases::request_for_choices(&prompt, wanted);
            let (status, body) = server.post("/v1/completions", &request)?;
            let choices = body["choices"].as_array().map_or(&[][..], Vec::as_slice);
            scene.must(choices.len() == wanted, || {
                format!("n: {wanted} was answered {status} with {} choices", choices.len())
            });
            for choice in choices {
                let tokens = verdict::tokens_of_choice(choice).unwrap_or_default();
                scene.hold_tokens(&format!("n: {wanted}, {length} tokens"), &stock, &tokens);
            }
        }
    }
    scene.must_be_at_rest(server)
}
