//! Boundaries: where a prompt is matched if sequences have a state, and where a sequence stops so that it can be.

use espalier_kernels::pool::boundaries::Stop;
use espalier_kernels::pool::extra_keys::RequestKeys;
use espalier_kernels::pool::pool::{Next, Pool, PoolError, PoolOptions};
use espalier_kernels::pool::snapshots::{NoSnapshot, Reason};
use espalier_kernels::scheduler::Capacity;

use crate::support::*;

fn stop(blocks: u64, reason: Reason) -> Option<Stop> {
    Some(Stop { tokens: blocks * BLOCK_SIZE as u64, reason })
}

/// Returns all stops of a sequence, in blocks.
fn stops(pool: &Pool, sequence: i32) -> Vec<(u64, Reason)> {
    let next = |computed: u64| pool.next_stop(sequence, computed);
    let all = std::iter::successors(next(0), |stop| next(stop.tokens));
    all.map(|stop| (stop.tokens / BLOCK_SIZE as u64, stop.reason)).collect()
}

#[test]
fn cells_are_matched_only_with_a_snapshot() {
    let mut pool = pool_with_states(10, 4);
    let prompt = tokens(1, 40);
    prefill(&mut pool, 0, &prompt);
    begin(&mut pool, 1, &prompt, RequestKeys::default());
    let prefix_match = match_prefix(&mut pool, 1);
    assert_eq!(
        (prefix_match.blocks, prefix_match.snapshot, prefix_match.next),
        (vec![], None, Next::Compute)
    );
    let (snapshot, _) = save(&mut pool, 0, &prompt[..32], Reason::Branch);
    let prefix_match = match_prefix(&mut pool, 1);
    assert_eq!((numbers(&prefix_match.blocks), prefix_match.snapshot), (vec![1, 2], Some(snapshot)));
    // Nothing more is matched, so there is nothing to restore either.
    assert_eq!(pool.restored(1, snapshot, true), Ok(()));
    let prefix_match = match_prefix(&mut pool, 1);
    assert_eq!((prefix_match.blocks, prefix_match.snapshot), (vec![], None));
}

#[test]
fn a_snapshot_is_matched_only_with_its_cells() {
    let mut pool = pool_with_states(10, 4);
    let prompt = tokens(1, 40);
    prefill(&mut pool, 0, &prompt);
    let (snapshot, _) = save(&mut pool, 0, &prompt[..32], Reason::Branch);
    finish(&mut pool, 0);
    evict_all(&mut pool, 0);
    begin(&mut pool, 1, &prompt, RequestKeys::default());
    assert_eq!(match_prefix(&mut pool, 1).blocks, []);
    // Once the same tokens are computed again, it is found.
    assert!(reserve(&mut pool, 1, 0..40).is_ok());
    assert!(pool.cache(1, &prompt).is_ok());
    begin(&mut pool, 2, &prompt, RequestKeys::default());
    let prefix_match = match_prefix(&mut pool, 2);
    assert_eq!((prefix_match.blocks.len(), prefix_match.snapshot), (2, Some(snapshot)));
}

#[test]
fn the_deepest_boundary_with_a_snapshot_is_offered_and_matched() {
    let mut pool = pool_with_states(20, 4);
    let prompt = tokens(1, 70);
    prefill(&mut pool, 0, &prompt);
    let (first, _) = save(&mut pool, 0, &prompt[..16], Reason::Branch);
    let (second, _) = save(&mut pool, 0, &prompt[..32], Reason::Branch);
    begin(&mut pool, 1, &prompt, RequestKeys::default());
    let offer = pool.offer(1, 71);
    // Five blocks, less the two that another sequence holds.
    assert_eq!((offer.tokens, offer.blocks, offer.waits_for), (32, 3, None));
    let prefix_match = pool.match_up_to(1, 47).expect("nothing was computed");
    assert_eq!((prefix_match.blocks.len(), prefix_match.snapshot), (2, Some(second)));
    begin(&mut pool, 2, &prompt, RequestKeys::default());
    let prefix_match = pool.match_up_to(2, 31).expect("nothing was computed");
    assert_eq!((prefix_match.blocks.len(), prefix_match.snapshot), (1, Some(first)));
    // The cached blocks behind the boundary are computed again.
    assert_eq!(reserve(&mut pool, 1, 32..70), Ok(vec![6, 7, 8]));
    assert_eq!(numbers(&pool.cache(1, &prompt).expect("the tokens agree")), [6, 7]);
}

