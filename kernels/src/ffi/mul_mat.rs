//! The C ABI of [`crate::mul_mat`]: the declarations of `include/espalier_mul_mat.h`.

use crate::features::{Feature, enabled_features};
use crate::mul_mat::{Problem, compute};
use crate::share::Share;

/// Computes a thread's share. Returns 1; or 0, on all threads and before anything is written, if `mul-mat` is off, the
/// sizes are not supported, or `problem` is null.
///
/// A panic aborts: other threads may have written by then, so there is no neutral value.
///
/// # Safety
///
/// `problem` is null or points to a valid `struct espalier_mul_mat`, whose pointers are valid for its sizes and
/// strides, and whose output does not overlap the others. Each of `threads` threads has a different index.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn espalier_mul_mat_compute(problem: *const Problem, thread: u32, threads: u32) -> i32 {
    // SAFETY: per this function's contract `problem` is null or points to a valid problem.
    let Some(problem) = (unsafe { problem.as_ref() }) else { return 0 };
    let share = Share { thread: thread as usize, threads: threads as usize };
    let is_on = enabled_features().contains(Feature::MulMat) && share.thread < share.threads;
    // SAFETY: per this function's contract the problem's pointers are valid, the output does not overlap the others,
    // and no other thread has this index.
    i32::from(is_on && unsafe { compute(problem, share) })
}
