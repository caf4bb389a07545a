//! Speculative decoding: tokens drafted from the sequence itself, verified several at once, and discarded if wrong.

use espalier_core::error::Result;

use super::fixture::Fixture;
use crate::serving::cases;

/// Length of an answer, in tokens: a small model soon repeats itself.
const ANSWER: usize = 200;

/// Checks answers to repetitive prompts, for which some drafts are accepted.
pub fn check(fixture: &mut Fixture<'_>) -> Result<()> {
    let requests: Vec<_> = (1..=3)
        .map(|number| cases::request_for(&cases::numbered_prompt(number, 20).repeat(10), ANSWER))
        .collect();
    let stock = fixture.expect_each(&requests)?;
    let server =
        fixture.ours(&["-np", "3", "-c", cases::AMPLE_CELLS, "--kv-paged", "--spec-type", "ngram-simple"])?;
    let (mut drafted, mut accepted) = (0, 0);
    for volley in 0..2 {
        let answers = server.post_at_once("/completion", &requests)?.answers;
        for (stock, (status, body)) in stock.iter().zip(&answers) {
            fixture.hold(&format!("volley {volley}"), stock, (*status, body));
            drafted += body["timings"]["draft_n"].as_u64().unwrap_or_default();
            accepted += body["timings"]["draft_n_accepted"].as_u64().unwrap_or_default();
        }
    }
    fixture.must(accepted > 0 && drafted > accepted, || {
        format!("{accepted} of {drafted} drafted tokens were accepted; expected some, not all")
    });
    fixture.must_be_at_rest(server)
}
