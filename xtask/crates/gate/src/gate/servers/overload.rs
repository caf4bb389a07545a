//! A short overload: too many clients, too small a pool, and clients that go away.

use super::scene::Scene;
use crate::error::Result;
use crate::serving::kv_pool::Pool;
use crate::serving::overload::crowd::{Crowd, Enough};
use crate::serving::overload::traffic;

/// Total number of requests of all clients.
const VISITS: u64 = 250;

/// Checks that every answer matches stock's, that no blocks stay in use, and that the load was an overload.
pub fn check(scene: &mut Scene<'_>) -> Result<()> {
    let prompts = traffic::prompts();
    let stock = scene.expect_each(&traffic::longest_requests(&prompts))?;
    let known = scene.reference().clear(prompts.into_iter().zip(stock).collect());
    let cells = traffic::CELLS.to_string();
    let server = scene.ours(&["-np", "6", "-c", &cells, "--kv-paged"])?;
    let crowd = Crowd {
        known: &known,
        tolerance: scene.reference().tolerance,
        clients: 12,
        seed: 1,
        enough: Enough::Visits(VISITS),
    };
    let tally = crowd.visit(&server, |_| ());
    scene.count(&tally);
    let evicted = Pool::of_server(&server)?.evicted_blocks;
    scene.must(evicted > 0 && tally.left > 0, || {
        format!("no overload: {evicted} blocks evicted, {} clients gone", tally.left)
    });
    scene.must_be_at_rest(server)
}
