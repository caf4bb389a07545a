//! The end of the context: features that shift the cache are off when it is paged, and the server logs that.

use espalier_core::error::Result;

use super::fixture::{Fixture, times_logged};
use crate::serving::cases;

/// Context size in tokens, for a single request.
const CELLS: &str = "512";

/// Checks that a request for more than its context ends there, with stock's tokens, and that the next one is answered.
pub fn check(fixture: &mut Fixture<'_>) -> Result<()> {
    let server =
        fixture.ours(&["-np", "1", "-c", CELLS, "--kv-paged", "--context-shift", "--cache-reuse", "32"])?;
    let prompt = cases::numbered_prompt(1, 200);
    let fits = fixture.expect(&cases::request_for(&prompt, 512 - 200))?;
    let body = fixture.ask("asked for too much", &server, &cases::request_for(&prompt, 1000), &fits)?;
    fixture.must(body["stop_type"] == "limit", || format!("it ended by {}", body["stop_type"]));
    let next = cases::request(&cases::numbered_prompt(2, 100));
    let stock = fixture.expect(&next)?;
    fixture.ask("the next request", &server, &next, &stock)?;
    for warning in ["--context-shift is not supported by a paged KV cache", "cache reuse is not supported"] {
        let times = times_logged(&server, warning)?;
        fixture.must(times > 0, || format!("the server did not log `{warning}`"));
    }
    fixture.must_be_at_rest(server)
}
