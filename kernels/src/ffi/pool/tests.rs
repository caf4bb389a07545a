use super::*;
use crate::ffi::snapshots::{
    espalier_pool_restored, espalier_pool_snapshot_begin, espalier_pool_snapshot_end,
};

fn pool() -> *mut SharedPool {
    let options = PoolOptions {
        block_count: 4,
        block_size: 4,
        sequence_count: 2,
        event_capacity: 8,
        ..PoolOptions::default()
    };
    // SAFETY: the options are valid.
    unsafe { espalier_pool_new(&options) }
}

/// The group of all layers, since these pools have no windows.
const FULL: u32 = Group::Full as u32;

fn reserve(pool: *mut SharedPool, position: i32) -> (i32, u32) {
    let (mut cell, mut fresh, mut count) = (77, 0, 0);
    // SAFETY: the pool is live, and each pointer has space for one value.
    let status =
        unsafe { espalier_pool_reserve(pool, FULL, &0, &position, 1, &mut cell, &mut fresh, &mut count) };
    (status, cell)
}

/// Space for blocks in both groups, the second of which gets none.
fn space_in(cells: &mut [u32]) -> [PoolBlocks; 2] {
    let none = PoolBlocks { first_cells: std::ptr::null_mut(), capacity: 0, count: 77 };
    [PoolBlocks { first_cells: cells.as_mut_ptr(), capacity: cells.len(), count: 77 }, none]
}

fn request_of(tokens: &[i32]) -> PoolRequest {
    PoolRequest {
        tokens: tokens.as_ptr(),
        token_count: tokens.len(),
        held_count: 0,
        salt: std::ptr::null(),
        salt_length: 0,
        adapters: std::ptr::null(),
        adapters_length: 0,
        extras: std::ptr::null(),
        extra_count: 0,
        system_length: 0,
        end: tokens.len() as u64 + 1,
        further_choices: 0,
    }
}

fn fail_inside(pool: *mut SharedPool) {
    // SAFETY: the pool is live.
    let status = unsafe { with_pool(pool, |_, _| panic!("this panic is part of the test")) };
    assert_eq!(status, PoolStatus::Invalid as i32);
}

#[test]
fn a_pool_that_failed_inside_refuses_everything_until_it_is_cleared() {
    let pool = pool();
    assert_eq!(reserve(pool, 5), (0, 1));
    fail_inside(pool);
    assert_eq!(reserve(pool, 5), (3, 77));
    let mut statistics = Statistics { block_count: 77, ..Statistics::default() };
    let mut event = Event::of_kind(crate::pool::events::EventKind::Stored);
    // SAFETY: the pool is live until it is freed, at the end.
    unsafe {
        assert_eq!(espalier_pool_statistics(pool, &mut statistics), 3);
        assert_eq!(statistics.block_count, 77);
        assert_eq!(espalier_pool_remove(pool, FULL, 0, 0, -1), 3);
        assert_eq!(espalier_pool_next_event(pool, &mut event), 0);

        espalier_pool_clear(pool);
        assert_eq!(espalier_pool_statistics(pool, &mut statistics), 0);
        assert_eq!((statistics.blocks_used, statistics.blocks_empty), (0, 4));
        assert_eq!(espalier_pool_next_event(pool, &mut event), 1);
        assert_eq!(event.kind, crate::pool::events::EventKind::Cleared as u32);
    }
    assert_eq!(reserve(pool, 5), (0, 1));
    // SAFETY: the pool is not used afterwards.
    unsafe { espalier_pool_free(pool) };
}

/// Nine tokens: two blocks, and one more.
const TOKENS: [i32; 9] = [1, 2, 3, 4, 5, 6, 7, 8, 9];

/// Begins a request of sequence 0, and computes and caches it.
fn compute(pool: *mut SharedPool) {
    let mut cells = [77; 2];
    let mut blocks = space_in(&mut cells);
    // SAFETY: the pool is live; every buffer is as large as its length says.
    unsafe {
        assert_eq!(espalier_pool_begin(pool, 0, &request_of(&TOKENS)), 0);
        (0..9).for_each(|position| assert_eq!(reserve(pool, position).0, 0));
        assert_eq!(espalier_pool_cache_blocks(pool, 0, TOKENS.as_ptr(), 9, blocks.as_mut_ptr()), 0);
    }
}

/// Begins a snapshot after the first tokens of sequence 0. Returns its id.
fn begin_snapshot(pool: *mut SharedPool, tokens: usize) -> u32 {
    let (mut snapshot, mut evicted, mut count) = (77, [77; 4], 0);
    let to = evicted.as_mut_ptr();
    // SAFETY: the pool is live; every buffer is as large as its length says.
    let status = unsafe {
        espalier_pool_snapshot_begin(
            pool,
            0,
            TOKENS.as_ptr(),
            tokens,
            100,
            1,
            &mut snapshot,
            to,
            4,
            &mut count,
        )
    };
    assert_eq!((status, count), (0, 0));
    snapshot
}

