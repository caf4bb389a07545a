//! A short overload: too many clients, too small a pool, and clients that go away.

use std::time::Duration;

use espalier_core::error::Result;

use super::fixture::Fixture;
use crate::serving::kv_pool::Pool;
use crate::serving::overload::crowd::Crowd;
use crate::serving::overload::traffic;

/// Total number of requests of all clients.
const VISITS: u64 = 120;

/// Checks that every answer matches stock's, that no blocks stay in use, and that the load was an overload. Most of the
/// time is stock's, which answers one prompt after the other: every second prompt is enough here.
pub fn check(fixture: &mut Fixture<'_>) -> Result<()> {
    let prompts: Vec<_> = traffic::prompts().into_iter().step_by(2).collect();
    let stock = fixture.expect_each(&traffic::longest_requests(&prompts))?;
    let known = fixture.reference().clear(prompts.into_iter().zip(stock).collect());
    let small = traffic::CELLS.to_string();
    // Of 40 blocks the windows of two slots take at most half.
    let (slots, cells) = if fixture.has_own_windows() { ("2", "2560") } else { ("6", small.as_str()) };
    let server = fixture.ours(&["-np", slots, "-c", cells, "--kv-paged"])?;
    let crowd = Crowd {
        known: &known,
        tolerance: fixture.reference().tolerance,
        clients: 12,
        seed: 1,
        visits: VISITS,
        time: Duration::MAX,
    };
    let tally = crowd.visit(&server, |_| ())?;
    fixture.count(&tally);
    let pool = Pool::of_server(&server)?;
    let (evicted, found) = (pool.evicted_blocks, pool.hits()?.hit_tokens);
    fixture.must(evicted > 0 && tally.left > 0, || {
        format!("no overload: {evicted} blocks evicted, {} clients gone", tally.left)
    });
    fixture.must(found > 0, || "no token was found in the cache".to_string());
    if fixture.has_state() {
        let snapshots = server.get("/props")?.1["kv_snapshots"].take();
        let is_restored = snapshots["hits"].as_u64() > Some(0);
        fixture.must(is_restored, || format!("no state was restored: {snapshots}"));
    }
    fixture.must_be_at_rest(server)
}
