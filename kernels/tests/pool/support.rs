//! Pools and requests for the tests, and results as plain integers.

use espalier_kernels::pool::block::BlockId;
use espalier_kernels::pool::contents::ContentId;
use espalier_kernels::pool::events::Event;
use espalier_kernels::pool::extra_keys::{Extra, RequestKeys};
use espalier_kernels::pool::groups::Group;
use espalier_kernels::pool::hash::BlockHash;
use espalier_kernels::pool::pool::{Pool, PoolError, PoolOptions, PrefixMatch};
use espalier_kernels::pool::snapshots::{Reason, SnapshotId};
use proptest::test_runner::Config;

pub const BLOCK_SIZE: usize = 16;
/// Size of every snapshot, in bytes.
pub const SNAPSHOT_BYTES: u64 = 100;

pub fn options(block_count: u32) -> PoolOptions {
    PoolOptions {
        block_count,
        block_size: BLOCK_SIZE as u32,
        sequence_count: 8,
        event_capacity: 100,
        ..PoolOptions::default()
    }
}

/// vLLM's pool of 11 blocks: one of them is its placeholder, which does not exist in this pool.
pub fn pool_of_ten() -> Pool {
    pool_of(10)
}

pub fn pool_of(block_count: u32) -> Pool {
    Pool::new(options(block_count)).expect("the options are in range")
}

/// Options of a pool whose sequences have a state, with a budget for this number of snapshots.
pub fn options_with_states(block_count: u32, snapshots: u64) -> PoolOptions {
    PoolOptions {
        parts: PoolOptions::CELLS | PoolOptions::STATE,
        snapshot_bytes: snapshots * SNAPSHOT_BYTES,
        ..options(block_count)
    }
}

pub fn pool_with_states(block_count: u32, snapshots: u64) -> Pool {
    Pool::new(options_with_states(block_count, snapshots)).expect("the options are in range")
}

/// Takes a snapshot after these tokens of the sequence. Returns it and those that were removed for it.
pub fn save(pool: &mut Pool, sequence: i32, tokens: &[i32], reason: Reason) -> (SnapshotId, Vec<SnapshotId>) {
    let grant =
        pool.begin_snapshot(sequence, tokens, SNAPSHOT_BYTES, reason).expect("there are enough bytes");
    assert_eq!(pool.end_snapshot(grant.id, true), Ok(()));
    (grant.id, grant.evicted)
}

/// Matches blocks and restores the snapshot behind them. Returns the number of blocks.
pub fn match_and_restore(pool: &mut Pool, sequence: i32) -> usize {
    let prefix_match = match_prefix(pool, sequence);
    assert_eq!(prefix_match.snapshot.is_some(), !prefix_match.blocks.is_empty());
    if let Some(snapshot) = prefix_match.snapshot {
        assert_eq!(pool.restored(sequence, snapshot, true), Ok(()));
    }
    prefix_match.blocks.len()
}

/// Computes the prompt of a sequence that matched `hits` blocks, and takes a snapshot at each stop.
pub fn compute_with_stops(pool: &mut Pool, sequence: i32, prompt: &[i32], hits: usize) {
    let mut computed = hits * BLOCK_SIZE;
    while computed < prompt.len() {
        let stop = pool.next_stop(sequence, computed as u64);
        let end = stop.map_or(prompt.len(), |stop| stop.tokens as usize);
        assert!(reserve(pool, sequence, computed..end).is_ok());
        assert!(pool.cache(sequence, &prompt[..end]).is_ok());
        if let Some(stop) = stop {
            save(pool, sequence, &prompt[..end], stop.reason);
        }
        computed = end;
    }
}

/// Processes a whole prompt as a server does whose sequences have a state. Returns the number of matched blocks.
pub fn prefill_with_stops(pool: &mut Pool, sequence: i32, prompt: &[i32]) -> usize {
    begin(pool, sequence, prompt, RequestKeys::default());
    let hits = match_and_restore(pool, sequence);
    compute_with_stops(pool, sequence, prompt, hits);
    hits
}

/// Returns the boundaries of the sequence's request that have a snapshot, in blocks.
pub fn saved_boundaries(pool: &Pool, sequence: i32) -> Vec<usize> {
    let request = pool.request(sequence).expect("the sequence has a request");
    let contents = (1..).map_while(|blocks| Some((blocks, request.content(blocks - 1)?)));
    let has_snapshot = |content| pool.blocks().contents.snapshot(content).is_some();
    contents.filter(|(_, content)| has_snapshot(*content)).map(|(blocks, _)| blocks).collect()
}