#[test]
fn without_a_state_nothing_depends_on_snapshots() {
    let mut pool = pool_of_ten();
    let prompt = tokens(1, 100);
    prefill(&mut pool, 0, &prompt[..70]);
    begin(&mut pool, 1, &prompt, RequestKeys::default());
    assert_eq!(pool.next_stop(1, 0), None);
    let refused = pool.begin_snapshot(0, &prompt[..16], SNAPSHOT_BYTES, Reason::Branch);
    assert_eq!(refused, Err(NoSnapshot::Invalid));
    // The last block is needed in part.
    let prefix_match = pool.match_up_to(1, 33).expect("nothing was computed");
    assert_eq!((numbers(&prefix_match.blocks), prefix_match.snapshot), (vec![1, 2, 3], None));
    assert_eq!(numbers(&match_prefix(&mut pool, 1).blocks), [4]);
}

/// Without a budget sequences share nothing, so they do not wait for each other either.
#[test]
fn without_a_budget_nothing_is_matched_or_awaited() {
    let mut pool = pool_with_states(20, 0);
    let prompt = tokens(1, 100);
    for sequence in 0..2 {
        begin(&mut pool, sequence, &prompt, RequestKeys::default());
        assert_eq!(match_prefix(&mut pool, sequence).next, Next::Compute);
        assert_eq!((stops(&pool, sequence), pool.offer(sequence, 101).waits_for), (vec![], None));
    }
    assert!(reserve(&mut pool, 0, 0..100).is_ok());
    assert!(pool.cache(0, &prompt).is_ok());
    let refused = pool.begin_snapshot(0, &prompt[..16], SNAPSHOT_BYTES, Reason::Branch);
    assert_eq!(refused, Err(NoSnapshot::Short));
    assert_eq!(pool.offer(1, 101).tokens, 0);
}

#[test]
fn the_third_prompt_of_a_family_matches_what_the_second_one_saved() {
    let mut pool = pool_with_states(40, 8);
    let common = tokens(1, 50);
    let hits = [2, 3, 4, 5].map(|kind| {
        let prompt = joined(&[&common, &tokens(kind, 40)]);
        let hits = prefill_with_stops(&mut pool, kind, &prompt);
        (hits, saved_boundaries(&pool, kind))
    });
    // The first one cannot know where others will diverge from it: it saves the end of its prompt only.
    assert_eq!(hits, [(0, vec![5]), (0, vec![3, 5]), (3, vec![3]), (3, vec![3])]);
}

#[test]
fn a_waiting_request_gets_a_stop_where_it_diverges() {
    let mut pool = pool_with_states(20, 8);
    let common = tokens(1, 50);
    let [one, other] = [2, 3].map(|kind| joined(&[&common, &tokens(kind, 10)]));
    begin(&mut pool, 0, &one, RequestKeys::default());
    begin(&mut pool, 1, &other, RequestKeys::default());
    assert_eq!(match_prefix(&mut pool, 0).next, Next::Compute);
    assert_eq!(match_prefix(&mut pool, 1).next, Next::Wait);
    assert_eq!(pool.offer(1, 61).waits_for, Some(0));
    assert_eq!(stops(&pool, 0), [(3, Reason::Awaited)]);
    assert!(reserve(&mut pool, 0, 0..48).is_ok());
    assert!(pool.cache(0, &one[..48]).is_ok());
    let changes = pool.changes();
    save(&mut pool, 0, &one[..48], Reason::Awaited);
    assert!(pool.changes() > changes, "the waiting request is not considered again");
    assert_eq!(stops(&pool, 0), []);
    assert_eq!(match_prefix(&mut pool, 1).blocks.len(), 3);
}

