//! Layers with a sliding window: the blocks that a sequence has, and where a prompt can be matched.

use espalier_kernels::pool::block::BlockId;
use espalier_kernels::pool::extra_keys::RequestKeys;
use espalier_kernels::pool::groups::Group;
use espalier_kernels::pool::layout::Layout;
use espalier_kernels::pool::pool::{Next, Pool, PoolError, PoolOptions};
use espalier_kernels::scheduler::{Capacity, WindowNeeds};

use crate::support::*;

/// A window of two blocks.
fn pool_with_windows() -> Pool {
    pool_with_window(40, 32, 40)
}

fn window_holders(pool: &Pool, blocks: &[u32]) -> Vec<u32> {
    blocks.iter().map(|block| pool.blocks().holders(Group::Window, BlockId(*block))).collect()
}

#[test]
fn groups_have_the_values_of_the_abi() {
    for (number, group) in (0..).zip(Group::ALL) {
        assert_eq!((group as u32, Group::from_number(number)), (number, Some(group)));
    }
    assert_eq!(Group::from_number(2), None);
}

#[test]
fn options_of_windows_out_of_range_are_refused() {
    let good = options_with_window(10, 32, 40);
    let refused = [
        PoolOptions { parts: PoolOptions::CELLS, ..good },
        PoolOptions { window: 0, ..good },
        PoolOptions { window_block_count: 0, ..good },
        // Five blocks for each of eight sequences.
        PoolOptions { window_block_count: 39, ..good },
        PoolOptions { batch_tokens: 1, ..good },
        PoolOptions { window: 33, ..good },
        PoolOptions { window_block_count: 1 << 27, ..good },
        PoolOptions { window: u32::MAX, ..good },
    ];
    for options in refused {
        assert!(matches!(Pool::new(options), Err(PoolError::Invalid)), "{options:?}");
    }
    assert_eq!(good.window_blocks(), 5);
    assert!(Pool::new(good).is_ok());
}

#[test]
fn the_window_before_a_token_in_blocks() {
    for (window, tokens, expected) in [
        (32, 0, 0..0),
        (32, 5, 0..1),
        (32, 32, 0..2),
        (32, 47, 1..3),
        (32, 48, 1..3),
        (33, 48, 1..3),
        (34, 48, 0..3),
        (1, 48, 3..3),
        (1, 50, 3..4),
        (1000, 48, 0..3),
    ] {
        let pool = pool_with_window(10, window, 8 * 70);
        assert_eq!(
            pool.window_before(&Layout::plain(16), tokens),
            expected,
            "a window of {window} before {tokens}"
        );
    }
    assert_eq!(pool_of_ten().window_before(&Layout::plain(16), 48), 0..0);
}

#[test]
fn a_group_that_the_pool_does_not_have_is_refused() {
    let mut pool = pool_of_ten();
    assert_eq!(reserve_in(&mut pool, Group::Window, 0, 0..1), Err(PoolError::Invalid));
    assert_eq!(pool.share_in(Group::Window, 0, 1, 0, -1), Err(PoolError::Invalid));
    assert_eq!(pool.remove_in(Group::Window, 0, 0, -1), Err(PoolError::Invalid));
    assert_eq!(pool.slide(0, 0), Err(PoolError::Invalid));
    let mut pool = pool_with_windows();
    for (sequence, computed) in [(-1, 0), (8, 0), (0, 1 << 32)] {
        assert_eq!(pool.slide(sequence, computed), Err(PoolError::Invalid));
    }
}

