//! vLLM's `test_prefix_caching.py`, the part about full attention.

use espalier_kernels::pool::extra_keys::RequestKeys;
use espalier_kernels::pool::hash::sha256;
use espalier_kernels::pool::pool::{Pool, PoolError};

use crate::support::*;

#[test]
fn test_prefill() {
    let mut pool = pool_of_ten();
    let common = tokens(1, 48);
    let first = joined(&[&common, &tokens(2, 7)]);
    assert_eq!(prefill(&mut pool, 0, &first), (0, vec![1, 2, 3, 4]));
    check_chained_hashes(&pool, &common);
    assert_eq!(hash(&pool, 4), None);

    // A hit while the blocks are in use.
    assert_eq!(prefill(&mut pool, 1, &joined(&[&common, &tokens(3, 5)])), (3, vec![1, 2, 3, 5]));
    assert_eq!(holders(&pool, &[1, 2, 3, 4, 5]), [2, 2, 2, 1, 1]);
    finish(&mut pool, 0);
    finish(&mut pool, 1);
    assert_eq!(free_order(&pool), [5, 4, 6, 7, 8, 9, 10, 3, 2, 1]);

    // A hit while they are free.
    assert_eq!(prefill(&mut pool, 2, &joined(&[&common, &tokens(4, 6)])), (3, vec![1, 2, 3, 5]));
    assert_eq!(holders(&pool, &[1, 2, 3, 5]), [1, 1, 1, 1]);
    finish(&mut pool, 2);

    // A miss allocates all blocks, in exactly the order of the list.
    assert_eq!(prefill(&mut pool, 3, &tokens(5, 160)), (0, vec![5, 4, 6, 7, 8, 9, 10, 3, 2, 1]));
    assert_eq!(free_order(&pool), []);
}

fn check_chained_hashes(pool: &Pool, common: &[i32]) {
    let mut parent = None;
    for (block, tokens) in (1..).zip(common.chunks(BLOCK_SIZE)) {
        let expected = sha256(parent.as_ref(), tokens, &[]);
        assert_eq!(hash(pool, block), Some(expected), "block {block}");
        parent = Some(expected);
    }
}

/// A request for the logprobs of its prompt does not read the cache: it never matches.
#[test]
fn test_prefill_plp() {
    let mut pool = pool_of_ten();
    let prompt = tokens(1, 55);
    prefill(&mut pool, 0, &prompt);
    begin(&mut pool, 1, &prompt, RequestKeys::default());
    assert_eq!(reserve(&mut pool, 1, 0..55), Ok(vec![5, 6, 7, 8]));
    assert_eq!(numbers(&pool.cache(1, &prompt).expect("the tokens agree")), [5, 6, 7]);
    for (block, duplicate) in [(1, 5), (2, 6), (3, 7)] {
        assert_eq!(hash(&pool, block), hash(&pool, duplicate));
    }
    assert_eq!(holders(&pool, &[1, 2, 3, 5, 6, 7]), [1, 1, 1, 1, 1, 1]);
    // Once the first request is gone, the duplicates are matched. Unlike in vLLM, copies are allocated before empty
    // blocks.
    finish(&mut pool, 0);
    assert_eq!(reserve(&mut pool, 2, 0..96), Ok(vec![4, 3, 2, 1, 9, 10]));
    assert_eq!(prefill_hits(&mut pool, 3, &prompt), [5, 6, 7]);
}

fn prefill_hits(pool: &mut Pool, sequence: i32, prompt: &[i32]) -> Vec<u32> {
    begin(pool, sequence, prompt, RequestKeys::default());
    numbers(&match_prefix(pool, sequence).blocks)
}

#[test]
fn test_decode() {
    let mut pool = pool_of_ten();
    let text = joined(&[&tokens(1, 55), &tokens(2, 30)]);
    prefill(&mut pool, 0, &text[..55]);
    // Four more tokens need no block.
    assert_eq!(reserve(&mut pool, 0, 55..59), Ok(vec![]));
    assert_eq!(pool.cache(0, &text[..59]), Ok(vec![]));
    assert_eq!(hash(&pool, 4), None);
    // Fifteen more do, and fill one.
    assert_eq!(reserve(&mut pool, 0, 59..74), Ok(vec![5]));
    assert_eq!(numbers(&pool.cache(0, &text[..74]).expect("the tokens agree")), [4]);
    assert!(hash(&pool, 4).is_some());
    assert_eq!(hash(&pool, 5), None);
}