/// Their cells are cached, and a state at which they could be matched is not: one request computes them again.
#[test]
fn cached_blocks_that_are_computed_again_are_awaited() {
    let mut pool = pool_with_states(60, 8);
    let prompt = |kind| joined(&[&tokens(1, 50), &tokens(kind, 10)]);
    prefill(&mut pool, 0, &prompt(2));
    finish(&mut pool, 0);
    (1..3).for_each(|one| begin(&mut pool, one, &prompt(one + 2), RequestKeys::default()));
    assert_eq!(match_prefix(&mut pool, 1).next, Next::Compute);
    assert_eq!(pool.offer(2, 61).waits_for, Some(1));
    assert_eq!(match_prefix(&mut pool, 2).next, Next::Wait);
    assert_eq!(stops(&pool, 1), [(3, Reason::Awaited)]);
    compute_with_stops(&mut pool, 1, &prompt(3), 0);
    assert_eq!(pool.offer(2, 61).waits_for, None);
    assert_eq!(match_prefix(&mut pool, 2).blocks.len(), 3);
}

#[test]
fn own_blocks_in_flight_hide_no_others() {
    let mut pool = pool_with_states(60, 8);
    let prompt = tokens(1, 100);
    assert!(reserve(&mut pool, 1, 0..32).is_ok());
    assert_eq!(pool.resume(1, 32, &prompt, RequestKeys::default()), Ok(()));
    begin(&mut pool, 2, &prompt, RequestKeys::default());
    assert_eq!(match_prefix(&mut pool, 2).next, Next::Compute);
    // Once the first two blocks are cached, the third one comes next, which sequence 1 computes.
    begin(&mut pool, 3, &prompt[..33], RequestKeys::default());
    assert!(reserve(&mut pool, 3, 0..33).is_ok());
    assert!(pool.cache(3, &prompt[..33]).is_ok());
    assert_eq!(match_prefix(&mut pool, 2).next, Next::Wait);
}

/// A state before a boundary serves the requests that diverge there, at the price of a block each; one behind it does not.
#[test]
fn a_stop_one_block_after_another_one_pays_if_several_requests_await_it() {
    let stops_of = |diverging: [usize; 3]| {
        let mut pool = pool_with_states(40, 4);
        let prompt = tokens(1, 120);
        begin(&mut pool, 0, &prompt, RequestKeys::default());
        for (sequence, blocks) in (1..).zip(diverging) {
            let common = &prompt[..blocks * BLOCK_SIZE];
            begin(&mut pool, sequence, &joined(&[common, &[sequence; 20]]), RequestKeys::default());
        }
        let awaited = stops(&pool, 0).into_iter().filter(|(_, reason)| *reason == Reason::Awaited);
        awaited.map(|(blocks, _)| blocks).collect::<Vec<_>>()
    };
    assert_eq!(stops_of([5, 6, 6]), [5, 6]);
    assert_eq!(stops_of([5, 5, 6]), [5]);
    assert_eq!(stops_of([4, 5, 6]), [4, 6]);
}

/// One that diverges a block after another one loses that block.
#[test]
fn waiting_requests_get_as_many_stops_as_there_is_memory_for() {
    let mut pool = pool_with_states(40, 2);
    let prompt = tokens(1, 150);
    begin(&mut pool, 0, &prompt, RequestKeys::default());
    for sequence in 1..7 {
        let common = &prompt[..sequence as usize * BLOCK_SIZE];
        begin(&mut pool, sequence, &joined(&[common, &[7; 20]]), RequestKeys::default());
    }
    let awaited = |blocks| (blocks, Reason::Awaited);
    let end = (9, Reason::PromptEnd);
    assert_eq!(stops(&pool, 0), [awaited(1), awaited(3), awaited(5), end]);
    // Once the size of a snapshot is known, so is their number. The last ones save most.
    prefill(&mut pool, 7, &tokens(9, 17));
    save(&mut pool, 7, &tokens(9, 16), Reason::Branch);
    assert_eq!(stops(&pool, 0), [awaited(3), awaited(5), end]);
    // A branch is given up before a place that a request waits for.
    for sequence in [1, 2, 4, 5, 6] {
        assert_eq!(pool.end(sequence), Ok(()));
    }
    begin(&mut pool, 1, &joined(&[&prompt[..96], &[8; 20]]), RequestKeys::default());
    begin(&mut pool, 2, &joined(&[&prompt[..16], &[8; 20]]), RequestKeys::default());
    (1..3).for_each(|sequence| assert!(reserve(&mut pool, sequence, 0..1).is_ok()));
    assert_eq!(stops(&pool, 0), [awaited(3), (6, Reason::Branch), end]);
}