/// A sequence has the window before its last boundary, so that a prompt that continues it can be matched there.
#[test]
fn blocks_before_the_window_of_the_last_boundary_are_released() {
    let mut pool = pool_with_windows();
    let prompt = tokens(1, 200);
    begin(&mut pool, 0, &prompt, RequestKeys::default());
    compute(&mut pool, 0, &prompt, 0..90);
    assert_eq!(window_indexes(&pool, 0), [0, 1, 2, 3, 4, 5]);
    // The last boundary is that after five blocks.
    assert_eq!(pool.slide(0, 90), Ok(48));
    assert_eq!(window_indexes(&pool, 0), [3, 4, 5]);
    assert_eq!(pool.slide(0, 95), Ok(48));
    compute(&mut pool, 0, &prompt, 90..96);
    assert_eq!(pool.slide(0, 96), Ok(64));
    assert_eq!(window_indexes(&pool, 0), [4, 5]);
    // The other layers have all blocks.
    assert_eq!(held(&pool, 0).len(), 6);
    assert_eq!(pool.statistics().window_blocks_used, 2);
}

#[test]
fn a_short_sequence_loses_nothing() {
    let mut pool = pool_with_windows();
    for computed in [0, 1, 16, 47] {
        assert!(reserve_in(&mut pool, Group::Window, 0, 0..computed as usize).is_ok());
        assert_eq!(pool.slide(0, computed), Ok(0));
    }
    assert_eq!(window_indexes(&pool, 0), [0, 1, 2]);
}

/// No cell is copied: two sequences read the same blocks, and one that is not in any window can be released.
#[test]
fn windows_are_shared_between_sequences() {
    let mut pool = pool_with_windows();
    let prompt = tokens(1, 70);
    begin(&mut pool, 0, &prompt, RequestKeys::default());
    compute_in_batches(&mut pool, 0, &prompt, 0, 70);
    assert_eq!(window_indexes(&pool, 0), [2, 3, 4]);
    begin(&mut pool, 1, &joined(&[&prompt[..64], &[7; 20]]), RequestKeys::default());
    let prefix_match = match_prefix(&mut pool, 1);
    assert_eq!(numbers(&prefix_match.blocks), [1, 2, 3, 4]);
    assert_eq!(numbers(&prefix_match.window_blocks), [3, 4]);
    assert_eq!(window_holders(&pool, &[1, 2, 3, 4, 5]), [0, 0, 2, 2, 1]);
    // It does not write to them.
    assert_eq!(reserve_in(&mut pool, Group::Window, 1, 63..65).map(|fresh| fresh.len()), Ok(2));
    finish_in_groups(&mut pool, 0);
    assert_eq!(window_holders(&pool, &[3, 4, 5]), [1, 1, 0]);
    finish_in_groups(&mut pool, 1);
    assert_eq!(pool.statistics().window_blocks_used, 0);
}

#[test]
fn blocks_that_are_not_expected_to_be_needed_are_allocated_first() {
    let mut pool = pool_with_windows();
    let prompt = tokens(1, 97);
    begin(&mut pool, 0, &prompt, RequestKeys::default());
    compute_in_batches(&mut pool, 0, &prompt, 0, 97);
    // Blocks are numbered from 1. The window before the last boundary, after block 6, is held.
    assert_eq!(window_indexes(&pool, 0), [4, 5, 6]);
    let order: Vec<u32> = pool.blocks().free_blocks(Group::Window).map(|block| block.0).collect();
    assert_eq!(order[..5], [4, 3, 2, 1, 8]);
    finish_in_groups(&mut pool, 0);
    let order: Vec<u32> = pool.blocks().free_blocks(Group::Window).map(|block| block.0).collect();
    assert_eq!((order[..6].to_vec(), order[38..].to_vec()), (vec![7, 4, 3, 2, 1, 8], vec![6, 5]));
}

/// Blocks at which a waiting request can be matched are kept, though its owner computes on.
#[test]
fn a_waiting_request_is_matched_behind_the_window() {
    let mut pool = pool_with_windows();
    let common = tokens(1, 50);
    let (first, second) = (joined(&[&common, &tokens(2, 150)]), joined(&[&common, &tokens(3, 20)]));
    begin(&mut pool, 0, &first, RequestKeys::default());
    begin(&mut pool, 1, &second, RequestKeys::default());
    assert_eq!(match_prefix(&mut pool, 0).next, Next::Compute);
    assert_eq!(match_prefix(&mut pool, 1).next, Next::Wait);
    compute_in_batches(&mut pool, 0, &first, 0, BLOCK_SIZE);
    assert_eq!(window_indexes(&pool, 0), [10, 11, 12]);
    let prefix_match = match_prefix(&mut pool, 1);
    assert_eq!((prefix_match.blocks.len(), prefix_match.next), (3, Next::Compute));
    assert_eq!(window_indexes(&pool, 1), [1, 2]);
}

