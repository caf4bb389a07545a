//! vLLM's tests of sliding windows in `test_prefix_caching.py`: which blocks behind a window are kept.
//!
//! Unlike in vLLM, every full block is cached once it is computed. Those behind the window that no prompt is expected
//! to need are the first to be allocated again, so that with batches of one block they are gone soon.

use espalier_kernels::pool::block::BlockId;
use espalier_kernels::pool::extra_keys::RequestKeys;
use espalier_kernels::pool::pool::{Pool, PoolOptions};
use espalier_kernels::scheduler::{Action, Capacity, Request, Stage, decide};

use crate::support::*;

/// A window of two blocks: the token after a boundary attends to one token of the first of them.
const WINDOW: u32 = 32;

fn pool_with_interval(interval: u32) -> Pool {
    let options = PoolOptions { snapshot_interval: interval, ..options_with_window(100, WINDOW, 64) };
    Pool::new(options).expect("the options are in range")
}

/// Returns the block indexes of a prompt of 16 blocks that are kept in the layers with a window after it was computed,
/// if another prompt, which diverges from it after `shared` tokens, was computed before.
fn kept(interval: u32, shared: usize) -> Vec<usize> {
    let mut pool = pool_with_interval(interval);
    let prompt = tokens(1, 256);
    prefill_in_batches(&mut pool, 1, &joined(&[&prompt[..shared], &tokens(2, 72)]));
    finish_in_groups(&mut pool, 1);
    assert_eq!(prefill_in_batches(&mut pool, 0, &prompt), 0);
    finish_in_groups(&mut pool, 0);
    kept_in_window(&mut pool, 0, &prompt)
}

#[test]
fn test_hybrid_cache_blocks_swa_tail_window_only() {
    let mut pool = pool_with_interval(0);
    let prompt = tokens(1, 256);
    assert_eq!(prefill_in_batches(&mut pool, 0, &prompt), 0);
    let all: Vec<BlockId> = (1..=64).map(BlockId).collect();
    assert_eq!(cached_in(&pool, 0, &all), [13, 14, 15]);
    // The same prompt hits as many blocks as one can; one that diverges before the window hits none.
    begin(&mut pool, 1, &prompt, RequestKeys::default());
    assert_eq!(match_prefix(&mut pool, 1).blocks.len(), 15);
    begin(&mut pool, 2, &joined(&[&prompt[..200], &[7; 40]]), RequestKeys::default());
    assert_eq!(match_prefix(&mut pool, 2).blocks.len(), 0);
    // The blocks of all its tokens are there.
    assert_eq!(pool.table(0).map(|table| table.len()), Some(16));
}

#[test]
fn test_pure_swa_retention_interval_caches_sparse_tails() {
    // Two blocks before each interval, those before the last boundary, and the end of the sequence.
    assert_eq!(kept(64, 0), [2, 3, 6, 7, 10, 11, 13, 14, 15]);
    assert_eq!(kept(128, 0), [6, 7, 13, 14, 15]);
}

#[test]
fn test_pure_swa_retention_latest_only() {
    assert_eq!(kept(0, 0), [13, 14, 15]);
}

/// All blocks of a batch are cached, and found until they are allocated again.
#[test]
fn test_pure_swa_retention_dense_default_caches_all() {
    let mut pool = pool_with_interval(0);
    let prompt = tokens(1, 256);
    begin(&mut pool, 0, &prompt, RequestKeys::default());
    compute_in_batches(&mut pool, 0, &prompt, 0, prompt.len());
    let all: Vec<BlockId> = (1..=64).map(BlockId).collect();
    assert_eq!(cached_in(&pool, 0, &all), (0..16).collect::<Vec<_>>());
    for (sequence, length) in [(1, 30), (2, 100), (3, 180)] {
        begin(&mut pool, sequence, &prompt[..length], RequestKeys::default());
        assert_eq!(match_prefix(&mut pool, sequence).blocks.len(), (length - 1) / BLOCK_SIZE);
    }
}

#[test]
fn test_swa_reachable_block_mask_pins_shared_prefix() {
    assert_eq!(kept(0, 96), [4, 5, 13, 14, 15]);
    // A prefix that ends within a block is rounded down.
    assert_eq!(kept(0, 100), [4, 5, 13, 14, 15]);
    assert_eq!(kept(128, 96), [4, 5, 6, 7, 13, 14, 15]);
    // The other prompt goes on where this one ends.
    assert_eq!(kept(0, 256), [13, 14, 15]);
}

#[test]
fn test_swa_shared_prefix_reuse_under_zero_retention() {
    let mut pool = pool_with_interval(0);
    let shared = tokens(7, 2 * BLOCK_SIZE);
    let hits = [50, 60, 70, 80].map(|kind| {
        let hits = prefill_in_batches(&mut pool, 0, &joined(&[&shared, &tokens(kind, 3 * BLOCK_SIZE)]));
        finish_in_groups(&mut pool, 0);
        hits
    });
    // The first one does not know that others will share its beginning, and the second one finds only its other layers.
    assert_eq!(hits, [0, 0, 2, 2]);
}

/// However long a prompt is, it needs the blocks of a window and of a batch.
#[test]
fn test_can_fit_full_sequence_swa_cap_admits_long_prompt() {
    // Each of eight sequences has five blocks.
    let mut pool = pool_with_window(101, WINDOW, 40);
    let prompt = tokens(1, 1600);
    begin(&mut pool, 0, &prompt, RequestKeys::default());
    let request = Request {
        arrival: 0,
        priority: 0,
        sequence: 0,
        stage: Stage::Waits,
        preemptible: true,
        first: 0,
        end: 1601,
        further_choices: 0,
    };
    assert_eq!(pool.offer(0, 1601).blocks, 101);
    assert_eq!(decide(&pool, &[request], &[], true).action, Action::Admit { index: 0, tokens: 0 });
    compute_in_batches(&mut pool, 0, &prompt, 0, BLOCK_SIZE);
    let statistics = pool.statistics();
    assert_eq!((statistics.blocks_used, statistics.window_blocks_used), (100, 2));
    assert_eq!(statistics.window_blocks_used_peak, 3);
    assert_eq!(statistics.refused_reserves, 0);
}