#[test]
fn test_evict() {
    let mut pool = pool_of_ten();
    let first = tokens(1, 5 * 16 + 7);
    assert_eq!(prefill(&mut pool, 0, &first).1, [1, 2, 3, 4, 5, 6]);
    assert_eq!(prefill(&mut pool, 1, &tokens(2, 3 * 16)).1, [7, 8, 9]);
    finish(&mut pool, 0);
    assert_eq!(free_order(&pool), [6, 10, 5, 4, 3, 2, 1]);
    finish(&mut pool, 1);
    assert_eq!(free_order(&pool), [6, 10, 5, 4, 3, 2, 1, 9, 8, 7]);
    let again = joined(&[&first[..2 * 16], &tokens(3, 3)]);
    assert_eq!(prefill(&mut pool, 2, &again), (2, vec![1, 2, 6]));
    assert_eq!(free_order(&pool), [10, 5, 4, 3, 9, 8, 7]);
}

#[test]
fn test_hash_block_correct_reuse() {
    let mut pool = pool_of(1);
    prefill(&mut pool, 0, &tokens(1, 16));
    assert!(hash(&pool, 1).is_some());
    finish(&mut pool, 0);
    assert_eq!(prefill(&mut pool, 1, &tokens(2, 15)), (0, vec![1]));
    assert_eq!(hash(&pool, 1), None);
}

#[test]
fn test_computed_blocks_not_evicted() {
    let mut pool = pool_of(2);
    prefill(&mut pool, 0, &tokens(1, 16));
    prefill(&mut pool, 1, &tokens(2, 16));
    finish(&mut pool, 0);
    finish(&mut pool, 1);
    assert_eq!(free_order(&pool), [1, 2]);
    // The hit is at the front of the list, but the other block is evicted.
    let longer = joined(&[&tokens(1, 16), &tokens(3, 16)]);
    assert_eq!(prefill(&mut pool, 2, &longer), (1, vec![1, 2]));
    assert_eq!(pool.statistics().evicted_blocks, 1);
}

/// A sequence without a request neither matches nor caches anything.
#[test]
fn test_basic_prefix_caching_disabled() {
    let mut pool = pool_of(4);
    assert_eq!(reserve(&mut pool, 0, 0..40), Ok(vec![1, 2, 3]));
    assert_eq!(pool.cache(0, &tokens(1, 40)), Err(PoolError::Invalid));
    finish(&mut pool, 0);
    assert_eq!(reserve(&mut pool, 1, 0..64), Ok(vec![3, 2, 1, 4]));
    assert_eq!(reserve(&mut pool, 2, 0..1), Err(PoolError::Short));
}

#[test]
fn test_cache_blocks() {
    let mut pool = pool_of_ten();
    let text = tokens(1, 60);
    begin(&mut pool, 0, &text, RequestKeys::default());
    assert_eq!(reserve(&mut pool, 0, 0..60), Ok(vec![1, 2, 3, 4]));
    // From the beginning, then from the middle.
    assert_eq!(numbers(&pool.cache(0, &text[..33]).expect("the tokens agree")), [1, 2]);
    assert_eq!(hash(&pool, 3), None);
    assert_eq!(numbers(&pool.cache(0, &text).expect("the tokens agree")), [3]);
    check_chained_hashes(&pool, &text[..48]);
}

#[test]
fn test_mm_prefix_caching() {
    let mut pool = pool_of_ten();
    let prompt = tokens(1, 55);
    let images = [(11, 10, "aaa"), (30, 18, "bbb"), (48, 7, "ccc")];
    assert_eq!(prefill_with(&mut pool, 0, &prompt, with_extras(&images)).0, 0);
    check_hash_inputs(&pool, &prompt);
    // The last image is in the part that is never shared.
    let other_tail = [(11, 10, "aaa"), (30, 18, "bbb"), (48, 7, "ddd")];
    assert_eq!(prefill_with(&mut pool, 1, &prompt, with_extras(&other_tail)).0, 3);
    // The second one begins in the second block.
    let other_middle = [(11, 10, "aaa"), (30, 18, "eee"), (48, 7, "ccc")];
    assert_eq!(prefill_with(&mut pool, 2, &prompt, with_extras(&other_middle)).0, 1);
    let elsewhere = [(10, 10, "aaa"), (30, 18, "bbb"), (48, 7, "ccc")];
    begin(&mut pool, 3, &prompt, with_extras(&elsewhere));
    assert_eq!(match_prefix(&mut pool, 3).blocks, []);
}