/// One snapshot is being restored and one is being written when the pool fails.
#[test]
fn no_snapshot_is_left_after_a_failure() {
    let options = PoolOptions {
        block_count: 8,
        block_size: 4,
        sequence_count: 2,
        parts: PoolOptions::CELLS | PoolOptions::STATE,
        snapshot_bytes: 300,
        ..PoolOptions::default()
    };
    let mut statistics = Statistics::default();
    let (mut cells, mut matched) = ([77], 77);
    let mut blocks = space_in(&mut cells);
    // SAFETY: the options are valid, and the pool is live until it is freed, at the end; every buffer is as large as
    // its length says.
    unsafe {
        let pool = espalier_pool_new(&options);
        compute(pool);
        let first = begin_snapshot(pool, 4);
        assert_eq!(espalier_pool_snapshot_end(pool, first, 1), 0);
        assert_eq!(espalier_pool_begin(pool, 1, &request_of(&TOKENS)), 0);
        let status = espalier_pool_match_prefix(pool, 1, 9, blocks.as_mut_ptr(), &mut matched);
        assert_eq!((status, blocks[0].count, matched), (0, 1, first));
        let second = begin_snapshot(pool, 8);
        fail_inside(pool);
        assert_eq!(espalier_pool_snapshot_end(pool, second, 1), 3);
        assert_eq!(espalier_pool_restored(pool, 1, first, 1), 3);

        espalier_pool_clear(pool);
        assert_eq!(espalier_pool_statistics(pool, &mut statistics), 0);
        assert_eq!((statistics.snapshots, statistics.snapshot_bytes), (0, 0));
        assert_eq!(espalier_pool_snapshot_end(pool, second, 1), 3);
        assert_eq!(espalier_pool_restored(pool, 1, first, 1), 3);
        compute(pool);
        let third = begin_snapshot(pool, 4);
        assert!(third != first && third != second, "an id is used again");
        espalier_pool_free(pool);
    }
}

#[test]
fn results_are_truncated_to_the_capacity_and_counted_in_full() {
    let pool = pool();
    let tokens = [1, 2, 3, 4, 5, 6, 7, 8];
    let request = request_of(&tokens);
    let mut cells = [77, 77];
    let mut blocks = space_in(&mut cells[..1]);
    // SAFETY: the pool is live until it is freed, at the end; every buffer is as large as its length says.
    unsafe {
        assert_eq!(espalier_pool_begin(pool, 0, &request), 0);
        (0..8).for_each(|position| assert_eq!(reserve(pool, position).0, 0));
        let status = espalier_pool_cache_blocks(pool, 0, tokens.as_ptr(), 8, blocks.as_mut_ptr());
        assert_eq!((status, blocks.map(|one| one.count), cells), (0, [2, 0], [0, 77]));
        let missing = PoolRequest { salt_length: 1, ..request };
        assert_eq!(espalier_pool_begin(pool, 1, &missing), 3);
        espalier_pool_free(pool);
    }
}

#[test]
fn many_threads_use_one_pool() {
    let options = PoolOptions { block_count: 64, block_size: 4, sequence_count: 8, ..PoolOptions::default() };
    let shared = SharedPool::new(options).expect("the options are in range");
    std::thread::scope(|scope| {
        for sequence in 0..8 {
            let shared = &shared;
            scope.spawn(move || use_for_a_while(shared, sequence));
        }
    });
    let state = shared.state().expect("nothing failed");
    assert_eq!(state.statistics().blocks_used, 0);
}

fn use_for_a_while(shared: &SharedPool, sequence: i32) {
    let pool = std::ptr::from_ref(shared).cast_mut();
    let (sequences, positions): (Vec<i32>, Vec<i32>) = (0..32).map(|position| (sequence, position)).unzip();
    let (mut cells, mut fresh, mut count) = ([0; 32], [0; 32], 0);
    for _ in 0..100 {
        // SAFETY: the pool is live, and each buffer has space for 32 values.
        unsafe {
            let (from, at) = (sequences.as_ptr(), positions.as_ptr());
            let (to, fresh) = (cells.as_mut_ptr(), fresh.as_mut_ptr());
            let status = espalier_pool_reserve(pool, FULL, from, at, 32, to, fresh, &mut count);
            assert_eq!((status, count), (0, 8));
            assert_eq!(espalier_pool_remove(pool, FULL, sequence, 0, -1), 0);
        }
    }
}

/// Under Miri a reference to such a struct is an error.
#[test]
fn the_count_of_blocks_need_not_be_initialised() {
    let pool = pool();
    let mut cells = [77; 8];
    let mut blocks = [const { std::mem::MaybeUninit::<PoolBlocks>::uninit() }; 2];
    let mut snapshot = 77;
    let tokens = [1, 2, 3, 4, 5];
    let request = request_of(&tokens);
    // SAFETY: the pool is live until it is freed, at the end; each struct has space for four integers.
    unsafe {
        for (group, one) in blocks.iter_mut().enumerate() {
            let one = one.as_mut_ptr();
            (&raw mut (*one).first_cells).write(cells.as_mut_ptr().add(4 * group));
            (&raw mut (*one).capacity).write(4);
        }
        let first = blocks.as_mut_ptr().cast::<PoolBlocks>();
        assert_eq!(espalier_pool_begin(pool, 0, &request), 0);
        assert_eq!(espalier_pool_match_prefix(pool, 0, 5, first, &mut snapshot), 0);
        assert_eq!(((*first).count, (*first.add(1)).count, snapshot), (0, 0, 0));
        assert_eq!(espalier_pool_match_prefix(pool, 0, 5, std::ptr::null_mut(), &mut snapshot), 3);
        espalier_pool_free(pool);
    }
    assert_eq!(cells, [77; 8]);
}
