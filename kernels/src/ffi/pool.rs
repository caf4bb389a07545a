//! The C ABI of the block pool.
//!
//! # Panics inside the pool
//!
//! A panic may leave a change half done, so the pool's tables can no longer be trusted. It poisons the lock, and from
//! then on every function returns [`PoolStatus::Invalid`]: no cell is handed out twice, and no half-written block can
//! be matched. The pool can be reset: [`espalier_pool_clear`] rebuilds all tables, and the pool works again. The
//! failure is logged once on stderr.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

use crate::ffi::guarded;
use crate::pool::block::BlockId;
use crate::pool::events::Event;
use crate::pool::extra_keys::{Extra, RequestKeys};
use crate::pool::groups::{Group, Groups};
use crate::pool::pool::{Next, Pool, PoolOptions, Refusal};
use crate::pool::snapshots::{NoSnapshot, Reason, SnapshotId};
use crate::pool::statistics::Statistics;
use crate::report;

/// Status that the pool's functions return. The values are part of the C ABI (`enum espalier_pool_status`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum PoolStatus {
    /// Done.
    Ok = 0,
    /// Not enough free blocks, or bytes for a snapshot; nothing was changed.
    Short = 1,
    /// Another sequence is computing the next block.
    Wait = 2,
    /// The arguments are invalid; nothing was changed.
    Invalid = 3,
    /// The snapshot exists already; nothing was changed.
    Exists = 4,
}

impl From<Refusal> for PoolStatus {
    fn from(refusal: Refusal) -> PoolStatus {
        match refusal {
            Refusal::Short => PoolStatus::Short,
            Refusal::Invalid => PoolStatus::Invalid,
        }
    }
}

impl From<NoSnapshot> for PoolStatus {
    fn from(reason: NoSnapshot) -> PoolStatus {
        match reason {
            NoSnapshot::Exists => PoolStatus::Exists,
            NoSnapshot::Short => PoolStatus::Short,
            NoSnapshot::NotAtBoundary | NoSnapshot::Invalid => PoolStatus::Invalid,
        }
    }
}

impl From<Next> for PoolStatus {
    fn from(next: Next) -> PoolStatus {
        match next {
            Next::Compute => PoolStatus::Ok,
            Next::Wait => PoolStatus::Wait,
        }
    }
}

/// A pool as C sees it: `struct espalier_pool`, opaque there.
#[derive(Debug)]
pub struct SharedPool {
    block_size: u32,
    state: Mutex<Pool>,
    has_reported_failure: AtomicBool,
}

impl SharedPool {
    fn new(options: PoolOptions) -> Option<SharedPool> {
        let state = Mutex::new(Pool::new(options).ok()?);
        Some(SharedPool {
            block_size: options.block_size,
            state,
            has_reported_failure: AtomicBool::new(false),
        })
    }

    /// Locks the state; `None` if the lock is poisoned.
    fn state(&self) -> Option<MutexGuard<'_, Pool>> {
        let state = self.state.lock().ok();
        if state.is_none() && !self.has_reported_failure.swap(true, Ordering::Relaxed) {
            report::line_to_stderr("the block pool failed inside and refuses everything until it is cleared");
        }
        state
    }

    /// Rebuilds all tables, also after a panic.
    fn clear(&self) {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clear();
        self.state.clear_poison();
        self.has_reported_failure.store(false, Ordering::Relaxed);
    }

    fn first_cells(&self, blocks: &[BlockId]) -> Vec<u32> {
        blocks.iter().map(|block| block.first_cell(self.block_size)).collect()
    }
}

/// Everything that decides whether two prompts have the same KV. The layout is `struct espalier_pool_request`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct PoolRequest {
    /// The whole prompt.
    pub tokens: *const i32,
    /// Number of tokens.
    pub token_count: usize,
    /// Number of tokens at its beginning whose KV the sequence already holds.
    pub held_count: usize,
    /// Cache salt: only requests with the same salt share blocks.
    pub salt: *const u8,
    /// Length of the salt in bytes.
    pub salt_length: usize,
    /// LoRA adapters with their scales.
    pub adapters: *const u8,
    /// Length in bytes; 0: none.
    pub adapters_length: usize,
    /// Images and the like, sorted and not overlapping.
    pub extras: *const PoolExtra,
    /// Number of extras.
    pub extra_count: usize,
    /// Number of tokens of the system prompt at its beginning; 0: unknown.
    pub system_length: usize,
}