/// Offsets are relative to the block, and negative when the image began before it.
fn check_hash_inputs(pool: &Pool, prompt: &[i32]) {
    let key = |name: &str, offset: i64, length: u32| {
        let name_length = (name.len() as u64).to_le_bytes();
        [&[3], &name_length[..], name.as_bytes(), &offset.to_le_bytes(), &length.to_le_bytes()].concat()
    };
    let first = sha256(None, &prompt[..16], &key("aaa", 11, 10));
    let second_keys = [key("aaa", -5, 10), key("bbb", 14, 18)].concat();
    let second = sha256(Some(&first), &prompt[16..32], &second_keys);
    let third = sha256(Some(&second), &prompt[32..48], &key("bbb", -2, 18));
    assert_eq!([1, 2, 3].map(|block| hash(pool, block)), [Some(first), Some(second), Some(third)]);
}

#[test]
fn test_cache_key_salting() {
    let mut pool = pool_of_ten();
    let prompt = tokens(1, 55);
    assert_eq!(prefill_with(&mut pool, 0, &prompt, salted("salt1")), (0, vec![1, 2, 3, 4]));
    // The salt is among the keys of the first block only.
    let salt = [&[1][..], &5u64.to_le_bytes(), b"salt1"].concat();
    let first = sha256(None, &prompt[..16], &salt);
    assert_eq!(hash(&pool, 1), Some(first));
    assert_eq!(hash(&pool, 2), Some(sha256(Some(&first), &prompt[16..32], &[])));
    assert_eq!(prefill_with(&mut pool, 1, &prompt, salted("salt1")).0, 3);
    finish(&mut pool, 1);
    assert_eq!(prefill_with(&mut pool, 2, &prompt, salted("salt2")).0, 0);
}

#[test]
fn test_prefill_not_enough_free_blocks_with_computed_blocks() {
    let mut pool = pool_of_ten();
    let common = tokens(1, 48);
    prefill(&mut pool, 0, &common);
    prefill(&mut pool, 1, &joined(&[&common, &tokens(2, 48)]));
    finish(&mut pool, 1);
    prefill(&mut pool, 2, &tokens(3, 48));
    let before = (free_order(&pool), pool.statistics());
    // Three hits, three more that are free, and three that do not exist.
    begin(&mut pool, 3, &joined(&[&common, &tokens(4, 96)]), RequestKeys::default());
    assert_eq!(numbers(&match_prefix(&mut pool, 3).blocks), [1, 2, 3]);
    let counts = holders(&pool, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    assert_eq!(reserve(&mut pool, 3, 48..144), Err(PoolError::Short));
    assert_eq!(holders(&pool, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]), counts);
    assert_eq!(free_order(&pool), before.0);
    assert_eq!(pool.statistics().evicted_blocks, before.1.evicted_blocks);
    assert_eq!(pool.statistics().refused_reserves, 1);
    finish(&mut pool, 3);
    assert_eq!(free_order(&pool), before.0);
}

#[test]
fn test_can_fit_full_sequence_full_attention_still_gates_oversized() {
    let mut pool = pool_of_ten();
    assert_eq!(reserve(&mut pool, 0, 0..161), Err(PoolError::Short));
    assert_eq!(pool.statistics().blocks_used, 0);
    assert_eq!(reserve(&mut pool, 0, 0..160).map(|blocks| blocks.len()), Ok(10));
}

/// Of the blocks that are freed at once, those without a hash are allocated next and those with one last.
#[test]
fn test_swa_free_split_keeps_cached_tail_ahead_of_scratch() {
    let mut pool = pool_of_ten();
    let prompt = tokens(1, 64);
    begin(&mut pool, 0, &prompt, RequestKeys::default());
    assert_eq!(reserve(&mut pool, 0, 0..64), Ok(vec![1, 2, 3, 4]));
    assert!(pool.cache(0, &prompt[..32]).is_ok());
    finish(&mut pool, 0);
    assert_eq!(free_order(&pool), [4, 3, 5, 6, 7, 8, 9, 10, 2, 1]);
}
