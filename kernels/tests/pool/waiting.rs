//! Waits for in-flight blocks.

use espalier_kernels::pool::extra_keys::RequestKeys;
use espalier_kernels::pool::pool::{Next, Pool, PoolError};
use espalier_kernels::scheduler::{Capacity, RequestSize};

use crate::support::*;

/// Sequence 0 computes this prompt, sequence 1 waits for it.
fn one_waits(prompt: &[i32]) -> Pool {
    let mut pool = pool_of_ten();
    begin(&mut pool, 0, prompt, RequestKeys::default());
    begin(&mut pool, 1, prompt, RequestKeys::default());
    assert_eq!(match_prefix(&mut pool, 0).next, Next::Compute);
    assert_eq!(match_prefix(&mut pool, 1).next, Next::Wait);
    pool
}

#[test]
fn blocks_are_matched_as_they_are_cached() {
    let prompt = tokens(1, 40);
    let mut pool = one_waits(&prompt);
    assert!(reserve(&mut pool, 0, 0..40).is_ok());
    assert!(pool.cache(0, &prompt[..20]).is_ok());
    let prefix_match = match_prefix(&mut pool, 1);
    assert_eq!((numbers(&prefix_match.blocks), prefix_match.next), (vec![1], Next::Wait));
    assert!(pool.cache(0, &prompt).is_ok());
    let prefix_match = match_prefix(&mut pool, 1);
    assert_eq!((numbers(&prefix_match.blocks), prefix_match.next), (vec![2], Next::Compute));
}

/// Its blocks are in flight once it is admitted: before that no request waits for it.
#[test]
fn a_sequence_that_waits_to_resume_has_nothing_in_flight() {
    let mut pool = pool_of_ten();
    let prompt = tokens(1, 4 * BLOCK_SIZE);
    let size = RequestSize { end: prompt.len() as u64 + 1, further_choices: 0 };
    prefill(&mut pool, 0, &prompt[..BLOCK_SIZE + 1]);
    assert_eq!(pool.end(0), Ok(()));
    let begin_again =
        |pool: &mut Pool| pool.begin_of_size(0, BLOCK_SIZE + 1, &prompt, RequestKeys::default(), size);
    assert_eq!(begin_again(&mut pool), Ok(()));
    begin(&mut pool, 1, &prompt, RequestKeys::default());
    assert_eq!(pool.offer(1, size.end).waits_for, None);
    let started = match_prefix(&mut pool, 0);
    assert_eq!((started.blocks, started.next), (vec![], Next::Compute));
    assert_eq!(pool.offer(1, size.end).waits_for, Some(0));
    assert_eq!(pool.match_prefix(0), Err(PoolError::Invalid), "it has started");
    // If it is evicted while it waits, it begins like any other.
    assert_eq!(begin_again(&mut pool), Ok(()));
    assert_eq!(pool.remove(0, 0, -1), Ok(()));
    assert_eq!(match_prefix(&mut pool, 0).blocks.len(), 1);
}

#[test]
fn another_salt_or_adapter_does_not_wait() {
    let prompt = tokens(1, 40);
    let mut pool = one_waits(&prompt);
    for (sequence, keys) in [(2, salted("salt")), (3, adapted("lora"))] {
        begin(&mut pool, sequence, &prompt, keys);
        assert_eq!(match_prefix(&mut pool, sequence).next, Next::Compute);
    }
}

#[test]
fn a_request_that_ends_lets_the_next_one_compute() {
    let mut pool = one_waits(&tokens(1, 40));
    assert_eq!(pool.end(0), Ok(()));
    assert_eq!(match_prefix(&mut pool, 1).next, Next::Compute);
}

#[test]
fn a_new_request_takes_the_place_of_the_old_one() {
    let mut pool = one_waits(&tokens(1, 40));
    begin(&mut pool, 0, &tokens(2, 40), RequestKeys::default());
    assert_eq!(match_prefix(&mut pool, 1).next, Next::Compute);
}

#[test]
fn removing_everything_cancels_in_flight_blocks_once_something_was_computed() {
    let mut pool = one_waits(&tokens(1, 40));
    // A server empties the sequence before it begins to compute: the block stays in flight.
    assert_eq!(pool.remove(0, 0, -1), Ok(()));
    assert_eq!(match_prefix(&mut pool, 1).next, Next::Wait);
    assert!(reserve(&mut pool, 0, 0..40).is_ok());
    assert_eq!(match_prefix(&mut pool, 1).next, Next::Wait);
    assert_eq!(pool.remove(0, 0, -1), Ok(()));
    assert_eq!(match_prefix(&mut pool, 1).next, Next::Compute);
    assert_eq!(match_prefix(&mut pool, 0).next, Next::Wait);
}

