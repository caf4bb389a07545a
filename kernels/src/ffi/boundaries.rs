//! The C ABI of the boundaries between the blocks of a sequence.

use crate::ffi::pool::{PoolStatus, SharedPool, check_output, with_pool};
use crate::pool::pool::Pool;

/// See [`Pool::block_of`].
///
/// # Safety
///
/// `pool` is null or points to a live pool, `first` and `end` are null or point to space for one integer. Null is
/// refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn espalier_pool_block_of(
    pool: *const SharedPool,
    sequence: i32,
    token: u64,
    first: *mut u64,
    end: *mut u64,
) -> i32 {
    let answer = |_: &SharedPool, pool: &mut Pool| {
        check_output(first, 1)?;
        check_output(end, 1)?;
        let block = pool.block_of(sequence, token).ok_or(PoolStatus::Invalid)?;
        // SAFETY: neither is null, so per this function's contract they have space for an integer.
        unsafe {
            first.write(block.start);
            end.write(block.end);
        }
        Ok(PoolStatus::Ok)
    };
    // SAFETY: per this function's contract `pool` is null or points to a live pool.
    unsafe { with_pool(pool, answer) }
}
