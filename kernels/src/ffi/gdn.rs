//! The C ABI of [`crate::gdn`].

use crate::features::{Feature, enabled_features};
use crate::ffi::guarded;
use crate::gdn::convolution::Convolution;
use crate::gdn::problem::Problem;
use crate::gdn::{StateOperation, compute};
use crate::share::Share;

/// Returns 1 if `gdn-recurrence` is on and the kernel supports the sizes of `problem`, else 0, also for a null pointer.
///
/// # Safety
///
/// `problem` is null or points to a valid `struct espalier_gdn`. Its pointers are not dereferenced.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn espalier_gdn_is_supported(problem: *const Problem) -> i32 {
    // SAFETY: per this function's contract `problem` is null or points to a valid problem.
    unsafe { is_supported(problem) }
}

/// Computes a thread's share. Returns 1; or 0, on all threads and before anything is written, if the sizes are not
/// supported, a source is not a cell of the cache, or `problem` is null.
///
/// # Safety
///
/// `problem` is null or points to a valid `struct espalier_gdn`, whose pointers are valid for its sizes and strides.
/// Each of `threads` threads has a different index.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn espalier_gdn_compute(problem: *const Problem, thread: u32, threads: u32) -> i32 {
    // SAFETY: per this function's contract `problem` is null or valid, and no other thread has this index.
    unsafe { compute_share(problem, thread, threads) }
}

/// As [`espalier_gdn_is_supported`].
///
/// # Safety
///
/// `problem` is null or points to a valid `struct espalier_gdn_convolution`. Its pointers are not dereferenced.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn espalier_gdn_convolution_is_supported(problem: *const Convolution) -> i32 {
    // SAFETY: per this function's contract `problem` is null or points to a valid problem.
    unsafe { is_supported(problem) }
}

/// As [`espalier_gdn_compute`].
///
/// # Safety
///
/// `problem` is null or points to a valid `struct espalier_gdn_convolution`, whose pointers are valid for its sizes
/// and strides. Each of `threads` threads has a different index.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn espalier_gdn_convolution_compute(
    problem: *const Convolution,
    thread: u32,
    threads: u32,
) -> i32 {
    // SAFETY: per this function's contract `problem` is null or valid, and no other thread has this index.
    unsafe { compute_share(problem, thread, threads) }
}

/// # Safety
///
/// `operation` is null or points to a valid operation. Its pointers are not dereferenced.
unsafe fn is_supported<O: StateOperation>(operation: *const O) -> i32 {
    guarded(0, || {
        // SAFETY: per this function's contract `operation` is null or points to a valid operation.
        let operation = unsafe { operation.as_ref() };
        let is_on = enabled_features().contains(Feature::GdnRecurrence);
        i32::from(is_on && operation.is_some_and(O::is_supported))
    })
}

/// # Safety
///
/// `operation` is null or points to a valid operation, whose pointers are valid for its sizes and strides; its output
/// and its cache do not overlap its other tensors. Each of `threads` threads has a different index.
unsafe fn compute_share<O: StateOperation>(operation: *const O, thread: u32, threads: u32) -> i32 {
    guarded(0, || {
        // SAFETY: per this function's contract `operation` is null or points to a valid operation.
        let Some(operation) = (unsafe { operation.as_ref() }) else { return 0 };
        let share = Share { thread: thread as usize, threads: threads as usize };
        // SAFETY: per this function's contract the operation's pointers are valid, and no other thread has this index.
        i32::from(share.thread < share.threads && unsafe { compute(operation, share) })
    })
}