#[test]
fn an_in_flight_block_that_cannot_be_cached_is_cancelled() {
    let mut pool = one_waits(&tokens(1, 40));
    assert!(reserve(&mut pool, 0, 0..4).is_ok());
    assert_eq!(pool.share(0, 2, 0, 4), Ok(()));
    assert_eq!(match_prefix(&mut pool, 1).next, Next::Wait);
    // Positions of a block that another sequence reads: it can no longer become full and its own.
    assert_eq!(pool.remove(0, 2, 4), Ok(()));
    assert_eq!(match_prefix(&mut pool, 1).next, Next::Compute);
}

#[test]
fn a_waiting_sequence_has_no_blocks_in_flight() {
    let mut pool = pool_of_ten();
    let (common, one, other) = (tokens(1, 16), tokens(2, 32), tokens(3, 32));
    begin(&mut pool, 0, &joined(&[&common, &one]), RequestKeys::default());
    begin(&mut pool, 1, &joined(&[&common, &other]), RequestKeys::default());
    begin(&mut pool, 2, &joined(&[&common, &other]), RequestKeys::default());
    assert_eq!(match_prefix(&mut pool, 1).next, Next::Compute);
    assert_eq!(pool.end(1), Ok(()));
    assert_eq!(match_prefix(&mut pool, 0).next, Next::Compute);
    assert_eq!(match_prefix(&mut pool, 2).next, Next::Wait);
    assert!(reserve(&mut pool, 0, 0..48).is_ok());
    assert!(pool.cache(0, &common).is_ok());
    // Sequence 2 is second for the common block, and first for its own.
    assert_eq!(match_prefix(&mut pool, 2).next, Next::Compute);
}

fn in_flight_owner(pool: &Pool, sequence: i32, index: usize) -> Option<u32> {
    let content = pool.request(sequence).and_then(|request| request.content(index))?;
    pool.blocks().contents.in_flight_for(content).map(|sequence| sequence.0)
}

/// A cached block is not in flight any more, even if it was evicted since: other sequences do not wait for its former
/// owner. A sequence that has to wait cancels its other in-flight blocks.
#[test]
fn waiting_cancels_the_in_flight_blocks_of_an_earlier_compute() {
    let mut pool = pool_of_ten();
    let prompt = tokens(1, 65);
    prefill(&mut pool, 2, &prompt[..17]);
    begin(&mut pool, 0, &prompt, RequestKeys::default());
    assert_eq!(match_prefix(&mut pool, 0).next, Next::Compute);
    assert_eq!([1, 2, 3].map(|index| in_flight_owner(&pool, 0, index)), [Some(0); 3]);
    // It caches one block, releases it, and the block is evicted.
    assert!(reserve(&mut pool, 0, 16..32).is_ok());
    assert_eq!(pool.cache(0, &prompt[..32]).map(|blocks| blocks.len()), Ok(1));
    assert_eq!(pool.remove(0, 16, -1), Ok(()));
    assert_eq!(reserve(&mut pool, 3, 0..128).map(|blocks| blocks.len()), Ok(8));
    finish(&mut pool, 3);
    assert_eq!([1, 2, 3].map(|index| in_flight_owner(&pool, 0, index)), [None, Some(0), Some(0)]);

    begin(&mut pool, 1, &prompt, RequestKeys::default());
    assert_eq!(match_prefix(&mut pool, 1).next, Next::Compute);
    assert_eq!(match_prefix(&mut pool, 0).next, Next::Wait);
    assert_eq!([1, 2, 3].map(|index| in_flight_owner(&pool, 0, index)), [Some(1), None, None]);
}

#[test]
fn writing_beside_a_matched_block_cancels_its_in_flight_state() {
    let prompt = tokens(1, 40);
    let mut pool = one_waits(&prompt);
    // A sequence that did not call `match_prefix` is faster.
    begin(&mut pool, 2, &prompt, RequestKeys::default());
    assert!(reserve(&mut pool, 2, 0..16).is_ok());
    assert!(pool.cache(2, &prompt[..16]).is_ok());
    assert_eq!(match_prefix(&mut pool, 0).blocks.len(), 1);
    assert_eq!(in_flight_owner(&pool, 0, 0), Some(0));
    assert!(reserve(&mut pool, 0, 15..16).is_ok());
    assert_eq!(in_flight_owner(&pool, 0, 0), None);
}

#[test]
fn the_last_full_block_is_in_flight_though_its_own_request_cannot_match_it() {
    let mut pool = pool_of_ten();
    let prompt = tokens(1, 32);
    begin(&mut pool, 0, &prompt, RequestKeys::default());
    begin(&mut pool, 1, &prompt, RequestKeys::default());
    begin(&mut pool, 2, &joined(&[&prompt, &[1]]), RequestKeys::default());
    assert_eq!(match_prefix(&mut pool, 0).next, Next::Compute);
    assert!(reserve(&mut pool, 0, 0..32).is_ok());
    assert!(pool.cache(0, &prompt[..16]).is_ok());
    // One token has to be computed, and it is in the last block: there is nothing to wait for.
    assert_eq!(match_prefix(&mut pool, 1).next, Next::Compute);
    assert_eq!(match_prefix(&mut pool, 2).next, Next::Wait);
}
