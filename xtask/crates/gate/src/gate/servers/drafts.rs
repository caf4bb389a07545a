//! Speculation: tokens that are guessed from the text itself, checked several at once, and given up where wrong.

use super::scene::Scene;
use crate::error::Result;
use crate::serving::cases;

/// Tokens of an answer: a small model begins to repeat itself soon.
const ANSWER: usize = 200;

/// What repeats is guessed rightly, at times.
pub fn check(scene: &mut Scene<'_>) -> Result<()> {
    let requests: Vec<_> = (1..=3)
        .map(|number| cases::request_for(&cases::numbered_prompt(number, 20).repeat(10), ANSWER))
        .collect();
    let stock = scene.expect_each(&requests)?;
    let server =
        scene.ours(&["-np", "3", "-c", cases::ROOMY, "--kv-paged", "--spec-type", "ngram-simple"])?;
    let (mut drafted, mut accepted) = (0, 0);
    for volley in 0..2 {
        let answers = server.post_at_once("/completion", &requests)?.answers;
        for (stock, (status, body)) in stock.iter().zip(&answers) {
            scene.hold(&format!("volley {volley}"), stock, (*status, body));
            drafted += body["timings"]["draft_n"].as_u64().unwrap_or_default();
            accepted += body["timings"]["draft_n_accepted"].as_u64().unwrap_or_default();
        }
    }
    scene.must(accepted > 0 && drafted > accepted, || {
        format!("{accepted} of {drafted} drafted tokens were accepted; expected some, not all")
    });
    scene.must_be_at_rest(server)
}
