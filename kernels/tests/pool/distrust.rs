//! Blocks and snapshots of a request whose output is not finite.

use espalier_kernels::pool::extra_keys::RequestKeys;
use espalier_kernels::pool::groups::Group;
use espalier_kernels::pool::pool::{Next, Pool, PoolError, PoolOptions};
use espalier_kernels::pool::snapshots::Reason;
use espalier_kernels::scheduler::RequestSize;

use crate::support::*;

/// Returns the blocks and the snapshots that are removed from the cache, as integers. The request was not preempted.
fn distrust(pool: &mut Pool, sequence: i32) -> (Vec<u32>, Vec<u32>) {
    distrust_behind(pool, sequence, u64::MAX)
}

/// The same for a request that had this number of tokens at the admission with the fewest.
fn distrust_behind(pool: &mut Pool, sequence: i32, matched: u64) -> (Vec<u32>, Vec<u32>) {
    let distrusted = pool.distrust(sequence, matched).expect("the sequence has a request");
    let snapshots = distrusted.snapshots.iter().map(|snapshot| snapshot.0).collect();
    (numbers(&distrusted.blocks[Group::Full]), snapshots)
}

#[test]
fn its_blocks_and_snapshots_are_not_matched_any_more() {
    let mut pool = pool_with_states(20, 4);
    let prompt = tokens(1, 3 * BLOCK_SIZE + 1);
    prefill(&mut pool, 0, &prompt);
    save(&mut pool, 0, &prompt[..2 * BLOCK_SIZE], Reason::Branch);
    assert_eq!(distrust(&mut pool, 0), (vec![1, 2, 3], vec![1]));
    assert_eq!((pool.snapshots().used(), held(&pool, 0)), (0, vec![1, 2, 3, 4]));
    assert_eq!(pool.distrust(0, 0), Err(PoolError::Invalid), "its request has ended");
    finish(&mut pool, 0);
    let now = pool.statistics();
    assert_eq!((now.blocks_used, now.blocks_evictable, now.blocks_empty), (0, 0, 20));
    begin(&mut pool, 1, &prompt, RequestKeys::default());
    assert_eq!(match_prefix(&mut pool, 1).blocks, []);
}

/// The state that it restored may be the cause, and the blocks before that state were computed together with it.
#[test]
fn with_a_state_so_is_what_it_matched() {
    let mut pool = pool_with_states(20, 4);
    let prompt = tokens(1, 2 * BLOCK_SIZE + 1);
    prefill(&mut pool, 0, &prompt);
    save(&mut pool, 0, &prompt[..2 * BLOCK_SIZE], Reason::PromptEnd);
    begin(&mut pool, 1, &prompt, RequestKeys::default());
    assert_eq!(match_and_restore(&mut pool, 1), 2);
    assert_eq!(distrust(&mut pool, 1), (vec![1, 2], vec![1]));
    // Another sequence that holds the blocks keeps them.
    finish(&mut pool, 1);
    assert_eq!((held(&pool, 0), holders(&pool, &[1, 2])), (vec![1, 2, 3], vec![1, 1]));
    finish(&mut pool, 0);
    assert_eq!(pool.statistics().blocks_empty, 20);
}

#[test]
fn without_a_state_matched_blocks_stay_cached() {
    let mut pool = pool_of_ten();
    let shared = tokens(1, BLOCK_SIZE);
    prefill(&mut pool, 0, &joined(&[&shared, &tokens(2, BLOCK_SIZE)]));
    prefill(&mut pool, 1, &joined(&[&shared, &tokens(3, BLOCK_SIZE + 1)]));
    assert_eq!(distrust(&mut pool, 1), (vec![3], vec![]));
    begin(&mut pool, 2, &joined(&[&shared, &tokens(3, BLOCK_SIZE + 1)]), RequestKeys::default());
    assert_eq!(numbers(&match_prefix(&mut pool, 2).blocks), [1]);
}

/// A snapshot that was evicted meanwhile is not reported again: its bytes are free.
#[test]
fn snapshots_that_are_gone_are_not_reported() {
    let mut pool = pool_with_states(20, 1);
    let prompt = tokens(1, 2 * BLOCK_SIZE + 1);
    prefill(&mut pool, 0, &prompt);
    save(&mut pool, 0, &prompt[..BLOCK_SIZE], Reason::Branch);
    save(&mut pool, 0, &prompt[..2 * BLOCK_SIZE], Reason::PromptEnd);
    assert_eq!(distrust(&mut pool, 0), (vec![1, 2], vec![2]));
}