/// Returns `count` tokens, all different from those of other kinds.
pub fn tokens(kind: i32, count: usize) -> Vec<i32> {
    (0..count as i32).map(|token| kind * 10_000 + token).collect()
}

pub fn joined(parts: &[&[i32]]) -> Vec<i32> {
    parts.concat()
}

pub fn salted(salt: &str) -> RequestKeys {
    RequestKeys { salt: salt.into(), ..RequestKeys::default() }
}

pub fn adapted(adapters: &str) -> RequestKeys {
    RequestKeys { adapters: adapters.into(), ..RequestKeys::default() }
}

pub fn with_extras(extras: &[(u32, u32, &str)]) -> RequestKeys {
    let extra = |(first, length, key): &(u32, u32, &str)| Extra {
        first: *first,
        length: *length,
        key: (*key).into(),
    };
    RequestKeys { extras: extras.iter().map(extra).collect(), ..RequestKeys::default() }
}

/// Returns blocks as integers from 1, as vLLM counts them.
pub fn numbers(blocks: &[BlockId]) -> Vec<u32> {
    blocks.iter().map(|block| block.0).collect()
}

pub fn reserve(
    pool: &mut Pool,
    sequence: i32,
    positions: std::ops::Range<usize>,
) -> Result<Vec<u32>, PoolError> {
    reserve_in(pool, Group::Full, sequence, positions)
}

pub fn reserve_in(
    pool: &mut Pool,
    group: Group,
    sequence: i32,
    positions: std::ops::Range<usize>,
) -> Result<Vec<u32>, PoolError> {
    let sequences = vec![sequence; positions.len()];
    let positions: Vec<i32> = positions.map(|position| position as i32).collect();
    Ok(numbers(&pool.reserve_in(group, &sequences, &positions)?.fresh_blocks))
}

pub fn begin(pool: &mut Pool, sequence: i32, prompt: &[i32], keys: RequestKeys) {
    assert_eq!(pool.begin(sequence, prompt, keys), Ok(()));
}

pub fn match_prefix(pool: &mut Pool, sequence: i32) -> PrefixMatch {
    pool.match_prefix(sequence).expect("the sequence has a request and only matched blocks")
}

/// Processes a whole prompt: matched as far as possible, then computed and cached. Returns the number of matched
/// blocks, and all blocks of the sequence.
pub fn prefill_with(pool: &mut Pool, sequence: i32, prompt: &[i32], keys: RequestKeys) -> (usize, Vec<u32>) {
    begin(pool, sequence, prompt, keys);
    let hits = match_prefix(pool, sequence).blocks.len();
    assert!(reserve(pool, sequence, hits * BLOCK_SIZE..prompt.len()).is_ok());
    assert!(pool.cache(sequence, prompt).is_ok());
    (hits, held(pool, sequence))
}

pub fn prefill(pool: &mut Pool, sequence: i32, prompt: &[i32]) -> (usize, Vec<u32>) {
    prefill_with(pool, sequence, prompt, RequestKeys::default())
}

/// Ends the request: the sequence holds nothing afterwards.
pub fn finish(pool: &mut Pool, sequence: i32) {
    assert_eq!(pool.end(sequence), Ok(()));
    assert_eq!(pool.remove(sequence, 0, -1), Ok(()));
}

/// Options of a pool that has `window_block_count` blocks for layers with a window of this number of tokens.
pub fn options_with_window(block_count: u32, window: u32, window_block_count: u32) -> PoolOptions {
    PoolOptions {
        parts: PoolOptions::CELLS | PoolOptions::WINDOW,
        window,
        window_block_count,
        ..options(block_count)
    }
}

pub fn pool_with_window(block_count: u32, window: u32, window_block_count: u32) -> Pool {
    Pool::new(options_with_window(block_count, window, window_block_count)).expect("the options are in range")
}

/// Computes these positions of a sequence in all layers and caches them; does not slide.
pub fn compute(pool: &mut Pool, sequence: i32, text: &[i32], positions: std::ops::Range<usize>) {
    for group in Group::ALL {
        assert!(reserve_in(pool, group, sequence, positions.clone()).is_ok());
    }
    assert!(pool.cache(sequence, &text[..positions.end]).is_ok());
}

/// Computes the rest of a prompt in batches of this number of tokens, and slides after each.
pub fn compute_in_batches(pool: &mut Pool, sequence: i32, prompt: &[i32], computed: usize, batch: usize) {
    for first in (computed..prompt.len()).step_by(batch) {
        let end = prompt.len().min(first + batch);
        compute(pool, sequence, prompt, first..end);
        assert!(pool.slide(sequence, end as u64).is_ok());
    }
}

