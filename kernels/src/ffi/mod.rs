//! The C ABI, one module for each subject, and its guard: a panic must not unwind into C++ frames, which is undefined
//! behaviour.

pub mod attention;
pub mod boundaries;
pub mod fit;
pub mod gdn;
pub mod kv_gather;
pub mod kv_quant;
pub mod library;
pub mod mul_mat;
pub mod pool;
pub mod scheduler;
pub mod shared_pool;
pub mod snapshots;

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `body`; a panic inside it becomes `neutral`, the value that means "off" to the caller.
///
/// The panic hook has already written its message to stderr, so nothing is lost.
pub(crate) fn guarded<T>(neutral: T, body: impl FnOnce() -> T) -> T {
    // `AssertUnwindSafe` is sound here: a caught panic leaves no broken state that later calls can observe. The exports
    // initialise their state in `OnceLock`s and atomics, and a block pool is behind a lock that a panic poisons (see
    // `shared_pool`).
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(neutral)
}

#[cfg(test)]
mod tests {
    use super::guarded;

    #[test]
    fn a_panic_becomes_the_neutral_value() {
        assert_eq!(guarded(7, || panic!("this panic is part of the test")), 7);
    }

    #[test]
    fn a_result_passes_through() {
        assert_eq!(guarded(7, || 8), 8);
    }
}
