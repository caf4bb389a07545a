//! vLLM's tests of several groups of layers. Here there are two: layers that attend to all tokens, and layers with a
//! window.

use espalier_kernels::pool::block::BlockId;
use espalier_kernels::pool::block_pool::BlockPool;
use espalier_kernels::pool::events::{EventKind, Events};
use espalier_kernels::pool::extra_keys::{ExtraKeys, RequestKeys};
use espalier_kernels::pool::groups::{Group, Groups};
use espalier_kernels::pool::hash::sha256;
use espalier_kernels::pool::pool::{Pool, PoolOptions};
use espalier_kernels::pool::snapshots::Reason;

use crate::support::*;

/// A pool with a window of two blocks.
fn pool_with_groups() -> Pool {
    pool_with_window(20, 32, 40)
}

/// Of the layers with a window, a hit has only the blocks of the window; what is evicted in one group shortens it.
#[test]
fn test_prefill_hybrid_model() {
    let mut pool = pool_with_groups();
    let common = tokens(1, 48);
    begin(&mut pool, 0, &joined(&[&common, &tokens(2, 7)]), RequestKeys::default());
    assert_eq!(match_prefix(&mut pool, 0).blocks, []);
    compute(&mut pool, 0, &joined(&[&common, &tokens(2, 7)]), 0..55);
    assert_eq!((held(&pool, 0), window_indexes(&pool, 0)), (vec![1, 2, 3, 4], vec![0, 1, 2, 3]));

    // A hit while the blocks are in use.
    let second = joined(&[&common, &tokens(3, 5)]);
    begin(&mut pool, 1, &second, RequestKeys::default());
    let prefix_match = match_prefix(&mut pool, 1);
    assert_eq!(numbers(&prefix_match.blocks), [1, 2, 3]);
    assert_eq!((numbers(&prefix_match.window_blocks), window_indexes(&pool, 1)), (vec![2, 3], vec![1, 2]));
    compute(&mut pool, 1, &second, 48..53);
    finish_in_groups(&mut pool, 1);
    finish_in_groups(&mut pool, 0);

    // The end of the prompt is evicted first.
    for (full, window, hits) in
        [(0, 0, 3), (1, 0, 2), (2, 0, 1), (3, 0, 0), (0, 1, 2), (0, 2, 1), (0, 3, 0), (1, 2, 1), (2, 1, 1)]
    {
        let mut pool = pool.clone();
        evict(&mut pool, Group::Full, 7, full);
        evict(&mut pool, Group::Window, 7, window);
        begin(&mut pool, 2, &second, RequestKeys::default());
        assert_eq!(match_prefix(&mut pool, 2).blocks.len(), hits, "{full} and {window} evicted");
    }
}

/// Whatever parts a memory has, a second prompt hits three blocks.
#[test]
fn test_prefill_hybrid_model_combinations() {
    for (has_window, has_state) in [(false, false), (true, false), (false, true), (true, true)] {
        let states = if has_state { options_with_states(20, 4) } else { options(20) };
        let with_window = PoolOptions {
            parts: states.parts | PoolOptions::WINDOW,
            window: 20,
            window_block_count: 40,
            ..states
        };
        let options = if has_window { with_window } else { states };
        let mut pool = Pool::new(options).expect("the options are in range");
        let common = tokens(1, 48);
        let first = joined(&[&common, &tokens(2, 7)]);
        begin(&mut pool, 0, &first, RequestKeys::default());
        for group in Group::ALL.into_iter().filter(|group| *group == Group::Full || has_window) {
            assert!(reserve_in(&mut pool, group, 0, 0..55).is_ok());
        }
        assert!(pool.cache(0, &first).is_ok());
        if has_state {
            save(&mut pool, 0, &common, Reason::Branch);
        }
        begin(&mut pool, 1, &joined(&[&common, &tokens(3, 5)]), RequestKeys::default());
        let prefix_match = match_prefix(&mut pool, 1);
        assert_eq!(numbers(&prefix_match.blocks), [1, 2, 3]);
        assert_eq!(prefix_match.window_blocks.len(), if has_window { 2 } else { 0 });
        assert_eq!(prefix_match.snapshot.is_some(), has_state);
    }
}

