//! Line numbers that can be subtracted.

/// `count` with a sign.
pub(crate) fn signed(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
