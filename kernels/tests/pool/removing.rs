//! Removal of positions.

use espalier_kernels::pool::extra_keys::RequestKeys;
use espalier_kernels::pool::layout::Layout;
use espalier_kernels::pool::pool::{Next, PoolError};
use espalier_kernels::pool::sequences::BlockSpan;

use crate::support::*;

#[test]
fn a_range_of_positions_in_blocks() {
    let span = |first, end| BlockSpan::of(first, end, &Layout::plain(16));
    assert_eq!(span(0, 16), BlockSpan { touched: 0..1, whole: 0..1 });
    assert_eq!(span(0, 17), BlockSpan { touched: 0..2, whole: 0..1 });
    assert_eq!(span(1, 48), BlockSpan { touched: 0..3, whole: 1..3 });
    assert_eq!(span(3, 5), BlockSpan { touched: 0..1, whole: 1..1 });
    assert_eq!(span(5, 5), BlockSpan { touched: 0..0, whole: 0..0 });
    let all = BlockSpan { touched: 0..1 << 27, whole: 0..1 << 27 };
    assert_eq!([span(0, -1), span(-1, -1), span(-5, i32::MAX)], [all.clone(), all.clone(), all]);
}

#[test]
fn blocks_are_freed_in_reverse_order() {
    let mut pool = pool_of_ten();
    prefill(&mut pool, 0, &tokens(1, 48));
    assert_eq!(pool.remove(0, 0, -1), Ok(()));
    assert_eq!(free_order(&pool), [4, 5, 6, 7, 8, 9, 10, 3, 2, 1]);
    assert_eq!(pool.remove(8, 0, -1), Err(PoolError::Invalid));
}

#[test]
fn a_partly_removed_block_is_appended_to_if_no_other_sequence_holds_it() {
    let mut pool = pool_of_ten();
    assert_eq!(reserve(&mut pool, 0, 0..10), Ok(vec![1]));
    assert_eq!(pool.remove(0, 5, -1), Ok(()));
    assert_eq!(reserve(&mut pool, 0, 5..6), Ok(vec![]));
    assert_eq!(held(&pool, 0), [1]);
}

#[test]
fn a_partly_removed_shared_block_is_not_written_again() {
    let mut pool = pool_of_ten();
    assert_eq!(reserve(&mut pool, 0, 0..10), Ok(vec![1]));
    assert_eq!(pool.share(0, 1, 0, 10), Ok(()));
    assert_eq!(pool.remove(0, 5, -1), Ok(()));
    // Not even after the other sequence is gone: its blocks may have been shared further.
    finish(&mut pool, 1);
    assert_eq!(reserve(&mut pool, 0, 5..6), Ok(vec![2]));
    assert_eq!(held(&pool, 0), [1, 2]);
}

#[test]
fn a_partly_removed_cached_block_is_not_written_again() {
    let mut pool = pool_of_ten();
    let prompt = tokens(1, 16);
    prefill(&mut pool, 0, &prompt);
    // A server that has the whole prompt already computes the last token again.
    assert_eq!(pool.remove(0, 15, -1), Ok(()));
    assert_eq!(reserve(&mut pool, 0, 15..17), Ok(vec![2, 3]));
    assert_eq!(held(&pool, 0), [1, 2, 3]);
    assert_eq!(pool.cache(0, &prompt), Ok(vec![]));
}

#[test]
fn removed_output_may_be_replaced_by_other_output() {
    let mut pool = pool_of_ten();
    let (prompt, output, other) = (tokens(1, 20), tokens(2, 28), tokens(3, 28));
    prefill(&mut pool, 0, &prompt);
    assert_eq!(reserve(&mut pool, 0, 20..48), Ok(vec![3]));
    assert_eq!(pool.cache(0, &joined(&[&prompt, &output])).map(|blocks| blocks.len()), Ok(2));
    // Not while the old output is there.
    assert_eq!(pool.cache(0, &joined(&[&prompt, &other])), Err(PoolError::Invalid));
    assert_eq!(pool.remove(0, 32, -1), Ok(()));
    assert_eq!(reserve(&mut pool, 0, 32..48), Ok(vec![4]));
    let mixed = joined(&[&prompt, &output[..12], &other[..16]]);
    assert_eq!(numbers(&pool.cache(0, &mixed).expect("the tokens agree")), [4]);
    // The prompt does not change.
    assert_eq!(pool.cache(0, &tokens(4, 48)), Err(PoolError::Invalid));
    // All of it can be matched.
    assert_eq!(prefill(&mut pool, 1, &joined(&[&mixed, &[1]])).1[..3], [1, 2, 4]);
}