/// An input besides the tokens that KV depends on. The layout is `struct espalier_pool_extra`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct PoolExtra {
    /// The first position it covers.
    pub first: u32,
    /// Number of positions it covers.
    pub length: u32,
    /// Its key, such as the hash of an image.
    pub key: *const u8,
    /// Length of the key in bytes.
    pub key_length: usize,
}

/// A boundary at which a sequence should stop computing. The layout is `struct espalier_pool_stop`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct PoolStop {
    /// Number of tokens before it; 0: the sequence need not stop.
    pub tokens: u64,
    /// The [`Reason`] as an integer.
    pub reason: u32,
}

/// Space for blocks that a function returns. The layout is `struct espalier_pool_blocks`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct PoolBlocks {
    /// Space for `capacity` integers; gets the first cells of the blocks.
    pub first_cells: *mut u32,
    /// Number of integers that there is space for.
    pub capacity: usize,
    /// Gets the number of blocks, even if that is more than `capacity`.
    pub count: usize,
}

/// Creates a pool. Returns NULL if `options` is null or out of range, or if there is not enough memory.
///
/// # Safety
///
/// `options` is null or points to a valid `struct espalier_pool_options`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn espalier_pool_new(options: *const PoolOptions) -> *mut SharedPool {
    guarded(std::ptr::null_mut(), || {
        // SAFETY: per this function's contract `options` is null or points to valid options.
        let options = unsafe { options.as_ref() };
        let pool = options.and_then(|options| SharedPool::new(*options));
        pool.map_or(std::ptr::null_mut(), |pool| Box::into_raw(Box::new(pool)))
    })
}

/// Frees a pool; null is allowed.
///
/// # Safety
///
/// `pool` is null or comes from [`espalier_pool_new`], and is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn espalier_pool_free(pool: *mut SharedPool) {
    guarded((), || {
        if !pool.is_null() {
            // SAFETY: per this function's contract `pool` comes from `espalier_pool_new`, which boxed it, and is not
            // used afterwards.
            drop(unsafe { Box::from_raw(pool) });
        }
    });
}

/// See [`Pool::reserve`].
///
/// # Safety
///
/// `pool` is null or points to a live pool. `sequences` and `positions` point to `count` integers, `cells` and
/// `fresh_blocks` to space for as many, `fresh_count` to space for one. Null is refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn espalier_pool_reserve(
    pool: *mut SharedPool,
    sequences: *const i32,
    positions: *const i32,
    count: usize,
    cells: *mut u32,
    fresh_blocks: *mut u32,
    fresh_count: *mut usize,
) -> i32 {
    let group = Group::Full as u32;
    // SAFETY: both functions have the same contract.
    unsafe {
        espalier_pool_reserve_in(pool, group, sequences, positions, count, cells, fresh_blocks, fresh_count)
    }
}

/// See [`Pool::reserve_in`].
///
/// # Safety
///
/// As for [`espalier_pool_reserve`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn espalier_pool_reserve_in(
    pool: *mut SharedPool,
    group: u32,
    sequences: *const i32,
    positions: *const i32,
    count: usize,
    cells: *mut u32,
    fresh_blocks: *mut u32,
    fresh_count: *mut usize,
) -> i32 {
    // SAFETY: per this function's contract the pointers are valid for these lengths; they are checked for null before
    // they are written.
    let answer = |shared: &SharedPool, pool: &mut Pool| unsafe {
        check_output(cells, count)?;
        check_output(fresh_blocks, count)?;
        check_output(fresh_count, 1)?;
        let group = Group::from_number(group).ok_or(PoolStatus::Invalid)?;
        let reservation = pool.reserve_in(group, slice(sequences, count)?, slice(positions, count)?)?;
        write(&reservation.cells, cells, count);
        write_blocks(&shared.first_cells(&reservation.fresh_blocks), fresh_blocks, count, fresh_count);
        Ok(PoolStatus::Ok)
    };
    // SAFETY: per this function's contract `pool` is null or points to a live pool.
    unsafe { with_pool(pool, answer) }
}

/// See [`Pool::share`].
///
/// # Safety
///
/// `pool` is null or points to a live pool.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn espalier_pool_share(
    pool: *mut SharedPool,
    from: i32,
    to: i32,
    p0: i32,
    p1: i32,
) -> i32 {
    // SAFETY: both functions have the same contract.
    unsafe { espalier_pool_share_in(pool, Group::Full as u32, from, to, p0, p1) }
}

