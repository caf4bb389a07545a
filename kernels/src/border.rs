//! The border to C: a panic must not unwind into C++ frames, that is undefined behaviour.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `body`; a panic inside it becomes `neutral`, the value that means "off" to the caller.
///
/// The panic hook has already written its message to stderr, so nothing is lost.
pub(crate) fn guarded<T>(neutral: T, body: impl FnOnce() -> T) -> T {
    // A caught panic can leave no broken state behind that anyone sees: what the exports initialise
    // lives in `OnceLock`s and atomics, and a block pool lies behind a lock that a panic poisons
    // (see `pool_exports`).
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
