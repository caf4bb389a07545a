//! Division of a computation among threads.

/// The part of a problem that one of several threads computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Index of the thread.
    pub thread: usize,
    /// Number of threads.
    pub threads: usize,
}

impl Share {
    /// Returns the indexes of this thread's items, of `all`. Every item belongs to one thread.
    pub(crate) fn of(self, all: usize) -> impl Iterator<Item = usize> {
        (self.thread..all).step_by(self.threads)
    }
}
