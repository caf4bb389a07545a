//! Memory limits of libgit2, independent of the size of the history that is read.

/// Bytes of one mapped window of a pack.
pub const WINDOW: usize = 8 << 20;
/// Bytes of packs mapped at a time. libgit2's default is 8 GiB: all of every pack stays mapped.
pub const MAPPED: usize = 64 << 20;
/// Bytes of parsed commits and trees that stay cached, counted by their size in the store; in memory they take twice
/// as much. A walk needs those of a commit and its parents. libgit2's default is 256 MiB.
pub const CACHED: isize = 8 << 20;

/// Sets the limits.
///
/// # Safety
///
/// Writes globals of libgit2 without synchronization: no other thread may run yet.
pub unsafe fn limit() {
    // If a limit cannot be set, the default stays: it uses more memory but gives the same results.
    // SAFETY: per this function's contract no other thread runs.
    unsafe {
        let _ = git2::opts::set_mwindow_size(WINDOW);
        let _ = git2::opts::set_mwindow_mapped_limit(MAPPED);
        let _ = git2::opts::set_cache_max_size(CACHED);
    }
}