/// A request that was removed and matched again has restored the same snapshot twice.
#[test]
fn a_snapshot_is_reported_once() {
    let mut pool = pool_with_states(20, 4);
    let prompt = tokens(1, 2 * BLOCK_SIZE + 1);
    prefill(&mut pool, 0, &prompt);
    save(&mut pool, 0, &prompt[..2 * BLOCK_SIZE], Reason::PromptEnd);
    begin(&mut pool, 1, &prompt, RequestKeys::default());
    assert_eq!(match_and_restore(&mut pool, 1), 2);
    assert_eq!(pool.remove(1, 0, -1), Ok(()));
    assert_eq!(match_and_restore(&mut pool, 1), 2);
    assert_eq!(distrust(&mut pool, 1), (vec![1, 2], vec![1]));
}

/// Admitted again, it matches the blocks that it has computed itself.
#[test]
fn blocks_from_before_a_preemption_are_removed_too() {
    let mut pool = pool_of_ten();
    let shared = tokens(1, BLOCK_SIZE);
    let prompt = joined(&[&shared, &tokens(2, 2 * BLOCK_SIZE + 1)]);
    prefill(&mut pool, 0, &joined(&[&shared, &[9]]));
    assert_eq!(prefill(&mut pool, 1, &prompt), (1, vec![1, 3, 4, 5]));
    finish(&mut pool, 1);
    assert_eq!(prefill(&mut pool, 1, &prompt), (3, vec![1, 3, 4, 5]));
    assert_eq!(distrust_behind(&mut pool, 1, BLOCK_SIZE as u64), (vec![3, 4], vec![]));
    finish(&mut pool, 1);
    begin(&mut pool, 2, &prompt, RequestKeys::default());
    assert_eq!(numbers(&match_prefix(&mut pool, 2).blocks), [1]);
}

/// Without a snapshot it computes its first blocks again, and the copies from before the preemption are cached.
#[test]
fn copies_that_are_not_held_are_removed_too() {
    let mut pool = pool_with_states(20, 4);
    let prompt = tokens(1, 2 * BLOCK_SIZE + 1);
    prefill(&mut pool, 0, &prompt);
    finish(&mut pool, 0);
    assert_eq!(prefill(&mut pool, 0, &prompt), (0, vec![3, 4, 5]));
    assert_eq!(distrust(&mut pool, 0), (vec![1, 3, 2, 4], vec![]));
    let now = pool.statistics();
    assert_eq!((now.blocks_used, now.blocks_evictable, now.blocks_empty), (3, 0, 17));
    // They are allocated next, as all blocks without a content.
    assert_eq!(free_order(&pool)[..3], [2, 1, 6]);
    finish(&mut pool, 0);
    assert_eq!(pool.statistics().blocks_empty, 20);
}

/// It restores the last one of those that it has taken.
#[test]
fn snapshots_from_before_a_preemption_are_removed_too() {
    let mut pool = pool_with_states(20, 4);
    let prompt = tokens(1, 2 * BLOCK_SIZE + 1);
    prefill(&mut pool, 0, &prompt);
    for blocks in 1..3 {
        save(&mut pool, 0, &prompt[..blocks * BLOCK_SIZE], Reason::Branch);
    }
    finish(&mut pool, 0);
    begin(&mut pool, 0, &prompt, RequestKeys::default());
    assert_eq!(match_and_restore(&mut pool, 0), 2);
    assert_eq!(distrust(&mut pool, 0), (vec![1, 2], vec![1, 2]));
    assert_eq!(pool.snapshots().used(), 0);
}

/// The second block has retained tokens and then those of the request, which caches it. It matches that block after a
/// preemption.
#[test]
fn a_block_that_was_continued_is_removed_too() {
    let mut pool = pool_of_ten();
    let prompt = tokens(1, 40);
    prefill(&mut pool, 0, &prompt[..20]);
    assert_eq!(pool.end(0), Ok(()));
    assert_eq!(pool.resume(0, 20, &prompt, RequestKeys::default()), Ok(()));
    assert!(reserve(&mut pool, 0, 20..40).is_ok());
    assert_eq!(pool.cache(0, &prompt).map(|blocks| numbers(&blocks)), Ok(vec![2]));
    finish(&mut pool, 0);
    assert_eq!(prefill(&mut pool, 0, &prompt).0, 2);
    assert_eq!(distrust_behind(&mut pool, 0, 20), (vec![2], vec![]));
}

fn closing(options: PoolOptions) -> Pool {
    Pool::new(PoolOptions { closes_blocks: 1, ..options }).expect("the options are in range")
}

/// Begins this text, of whose tokens the sequence holds the first ones, with images and as much output as six blocks
/// have tokens for: with a block that is closed, it would not fit into a pool of six.
fn begin_in_full_blocks(pool: &mut Pool, held: usize, text: &[i32], images: &[(u32, u32, &str)]) {
    let size = RequestSize { end: 6 * BLOCK_SIZE as u64, further_choices: 0 };
    assert_eq!(pool.begin_of_size(0, held, text, with_extras(images), size), Ok(()));
    assert!(pool.match_up_to(0, 0).is_ok());
}

