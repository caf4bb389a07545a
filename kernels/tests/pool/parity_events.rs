//! vLLM's tests of events. There is one event per block here, where vLLM has one for a run of blocks.

use espalier_kernels::pool::events::{Event, EventKind};
use espalier_kernels::pool::extra_keys::RequestKeys;
use espalier_kernels::pool::hash::BlockHash;
use espalier_kernels::pool::pool::{Pool, PoolOptions};

use crate::support::*;

fn kinds(events: &[Event]) -> Vec<u32> {
    events.iter().map(|event| event.kind).collect()
}

#[test]
fn test_kv_cache_events() {
    for blocks in [2, 3, 10] {
        check_events(blocks, RequestKeys::default(), 0);
    }
}

#[test]
fn test_kv_cache_events_with_lora() {
    for blocks in [2, 3, 10] {
        check_events(blocks, adapted("lora"), 1);
    }
}

fn check_events(blocks: u32, keys: RequestKeys, has_adapters: u32) {
    let mut pool = pool_of(blocks);
    let length = blocks as usize * BLOCK_SIZE;
    prefill_with(&mut pool, 0, &tokens(1, length), keys.clone());
    let stored = events(&mut pool);
    check_stored(&pool, &stored, has_adapters);
    assert_eq!(events(&mut pool), []);

    // Each block that is allocated again loses its content, the last one first.
    finish(&mut pool, 0);
    prefill_with(&mut pool, 0, &tokens(2, length), keys);
    let replaced = events(&mut pool);
    let (removed, stored_again) = replaced.split_at(blocks as usize);
    let expected: Vec<(BlockHash, u32)> =
        stored.iter().rev().map(|event| (event.hash, event.block)).collect();
    assert_eq!(removed.iter().map(|event| (event.hash, event.block)).collect::<Vec<_>>(), expected);
    assert_eq!(kinds(removed), vec![EventKind::Removed as u32; blocks as usize]);
    check_stored(&pool, stored_again, has_adapters);

    pool.clear();
    let number = u64::from(3 * blocks);
    assert_eq!(events(&mut pool), [Event { number, ..Event::of_kind(EventKind::Cleared) }]);
}

fn check_stored(pool: &Pool, stored: &[Event], has_adapters: u32) {
    let mut parent = None;
    for (index, (event, block)) in stored.iter().zip(held(pool, 0)).enumerate() {
        assert_eq!((event.kind, event.token_count, event.has_adapters), (0, 16, has_adapters));
        assert_eq!((event.block, event.block_index), ((block - 1) * 16, index as u32));
        assert_eq!(Some(event.hash), hash(pool, block));
        assert_eq!((event.has_parent, event.parent), (u32::from(index > 0), parent.unwrap_or_default()));
        parent = Some(event.hash);
    }
    assert_eq!(stored.len(), held(pool, 0).len());
}

#[test]
fn the_oldest_unread_event_is_dropped() {
    let mut pool = Pool::new(PoolOptions { event_capacity: 2, ..options(10) }).expect("in range");
    prefill(&mut pool, 0, &tokens(1, 80));
    assert_eq!(events(&mut pool).iter().map(|event| event.number).collect::<Vec<_>>(), [3, 4]);
}

#[test]
fn no_event_is_recorded_without_event_capacity() {
    let mut pool = Pool::new(PoolOptions { event_capacity: 0, ..options(10) }).expect("in range");
    prefill(&mut pool, 0, &tokens(1, 80));
    pool.clear();
    assert_eq!(pool.next_event(), None);
}
