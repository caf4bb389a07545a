//! Sequences that share blocks.

use espalier_kernels::pool::extra_keys::RequestKeys;
use espalier_kernels::pool::pool::{Next, PoolError};

use crate::support::*;

#[test]
fn a_shared_block_is_read_and_never_written() {
    let mut pool = pool_of_ten();
    assert_eq!(reserve(&mut pool, 0, 0..20), Ok(vec![1, 2]));
    assert_eq!(pool.share(0, 1, 0, 20), Ok(()));
    assert_eq!(held(&pool, 1), [1, 2]);
    // Both continue at position 20: the one that allocated its block writes there, the other one to a block of its own.
    assert_eq!(reserve(&mut pool, 0, 20..21), Ok(vec![]));
    assert_eq!(reserve(&mut pool, 1, 20..21), Ok(vec![3]));
    assert_eq!(held(&pool, 1), [1, 2, 3]);
    // Also when the first one is gone.
    finish(&mut pool, 0);
    assert_eq!(reserve(&mut pool, 1, 0..1), Ok(vec![4]));
    finish(&mut pool, 1);
    assert_eq!(pool.statistics().blocks_used, 0);
}

#[test]
fn only_the_blocks_in_the_range_are_shared_and_each_once() {
    let mut pool = pool_of_ten();
    assert_eq!(reserve(&mut pool, 0, 0..64), Ok(vec![1, 2, 3, 4]));
    assert_eq!(pool.share(0, 1, 31, 33), Ok(()));
    assert_eq!(held(&pool, 1), [2, 3]);
    assert_eq!(pool.share(0, 1, 0, -1), Ok(()));
    assert_eq!(held(&pool, 1), [1, 2, 3, 4]);
    assert_eq!(pool.share(0, 0, 0, -1), Ok(()));
    assert_eq!(pool.share(0, 1, 5, 5), Ok(()));
    assert_eq!(holders(&pool, &[1, 2, 3, 4]), [2, 2, 2, 2]);
    assert_eq!(pool.share(0, 8, 0, -1), Err(PoolError::Invalid));
    assert_eq!(pool.share(-1, 0, 0, -1), Err(PoolError::Invalid));
}

#[test]
fn shared_blocks_are_added_to_those_of_the_sequence() {
    let mut pool = pool_of_ten();
    assert_eq!(reserve(&mut pool, 0, 0..4), Ok(vec![1]));
    assert_eq!(reserve(&mut pool, 1, 4..8), Ok(vec![2]));
    assert_eq!(pool.share(0, 1, 0, 4), Ok(()));
    assert_eq!(held(&pool, 1), [1, 2]);
    // It still writes to its own block.
    assert_eq!(reserve(&mut pool, 1, 8..9), Ok(vec![]));
    // Sharing again passes on both.
    assert_eq!(pool.share(1, 2, 0, 9), Ok(()));
    assert_eq!(held(&pool, 2), [1, 2]);
    assert_eq!(reserve(&mut pool, 2, 9..10), Ok(vec![3]));
}

#[test]
fn several_blocks_at_one_index_are_neither_cached_nor_in_flight() {
    let mut pool = pool_of_ten();
    let prompt = tokens(1, 40);
    assert_eq!(reserve(&mut pool, 0, 0..4), Ok(vec![1]));
    begin(&mut pool, 1, &prompt, RequestKeys::default());
    begin(&mut pool, 2, &prompt, RequestKeys::default());
    assert_eq!(match_prefix(&mut pool, 1).next, Next::Compute);
    assert_eq!(match_prefix(&mut pool, 2).next, Next::Wait);
    assert_eq!(pool.share(0, 1, 0, 4), Ok(()));
    // The block is not the in-flight one, so the other sequence need not wait for it.
    assert_eq!(match_prefix(&mut pool, 2).next, Next::Compute);
    assert_eq!(pool.match_prefix(1), Err(PoolError::Invalid));
    assert_eq!(reserve(&mut pool, 1, 4..40), Ok(vec![2, 3, 4]));
    assert_eq!(numbers(&pool.cache(1, &prompt).expect("the tokens agree")), [3]);
    assert_eq!(hash(&pool, 1).or(hash(&pool, 2)), None);
}

#[test]
fn a_block_that_another_sequence_allocated_is_not_cached() {
    let mut pool = pool_of_ten();
    let prompt = tokens(1, 16);
    begin(&mut pool, 1, &prompt, RequestKeys::default());
    assert_eq!(reserve(&mut pool, 0, 0..16), Ok(vec![1]));
    assert_eq!(pool.share(0, 1, 0, -1), Ok(()));
    assert_eq!(pool.cache(1, &prompt), Ok(vec![]));
    assert_eq!(hash(&pool, 1), None);
}
