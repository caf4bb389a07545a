//! vLLM's tests of the map from hashes to blocks.

use espalier_kernels::pool::block::BlockId;
use espalier_kernels::pool::contents::Contents;
use espalier_kernels::pool::extra_keys::{ExtraKeys, RequestKeys};
use espalier_kernels::pool::groups::Group;
use espalier_kernels::pool::hash::sha256;

use crate::support::*;

#[test]
fn test_block_lookup_cache_single_block_per_key() {
    let mut contents = Contents::new(sha256);
    let one = contents.refer(None, &[1], ExtraKeys::default());
    let two = contents.refer(None, &[2], ExtraKeys::default());
    assert_eq!(contents.blocks(Group::Full, one), []);
    contents.add_block(Group::Full, one, BlockId(1));
    assert_eq!(contents.blocks(Group::Full, one), [BlockId(1)]);
    assert_eq!(contents.blocks(Group::Full, two), []);
    // Wrong block or wrong content: nothing changes.
    assert!(!contents.remove_block(Group::Full, one, BlockId(2)));
    assert!(!contents.remove_block(Group::Full, two, BlockId(1)));
    assert_eq!(contents.blocks(Group::Full, one), [BlockId(1)]);
    assert!(contents.remove_block(Group::Full, one, BlockId(1)));
    assert_eq!(contents.blocks(Group::Full, one), []);
    contents.release(one);
    contents.release(two);
    assert!(contents.is_empty());
}

#[test]
fn test_block_lookup_cache_multi_blocks_per_key() {
    let mut contents = Contents::new(sha256);
    let one = contents.refer(None, &[1], ExtraKeys::default());
    (1..=3).for_each(|block| contents.add_block(Group::Full, one, BlockId(block)));
    // The block that was added first is found.
    assert_eq!(numbers(contents.blocks(Group::Full, one)), [1, 2, 3]);
    assert!(contents.remove_block(Group::Full, one, BlockId(1)));
    assert!(!contents.remove_block(Group::Full, one, BlockId(1)));
    assert_eq!(numbers(contents.blocks(Group::Full, one)), [2, 3]);
    assert!(contents.remove_block(Group::Full, one, BlockId(3)));
    contents.release(one);
    // The content is kept by its blocks alone.
    assert_eq!(numbers(contents.blocks(Group::Full, one)), [2]);
    assert!(contents.remove_block(Group::Full, one, BlockId(2)));
    assert!(contents.is_empty());
}

#[test]
fn test_maybe_evict_cached_block() {
    let mut pool = pool_of(4);
    let prompt = tokens(1, 16);
    for sequence in 0..3 {
        // One token has to be computed, so a prompt of one block never matches.
        assert_eq!(prefill(&mut pool, sequence, &prompt).0, 0);
    }
    begin(&mut pool, 3, &prompt, RequestKeys::default());
    let content = pool.request(3).and_then(|request| request.content(0)).expect("the prompt has a block");
    let blocks = |pool: &espalier_kernels::pool::pool::Pool| {
        numbers(pool.blocks().contents.blocks(Group::Full, content))
    };
    assert_eq!(blocks(&pool), [1, 2, 3]);
    (0..3).for_each(|sequence| finish(&mut pool, sequence));
    // Unlike in vLLM, copies are allocated before other blocks, so the last one that is freed stays longest.
    assert_eq!(free_order(&pool), [2, 1, 4, 3]);
    assert_eq!(reserve(&mut pool, 4, 0..16), Ok(vec![2]));
    assert_eq!((blocks(&pool), hash(&pool, 2)), (vec![1, 3], None));
    assert_eq!(reserve(&mut pool, 4, 16..48), Ok(vec![1, 4]));
    assert_eq!((blocks(&pool), hash(&pool, 1)), (vec![3], None));
    assert_eq!(reserve(&mut pool, 4, 48..64), Ok(vec![3]));
    assert_eq!((blocks(&pool), hash(&pool, 3)), (vec![], None));
    assert_eq!(pool.statistics().evicted_blocks, 3);
}