/// It would find no state where it diverges. One that diverges there too finds the one that it saves.
#[test]
fn a_request_whose_stop_was_dropped_does_not_wait() {
    let mut pool = pool_with_states(60, 1);
    prefill(&mut pool, 7, &tokens(9, 17));
    save(&mut pool, 7, &tokens(9, 16), Reason::Branch);
    let prompt = tokens(1, 150);
    let leaving = |blocks: usize, kind: i32| joined(&[&prompt[..blocks * BLOCK_SIZE], &tokens(kind, 20)]);
    begin(&mut pool, 0, &prompt, RequestKeys::default());
    begin(&mut pool, 1, &leaving(5, 2), RequestKeys::default());
    begin(&mut pool, 2, &leaving(9, 3), RequestKeys::default());
    assert_eq!(match_prefix(&mut pool, 0).next, Next::Compute);
    assert_eq!(stops(&pool, 0), [(9, Reason::Awaited)]);
    assert_eq!((pool.offer(1, 101).waits_for, pool.offer(2, 165).waits_for), (None, Some(0)));
    assert_eq!(match_prefix(&mut pool, 2).next, Next::Wait);
    assert_eq!(match_prefix(&mut pool, 1).next, Next::Compute);
    begin(&mut pool, 3, &leaving(5, 4), RequestKeys::default());
    assert_eq!((stops(&pool, 1), pool.offer(3, 101).waits_for), (vec![(5, Reason::Awaited)], Some(1)));
    assert_eq!(match_prefix(&mut pool, 3).next, Next::Wait);
    compute_with_stops(&mut pool, 1, &leaving(5, 2), 0);
    assert_eq!(match_prefix(&mut pool, 3).blocks.len(), 5);
}

/// Its cells are gone, and another request computes them again.
#[test]
fn a_snapshot_without_its_cells_is_awaited() {
    let mut pool = pool_with_states(20, 8);
    let prompt = tokens(1, 40);
    prefill(&mut pool, 0, &prompt);
    save(&mut pool, 0, &prompt[..32], Reason::Branch);
    finish(&mut pool, 0);
    evict_all(&mut pool, 0);
    (0..2).for_each(|sequence| begin(&mut pool, sequence, &prompt, RequestKeys::default()));
    assert_eq!(match_prefix(&mut pool, 0).next, Next::Compute);
    assert_eq!(stops(&pool, 0), []);
    assert_eq!(match_prefix(&mut pool, 1).next, Next::Wait);
    assert!(reserve(&mut pool, 0, 0..40).is_ok());
    assert!(pool.cache(0, &prompt).is_ok());
    assert_eq!(match_prefix(&mut pool, 1).blocks.len(), 2);
}

#[test]
fn a_request_that_computes_is_not_awaited() {
    let mut pool = pool_with_states(20, 8);
    let prompt = tokens(1, 60);
    begin(&mut pool, 0, &prompt, RequestKeys::default());
    begin(&mut pool, 1, &joined(&[&prompt[..40], &[7; 20]]), RequestKeys::default());
    assert_eq!(pool.next_stop(0, 0), stop(2, Reason::Awaited));
    assert!(reserve(&mut pool, 1, 0..1).is_ok());
    assert_eq!(pool.next_stop(0, 0), stop(2, Reason::Branch));
    assert_eq!(pool.end(1), Ok(()));
    assert_eq!(pool.next_stop(0, 0), None);
}