/// Processes a whole prompt in a pool with a window, in batches of one block. Returns the number of matched blocks.
pub fn prefill_in_batches(pool: &mut Pool, sequence: i32, prompt: &[i32]) -> usize {
    begin(pool, sequence, prompt, RequestKeys::default());
    let hits = match_prefix(pool, sequence).blocks.len();
    compute_in_batches(pool, sequence, prompt, hits * BLOCK_SIZE, BLOCK_SIZE);
    hits
}

/// Ends the request: the sequence holds nothing afterwards in any group.
pub fn finish_in_groups(pool: &mut Pool, sequence: i32) {
    assert_eq!(pool.end(sequence), Ok(()));
    for group in Group::ALL {
        assert_eq!(pool.remove_in(group, sequence, 0, -1), Ok(()));
    }
}

/// Returns the block indexes at which the sequence has blocks of the window.
pub fn window_indexes(pool: &Pool, sequence: i32) -> Vec<u32> {
    let table = pool.table_in(Group::Window, sequence).expect("the sequence is known");
    table.entries().map(|(index, _)| index).collect()
}

/// Returns the block indexes of the sequence's prompt whose windowed layers are cached in one of these blocks.
pub fn cached_in(pool: &Pool, sequence: i32, blocks: &[BlockId]) -> Vec<usize> {
    let request = pool.request(sequence).expect("the sequence has a request");
    let contents = (0..).map_while(|index| Some((index, request.content(index)?)));
    let is_cached = |content: ContentId| {
        pool.blocks().contents.blocks(Group::Window, content).iter().any(|block| blocks.contains(block))
    };
    contents.filter(|(_, content)| is_cached(*content)).map(|(index, _)| index).collect()
}

/// Returns the block indexes of a prompt whose windowed layers stay cached when all empty blocks are allocated. The
/// sequence, which holds nothing, begins the prompt for that.
pub fn kept_in_window(pool: &mut Pool, sequence: i32, prompt: &[i32]) -> Vec<usize> {
    begin(pool, sequence, prompt, RequestKeys::default());
    let blocks: Vec<BlockId> = pool.blocks().free_blocks(Group::Window).collect();
    let is_empty = |block: &BlockId| pool.blocks().content(Group::Window, *block).is_none();
    let behind_empty_ones = blocks.iter().rposition(is_empty).map_or(0, |last| last + 1);
    cached_in(pool, sequence, &blocks[behind_empty_ones..])
}

/// Evicts this number of cached blocks of a group, in the order of eviction: the sequence, which holds nothing,
/// allocates them after all empty ones, and frees them.
pub fn evict(pool: &mut Pool, group: Group, sequence: i32, count: usize) {
    let is_empty = |block: &BlockId| pool.blocks().content(group, *block).is_none();
    let blocks = count + pool.blocks().free_blocks(group).filter(is_empty).count();
    assert!(reserve_in(pool, group, sequence, 0..blocks * BLOCK_SIZE).is_ok());
    assert_eq!(pool.remove_in(group, sequence, 0, -1), Ok(()));
}

/// Evicts every cached block: the sequence, which holds nothing, allocates all blocks and frees them.
pub fn evict_all(pool: &mut Pool, sequence: i32) {
    let count = pool.statistics().block_count * pool.statistics().block_size;
    assert!(reserve(pool, sequence, 0..count as usize).is_ok());
    assert_eq!(pool.remove(sequence, 0, -1), Ok(()));
}

/// Returns all blocks of a sequence, in the order of their positions.
pub fn held(pool: &Pool, sequence: i32) -> Vec<u32> {
    let table = pool.table(sequence).expect("the sequence is known");
    table.entries().flat_map(|(_, entry)| entry.blocks()).map(|block| block.0).collect()
}

pub fn free_order(pool: &Pool) -> Vec<u32> {
    pool.blocks().free_blocks(Group::Full).map(|block| block.0).collect()
}

pub fn hash(pool: &Pool, block: u32) -> Option<BlockHash> {
    pool.blocks().hash(Group::Full, BlockId(block))
}

pub fn holders(pool: &Pool, blocks: &[u32]) -> Vec<u32> {
    blocks.iter().map(|block| pool.blocks().holders(Group::Full, BlockId(*block))).collect()
}

/// `PROPTEST_CASES` overrides the number of cases; the default takes about two seconds for each property.
pub fn property_config() -> Config {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    Config { cases: cases.unwrap_or(1000), failure_persistence: None, ..Config::default() }
}

pub fn events(pool: &mut Pool) -> Vec<Event> {
    std::iter::from_fn(|| pool.next_event()).collect()
}