/// See [`Pool::share_in`].
///
/// # Safety
///
/// `pool` is null or points to a live pool.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn espalier_pool_share_in(
    pool: *mut SharedPool,
    group: u32,
    from: i32,
    to: i32,
    p0: i32,
    p1: i32,
) -> i32 {
    let answer = |_: &SharedPool, pool: &mut Pool| {
        let group = Group::from_number(group).ok_or(PoolStatus::Invalid)?;
        Ok(pool.share_in(group, from, to, p0, p1).map(|()| PoolStatus::Ok)?)
    };
    // SAFETY: per this function's contract `pool` is null or points to a live pool.
    unsafe { with_pool(pool, answer) }
}

/// See [`Pool::remove`].
///
/// # Safety
///
/// `pool` is null or points to a live pool.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn espalier_pool_remove(pool: *mut SharedPool, sequence: i32, p0: i32, p1: i32) -> i32 {
    // SAFETY: both functions have the same contract.
    unsafe { espalier_pool_remove_in(pool, Group::Full as u32, sequence, p0, p1) }
}

/// See [`Pool::remove_in`].
///
/// # Safety
///
/// `pool` is null or points to a live pool.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn espalier_pool_remove_in(
    pool: *mut SharedPool,
    group: u32,
    sequence: i32,
    p0: i32,
    p1: i32,
) -> i32 {
    let answer = |_: &SharedPool, pool: &mut Pool| {
        let group = Group::from_number(group).ok_or(PoolStatus::Invalid)?;
        Ok(pool.remove_in(group, sequence, p0, p1).map(|()| PoolStatus::Ok)?)
    };
    // SAFETY: per this function's contract `pool` is null or points to a live pool.
    unsafe { with_pool(pool, answer) }
}

/// See [`Pool::slide`].
///
/// # Safety
///
/// `pool` is null or points to a live pool, `first` is null or points to space for one integer. Null is refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn espalier_pool_slide(
    pool: *mut SharedPool,
    sequence: i32,
    computed: u64,
    first: *mut u64,
) -> i32 {
    let answer = |_: &SharedPool, pool: &mut Pool| {
        check_output(first, 1)?;
        let position = pool.slide(sequence, computed)?;
        // SAFETY: `first` is not null, so per this function's contract it has space for an integer.
        unsafe { first.write(position) };
        Ok(PoolStatus::Ok)
    };
    // SAFETY: per this function's contract `pool` is null or points to a live pool.
    unsafe { with_pool(pool, answer) }
}

/// See [`Pool::clear`]. Also resets a pool after an internal panic.
///
/// # Safety
///
/// `pool` is null or points to a live pool.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn espalier_pool_clear(pool: *mut SharedPool) {
    guarded((), || {
        // SAFETY: per this function's contract `pool` is null or points to a live pool.
        if let Some(shared) = unsafe { pool.as_ref() } {
            shared.clear();
        }
    });
}

/// See [`Pool::begin`] and [`Pool::resume`].
///
/// # Safety
///
/// `pool` is null or points to a live pool. `request` is null or points to a valid `struct espalier_pool_request` whose
/// pointers are valid for the lengths beside them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn espalier_pool_begin(
    pool: *mut SharedPool,
    sequence: i32,
    request: *const PoolRequest,
) -> i32 {
    let answer = |_: &SharedPool, pool: &mut Pool| {
        // SAFETY: per this function's contract `request` is null or valid, and its pointers are valid for their
        // lengths.
        let (request, tokens, keys) = unsafe {
            let request = request.as_ref().ok_or(PoolStatus::Invalid)?;
            (request, slice(request.tokens, request.token_count)?, request_keys(request)?)
        };
        pool.resume(sequence, request.held_count, tokens, keys)?;
        pool.set_system_length(sequence, request.system_length)?;
        Ok(PoolStatus::Ok)
    };
    // SAFETY: per this function's contract `pool` is null or points to a live pool.
    unsafe { with_pool(pool, answer) }
}

