//! Tests that the limits of libgit2's memory are set: alone in its process, because they are globals.

use espalier_core::sys::git::memory::{CACHED, MAPPED, WINDOW, limit};

#[test]
fn the_limits_are_set() {
    // SAFETY: this is the only test of its process, so no other thread calls libgit2.
    unsafe {
        limit();
        assert_eq!(git2::opts::get_mwindow_size().unwrap(), WINDOW);
        assert_eq!(git2::opts::get_mwindow_mapped_limit().unwrap(), MAPPED);
        assert_eq!(git2::opts::get_cached_memory().unwrap().1, CACHED);
    }
}