/// A further choice writes beside the partly filled block of the first one, which it reads.
#[test]
fn a_further_choice_holds_one_block_more() {
    let mut pool = pool_with_window(40, 16, 40);
    let prompt = tokens(1, 40);
    begin(&mut pool, 0, &prompt, RequestKeys::default());
    compute_in_batches(&mut pool, 0, &prompt, 0, 40);
    for group in Group::ALL {
        assert_eq!(pool.share_in(group, 0, 1, 0, -1), Ok(()));
        assert!(reserve_in(&mut pool, group, 1, 40..49).is_ok());
    }
    let table = pool.table_in(Group::Window, 1).expect("the sequence is known");
    let held: usize = table.entries().map(|(_, entry)| entry.blocks().count()).sum();
    let options = options_with_window(40, 16, 40);
    assert_eq!((held, options.window_blocks()), (4, 4));
}

/// A sequence has two blocks of its window and three beside it, and each further choice as many.
#[test]
fn the_blocks_that_a_window_can_take_are_needed_before_they_are_held() {
    let needed = |pool: &Pool, sequence: i32, first: u64, further_choices: u64| {
        WindowNeeds::needed(pool, sequence, first, further_choices)
    };
    let mut pool = pool_with_windows();
    assert_eq!([0, 2, 7, 100].map(|choices| needed(&pool, 0, 0, choices)), [5, 15, 40, 40]);
    prefill_in_batches(&mut pool, 0, &tokens(1, 100));
    assert_eq!((window_indexes(&pool, 0), needed(&pool, 0, 100, 0)), (vec![4, 5, 6], 2));
    // A choice writes beside the newest block of the first one, then into the next block.
    assert_eq!(pool.share_in(Group::Window, 0, 1, 0, -1), Ok(()));
    assert_eq!(needed(&pool, 1, 100, 0), 2);
    assert!(reserve_in(&mut pool, Group::Window, 1, 100..101).is_ok());
    assert_eq!(needed(&pool, 1, 101, 0), 1);
    // However many blocks it holds: those for its next tokens.
    for later in 0..3 {
        assert_eq!(pool.share_in(Group::Window, 1, 2 + later, 0, -1), Ok(()));
        assert!(reserve_in(&mut pool, Group::Window, 2 + later, 101..102).is_ok());
        assert_eq!(pool.share_in(Group::Window, 2 + later, 1, 0, -1), Ok(()));
    }
    assert_eq!((pool.held(Group::Window, 1), needed(&pool, 1, 101, 0)), (7, 1));
}

/// A request that waited has the window of its first match, and not that of the second one too.
#[test]
fn a_later_match_releases_the_window_of_an_earlier_one() {
    let mut pool = pool_with_windows();
    let prompt = tokens(1, 200);
    begin(&mut pool, 0, &prompt, RequestKeys::default());
    begin(&mut pool, 1, &prompt, RequestKeys::default());
    assert_eq!(match_prefix(&mut pool, 0).next, Next::Compute);
    compute(&mut pool, 0, &prompt, 0..48);
    let prefix_match = match_prefix(&mut pool, 1);
    assert_eq!((prefix_match.blocks.len(), prefix_match.next), (3, Next::Wait));
    assert_eq!(window_indexes(&pool, 1), [1, 2]);
    compute(&mut pool, 0, &prompt, 48..160);
    assert_eq!(match_prefix(&mut pool, 1).blocks.len(), 7);
    assert_eq!(window_indexes(&pool, 1), [8, 9]);
}