/// See [`Pool::match_up_to`].
///
/// # Safety
///
/// `pool` is null or points to a live pool. `blocks` points to space for `capacity` integers, `block_count` and
/// `snapshot` to space for one. Null is refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn espalier_pool_match_prefix(
    pool: *mut SharedPool,
    sequence: i32,
    tokens: u64,
    blocks: *mut u32,
    capacity: usize,
    block_count: *mut usize,
    snapshot: *mut u32,
) -> i32 {
    // SAFETY: per this function's contract the pointers are valid for these lengths; they are checked for null before
    // they are written.
    let answer = |shared: &SharedPool, pool: &mut Pool| unsafe {
        check_output(blocks, capacity)?;
        check_output(block_count, 1)?;
        check_output(snapshot, 1)?;
        refuse_windows(pool)?;
        let prefix_match = pool.match_up_to(sequence, tokens)?;
        snapshot.write(prefix_match.snapshot.map_or(0, |snapshot| snapshot.0));
        write_blocks(&shared.first_cells(&prefix_match.blocks), blocks, capacity, block_count);
        Ok(PoolStatus::from(prefix_match.next))
    };
    // SAFETY: per this function's contract `pool` is null or points to a live pool.
    unsafe { with_pool(pool, answer) }
}

/// See [`Pool::match_up_to`]. Returns the blocks of all groups.
///
/// # Safety
///
/// `pool` is null or points to a live pool. `blocks` points to a `struct espalier_pool_blocks` for each group, whose
/// pointers are valid for the capacities beside them, `snapshot` to space for one integer. Null is refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn espalier_pool_match_prefix_groups(
    pool: *mut SharedPool,
    sequence: i32,
    tokens: u64,
    blocks: *mut PoolBlocks,
    snapshot: *mut u32,
) -> i32 {
    // SAFETY: per this function's contract the pointers are valid for these lengths; they are checked for null before
    // they are written.
    let answer = |shared: &SharedPool, pool: &mut Pool| unsafe {
        check_groups(blocks)?;
        check_output(snapshot, 1)?;
        let prefix_match = pool.match_up_to(sequence, tokens)?;
        snapshot.write(prefix_match.snapshot.map_or(0, |snapshot| snapshot.0));
        write_groups(shared, &Groups::new(prefix_match.blocks, prefix_match.window_blocks), blocks);
        Ok(PoolStatus::from(prefix_match.next))
    };
    // SAFETY: per this function's contract `pool` is null or points to a live pool.
    unsafe { with_pool(pool, answer) }
}

/// See [`Pool::cache`].
///
/// # Safety
///
/// `pool` is null or points to a live pool. `tokens` points to `token_count` integers, `blocks` to space for `capacity`
/// integers, `block_count` to space for one. Null is refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn espalier_pool_cache_blocks(
    pool: *mut SharedPool,
    sequence: i32,
    tokens: *const i32,
    token_count: usize,
    blocks: *mut u32,
    capacity: usize,
    block_count: *mut usize,
) -> i32 {
    // SAFETY: per this function's contract the pointers are valid for these lengths; they are checked for null before
    // they are written.
    let answer = |shared: &SharedPool, pool: &mut Pool| unsafe {
        check_output(blocks, capacity)?;
        check_output(block_count, 1)?;
        refuse_windows(pool)?;
        let cached = pool.cache(sequence, slice(tokens, token_count)?)?;
        write_blocks(&shared.first_cells(&cached), blocks, capacity, block_count);
        Ok(PoolStatus::Ok)
    };
    // SAFETY: per this function's contract `pool` is null or points to a live pool.
    unsafe { with_pool(pool, answer) }
}

/// See [`Pool::cache_in_groups`].
///
/// # Safety
///
/// `pool` is null or points to a live pool. `tokens` points to `token_count` integers, `blocks` to a
/// `struct espalier_pool_blocks` for each group, whose pointers are valid for the capacities beside them. Null is
/// refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn espalier_pool_cache_block_groups(
    pool: *mut SharedPool,
    sequence: i32,
    tokens: *const i32,
    token_count: usize,
    blocks: *mut PoolBlocks,
) -> i32 {
    // SAFETY: per this function's contract the pointers are valid for these lengths; they are checked for null before
    // they are written.
    let answer = |shared: &SharedPool, pool: &mut Pool| unsafe {
        check_groups(blocks)?;
        let cached = pool.cache_in_groups(sequence, slice(tokens, token_count)?)?;
        write_groups(shared, &cached, blocks);
        Ok(PoolStatus::Ok)
    };
    // SAFETY: per this function's contract `pool` is null or points to a live pool.
    unsafe { with_pool(pool, answer) }
}