/// The blocks of a content are found by group.
#[test]
fn test_cache_blocks_multi_group() {
    let mut blocks = BlockPool::new(Groups::new(2, 3), 4, Events::new(0), sha256).expect("enough memory");
    let mut parent = None;
    let contents = [0, 4, 8].map(|first| {
        let tokens = [first, first + 1, first + 2, first + 3];
        let content = blocks.contents.refer(parent, &tokens, ExtraKeys::default());
        parent = Some(content);
        content
    });
    for (group, count) in [(Group::Full, 2), (Group::Window, 3)] {
        for (index, content) in (0..).zip(&contents[..count]) {
            let block = blocks.take(group).expect("a block is free");
            assert!(blocks.cache(group, block, *content, index));
        }
        assert_eq!(blocks.take(group), None);
    }
    let found = |group: Group, index: usize| numbers(blocks.contents.blocks(group, contents[index]));
    assert_eq!([0, 1, 2].map(|index| found(Group::Full, index)), [vec![1], vec![2], vec![]]);
    assert_eq!([0, 1, 2].map(|index| found(Group::Window, index)), [vec![1], vec![2], vec![3]]);
    assert_eq!(blocks.counters.cached_blocks, 5);
    // What happens in one group changes nothing in the other one.
    blocks.release(Group::Window, &[BlockId(1)]);
    assert_eq!(blocks.take(Group::Window), Some(BlockId(1)));
    assert_eq!(blocks.contents.blocks(Group::Window, contents[0]), []);
    assert_eq!(blocks.contents.blocks(Group::Full, contents[0]), [BlockId(1)]);
    assert_eq!((blocks.holders(Group::Full, BlockId(1)), blocks.free_count(Group::Full)), (1, 0));
}

/// Returns kind, group and block index of each event.
fn events_of(pool: &mut Pool) -> Vec<(u32, u32, u32)> {
    events(pool).iter().map(|event| (event.kind, event.group, event.block_index)).collect()
}

const STORED: u32 = EventKind::Stored as u32;
const REMOVED: u32 = EventKind::Removed as u32;

#[test]
fn test_block_stored_event_group_idx() {
    for group in Group::ALL {
        let mut blocks = BlockPool::new(Groups::new(1, 1), 4, Events::new(9), sha256).expect("enough memory");
        let content = blocks.contents.refer(None, &[1, 2, 3, 4], ExtraKeys::default());
        let block = blocks.take(group).expect("a block is free");
        assert!(blocks.cache(group, block, content, 0));
        let event = blocks.events.take().expect("the block was cached");
        assert_eq!((event.kind, event.group), (STORED, group as u32));
        assert_eq!(event.hash, blocks.contents.hash_of(content));
    }
}

#[test]
fn test_block_stored_event_group_idx_multiple_groups() {
    let mut pool = pool_with_groups();
    let prompt = tokens(1, 40);
    begin(&mut pool, 0, &prompt, RequestKeys::default());
    compute(&mut pool, 0, &prompt, 0..40);
    assert_eq!(events_of(&mut pool), [(STORED, 1, 0), (STORED, 1, 1), (STORED, 0, 0), (STORED, 0, 1)]);
}

#[test]
fn test_block_removed_event_group_idx() {
    for group in Group::ALL {
        let mut pool = pool_with_groups();
        let prompt = tokens(1, 40);
        begin(&mut pool, 0, &prompt, RequestKeys::default());
        compute(&mut pool, 0, &prompt, 0..40);
        finish_in_groups(&mut pool, 0);
        events(&mut pool);
        evict(&mut pool, group, 1, 2);
        assert_eq!(events_of(&mut pool), [(REMOVED, group as u32, 0); 2]);
    }
}
