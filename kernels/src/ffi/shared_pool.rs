//! The pool that C has a pointer to: its lock, and what its functions check and return.
//!
//! # Panics inside the pool
//!
//! A panic may leave a change half done, so the pool's tables can no longer be trusted. It poisons the lock, and from
//! then on every function returns [`PoolStatus::Invalid`]: no cell is handed out twice, and no half-written block can
//! be matched. The pool can be reset: `espalier_pool_clear` rebuilds all tables, and the pool works again. The
//! failure is logged once on stderr.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

use crate::ffi::guarded;
use crate::pool::block::BlockId;
use crate::pool::groups::{Group, Groups};
use crate::pool::pool::{Next, Pool, PoolError, PoolOptions};
use crate::pool::snapshots::NoSnapshot;
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

impl From<PoolError> for PoolStatus {
    fn from(refusal: PoolError) -> PoolStatus {
        match refusal {
            PoolError::Short => PoolStatus::Short,
            PoolError::Invalid => PoolStatus::Invalid,
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
    /// Creates a pool; `None` if the options are out of range, or if there is not enough memory.
    pub(super) fn new(options: PoolOptions) -> Option<SharedPool> {
        let state = Mutex::new(Pool::new(options).ok()?);
        Some(SharedPool {
            block_size: options.block_size,
            state,
            has_reported_failure: AtomicBool::new(false),
        })
    }

    /// Locks the state; `None` if the lock is poisoned.
    pub(super) fn state(&self) -> Option<MutexGuard<'_, Pool>> {
        let state = self.state.lock().ok();
        if state.is_none() && !self.has_reported_failure.swap(true, Ordering::Relaxed) {
            report::line_to_stderr("the block pool failed inside and refuses everything until it is cleared");
        }
        state
    }

    /// Rebuilds all tables, also after a panic.
    pub(super) fn clear(&self) {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clear();
        self.state.clear_poison();
        self.has_reported_failure.store(false, Ordering::Relaxed);
    }

    pub(super) fn first_cells(&self, blocks: &[BlockId]) -> Vec<u32> {
        blocks.iter().map(|block| block.first_cell(self.block_size)).collect()
    }
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

/// Writes at most `capacity` integers.
///
/// # Safety
///
/// `output` points to space for `capacity` integers.
pub(super) unsafe fn write(numbers: &[u32], output: *mut u32, capacity: usize) {
    let count = numbers.len().min(capacity);
    if count > 0 {
        // SAFETY: `count <= capacity`, and the pool's memory does not overlap the caller's buffer.
        unsafe { std::ptr::copy_nonoverlapping(numbers.as_ptr(), output, count) };
    }
}

/// Writes at most `capacity` integers, and their full number to `count`.
///
/// # Safety
///
/// As for [`write`], and `count` points to space for one integer.
pub(super) unsafe fn write_counted(numbers: &[u32], output: *mut u32, capacity: usize, count: *mut usize) {
    // SAFETY: per this function's contract both pointers have the space that is written.
    unsafe {
        write(numbers, output, capacity);
        count.write(numbers.len());
    }
}

/// Space for the blocks of one group that a function returns. The layout is `struct espalier_pool_blocks`.
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

/// Refuses null in place of the blocks of all groups, or of the space for one of them.
///
/// # Safety
///
/// `blocks` is null or points to a `struct espalier_pool_blocks` for each group.
pub(super) unsafe fn check_groups(blocks: *const PoolBlocks) -> Result<(), PoolStatus> {
    check_output(blocks.cast_mut(), Group::ALL.len())?;
    Group::ALL.into_iter().try_for_each(|group| {
        // SAFETY: `blocks` is not null, so per this function's contract it points to a struct for each group. The
        // caller need not have initialised `count`, so there is no reference to the struct.
        let (first_cells, capacity) = unsafe {
            let blocks = blocks.add(group as usize);
            ((*blocks).first_cells, (*blocks).capacity)
        };
        check_output(first_cells, capacity)
    })
}

/// Writes the blocks of each group.
///
/// # Safety
///
/// `output` points to a `struct espalier_pool_blocks` for each group, whose `first_cells` has space for
/// `capacity` integers.
pub(super) unsafe fn write_groups(
    shared: &SharedPool,
    found: &Groups<Vec<BlockId>>,
    output: *mut PoolBlocks,
) {
    for group in Group::ALL {
        // SAFETY: per this function's contract `output` points to a struct for each group, and its pointer has the
        // space that is written. There is no reference to the struct, whose `count` need not be initialised.
        unsafe {
            let blocks = output.add(group as usize);
            let first_cells = shared.first_cells(&found[group]);
            write_counted(&first_cells, (*blocks).first_cells, (*blocks).capacity, &raw mut (*blocks).count);
        }
    }
}
