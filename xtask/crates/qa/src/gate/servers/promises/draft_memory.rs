//! Memory of draft models: pairs of models that cannot be paged, and the hidden states that are kept for drafts.

use espalier_core::error::Result;

use super::asking::{ask, plain};
use super::fixture::{Drafting, Model, PromiseFixture};
use crate::gate::servers::fixture::times_logged;
use crate::serving::cases;

/// A draft model with a recurrent state is not paged beside a target without one: it could not go back when a draft is
/// rejected. The server runs unpaged and logs that. Its layers with a sliding window have a cache of the full size by
/// then, which is logged too.
pub fn with_a_state(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    const UNPAGED: &str = "runs unpaged, because the draft model has a recurrent state";
    const FULL_SIZE: &str = "a sliding window have a cache of the full size";
    for (model, full_sizes) in [(Model::Random, 0), (Model::Windowed, 1)] {
        let drafting = Drafting::with_a_state(model);
        let server = fixture.serve_drafting_unpaged(drafting, &["-np", "2", "-c", "4096", "--kv-paged"])?;
        // An answer of one token has no drafts.
        let (status, body) = ask(&server, &plain(&cases::any_prompt(20), 1))?;
        fixture.must(status == 200, || format!("{model:?}: returned {status}: {body}"));
        for (words, expected) in [(UNPAGED, 1), (FULL_SIZE, full_sizes)] {
            let times = times_logged(&server, words)?;
            fixture.must(times == expected, || format!("{model:?}: the log says `{words}` {times} times"));
        }
    }
    Ok(())
}

/// The log says how much memory the hidden states take from which drafts continue: a row of 256 values for each of 64
/// blocks. Other drafts need none.
pub fn is_reported(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    const WORDS: &str = "drafts continue take up to 0.06 MiB";
    for drafting in Drafting::ALL {
        let server =
            fixture.serve_drafting(drafting, &["-np", "1", "-c", "4096", "--kv-paged", "-lv", "4"])?;
        let (times, expected) = (times_logged(&server, WORDS)?, usize::from(drafting.kind != "draft-dflash"));
        fixture.must(times == expected, || format!("{drafting:?}: the log says `{WORDS}` {times} times"));
    }
    Ok(())
}
