//! Blocks with the same content: each answer is computed by its own request, so a repeated prompt leaves another copy
//! of its answer.

use espalier_kernels::pool::extra_keys::RequestKeys;
use espalier_kernels::pool::groups::Group;
use espalier_kernels::pool::pool::Pool;
use espalier_kernels::scheduler::Capacity;

use crate::support::{
    BLOCK_SIZE, begin, finish, free_order, joined, match_prefix, numbers, pool_of, prefill, reserve, tokens,
};

/// Computes the prompt and its answer, and ends. Returns the number of prompt blocks that were matched.
fn ask(pool: &mut Pool, sequence: i32, prompt: &[i32], answer: &[i32]) -> usize {
    let hits = prefill(pool, sequence, prompt).0;
    let text = joined(&[prompt, answer]);
    assert!(reserve(pool, sequence, prompt.len()..text.len()).is_ok());
    assert!(pool.cache(sequence, &text).is_ok());
    finish(pool, sequence);
    hits
}

#[test]
fn copies_of_an_answer_evict_no_other_content() {
    let mut pool = pool_of(16);
    let other = tokens(1, 8 * BLOCK_SIZE);
    ask(&mut pool, 0, &other, &[]);
    for _ in 0..20 {
        ask(&mut pool, 1, &tokens(2, BLOCK_SIZE), &tokens(3, 3 * BLOCK_SIZE));
    }
    begin(&mut pool, 2, &joined(&[&other, &[1]]), RequestKeys::default());
    assert_eq!(match_prefix(&mut pool, 2).blocks.len(), 8);
}

/// However many copies are freed at once, one of them stays in the LRU order.
#[test]
fn one_of_two_copies_stays_cached() {
    let mut pool = pool_of(4);
    let prompt = tokens(1, 2 * BLOCK_SIZE);
    for sequence in 0..2 {
        begin(&mut pool, sequence, &prompt, RequestKeys::default());
        assert!(reserve(&mut pool, sequence, 0..prompt.len()).is_ok());
        assert!(pool.cache(sequence, &prompt).is_ok());
    }
    finish(&mut pool, 0);
    assert_eq!(free_order(&pool), [2, 1], "the other sequence holds a copy of each");
    finish(&mut pool, 1);
    assert_eq!(free_order(&pool), [2, 1, 4, 3]);
    assert!(reserve(&mut pool, 2, 0..2 * BLOCK_SIZE).is_ok());
    begin(&mut pool, 3, &joined(&[&prompt, &[1]]), RequestKeys::default());
    assert_eq!(match_prefix(&mut pool, 3).blocks.len(), 2);
}

/// A matched copy counts again when it is free: the other one may have been evicted.
#[test]
fn a_matched_copy_is_no_longer_spare() {
    let mut pool = pool_of(4);
    let prompt = tokens(1, BLOCK_SIZE);
    for sequence in 0..2 {
        begin(&mut pool, sequence, &prompt, RequestKeys::default());
        assert!(reserve(&mut pool, sequence, 0..prompt.len()).is_ok());
        assert!(pool.cache(sequence, &prompt).is_ok());
    }
    (0..2).for_each(|sequence| finish(&mut pool, sequence));
    assert_eq!(free_order(&pool), [1, 3, 4, 2]);
    begin(&mut pool, 2, &joined(&[&prompt, &[1]]), RequestKeys::default());
    assert_eq!(numbers(&match_prefix(&mut pool, 2).blocks), [1]);
    assert_eq!(reserve(&mut pool, 3, 0..3 * BLOCK_SIZE), Ok(vec![3, 4, 2]), "the other copy is evicted");
    (2..4).for_each(|sequence| finish(&mut pool, sequence));
    prefill(&mut pool, 0, &prompt);
    finish(&mut pool, 0);
    assert_eq!(free_order(&pool).last(), Some(&1), "the new copy is the spare one");
}

/// Then no free block is needed, and both sequences read one block.
#[test]
fn of_several_copies_one_that_is_held_is_matched() {
    let mut pool = pool_of(10);
    let prompt = tokens(1, 2 * BLOCK_SIZE);
    for sequence in 0..2 {
        begin(&mut pool, sequence, &prompt, RequestKeys::default());
        assert!(reserve(&mut pool, sequence, 0..prompt.len()).is_ok());
        assert!(pool.cache(sequence, &prompt).is_ok());
    }
    finish(&mut pool, 0);
    let free = pool.free(Group::Full);
    begin(&mut pool, 2, &joined(&[&prompt, &[1]]), RequestKeys::default());
    // The block for the last token.
    assert_eq!(pool.offer(2, 2 * BLOCK_SIZE as u64 + 2).blocks, 1);
    assert_eq!(numbers(&match_prefix(&mut pool, 2).blocks), [3, 4]);
    assert_eq!(pool.free(Group::Full), free);
    // Without one it is the earliest.
    (1..3).for_each(|sequence| finish(&mut pool, sequence));
    begin(&mut pool, 2, &joined(&[&prompt, &[1]]), RequestKeys::default());
    assert_eq!(numbers(&match_prefix(&mut pool, 2).blocks), [1, 2]);
}