#[test]
fn the_end_of_a_system_prompt_is_a_stop() {
    let mut pool = pool_with_states(20, 8);
    let system = tokens(1, 40);
    begin(&mut pool, 0, &joined(&[&system, &tokens(2, 20)]), RequestKeys::default());
    assert_eq!(pool.set_system_length(0, 40), Ok(()));
    assert_eq!(stops(&pool, 0), [(2, Reason::SystemPrompt)]);
    compute_with_stops(&mut pool, 0, &joined(&[&system, &tokens(2, 20)]), 0);
    // Already the second request matches it.
    assert_eq!(prefill_with_stops(&mut pool, 1, &joined(&[&system, &tokens(3, 20)])), 2);
    // Behind the last boundary of the prompt there is none.
    assert_eq!(pool.set_system_length(1, 64), Ok(()));
    assert_eq!(stops(&pool, 1), []);
    assert_eq!(pool.set_system_length(2, 1), Err(PoolError::Invalid));
}

#[test]
fn a_long_prompt_stops_at_its_last_boundary() {
    let mut pool = pool_with_states(40, 8);
    for (length, expected) in
        [(64, vec![]), (65, vec![(4, Reason::PromptEnd)]), (200, vec![(12, Reason::PromptEnd)])]
    {
        begin(&mut pool, 0, &tokens(1, length), RequestKeys::default());
        assert_eq!(stops(&pool, 0), expected, "{length} tokens");
    }
    // Counted from the blocks that were matched.
    prefill_with_stops(&mut pool, 1, &tokens(1, 200));
    begin(&mut pool, 2, &tokens(1, 250), RequestKeys::default());
    assert_eq!(match_and_restore(&mut pool, 2), 12);
    assert_eq!(stops(&pool, 2), []);
}

/// A prompt of fewer than four blocks has no stop of its own. One that was sent before has: its blocks are cached.
#[test]
fn a_short_prompt_that_is_sent_again_is_saved_where_its_cached_blocks_end() {
    let mut pool = pool_with_states(20, 8);
    let prompt = tokens(1, 40);
    assert_eq!(prefill_with_stops(&mut pool, 0, &prompt), 0);
    assert_eq!(saved_boundaries(&pool, 0), [0; 0]);
    finish(&mut pool, 0);
    assert_eq!(prefill_with_stops(&mut pool, 1, &prompt), 0);
    assert_eq!(saved_boundaries(&pool, 1), [2]);
    assert_eq!(prefill_with_stops(&mut pool, 2, &prompt), 2);
    assert_eq!(stops(&pool, 2), []);
}

/// No other prompt branches where one ended, and while a request computes, its own blocks are cached too.
#[test]
fn a_prompt_that_continues_a_short_one_is_saved_where_that_ended() {
    let mut pool = pool_with_states(20, 8);
    let short = tokens(1, 40);
    prefill(&mut pool, 0, &short);
    let prompt = joined(&[&short, &tokens(2, 20)]);
    begin(&mut pool, 1, &prompt, RequestKeys::default());
    assert_eq!(stops(&pool, 1), []);
    assert_eq!(match_prefix(&mut pool, 1).blocks, []);
    assert_eq!(stops(&pool, 1), [(2, Reason::Branch)]);
    assert!(reserve(&mut pool, 1, 0..48).is_ok());
    assert!(pool.cache(1, &prompt[..48]).is_ok());
    assert_eq!(stops(&pool, 1), [(2, Reason::Branch)]);
    // If that is inside of an image, it is saved before the image.
    let other = tokens(3, 60);
    begin(&mut pool, 2, &other, with_extras(&[(20, 15, "image")]));
    assert!(reserve(&mut pool, 2, 0..48).is_ok());
    assert!(pool.cache(2, &other[..48]).is_ok());
    begin(&mut pool, 3, &other[..37], with_extras(&[(20, 15, "image")]));
    assert_eq!(match_prefix(&mut pool, 3).blocks, []);
    assert_eq!(stops(&pool, 3), [(1, Reason::Branch)]);
}

#[test]
fn stops_at_intervals_keep_a_distance_from_others() {
    let options = PoolOptions { snapshot_interval: 32, ..options_with_states(20, 8) };
    let mut pool = Pool::new(options).expect("the options are in range");
    begin(&mut pool, 0, &tokens(1, 150), RequestKeys::default());
    let interval = |blocks| (blocks, Reason::Interval);
    let expected = [interval(2), interval(4), interval(6), (9, Reason::PromptEnd)];
    assert_eq!(stops(&pool, 0), expected);
}

