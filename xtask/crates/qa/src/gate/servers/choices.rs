//! Several choices of one prompt: the prompt is computed once, and each choice gets the answer that a single request
//! would get.

use espalier_core::error::Result;

use super::fixture::Fixture;
use crate::serving::cases::{self, BLOCK};
use crate::serving::kv_pool::Pool;
use crate::serving::verdict;

/// Prompt lengths that end inside a block and at a block boundary: the choices write their next token into a shared
/// block, or into blocks of their own.
const LENGTHS: [usize; 2] = [200, 3 * BLOCK];

/// Maximum number of choices of one request.
const MAX_CHOICES: usize = 4;

/// Number of blocks held if each choice had its own copy of the prompt. Half is enough if it is computed once: the
/// prompt's blocks, the last one of each choice, and one more if the prompt was already cached.
const APART: u64 = 4 * MAX_CHOICES as u64;

pub fn check(fixture: &mut Fixture<'_>) -> Result<()> {
    let server = fixture.ours(&["-np", "4", "-c", cases::AMPLE_CELLS, "--kv-paged"])?;
    for length in LENGTHS {
        let prompt = cases::numbered_prompt(1, length);
        let stock = fixture.expect(&cases::request(&prompt))?;
        for wanted in [2, MAX_CHOICES] {
            let request = cases::request_for_choices(&prompt, wanted);
            let (status, body) = server.post("/v1/completions", &request)?;
            let choices = body["choices"].as_array().map_or(&[][..], Vec::as_slice);
            fixture.must(choices.len() == wanted, || {
                format!("n: {wanted} returned {status} with {} choices", choices.len())
            });
            for choice in choices {
                let tokens = verdict::tokens_of_choice(choice).unwrap_or_default();
                fixture.hold_tokens(&format!("n: {wanted}, {length} tokens"), &stock, &tokens);
            }
        }
    }
    let held = Pool::of_server(&server)?.blocks_used_peak;
    fixture.must(held <= APART / 2, || {
        format!("{MAX_CHOICES} choices of one prompt held {held} blocks; expected at most {}", APART / 2)
    });
    fixture.must_be_at_rest(server)
}