/// The offer is where the window is, and what was offered is matched.
#[test]
fn the_deepest_boundary_with_a_window_is_offered_and_matched() {
    let mut pool = pool_with_windows();
    let prompt = tokens(1, 100);
    prefill_in_batches(&mut pool, 0, &prompt);
    begin(&mut pool, 1, &prompt, RequestKeys::default());
    let offer = pool.offer(1, 101);
    assert_eq!((offer.tokens, offer.blocks), (96, 1));
    // Fewer tokens: the window before that boundary is not cached.
    let prefix_match = pool.match_up_to(1, 64).expect("nothing was computed");
    assert_eq!((prefix_match.blocks, prefix_match.window_blocks), (vec![], vec![]));
    let prefix_match = pool.match_up_to(1, 96).expect("nothing was computed");
    assert_eq!((prefix_match.blocks.len(), prefix_match.window_blocks.len()), (6, 2));
}

#[test]
fn a_boundary_with_a_window_is_never_inside_of_an_image() {
    let mut pool = pool_with_windows();
    let prompt = tokens(1, 70);
    let keys = with_extras(&[(40, 20, "image")]);
    begin(&mut pool, 0, &prompt, keys.clone());
    compute(&mut pool, 0, &prompt, 0..60);
    begin(&mut pool, 1, &prompt, keys);
    assert_eq!(match_prefix(&mut pool, 1).blocks.len(), 2);
}

#[test]
fn a_sequence_without_its_window_cannot_go_on() {
    let mut pool = pool_with_windows();
    let prompt = tokens(1, 100);
    prefill_in_batches(&mut pool, 0, &prompt);
    assert_eq!(pool.end(0), Ok(()));
    // It has the window before 96 tokens and before each token after them.
    let resume = |pool: &mut Pool, held: usize| pool.resume(0, held, &prompt, RequestKeys::default());
    assert_eq!(resume(&mut pool, 100), Ok(()));
    for group in Group::ALL {
        assert_eq!(pool.remove_in(group, 0, 97, -1), Ok(()));
    }
    assert_eq!(resume(&mut pool, 97), Ok(()));
    for group in Group::ALL {
        assert_eq!(pool.remove_in(group, 0, 64, -1), Ok(()));
    }
    assert_eq!(resume(&mut pool, 64), Err(PoolError::Invalid));
    assert_eq!(pool.match_prefix(0), Err(PoolError::Invalid));
    assert_eq!(pool.remove_in(Group::Full, 0, 0, -1), Ok(()));
    assert_eq!(resume(&mut pool, 0), Ok(()));
    assert_eq!(match_prefix(&mut pool, 0).blocks.len(), 6);
}

/// A slot file has the cells of the last window only, in the layers that have one.
#[test]
fn a_sequence_from_a_file_goes_on_if_it_has_the_window_of_its_next_token() {
    let prompt = tokens(1, 100);
    for (first, expected) in [(38, Ok(())), (48, Err(PoolError::Invalid))] {
        let mut pool = pool_with_windows();
        assert!(reserve_in(&mut pool, Group::Full, 0, 0..70).is_ok());
        assert!(reserve_in(&mut pool, Group::Window, 0, first..70).is_ok());
        assert_eq!(pool.resume(0, 70, &prompt, RequestKeys::default()), expected);
        if expected.is_err() {
            continue;
        }
        compute(&mut pool, 0, &prompt, 70..100);
        assert_eq!(pool.slide(0, 100), Ok(64));
        assert_eq!(window_indexes(&pool, 0), [4, 5, 6]);
        // Nothing before the file's last boundary is cached, so no other prompt is matched.
        begin(&mut pool, 1, &prompt, RequestKeys::default());
        assert!(match_prefix(&mut pool, 1).blocks.is_empty());
    }
}

