//! The C ABI of snapshots of states, and of the stops at which they are taken.

use crate::ffi::shared_pool::{
    PoolBlocks, PoolStatus, SharedPool, check_groups, check_output, slice, with_pool, write, write_counted,
    write_groups,
};
use crate::pool::pool::Pool;
use crate::pool::snapshots::{Reason, SnapshotId};

/// A boundary at which a sequence should stop computing. The layout is `struct espalier_pool_stop`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct PoolStop {
    /// Number of tokens before it; 0: the sequence need not stop.
    pub tokens: u64,
    /// The [`Reason`] as an integer.
    pub reason: u32,
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
        // The memory of a snapshot leaks if its id is not returned to the caller.
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
    sequence: i32,
    snapshot: u32,
    is_restored: i32,
) -> i32 {
    let answer = |_: &SharedPool, pool: &mut Pool| {
        Ok(pool.restored(sequence, SnapshotId(snapshot), is_restored != 0).map(|()| PoolStatus::Ok)?)
    };
    // SAFETY: per this function's contract `pool` is null or points to a live pool.
    unsafe { with_pool(pool, answer) }
}

/// See [`Pool::distrust`].
///
/// # Safety
///
/// `pool` is null or points to a live pool. `blocks` points to a `struct espalier_pool_blocks` for each group, whose
/// `first_cells` has space for `capacity` integers, `snapshots` to space for `capacity` integers, `snapshot_count` to
/// space for one. Null is refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn espalier_pool_distrust(
    pool: *mut SharedPool,
    sequence: i32,
    matched: u64,
    blocks: *mut PoolBlocks,
    snapshots: *mut u32,
    capacity: usize,
    snapshot_count: *mut usize,
) -> i32 {
    // SAFETY: per this function's contract the pointers are valid for these lengths; they are checked for null before
    // they are written.
    let answer = |shared: &SharedPool, pool: &mut Pool| unsafe {
        check_groups(blocks)?;
        check_output(snapshots, capacity)?;
        check_output(snapshot_count, 1)?;
        // The memory of a snapshot leaks if its id is not returned to the caller.
        if capacity < pool.snapshots().len() {
            return Err(PoolStatus::Invalid);
        }
        let distrusted = pool.distrust(sequence, matched)?;
        write_groups(shared, &distrusted.blocks, blocks);
        let ids: Vec<u32> = distrusted.snapshots.iter().map(|id| id.0).collect();
        write_counted(&ids, snapshots, capacity, snapshot_count);
        Ok(PoolStatus::Ok)
    };
    // SAFETY: per this function's contract `pool` is null or points to a live pool.
    unsafe { with_pool(pool, answer) }
}
