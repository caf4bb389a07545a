//! A hash only finds candidates: with a constant hash function, all results are still correct.

use espalier_kernels::pool::extra_keys::RequestKeys;
use espalier_kernels::pool::hash::BlockHash;
use espalier_kernels::pool::pool::{Next, Pool};

use crate::support::*;

fn always_the_same(_: Option<&BlockHash>, _: &[i32], _: &[u8]) -> BlockHash {
    BlockHash([7; 32])
}

fn colliding_pool() -> Pool {
    Pool::with_hash(options(10), always_the_same).expect("the options are in range")
}

#[test]
fn a_forged_hash_does_not_hit() {
    let mut pool = colliding_pool();
    prefill(&mut pool, 0, &tokens(1, 20));
    assert_eq!(pool.statistics().refused_matches, 0);
    assert_eq!(prefill(&mut pool, 1, &tokens(2, 20)).0, 0);
    assert_eq!(pool.statistics().refused_matches, 1);
    // The same tokens, but other keys.
    assert_eq!(prefill_with(&mut pool, 2, &tokens(1, 20), salted("salt")).0, 0);
    assert_eq!(pool.statistics().refused_matches, 2);
    // The matching one is still found among them.
    assert_eq!(prefill(&mut pool, 3, &tokens(1, 20)), (1, vec![1, 7]));
    assert_eq!(pool.statistics().refused_matches, 2);
}

/// Equal tokens at another position are a different content, whatever the hash.
#[test]
fn a_block_is_only_found_behind_its_own_parent() {
    let mut pool = colliding_pool();
    let (one, other, common) = (tokens(1, 16), tokens(2, 16), tokens(3, 16));
    prefill(&mut pool, 0, &joined(&[&one, &common, &[1]]));
    assert_eq!(prefill(&mut pool, 1, &joined(&[&other, &common, &[1]])).0, 0);
    assert_eq!(prefill(&mut pool, 2, &joined(&[&common, &common, &[1]])).0, 0);
    assert_eq!(prefill(&mut pool, 3, &joined(&[&other, &common, &[2]])), (2, vec![4, 5, 10]));
}

#[test]
fn no_sequence_waits_for_a_forged_hash() {
    let mut pool = colliding_pool();
    begin(&mut pool, 0, &tokens(1, 40), RequestKeys::default());
    begin(&mut pool, 1, &tokens(2, 40), RequestKeys::default());
    assert_eq!(match_prefix(&mut pool, 0).next, Next::Compute);
    assert_eq!(match_prefix(&mut pool, 1).next, Next::Compute);
}

#[test]
fn contents_with_one_hash_leave_one_by_one() {
    let mut pool = colliding_pool();
    for sequence in [0, 1, 2] {
        prefill(&mut pool, sequence, &tokens(sequence, 33));
    }
    for sequence in [1, 0, 2] {
        finish(&mut pool, sequence);
    }
    assert_eq!(pool.blocks().contents.len(), 6);
    assert_eq!(prefill(&mut pool, 3, &tokens(0, 33)).0, 2);
    finish(&mut pool, 3);
    evict_all(&mut pool, 3);
    assert!(pool.blocks().contents.is_empty());
}

/// The blocks behind an evicted one reference their parent. Computed again, it is the same parent.
#[test]
fn a_chain_whose_beginning_was_computed_again_is_whole() {
    let mut pool = pool_of(4);
    let prompt = tokens(1, 49);
    begin(&mut pool, 0, &prompt, RequestKeys::default());
    assert_eq!(reserve(&mut pool, 0, 0..49), Ok(vec![1, 2, 3, 4]));
    assert!(pool.cache(0, &prompt).is_ok());
    // The beginning is released first, and evicted.
    assert_eq!(pool.end(0), Ok(()));
    assert_eq!(pool.remove(0, 0, 16), Ok(()));
    assert_eq!(pool.remove(0, 16, -1), Ok(()));
    assert_eq!(free_order(&pool), [4, 1, 3, 2]);
    assert_eq!(reserve(&mut pool, 1, 0..32), Ok(vec![4, 1]));
    finish(&mut pool, 1);
    begin(&mut pool, 2, &prompt[..17], RequestKeys::default());
    assert_eq!(match_prefix(&mut pool, 2).blocks, []);
    assert_eq!(reserve(&mut pool, 2, 0..17).map(|blocks| blocks.len()), Ok(2));
    assert!(pool.cache(2, &prompt[..17]).is_ok());
    finish(&mut pool, 2);
    assert_eq!(prefill(&mut pool, 3, &prompt).0, 3);
    assert_eq!(pool.statistics().refused_matches, 0);
}
