//! The C ABI of the block pool. That of snapshots is in [`crate::ffi::snapshots`].

use crate::ffi::guarded;
use crate::ffi::shared_pool::{check_groups, write, write_counted, write_groups};
use crate::pool::events::Event;
use crate::pool::extra_keys::{Extra, RequestKeys};
use crate::pool::groups::{Group, Groups};
use crate::pool::pool::{Pool, PoolOptions};
use crate::pool::statistics::Statistics;
use crate::scheduler::RequestSize;

pub use crate::ffi::shared_pool::{PoolBlocks, PoolStatus, SharedPool};
pub(crate) use crate::ffi::shared_pool::{check_output, slice, with_pool};

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
    /// One past the last position that it needs blocks for when it is admitted.
    pub end: u64,
    /// Number of further choices (`n`) that continue where its prompt ends.
    pub further_choices: u64,
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

/// See [`PoolOptions::blocks_of_windows`].
#[unsafe(no_mangle)]
pub extern "C" fn espalier_pool_blocks_of_windows(
    window: u32,
    block_size: u32,
    sequences: u32,
    batch_tokens: u32,
) -> u64 {
    guarded(0, || PoolOptions::blocks_of_windows(window, block_size, sequences, batch_tokens))
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

/// See [`Pool::reserve_in`].
///
/// # Safety
///
/// `pool` is null or points to a live pool. `sequences` and `positions` point to `count` integers, `cells` and
/// `fresh_blocks` to space for as many, `fresh_count` to space for one. Null is refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn espalier_pool_reserve(
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
        let (sequences, positions) = (slice(sequences, count)?, slice(positions, count)?);
        let reservation = pool.reserve_in(group_of(group)?, sequences, positions)?;
        write(&reservation.cells, cells, count);
        write_counted(&shared.first_cells(&reservation.fresh_blocks), fresh_blocks, count, fresh_count);
        Ok(PoolStatus::Ok)
    };
    // SAFETY: per this function's contract `pool` is null or points to a live pool.
    unsafe { with_pool(pool, answer) }
}

/// See [`Pool::share_in`].
///
/// # Safety
///
/// `pool` is null or points to a live pool.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn espalier_pool_share(
    pool: *mut SharedPool,
    group: u32,
    from: i32,
    to: i32,
    p0: i32,
    p1: i32,
) -> i32 {
    let answer = |_: &SharedPool, pool: &mut Pool| {
        Ok(pool.share_in(group_of(group)?, from, to, p0, p1).map(|()| PoolStatus::Ok)?)
    };
    // SAFETY: per this function's contract `pool` is null or points to a live pool.
    unsafe { with_pool(pool, answer) }
}

/// See [`Pool::remove_in`].
///
/// # Safety
///
/// `pool` is null or points to a live pool.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn espalier_pool_remove(
    pool: *mut SharedPool,
    group: u32,
    sequence: i32,
    p0: i32,
    p1: i32,
) -> i32 {
    let answer = |_: &SharedPool, pool: &mut Pool| {
        Ok(pool.remove_in(group_of(group)?, sequence, p0, p1).map(|()| PoolStatus::Ok)?)
    };
    // SAFETY: per this function's contract `pool` is null or points to a live pool.
    unsafe { with_pool(pool, answer) }
}

/// Returns the group with this value of `enum espalier_pool_group`.
fn group_of(number: u32) -> Result<Group, PoolStatus> {
    Group::from_number(number).ok_or(PoolStatus::Invalid)
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

/// See [`Pool::begin_of_size`].
///
/// # Safety
///
/// `pool` is null or points to a live pool. `request` is null or points to a valid `struct espalier_pool_request`, each
/// of whose pointers is valid for the length in the field after it, as is the `key` of each of its `extras`.
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
        let size = RequestSize { end: request.end, further_choices: request.further_choices };
        pool.begin_of_size(sequence, request.held_count, tokens, keys, size)?;
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
/// `pool` is null or points to a live pool. `blocks` points to a `struct espalier_pool_blocks` for each group, whose
/// `first_cells` has space for `capacity` integers, `snapshot` to space for one integer. Null is refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn espalier_pool_match_prefix(
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

/// See [`Pool::cache_in_groups`].
///
/// # Safety
///
/// `pool` is null or points to a live pool. `tokens` points to `token_count` integers, `blocks` to a
/// `struct espalier_pool_blocks` for each group, whose `first_cells` has space for `capacity` integers. Null is
/// refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn espalier_pool_cache_blocks(
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

/// # Safety
///
/// Each pointer in `request`, and the `key` of each of its `extras`, is valid for the length in the field after it.
unsafe fn request_keys(request: &PoolRequest) -> Result<RequestKeys, PoolStatus> {
    // SAFETY: per this function's contract the pointers in `request` and in its extras are valid for their
    // lengths.
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

#[cfg(test)]
mod tests;
