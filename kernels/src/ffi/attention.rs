//! The C ABI of [`crate::attention`].

use crate::attention::problem::Problem;
use crate::attention::{Memory, Share, compute, merge, work_size};
use crate::features::{Feature, disabled_features, enabled_features};
use crate::ffi::guarded;
use crate::kv_quant::DenseType;

/// Returns the bytes of memory that `threads` threads need together to compute `problem`; 0 if this kernel does not
/// support it, or is not enabled: `ESPALIER_ENABLE` enables it everywhere, a paged cache for itself, and
/// `ESPALIER_DISABLE` overrides both.
///
/// # Safety
///
/// `problem` is null or points to a valid `struct espalier_attention`. Its pointers are not dereferenced; only whether
/// they are null matters.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn espalier_attention_work_size(problem: *const Problem, threads: u32) -> usize {
    guarded(0, || {
        // SAFETY: per this function's contract `problem` is null or points to a valid problem.
        let problem = unsafe { problem.as_ref() };
        let ours = problem.filter(|problem| problem.types().is_some());
        ours.filter(|problem| is_wanted(problem)).map_or(0, |problem| work_size(problem, threads as usize))
    })
}

/// Returns whether the kernel is enabled for this problem: only a paged cache marks blocks, and only ours has a
/// residual window.
fn is_wanted(problem: &Problem) -> bool {
    let [cache, residual] = &problem.cells;
    let has_own_type =
        [cache.key_type, cache.value_type].into_iter().any(|kind| DenseType::from_number(kind).is_some());
    let comes_with_the_cache = !cache.blocks.is_null() || residual.count > 0 || has_own_type;
    comes_with_the_cache && !disabled_features().contains(Feature::Attention)
        || enabled_features().contains(Feature::Attention)
}

/// Computes a thread's share of the items. Call [`espalier_attention_merge`] once all threads have returned.
///
/// # Safety
///
/// `problem` points to a valid `struct espalier_attention` for which [`espalier_attention_work_size`] is not 0;
/// `memory` has that many bytes, and is the same for all `threads`; each of them has a different index.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn espalier_attention_compute(
    problem: *const Problem,
    thread: u32,
    threads: u32,
    memory: *mut u8,
) {
    // SAFETY: per this function's contract the problem and the memory are valid, and no other thread has this index.
    unsafe {
        with(problem, thread, threads, memory, |problem, share, memory| compute(problem, share, memory))
    }
}

/// Merges the partial results of the threads.
///
/// # Safety
///
/// As [`espalier_attention_compute`], which has returned on all threads.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn espalier_attention_merge(
    problem: *const Problem,
    thread: u32,
    threads: u32,
    memory: *mut u8,
) {
    // SAFETY: per this function's contract as for `espalier_attention_compute`, which has returned on all threads.
    unsafe { with(problem, thread, threads, memory, |problem, share, memory| merge(problem, share, memory)) }
}

/// # Safety
///
/// As [`espalier_attention_compute`].
unsafe fn with(
    problem: *const Problem,
    thread: u32,
    threads: u32,
    memory: *mut u8,
    work: impl FnOnce(&Problem, Share, &Memory),
) {
    guarded((), || {
        // SAFETY: per this function's contract `problem` points to a valid problem.
        let Some(problem) = (unsafe { problem.as_ref() }) else { return };
        let share = Share { thread: thread as usize, threads: threads as usize };
        if memory.is_null() || share.thread >= share.threads {
            return;
        }
        // SAFETY: as above.
        work(problem, share, &unsafe { Memory::new(problem, share, memory) });
    });
}