/// A long prompt does not evict the windows of others, unless stops at intervals keep many of its own.
#[test]
fn a_long_prompt_takes_its_window_and_one_batch() {
    let options = options_with_window(40, 32, 40);
    for (interval, expected) in [(0, 2..=2), (4 * BLOCK_SIZE as u32, 8..=10)] {
        let mut pool = Pool::new(PoolOptions { snapshot_interval: interval, ..options }).expect("in range");
        prefill_in_batches(&mut pool, 0, &tokens(1, 300));
        finish_in_groups(&mut pool, 0);
        let evictable = pool.statistics().window_blocks_evictable;
        assert!(expected.contains(&evictable), "{interval}: {evictable}");
        // The blocks behind its window were cached, and allocated again.
        assert_eq!(pool.statistics().evicted_blocks, 0);
    }
}

/// Evictions of windows are counted as those of other blocks are: a prompt is computed again because of them.
#[test]
fn evicted_windows_are_counted() {
    let mut pool = pool_with_window(400, 32, 40);
    let ask = |pool: &mut Pool, number: i32| {
        let hits = prefill_in_batches(pool, 0, &tokens(number, 100));
        finish_in_groups(pool, 0);
        hits
    };
    assert_eq!((1..=10).map(|number| ask(&mut pool, number)).sum::<usize>(), 0);
    assert_eq!((pool.statistics().evicted_blocks, ask(&mut pool, 1)), (0, 6));
    assert_eq!((11..=40).map(|number| ask(&mut pool, number)).sum::<usize>(), 0);
    let statistics = pool.statistics();
    assert!(statistics.evicted_blocks > 0 && statistics.blocks_empty > 0, "{statistics:?}");
    assert_eq!((ask(&mut pool, 40), ask(&mut pool, 1)), (6, 0));
}

#[test]
fn a_sequence_that_removed_all_it_computed_may_match_again_in_any_order_of_groups() {
    for groups in [[Group::Full, Group::Window], [Group::Window, Group::Full]] {
        let mut pool = pool_with_windows();
        let prompt = tokens(1, 60);
        begin(&mut pool, 0, &prompt, RequestKeys::default());
        compute(&mut pool, 0, &prompt, 0..60);
        begin(&mut pool, 1, &prompt, RequestKeys::default());
        assert_eq!(match_prefix(&mut pool, 1).blocks.len(), 3);
        compute(&mut pool, 1, &prompt, 48..60);
        assert_eq!(pool.match_prefix(1), Err(PoolError::Invalid));
        for group in groups {
            assert_eq!(pool.remove_in(group, 1, 48, -1), Ok(()));
        }
        assert_eq!(match_prefix(&mut pool, 1).next, Next::Compute);
        for group in groups {
            assert_eq!(pool.remove_in(group, 1, 0, -1), Ok(()));
        }
        assert_eq!(match_prefix(&mut pool, 1).blocks.len(), 3);
    }
}

#[test]
fn a_refused_reservation_in_one_group_changes_nothing() {
    let mut pool = pool_with_window(50, 32, 40);
    assert_eq!(reserve_in(&mut pool, Group::Window, 0, 0..41 * BLOCK_SIZE), Err(PoolError::Short));
    assert_eq!((pool.statistics().window_blocks_used, pool.statistics().refused_reserves), (0, 1));
    assert_eq!(reserve_in(&mut pool, Group::Full, 0, 0..41 * BLOCK_SIZE).map(|fresh| fresh.len()), Ok(41));
    assert_eq!(pool.statistics().window_blocks_used, 0);
}

#[test]
fn clearing_resets_both_groups() {
    let mut pool = pool_with_windows();
    let prompt = tokens(1, 60);
    prefill_in_batches(&mut pool, 0, &prompt);
    pool.clear();
    let statistics = pool.statistics();
    assert_eq!((statistics.window_block_count, statistics.window_blocks_used), (40, 0));
    assert_eq!((statistics.window_blocks_evictable, statistics.blocks_evictable), (0, 0));
    assert!(pool.blocks().contents.is_empty());
    assert_eq!(prefill_in_batches(&mut pool, 0, &prompt), 0);
}