/// See [`Pool::next_stop`].
///
/// # Safety
///
/// `pool` is null or points to a live pool, `stop` is null or points to space for a `struct espalier_pool_stop`. Null
/// is refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn espalier_pool_next_stop(
    pool: *const SharedPool,
    sequence: i32,
    computed: u64,
    stop: *mut PoolStop,
) -> i32 {
    let answer = |_: &SharedPool, pool: &mut Pool| {
        check_output(stop, 1)?;
        let next = pool.next_stop(sequence, computed);
        let next = next.map(|next| PoolStop { tokens: next.tokens, reason: next.reason as u32 });
        // SAFETY: `stop` is not null, so per this function's contract it has space for the struct.
        unsafe { stop.write(next.unwrap_or(PoolStop { tokens: 0, reason: 0 })) };
        Ok(PoolStatus::Ok)
    };
    // SAFETY: per this function's contract `pool` is null or points to a live pool.
    unsafe { with_pool(pool, answer) }
}

/// See [`Pool::begin_snapshot`].
///
/// # Safety
///
/// `pool` is null or points to a live pool. `tokens` points to `token_count` integers, `evicted` to space for
/// `capacity` integers, `snapshot` and `evicted_count` to space for one. Null is refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn espalier_pool_snapshot_begin(
    pool: *mut SharedPool,
    sequence: i32,
    tokens: *const i32,
    token_count: usize,
    bytes: u64,
    reason: u32,
    snapshot: *mut u32,
    evicted: *mut u32,
    capacity: usize,
    evicted_count: *mut usize,
) -> i32 {
    // SAFETY: per this function's contract the pointers are valid for these lengths; they are checked for null before
    // they are written.
    let answer = |_: &SharedPool, pool: &mut Pool| unsafe {
        check_output(snapshot, 1)?;
        check_output(evicted, capacity)?;
        check_output(evicted_count, 1)?;
        let reason = Reason::from_number(reason).ok_or(PoolStatus::Invalid)?;
        // Bytes of a snapshot that the caller does not get to know of would never be freed.
        if capacity < pool.snapshots().len() {
            return Err(PoolStatus::Invalid);
        }
        let grant = pool.begin_snapshot(sequence, slice(tokens, token_count)?, bytes, reason)?;
        let ids: Vec<u32> = grant.evicted.iter().map(|id| id.0).collect();
        write(&ids, evicted, capacity);
        evicted_count.write(ids.len());
        snapshot.write(grant.id.0);
        Ok(PoolStatus::Ok)
    };
    // SAFETY: per this function's contract `pool` is null or points to a live pool.
    unsafe { with_pool(pool, answer) }
}

/// See [`Pool::end_snapshot`].
///
/// # Safety
///
/// `pool` is null or points to a live pool.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn espalier_pool_snapshot_end(
    pool: *mut SharedPool,
    snapshot: u32,
    is_written: i32,
) -> i32 {
    let answer = |_: &SharedPool, pool: &mut Pool| {
        Ok(pool.end_snapshot(SnapshotId(snapshot), is_written != 0).map(|()| PoolStatus::Ok)?)
    };
    // SAFETY: per this function's contract `pool` is null or points to a live pool.
    unsafe { with_pool(pool, answer) }
}

/// See [`Pool::restored`].
///
/// # Safety
///
/// `pool` is null or points to a live pool.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn espalier_pool_restored(
    pool: *mut SharedPool,
    snapshot: u32,
    is_restored: i32,
) -> i32 {
    let answer = |_: &SharedPool, pool: &mut Pool| {
        Ok(pool.restored(SnapshotId(snapshot), is_restored != 0).map(|()| PoolStatus::Ok)?)
    };
    // SAFETY: per this function's contract `pool` is null or points to a live pool.
    unsafe { with_pool(pool, answer) }
}

/// See [`Pool::end`].
///
/// # Safety
///
/// `pool` is null or points to a live pool.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn espalier_pool_end(pool: *mut SharedPool, sequence: i32) -> i32 {
    // SAFETY: per this function's contract `pool` is null or points to a live pool.
    unsafe { with_pool(pool, |_, pool| Ok(pool.end(sequence).map(|()| PoolStatus::Ok)?)) }
}

