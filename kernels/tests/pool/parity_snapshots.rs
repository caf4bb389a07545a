//! vLLM's tests of the states of recurrent layers in `test_prefix_caching.py`: which of them are retained.
//!
//! A boundary is counted in blocks before it. vLLM's tests count the block that ends there, from 0, which is one less.

use espalier_kernels::pool::extra_keys::RequestKeys;
use espalier_kernels::pool::pool::{Pool, PoolOptions};

use crate::support::*;

/// Returns the boundaries of a prompt of 16 blocks that have a snapshot after it was computed, if snapshots are taken
/// every `interval` tokens, and another prompt diverges from it after `shared` tokens.
fn retained(interval: u32, shared: usize) -> Vec<usize> {
    let options = PoolOptions { snapshot_interval: interval, ..options_with_states(100, 100) };
    let mut pool = Pool::new(options).expect("the options are in range");
    let prompt = tokens(1, 256);
    // The other prompt takes no snapshot itself.
    prefill(&mut pool, 1, &joined(&[&prompt[..shared], &tokens(2, 40)]));
    prefill_with_stops(&mut pool, 0, &prompt);
    saved_boundaries(&pool, 0)
}

#[test]
fn test_mamba_reachable_block_mask_sparsifies_retention() {
    // One per 64 tokens, and the last boundary at which a token is left to compute: 16 is the end of the prompt.
    assert_eq!(retained(64, 0), [4, 8, 12, 15]);
    assert_eq!(retained(0, 0), [15]);
    // Unlike in vLLM, not even an interval of one block gives a snapshot for each block.
    assert_eq!(retained(16, 0), [1, 3, 5, 7, 9, 11, 13, 15]);
}

#[test]
fn test_mamba_reachable_block_mask_pins_shared_prefix() {
    assert_eq!(retained(0, 96), [6, 15]);
    // A prefix that ends within a block is rounded down.
    assert_eq!(retained(0, 100), [6, 15]);
    assert_eq!(retained(64, 96), [4, 6, 8, 12, 15]);
    // The other prompt goes on where this one ends, or has nothing in common with it.
    assert_eq!(retained(0, 256), [15]);
    assert_eq!(retained(0, 0), [15]);
}

#[test]
fn test_mamba_shared_prefix_survives_zero_retention() {
    let mut pool = pool_with_states(100, 100);
    let prompt = tokens(1, 256);
    prefill_with_stops(&mut pool, 0, &prompt);
    assert_eq!(saved_boundaries(&pool, 0), [15]);
    finish(&mut pool, 0);
    // A prompt that shares 96 tokens detects the branch and saves the state there.
    let other = joined(&[&prompt[..96], &tokens(2, 60)]);
    assert_eq!(prefill_with_stops(&mut pool, 1, &other), 0);
    assert_eq!(saved_boundaries(&pool, 1), [6, 9]);
    finish(&mut pool, 1);
    assert_eq!(prefill_with_stops(&mut pool, 2, &joined(&[&prompt[..96], &tokens(3, 60)])), 6);
    // The first prompt has it too, besides its own.
    begin(&mut pool, 0, &prompt, RequestKeys::default());
    assert_eq!(saved_boundaries(&pool, 0), [6, 15]);
    assert_eq!(match_and_restore(&mut pool, 0), 15);
}

#[test]
fn test_mamba_shared_prefix_reuse_under_zero_retention() {
    let shared = tokens(7, 2 * BLOCK_SIZE);
    let prompt = |kind: i32| joined(&[&shared, &tokens(kind, 2 * BLOCK_SIZE)]);
    for (stops, hits) in [(false, 0), (true, 2)] {
        let mut pool = pool_with_states(200, 100);
        // The first one is too short for a snapshot of its own.
        assert_eq!(prefill_with_stops(&mut pool, 0, &prompt(50)), 0);
        assert_eq!(saved_boundaries(&pool, 0), [0; 0]);
        // The second one finds the cells of the shared prefix, and no state: its stop is where they end.
        begin(&mut pool, 1, &prompt(60), RequestKeys::default());
        assert_eq!(match_and_restore(&mut pool, 1), 0);
        assert_eq!(pool.next_stop(1, 0).map(|stop| stop.tokens as usize), Some(shared.len()));
        match stops {
            true => compute_with_stops(&mut pool, 1, &prompt(60), 0),
            false => {
                assert!(reserve(&mut pool, 1, 0..64).is_ok());
                assert!(pool.cache(1, &prompt(60)).is_ok());
            }
        }
        assert_eq!(prefill_with_stops(&mut pool, 2, &prompt(70)), hits);
    }
}