#[test]
fn caching_blocks_that_are_not_held_is_refused() {
    let mut pool = pool_of_ten();
    let prompt = tokens(1, 40);
    begin(&mut pool, 0, &prompt, RequestKeys::default());
    assert_eq!(reserve(&mut pool, 0, 0..16), Ok(vec![1]));
    assert_eq!(pool.cache(0, &prompt), Err(PoolError::Invalid));
    assert_eq!(hash(&pool, 1), None);
    assert_eq!(pool.cache(0, &prompt[..31]).map(|blocks| blocks.len()), Ok(1));
}

/// Draft tokens are in cells like others, but only accepted ones are passed to `cache`.
#[test]
fn draft_tokens_are_never_cached() {
    let mut pool = pool_of_ten();
    let prompt = tokens(1, 10);
    prefill(&mut pool, 0, &prompt);
    assert_eq!(reserve(&mut pool, 0, 10..20), Ok(vec![2]));
    assert_eq!(pool.cache(0, &joined(&[&prompt, &tokens(2, 2)])), Ok(vec![]));
    assert_eq!(pool.remove(0, 12, -1), Ok(()));
    assert_eq!(pool.statistics().cached_blocks, 0);
    assert_eq!(reserve(&mut pool, 0, 12..16), Ok(vec![]));
}

#[test]
fn a_sequence_that_removed_all_it_computed_may_match_again() {
    let mut pool = pool_of_ten();
    prefill(&mut pool, 0, &tokens(1, 33));
    begin(&mut pool, 1, &tokens(1, 33), RequestKeys::default());
    assert_eq!(match_prefix(&mut pool, 1).blocks.len(), 2);
    assert!(reserve(&mut pool, 1, 32..33).is_ok());
    assert_eq!(pool.match_prefix(1), Err(PoolError::Invalid));
    assert_eq!(pool.remove(1, 32, -1), Ok(()));
    assert_eq!(match_prefix(&mut pool, 1).next, Next::Compute);
    // A sequence with a gap cannot continue.
    assert_eq!(pool.remove(1, 0, 16), Ok(()));
    assert_eq!(pool.match_prefix(1), Err(PoolError::Invalid));
    assert_eq!(pool.remove(1, 0, -1), Ok(()));
    assert_eq!(match_prefix(&mut pool, 1).blocks.len(), 2);
}

#[test]
fn begin_requires_a_sequence_that_holds_nothing() {
    let mut pool = pool_of_ten();
    assert!(reserve(&mut pool, 0, 0..1).is_ok());
    assert_eq!(pool.begin(0, &[1], RequestKeys::default()), Err(PoolError::Invalid));
    assert_eq!(pool.begin(8, &[1], RequestKeys::default()), Err(PoolError::Invalid));
    for extras in [&[(4, 2, "a"), (5, 2, "b")][..], &[(4, 2, "a"), (0, 2, "b")], &[(4, 0, "a")]] {
        assert_eq!(pool.begin(1, &[1], with_extras(extras)), Err(PoolError::Invalid));
    }
    assert_eq!(pool.begin(1, &[], with_extras(&[(4, 2, "a"), (6, 2, "b")])), Ok(()));
    assert_eq!(match_prefix(&mut pool, 1).next, Next::Compute);
}

#[test]
fn clearing_resets_the_pool() {
    let mut pool = pool_of_ten();
    let prompt = tokens(1, 40);
    prefill(&mut pool, 0, &prompt);
    begin(&mut pool, 1, &tokens(2, 40), RequestKeys::default());
    assert_eq!(match_prefix(&mut pool, 1).next, Next::Compute);
    pool.clear();
    assert_eq!(free_order(&pool), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    assert!(pool.blocks().contents.is_empty());
    assert_eq!(pool.match_prefix(1), Err(PoolError::Invalid));
    assert_eq!(prefill(&mut pool, 0, &prompt), (0, vec![1, 2, 3]));
    assert_eq!(prefill(&mut pool, 2, &tokens(2, 40)).0, 0);
}