/// See [`Pool::statistics`].
///
/// # Safety
///
/// `pool` is null or points to a live pool, `statistics` is null or points to space for a
/// `struct espalier_pool_statistics`. Null is refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn espalier_pool_statistics(
    pool: *const SharedPool,
    statistics: *mut Statistics,
) -> i32 {
    let answer = |_: &SharedPool, pool: &mut Pool| {
        check_output(statistics, 1)?;
        // SAFETY: `statistics` is not null, so per this function's contract it has space for the struct.
        unsafe { statistics.write(pool.statistics()) };
        Ok(PoolStatus::Ok)
    };
    // SAFETY: per this function's contract `pool` is null or points to a live pool.
    unsafe { with_pool(pool, answer) }
}

/// Writes the oldest unread event and returns 1; returns 0 if there is none or a pointer is null.
///
/// # Safety
///
/// `pool` is null or points to a live pool, `event` is null or points to space for a `struct espalier_pool_event`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn espalier_pool_next_event(pool: *mut SharedPool, event: *mut Event) -> i32 {
    let answer = |_: &SharedPool, pool: &mut Pool| {
        check_output(event, 1)?;
        let next = pool.next_event().ok_or(PoolStatus::Short)?;
        // SAFETY: `event` is not null, so per this function's contract it has space for the struct.
        unsafe { event.write(next) };
        Ok(PoolStatus::Ok)
    };
    // SAFETY: per this function's contract `pool` is null or points to a live pool.
    let status = unsafe { with_pool(pool, answer) };
    i32::from(status == PoolStatus::Ok as i32)
}

/// Locks the pool and runs `body`. Returns `Invalid` for null, for a poisoned pool and after a panic.
///
/// # Safety
///
/// `pool` is null or points to a live pool.
pub(crate) unsafe fn with_pool(
    pool: *const SharedPool,
    body: impl FnOnce(&SharedPool, &mut Pool) -> Result<PoolStatus, PoolStatus>,
) -> i32 {
    let answer = guarded(Err(PoolStatus::Invalid), || {
        // SAFETY: per this function's contract `pool` is null or points to a live pool.
        let shared = unsafe { pool.as_ref() }.ok_or(PoolStatus::Invalid)?;
        let mut state = shared.state().ok_or(PoolStatus::Invalid)?;
        body(shared, &mut state)
    });
    answer.unwrap_or_else(|status| status) as i32
}

pub(crate) fn check_output<T>(output: *mut T, count: usize) -> Result<(), PoolStatus> {
    if output.is_null() && count > 0 { Err(PoolStatus::Invalid) } else { Ok(()) }
}

/// Refuses a pool that has more blocks to return than the caller has asked for: their cells would be lost.
fn refuse_windows(pool: &Pool) -> Result<(), PoolStatus> {
    if pool.has_window() { Err(PoolStatus::Invalid) } else { Ok(()) }
}

/// Refuses null in place of the blocks of all groups, or of the space for one of them.
///
/// # Safety
///
/// `blocks` is null or points to a `struct espalier_pool_blocks` for each group.
unsafe fn check_groups(blocks: *const PoolBlocks) -> Result<(), PoolStatus> {
    // SAFETY: per this function's contract `blocks` is null or points to that many structs.
    let blocks = unsafe { slice(blocks, Group::ALL.len())? };
    blocks.iter().try_for_each(|blocks| check_output(blocks.first_cells, blocks.capacity))
}

/// # Safety
///
/// `start` is null or points to `count` values that outlive the returned slice.
pub(crate) unsafe fn slice<'a, T>(start: *const T, count: usize) -> Result<&'a [T], PoolStatus> {
    let is_too_long = count > isize::MAX as usize / size_of::<T>();
    match (count, start.is_null() || is_too_long) {
        (0, _) => Ok(&[]),
        (_, true) => Err(PoolStatus::Invalid),
        // SAFETY: per this function's contract `start` points to `count` values, and the length was checked.
        (_, false) => Ok(unsafe { std::slice::from_raw_parts(start, count) }),
    }
}

/// # Safety
///
/// The pointers in `request` are valid for the lengths beside them.
unsafe fn request_keys(request: &PoolRequest) -> Result<RequestKeys, PoolStatus> {
    // SAFETY: per this function's contract the pointers in `request` are valid for their lengths.
    unsafe {
        let extras = slice(request.extras, request.extra_count)?;
        Ok(RequestKeys {
            salt: slice(request.salt, request.salt_length)?.to_vec(),
            adapters: slice(request.adapters, request.adapters_length)?.to_vec(),
            extras: extras.iter().map(|extra| copied_extra(extra)).collect::<Result<_, _>>()?,
        })
    }
}