/// Otherwise each would evict the one before it, and cost a batch for nothing.
#[test]
fn a_long_prompt_stops_at_as_many_intervals_as_there_is_memory_for() {
    let options = PoolOptions { snapshot_interval: 32, ..options_with_states(60, 3) };
    let mut pool = Pool::new(options).expect("the options are in range");
    prefill_with_stops(&mut pool, 0, &tokens(1, 257));
    // The end of the prompt evicts the first one.
    assert_eq!(saved_boundaries(&pool, 0), [4, 6, 16]);
    assert_eq!((pool.statistics().evicted_snapshots, pool.statistics().refused_snapshots), (1, 0));
    // Another prompt evicts intervals, and nothing else.
    prefill_with_stops(&mut pool, 1, &tokens(2, 257));
    assert_eq!(saved_boundaries(&pool, 0), [16]);
    assert_eq!(saved_boundaries(&pool, 1), [4, 16]);
}

#[test]
fn of_two_branches_one_block_apart_the_first_is_a_stop() {
    let mut pool = pool_with_states(40, 8);
    let prompt = tokens(1, 120);
    begin(&mut pool, 0, &prompt, RequestKeys::default());
    for (sequence, common) in [(1, 48), (2, 64), (3, 96)] {
        begin(&mut pool, sequence, &joined(&[&prompt[..common], &[7; 16]]), RequestKeys::default());
        assert!(reserve(&mut pool, sequence, 0..1).is_ok());
    }
    let expected = [(3, Reason::Branch), (6, Reason::Branch)];
    assert_eq!(stops(&pool, 0), expected);
    // Also if there is a snapshot already.
    assert!(reserve(&mut pool, 0, 0..48).is_ok());
    assert!(pool.cache(0, &prompt[..48]).is_ok());
    save(&mut pool, 0, &prompt[..48], Reason::Branch);
    assert_eq!(stops(&pool, 0), expected[1..]);
}

#[test]
fn a_boundary_is_never_inside_of_an_image() {
    let mut pool = pool_with_states(20, 8);
    let prompt = tokens(1, 70);
    begin(&mut pool, 0, &prompt, with_extras(&[(40, 20, "image")]));
    assert_eq!(pool.set_system_length(0, 50), Ok(()));
    assert_eq!(stops(&pool, 0), [(4, Reason::PromptEnd)]);
    assert!(reserve(&mut pool, 0, 0..70).is_ok());
    assert!(pool.cache(0, &prompt).is_ok());
    let refused = pool.begin_snapshot(0, &prompt[..48], SNAPSHOT_BYTES, Reason::Branch);
    assert_eq!(refused, Err(NoSnapshot::NotAtBoundary));
    save(&mut pool, 0, &prompt[..64], Reason::PromptEnd);
}

#[test]
fn a_request_that_waits_for_a_prompt_that_ends_with_an_image_is_awaited_before_it() {
    let mut pool = pool_with_states(20, 8);
    let prompt = tokens(1, 70);
    let keys = with_extras(&[(40, 30, "image")]);
    (0..2).for_each(|sequence| begin(&mut pool, sequence, &prompt, keys.clone()));
    assert_eq!(match_prefix(&mut pool, 0).next, Next::Compute);
    assert_eq!(match_prefix(&mut pool, 1).next, Next::Wait);
    assert_eq!(stops(&pool, 0), [(2, Reason::Awaited)]);
}

/// Prompts of one tenant do not change the stops of another one.
#[test]
fn another_salt_adds_no_stop() {
    let mut pool = pool_with_states(20, 8);
    let prompt = tokens(1, 60);
    begin(&mut pool, 0, &prompt, salted("one"));
    begin(&mut pool, 1, &joined(&[&prompt[..40], &[7; 20]]), salted("other"));
    assert_eq!(stops(&pool, 0), []);
}

#[test]
fn a_boundary_of_an_unknown_sequence_is_none() {
    let pool = pool_with_states(20, 8);
    assert_eq!([-1, 0, 8].map(|sequence| pool.next_stop(sequence, 0)), [None; 3]);
}