/// It has outgrown its closed blocks, and computes its tokens again in full ones, in which they have other contents.
#[test]
fn closed_blocks_from_before_a_preemption_are_removed_too() {
    let mut pool = closing(options(6));
    let image = [(5, 20, "a")];
    let text = tokens(1, 89);
    begin(&mut pool, 0, &text[..60], with_extras(&image));
    match_prefix(&mut pool, 0);
    assert!(reserve(&mut pool, 0, 0..89).is_ok());
    assert!(pool.cache(0, &text).is_ok());
    finish(&mut pool, 0);
    begin_in_full_blocks(&mut pool, 0, &text, &image);
    assert_eq!(reserve(&mut pool, 0, 0..20), Ok(vec![6, 5]));
    assert!(pool.cache(0, &text[..20]).is_ok());
    // The first block is the same in both layouts.
    assert_eq!(distrust_behind(&mut pool, 0, 0), (vec![1, 6, 2, 3, 4], vec![]));
    finish(&mut pool, 0);
    assert_eq!(pool.statistics().blocks_empty, 6);
}

#[test]
fn blocks_of_others_stay_cached_in_every_layout() {
    let mut pool = closing(options(20));
    let text = tokens(1, 60);
    prefill(&mut pool, 1, &text[..17]);
    finish(&mut pool, 1);
    let begin_with = |pool: &mut Pool, further_choices: u64| {
        let size = RequestSize { end: 61, further_choices };
        assert_eq!(pool.begin_of_size(0, 0, &text, with_extras(&[(20, 20, "a")]), size), Ok(()));
        match_prefix(pool, 0).blocks.len()
    };
    assert_eq!(begin_with(&mut pool, 0), 1);
    assert!(reserve(&mut pool, 0, 16..60).is_ok());
    assert_eq!(pool.cache(0, &text).map(|blocks| numbers(&blocks)), Ok(vec![2, 3, 4]));
    finish(&mut pool, 0);
    // With so many choices it is given full blocks.
    assert_eq!(begin_with(&mut pool, 20), 2);
    assert_eq!(distrust_behind(&mut pool, 0, 16), (vec![2, 3, 4], vec![]));
    finish(&mut pool, 0);
    assert_eq!(begin_with(&mut pool, 0), 1);
}

#[test]
fn snapshots_behind_closed_blocks_are_removed_too() {
    let mut pool = closing(options_with_states(6, 4));
    let image = [(5, 20, "a")];
    let text = tokens(1, 89);
    prefill_with(&mut pool, 0, &text[..60], with_extras(&image));
    let (snapshot, _) = save(&mut pool, 0, &text[..25], Reason::Branch);
    finish(&mut pool, 0);
    begin_in_full_blocks(&mut pool, 0, &text, &image);
    assert_eq!(distrust_behind(&mut pool, 0, 0), (vec![1, 2, 3, 4], vec![snapshot.0]));
    assert_eq!(pool.snapshots().used(), 0);
}

/// The sequence has a block that is closed behind its first image, and the request does not fit with another one behind
/// the second image: the layout from before the preemption has only the first of both.
#[test]
fn partly_closed_blocks_from_before_a_preemption_are_removed_too() {
    let mut pool = closing(options(6));
    let images = [(5, 20, "a"), (62, 5, "b")];
    let text = tokens(1, 89);
    begin(&mut pool, 0, &text[..60], with_extras(&images[..1]));
    assert!(reserve(&mut pool, 0, 0..60).is_ok());
    assert_eq!(pool.end(0), Ok(()));
    begin_in_full_blocks(&mut pool, 60, &text, &images);
    assert!(reserve(&mut pool, 0, 60..89).is_ok());
    assert_eq!(pool.cache(0, &text).map(|blocks| numbers(&blocks)), Ok(vec![5, 6]));
    finish(&mut pool, 0);
    begin_in_full_blocks(&mut pool, 0, &text, &images);
    assert_eq!(distrust_behind(&mut pool, 0, 0), (vec![5, 6], vec![]));
}

#[test]
fn waiting_requests_continue() {
    let mut pool = pool_of_ten();
    let prompt = tokens(1, 2 * BLOCK_SIZE + 1);
    begin(&mut pool, 0, &prompt, RequestKeys::default());
    match_prefix(&mut pool, 0);
    begin(&mut pool, 1, &prompt, RequestKeys::default());
    let before = (match_prefix(&mut pool, 1).next, pool.blocks().changes());
    assert_eq!(before.0, Next::Wait);
    assert_eq!(distrust(&mut pool, 0), (vec![], vec![]));
    assert!(pool.blocks().changes() > before.1);
    assert_eq!(match_prefix(&mut pool, 1).next, Next::Compute);
}