/// # Safety
///
/// `extra.key` is valid for `extra.key_length` bytes.
unsafe fn copied_extra(extra: &PoolExtra) -> Result<Extra, PoolStatus> {
    // SAFETY: per this function's contract the key is valid for its length.
    let key = unsafe { slice(extra.key, extra.key_length)? }.to_vec();
    Ok(Extra { first: extra.first, length: extra.length, key })
}

/// Writes at most `capacity` integers.
///
/// # Safety
///
/// `output` points to space for `capacity` integers.
unsafe fn write(numbers: &[u32], output: *mut u32, capacity: usize) {
    let count = numbers.len().min(capacity);
    if count > 0 {
        // SAFETY: `count <= capacity`, and the pool's memory does not overlap the caller's buffer.
        unsafe { std::ptr::copy_nonoverlapping(numbers.as_ptr(), output, count) };
    }
}

/// Writes at most `capacity` blocks, and their full number to `count`.
///
/// # Safety
///
/// As for [`write`], and `count` points to space for one integer.
unsafe fn write_blocks(first_cells: &[u32], output: *mut u32, capacity: usize, count: *mut usize) {
    // SAFETY: per this function's contract both pointers have the space that is written.
    unsafe {
        write(first_cells, output, capacity);
        count.write(first_cells.len());
    }
}

/// Writes the blocks of each group.
///
/// # Safety
///
/// `output` points to a `struct espalier_pool_blocks` for each group, whose pointers are valid for the capacities beside
/// them.
unsafe fn write_groups(shared: &SharedPool, found: &Groups<Vec<BlockId>>, output: *mut PoolBlocks) {
    for group in Group::ALL {
        // SAFETY: per this function's contract `output` points to a struct for each group, and its pointer has the
        // space that is written.
        unsafe {
            let blocks = &mut *output.add(group as usize);
            write_blocks(
                &shared.first_cells(&found[group]),
                blocks.first_cells,
                blocks.capacity,
                &mut blocks.count,
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    fn reserve(pool: *mut SharedPool, position: i32) -> (i32, u32) {
        let (mut cell, mut fresh, mut count) = (77, 0, 0);
        // SAFETY: the pool is live, and each pointer has space for one value.
        let status =
            unsafe { espalier_pool_reserve(pool, &0, &position, 1, &mut cell, &mut fresh, &mut count) };
        (status, cell)
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
            assert_eq!(espalier_pool_remove(pool, 0, 0, -1), 3);
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

    #[test]
    fn results_are_truncated_to_the_capacity_and_counted_in_full() {
        let pool = pool();
        let tokens = [1, 2, 3, 4, 5, 6, 7, 8];
        let request = PoolRequest {
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
        };
        let (mut blocks, mut count) = ([77, 77], 0);
        // SAFETY: the pool is live until it is freed, at the end; every buffer is as large as its length says.
        unsafe {
            assert_eq!(espalier_pool_begin(pool, 0, &request), 0);
            (0..8).for_each(|position| assert_eq!(reserve(pool, position).0, 0));
            let status =
                espalier_pool_cache_blocks(pool, 0, tokens.as_ptr(), 8, blocks.as_mut_ptr(), 1, &mut count);
            assert_eq!((status, count, blocks), (0, 2, [0, 77]));
            let missing = PoolRequest { salt_length: 1, ..request };
            assert_eq!(espalier_pool_begin(pool, 1, &missing), 3);
            espalier_pool_free(pool);
        }
    }

    #[test]
    fn many_threads_use_one_pool() {
        let options =
            PoolOptions { block_count: 64, block_size: 4, sequence_count: 8, ..PoolOptions::default() };
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
        let (sequences, positions): (Vec<i32>, Vec<i32>) =
            (0..32).map(|position| (sequence, position)).unzip();
        let (mut cells, mut fresh, mut count) = ([0; 32], [0; 32], 0);
        for _ in 0..100 {
            // SAFETY: the pool is live, and each buffer has space for 32 values.
            unsafe {
                let (from, at) = (sequences.as_ptr(), positions.as_ptr());
                let status = espalier_pool_reserve(
                    pool,
                    from,
                    at,
                    32,
                    cells.as_mut_ptr(),
                    fresh.as_mut_ptr(),
                    &mut count,
                );
                assert_eq!((status, count), (0, 8));
                assert_eq!(espalier_pool_remove(pool, sequence, 0, -1), 0);
            }
        }
    }
}
