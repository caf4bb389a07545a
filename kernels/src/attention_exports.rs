//! The C ABI of [`crate::attention`].

use crate::attention::problem::Problem;
use crate::attention::{Memory, Share, compute, merge, work_bytes};
use crate::border::guarded;
use crate::features::{Feature, disabled_features, enabled_features};
use crate::kv_types::DenseType;

/// Bytes of memory that `threads` threads need together to compute `problem`; 0 if it is not for this kernel, or nobody asked
/// for it: `ESPALIER_ENABLE` does everywhere, and a paged cache for itself, unless `ESPALIER_DISABLE` forbids it.
///
/// # Safety
///
/// `problem` is null or points to a valid `struct espalier_attention`, whose pointers need not be set but for which of them are
/// null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn espalier_attention_work_bytes(problem: *const Problem, threads: u32) -> usize {
    guarded(0, || {
        // SAFETY: the caller's promise is the one needed here.
        let problem = unsafe { problem.as_ref() };
        let ours = problem.filter(|problem| problem.types().is_some());
        ours.filter(|problem| is_wanted(problem)).map_or(0, |problem| work_bytes(problem, threads as usize))
    })
}

/// Only a paged cache marks tiles, and only ours has copies of cells.
fn is_wanted(problem: &Problem) -> bool {
    let [cache, copies] = &problem.cells;
    let has_own_type =
        [cache.key_type, cache.value_type].into_iter().any(|kind| DenseType::from_number(kind).is_some());
    let comes_with_the_cache = !cache.tiles.is_null() || copies.count > 0 || has_own_type;
    comes_with_the_cache && !disabled_features().contains(Feature::Attention)
        || enabled_features().contains(Feature::Attention)
}

/// Computes a thread's share of the items. Once all threads have, [`espalier_attention_merge`] follows.
///
/// # Safety
///
/// `problem` points to a valid `struct espalier_attention` for which [`espalier_attention_work_bytes`] is not 0; `memory` has that
/// many bytes, and is the same for all `threads`; each of them has another number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn espalier_attention_compute(
    problem: *const Problem,
    thread: u32,
    threads: u32,
    memory: *mut u8,
) {
    // SAFETY: the caller's promise is the one needed here.
    unsafe {
        with(problem, thread, threads, memory, |problem, share, memory| compute(problem, share, memory))
    }
}

/// Puts together what the threads have computed.
///
/// # Safety
///
/// As [`espalier_attention_compute`], which all threads have left.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn espalier_attention_merge(
    problem: *const Problem,
    thread: u32,
    threads: u32,
    memory: *mut u8,
) {
    // SAFETY: the caller's promise is the one needed here.
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
        // SAFETY: the caller's promise is the one needed here.
        let Some(problem) = (unsafe { problem.as_ref() }) else { return };
        let share = Share { thread: thread as usize, threads: threads as usize };
        if memory.is_null() || share.thread >= share.threads {
            return;
        }
        // SAFETY: as above.
        work(problem, share, &unsafe { Memory::new(problem, share, memory) });
    });
}
